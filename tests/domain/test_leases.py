from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.domain.leases import (
    BadLease,
    Term,
    default_margin,
    holds,
    lapsed,
    next_term,
    renew_every,
    renewed,
    resigned,
    trusted,
    trusted_until,
)

NOW = datetime(2026, 1, 1, tzinfo=UTC)
LEASE = timedelta(seconds=30)
SECOND = timedelta(seconds=1)

leases = st.timedeltas(min_value=timedelta(milliseconds=1), max_value=timedelta(days=1))
monotonic = st.floats(0, 1e6)


def test_a_holder_stops_before_the_store_lets_others_in() -> None:
    """Thirty seconds of lease are twenty-five of trust, from when the request was made."""
    assert trusted_until(100.0, LEASE) == 125.0
    assert trusted_until(100.0, LEASE, margin=timedelta(seconds=10)) == 120.0


@given(monotonic, leases, st.floats(0, 1e4), st.data())
def test_trust_ends_before_the_lease_however_slow_the_reply(
    started: float, lease: timedelta, slow: float, data: st.DataObject
) -> None:
    """The store grants at some moment after the request began; its end is always after the holder's."""
    margin = data.draw(
        st.none()
        | st.timedeltas(min_value=timedelta(microseconds=1), max_value=lease - timedelta(microseconds=1))
    )
    store_end = (started + slow) + lease.total_seconds()

    until = trusted_until(started, lease, margin=margin)

    assert started < until < store_end


@given(leases)
def test_a_failed_renewal_leaves_time_for_another(lease: timedelta) -> None:
    """Two renewals fall into the time in which the holder still trusts itself."""
    assert 3 * renew_every(lease) <= lease
    assert 2 * renew_every(lease) < lease - default_margin(lease)


def test_the_leader_renews_every_five_seconds() -> None:
    """The documented default: a term of 15 s."""
    assert renew_every(15 * SECOND) == 5 * SECOND


@pytest.mark.parametrize("margin", [timedelta(0), -SECOND, LEASE, LEASE + SECOND])
def test_a_margin_lies_within_the_lease(margin: timedelta) -> None:
    """No margin would be no safety, a whole lease no work."""
    with pytest.raises(BadLease, match="choose a smaller one"):
        trusted_until(0.0, LEASE, margin=margin)


@pytest.mark.parametrize("lease", [timedelta(0), -SECOND, timedelta(microseconds=999)])
def test_a_lease_lasts(lease: timedelta) -> None:
    """A lease nobody could renew in time is refused everywhere."""
    for refused in (
        lambda: renew_every(lease),
        lambda: trusted_until(0.0, lease),
        lambda: next_term(None, "a", now=NOW, lease=lease),
        lambda: renewed(None, Term(1, "a", NOW), now=NOW, lease=lease),
    ):
        with pytest.raises(BadLease, match="too short"):
            refused()


def test_work_begins_only_if_it_ends_in_time() -> None:
    """A call that may take ten seconds is not begun five seconds before the end."""
    assert trusted(114.9, 125.0, needs=10 * SECOND)
    assert not trusted(115.0, 125.0, needs=10 * SECOND)
    assert trusted(124.9, 125.0)
    assert not trusted(125.0, 125.0)


def test_a_lease_lapses_at_its_end() -> None:
    """Not a microsecond before."""
    assert not lapsed(NOW, now=NOW - timedelta(microseconds=1))
    assert lapsed(NOW, now=NOW)


def test_the_first_term_is_one() -> None:
    """An empty store has no leader and gives the first candidate term 1."""
    assert Term(1, "a", NOW + LEASE) == next_term(None, "a", now=NOW, lease=LEASE)


def test_a_candidate_waits_for_the_end_of_anothers_term() -> None:
    """Until then it gets nothing; then the next number."""
    held = Term(4, "a", NOW)

    assert None is next_term(held, "b", now=NOW - SECOND, lease=LEASE)
    assert Term(5, "b", NOW + LEASE) == next_term(held, "b", now=NOW, lease=LEASE)


def test_a_holder_that_asks_again_is_fenced_from_its_own_past() -> None:
    """It lost the reply to its election, so it gets a new number and the old one is worth nothing."""
    lost = Term(4, "a", NOW + LEASE)

    again = next_term(lost, "a", now=NOW, lease=LEASE)

    assert Term(5, "a", NOW + LEASE) == again
    assert None is renewed(again, lost, now=NOW, lease=LEASE)


def test_renewing_keeps_the_number() -> None:
    """Even after the end, as long as nobody else has led since."""
    mine = Term(4, "a", NOW)

    assert Term(4, "a", NOW + LEASE) == renewed(mine, mine, now=NOW, lease=LEASE)
    assert Term(4, "a", NOW + SECOND + LEASE) == renewed(mine, mine, now=NOW + SECOND, lease=LEASE)


def test_a_clock_set_back_does_not_leave_a_term_without_end() -> None:
    """The renewed end counts from the store's new time, even if it is earlier than the old end."""
    mine = Term(4, "a", NOW + timedelta(hours=1))

    assert Term(4, "a", NOW + LEASE) == renewed(mine, mine, now=NOW, lease=LEASE)


@pytest.mark.parametrize("current", [None, Term(5, "b", NOW + LEASE), Term(5, "a", NOW), Term(4, "b", NOW)])
def test_an_old_leader_cannot_touch_its_successors_term(current: Term | None) -> None:
    """Renewing and resigning match number and holder."""
    old = Term(4, "a", NOW)

    assert None is renewed(current, old, now=NOW, lease=LEASE)
    assert None is resigned(current, old, now=NOW)


def test_resigning_opens_the_next_term_at_once() -> None:
    """The number is kept, so that the next one is higher; resigning late prolongs nothing."""
    mine = Term(4, "a", NOW + LEASE)

    over = resigned(mine, mine, now=NOW)

    assert Term(4, "a", NOW) == over
    assert Term(5, "b", NOW + LEASE) == next_term(over, "b", now=NOW, lease=LEASE)
    assert over == resigned(over, mine, now=NOW)


@given(
    st.lists(
        st.tuples(st.sampled_from("abc"), st.sampled_from(["ask", "renew", "resign"]), st.integers(-20, 40)),
        max_size=60,
    )
)
def test_terms_only_rise_and_each_number_has_one_holder(moves: list[tuple[str, str, int]]) -> None:
    """However three nodes ask, renew and resign, and however the store's clock moves."""
    now, current = NOW, None
    mine: dict[str, Term] = {}
    holders: dict[int, str] = {}
    for node, verb, seconds in moves:
        now += seconds * SECOND
        before = current.number if current else 0
        if verb == "ask":
            granted = next_term(current, node, now=now, lease=LEASE)
        elif node in mine:
            old = mine[node]
            granted = (
                renewed(current, old, now=now, lease=LEASE)
                if verb == "renew"
                else resigned(current, old, now=now)
            )
        else:
            granted = None
        if granted is not None:
            current = mine[node] = granted
            assert granted.number >= before
            assert node == holders.setdefault(granted.number, node)


@pytest.mark.parametrize(
    ("current", "may"),
    [
        (Term(4, "a", NOW + SECOND), True),
        (Term(4, "a", NOW), False),
        (Term(4, "b", NOW + SECOND), False),
        (Term(5, "a", NOW + SECOND), False),
        (None, False),
    ],
    ids=["mine", "over", "another's", "a later one", "none"],
)
def test_a_leader_writes_only_under_the_present_term(current: Term | None, *, may: bool) -> None:
    mine = Term(4, "a", NOW - SECOND, "leader")

    assert holds(current, mine, now=NOW) is may
