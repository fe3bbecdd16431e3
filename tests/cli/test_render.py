"""What a person sees, what a pipe gets, and what neither may be given."""

from datetime import UTC, datetime, timedelta

import click
import pytest

from penstock.cli import render

NOW = datetime(2026, 11, 15, 10, 0, tzinfo=UTC)


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(render, "on_terminal", lambda: True)
    monkeypatch.setattr(click.utils, "should_strip_ansi", lambda *_: False)
    monkeypatch.setenv("COLUMNS", "40")


ROWS = [("01J", "dead", None), ("01K", "pending", "a long text that does not fit on the line")]


def test_a_pipe_gets_tabs_and_no_head(capsys: pytest.CaptureFixture[str]) -> None:
    render.print_table(["id", "state", "why"], ROWS)
    render.print_facts([("a", 1), ("b", [True, NOW])])

    assert capsys.readouterr().out.splitlines() == [
        "01J\tdead\t-",
        "01K\tpending\ta long text that does not fit on the line",
        "a\t1",
        "b\ttrue,2026-11-15T10:00:00Z",
    ]


@pytest.mark.usefixtures("terminal")
def test_a_terminal_gets_columns_that_fit_and_states_in_colour(capsys: pytest.CaptureFixture[str]) -> None:
    render.print_table(["id", "state", "why"], ROWS)

    head, dead, pending = capsys.readouterr().out.splitlines()
    assert head == "\x1b[1mID   STATE    WHY\x1b[0m"
    assert dead == "01J  \x1b[31mdead\x1b[0m     -"
    assert pending == "01K  pending  a long text that does not…"


@pytest.mark.usefixtures("terminal")
@pytest.mark.parametrize("columns", [1, 10, 27, 30, 40, 60, 80, 200])
def test_ids_and_names_are_whole_however_narrow_it_is(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, columns: int
) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    ids = "01M7H7PDA8VSYBZ6QQ528CGYB1", "01M7H7PETN5AX25WXV5P9H04VQ"
    group = "a-group-with-a-name-that-takes-its-room"
    head = ["lane", "group", "state", "since", "behind", "head", "blocker", "why"]
    why = "the warehouse moves and nobody knows when it will be back, which is a long story"
    render.print_table(head, [("orders", group, "blocked", "2m ago", 60, *ids, why)])

    out = capsys.readouterr().out
    assert {"orders", group, "blocked", *ids} <= set(out.split())
    if columns >= 60:
        assert max(len(click.unstyle(line)) for line in out.splitlines()) <= columns


@pytest.mark.usefixtures("terminal")
def test_what_does_not_fit_goes_on_the_next_line(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "41")
    head = ["lane", "state", "head", "blocker"]
    render.print_table(head, [("orders", "dead", "0" * 26, "1" * 26), ("pay", "held", "2" * 26, None)])

    assert click.unstyle(capsys.readouterr().out).splitlines() == [
        "LANE    STATE  HEAD",
        "    BLOCKER",
        f"orders  dead   {'0' * 26}",
        f"    {'1' * 26}",
        f"pay     held   {'2' * 26}",
    ]


@pytest.mark.usefixtures("terminal")
def test_no_color_means_none(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")

    render.print_table(["id", "state", "why"], ROWS)
    render.print_facts([("long", "x"), ("b", "y")])
    render.print_table(["id"], [], empty="nothing yet")

    out, err = capsys.readouterr()
    assert "\x1b" not in out
    assert out.splitlines()[-2:] == ["long  x", "b     y"]
    assert err == "nothing yet\n"


def test_what_a_caller_wrote_cannot_move_the_cursor() -> None:
    assert render.cell("a\x1b[2Jb\nc") == r"a\x1b[2Jb\nc"
    assert render.cell("grüße 🚀") == "grüße 🚀"


@pytest.mark.parametrize(
    ("delta", "text"),
    [
        (timedelta(seconds=-5), "5s ago"),
        (timedelta(seconds=119), "in 119s"),
        (timedelta(seconds=121), "in 2m"),
        (timedelta(hours=3, minutes=59), "in 3h"),
        (timedelta(days=-40), "40d ago"),
        (timedelta(0), "0s ago"),
    ],
)
def test_a_distance_is_about_right(delta: timedelta, text: str) -> None:
    assert render.ago(NOW + delta, NOW) == text
    assert render.ago(None, NOW) == "-"
