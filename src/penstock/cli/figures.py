"""The figures of `/api/stats` as rows of text."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from penstock.cli.render import printable

HEAD: Final = (
    "lane", "pending", "due", "in flight", "held", "dead", "sent/s", "lag p99", "oldest due", "note",
)  # fmt: skip
Figures = Mapping[str, Any]


def rows(figures: Figures) -> list[Sequence[str]]:
    """Return a row of text per lane."""
    return [_row(lane) for lane in figures["lanes"]]


def more_lanes(figures: Figures) -> str:
    """Return how many lanes the rows leave out: of many, those with dead letters or jobs come first."""
    more = figures["more_lanes"]
    return f"and {more:,} {'lane' if more == 1 else 'lanes'} more: penstock lanes list"


def _row(lane: Mapping[str, Any]) -> Sequence[str]:
    flying = lane["claimed"] + lane["dispatched"] + lane["running"]
    lag = lane["lag_p99_ms"]
    return (
        printable(lane["lane"]),
        f"{lane['pending']:,}",
        _due(lane),
        f"{flying:,}",
        f"{lane['held']:,}",
        f"{lane['dead']:,}",
        f"{lane['sent_per_s']:.1f}",
        "-" if lag is None else span(lag / 1000),
        span(lane["oldest_due_s"]) if lane["oldest_due_s"] else "-",
        printable(lane["stopped"] or ""),
    )


def _due(lane: Mapping[str, Any]) -> str:
    if lane["due"] is None:
        return "some"
    return f"{lane['due']:,}{'+' * lane['due_capped']}"


def span(seconds: float) -> str:
    """Return about how long, for people."""
    if 1 <= seconds < 10:
        return f"{seconds:.1f} s"
    for limit, unit, word in ((1, 0.001, "ms"), (120, 1, "s"), (7200, 60, "min"), (172_800, 3600, "h")):
        if seconds < limit:
            return f"{seconds / unit:.0f} {word}"
    return f"{seconds / 86400:.0f} d"
