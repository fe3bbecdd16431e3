import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.domain.names import (
    MAX_LABEL_BYTES,
    NAME_PATTERN,
    BadName,
    LabelKind,
    NameKind,
    check_label,
    check_lane_name,
    check_name,
    near,
    shown,
    unknown,
)

NAMES: tuple[NameKind, ...] = ("lane", "pool", "sink")
LABELS: tuple[LabelKind, ...] = ("group", "tenant", "key")


@given(st.sampled_from(NAMES), st.from_regex(re.compile(NAME_PATTERN, re.ASCII), fullmatch=True))
def test_names_of_the_rule_are_accepted(kind: NameKind, name: str) -> None:
    """What matches the documented pattern is returned unchanged."""
    assert name == check_name(kind, name)


@pytest.mark.parametrize("name", ["", ".a", "-a", "_a", "a b", "a/b", "a\n", "ä", "a" * 64, "a\0"])
def test_other_names_are_refused_with_the_rule(name: str) -> None:
    """The message says which characters are allowed."""
    with pytest.raises(BadName, match=r"is not a lane: use 1 to 63 of A-Z a-z 0-9 _ \. -") as caught:
        check_lane_name(name)

    assert caught.value.kind == "lane"
    assert name == caught.value.value


@pytest.mark.parametrize("value", [None, 42, b"orders"])
def test_names_and_labels_are_text(value: object) -> None:
    """A number from a JSON document is not turned into text behind the caller's back."""
    with pytest.raises(BadName, match="write it as text"):
        check_name("pool", value)
    with pytest.raises(BadName, match="write it as text"):
        check_label("group", value)


@given(
    st.sampled_from(LABELS),
    st.text(st.characters(codec="utf-8", exclude_characters="\0"), min_size=1, max_size=MAX_LABEL_BYTES // 4),
)
def test_any_short_text_is_a_label(kind: LabelKind, label: str) -> None:
    """Groups, tenants and keys are the caller's own words, in any script."""
    assert label == check_label(kind, label)


@pytest.mark.parametrize(
    ("label", "advice"),
    [
        ("", "leave it out"),
        ("a\0b", "remove the NUL character"),
        ("a\ud800b", "remove the lone surrogate"),
        ("a" * 256, "it has 256 bytes in UTF-8, use at most 255"),
        ("ä" * 128, "it has 256 bytes in UTF-8, use at most 255"),
    ],
)
def test_labels_no_store_keeps_are_refused(label: str, advice: str) -> None:
    """The message says what to do about it."""
    with pytest.raises(BadName, match=advice):
        check_label("group", label)


def test_the_limit_counts_bytes() -> None:
    """The longest label has exactly 255 bytes, however many characters that is."""
    assert check_label("key", "a" * 255) == "a" * 255
    assert check_label("key", "ä" * 127 + "a") == "ä" * 127 + "a"


@given(st.text())
def test_a_refusal_is_short_printable_ascii(value: str) -> None:
    """Hostile text in a name reaches neither the terminal nor the log."""
    with pytest.raises(BadName) as caught:
        check_name("lane", f"\x1b{value}" * 50)

    assert len(str(caught.value)) < 250
    assert str(caught.value).replace("…", "").isascii()
    assert str(caught.value).isprintable()


def test_near_names_come_best_first() -> None:
    """A slip of the finger finds the name that was meant."""
    assert near("ordes", ["billing", "orders", "payments"]) == ["orders"]
    assert near("orderss", ["order", "orders"]) == ["orders", "order"]


def test_capitals_do_not_hide_a_near_name() -> None:
    """`Orders` is near `ORDERS`, and both spellings are shown if both exist."""
    assert near("Orders", ["orders", "ORDERS"]) == ["ORDERS", "orders"]


def test_at_most_three_near_names_are_shown() -> None:
    """A thousand lanes of one pattern do not make a wall of text."""
    assert len(near("lane-x", [f"lane-{n}" for n in range(1_000)])) == 3


@given(st.text(), st.lists(st.text(max_size=20), max_size=10))
def test_near_names_are_known_names(name: str, known: list[str]) -> None:
    """Nothing is suggested that does not exist, and nothing twice."""
    found = near(name, known)

    assert set(found) <= set(known)
    assert len(set(found)) == len(found)


def test_an_unknown_name_is_explained() -> None:
    """The sentence names the near matches, if there are any."""
    assert unknown("lane", "ordes", ["orders", "web"]) == 'unknown lane "ordes"; did you mean orders?'
    assert unknown("pool", "x", ["orders", "web"]) == (
        'unknown pool "x"; penstock pools list shows those there are'
    )


def test_what_is_nested_too_deeply_to_be_shown_is_called_so() -> None:
    deep: list[object] = []
    for _ in range(10_000):
        deep = [deep]

    assert shown(deep) == "a list nested too deeply"
