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
