"""What there is goes to those who want it, by weight."""

from hypothesis import given
from hypothesis import strategies as st

from penstock.domain.shares import divide

NAMES = st.sampled_from("abcde")
WANTS = st.dictionaries(NAMES, st.integers(0, 50))


@given(st.integers(0, 100), WANTS, st.data())
def test_nothing_is_wasted_and_nobody_gets_more_than_he_wants(
    amount: int, wants: dict[str, int], data: st.DataObject
) -> None:
    weights = {name: data.draw(st.integers(1, 9)) for name in wants}

    given_ = divide(amount, wants, weights, {})

    assert sum(given_.values()) == min(amount, sum(wants.values()))
    assert all(0 <= given_[name] <= wants[name] for name in wants)


def test_shares_follow_the_weights() -> None:
    assert divide(40, {"a": 100, "b": 100}, {"a": 3, "b": 1}, {}) == {"a": 30, "b": 10}


def test_what_one_does_not_want_the_others_get() -> None:
    assert divide(40, {"a": 5, "b": 100}, {"a": 3, "b": 1}, {}) == {"a": 5, "b": 35}


def test_fractions_add_up_over_time() -> None:
    owed: dict[str, float] = {}
    total = {"a": 0, "b": 0, "c": 0}
    for _ in range(300):
        for name, part in divide(1, {"a": 9, "b": 9, "c": 9}, {"a": 1, "b": 1, "c": 4}, owed).items():
            total[name] += part

    assert total["c"] in range(197, 204)
    assert abs(total["a"] - total["b"]) <= 2
