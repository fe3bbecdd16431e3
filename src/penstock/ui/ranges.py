"""The time range of a list: a form that writes terms into the filter line."""

from collections.abc import Mapping
from typing import Final

from penstock.domain.filter_line import TIMES, without

RANGES: Final = (
    ("created<15m", "enqueued in the last 15 minutes"), ("created<1h", "enqueued in the last hour"),
    ("created<1d", "enqueued in the last day"), ("created<7d", "enqueued in the last week"),
    ("finished<1h", "ended in the last hour"), ("finished<1d", "ended in the last day"),
    ("finished<7d", "ended in the last week"), ("run<0s", "due already"),
    ("run<1h", "due within the hour"), ("run<1d", "due within a day"),
)  # fmt: skip
ABOUT: Final = (("created", "enqueued"), ("run", "due"), ("finished", "ended"))


def ranged(line: str, asked: Mapping[str, str]) -> str:
    """Return the line with the times that a form asks for in the place of those it had."""
    about = asked.get("about", "")
    bounds = [
        f"{about}{op}{_moment(asked[name])}"
        for name, op in (("from", ">="), ("to", "<"))
        if asked.get(name) and about in TIMES
    ]
    known = asked.get("range", "") if asked.get("range", "") in dict(RANGES) else ""
    return " ".join(filter(None, [without(line, *TIMES), *(bounds or [known])]))


def _moment(text: str) -> str:
    """Return what a field for a day and a time gives as a filter has it: in UTC, as the field says."""
    return text if text.endswith("Z") or "+" in text else f"{text}Z"
