"""Times as forms give them: `15m` from now, or a moment."""

from contextlib import suppress
from datetime import datetime

from penstock.domain.durations import BadDuration, parse_distance
from penstock.domain.times import check_time, shifted
from penstock.errors import InvalidJob


def until_of(text: str, now: datetime) -> datetime | None:
    """Return when a pause ends, or a job goes; None = not said. Raise InvalidJob."""
    if not text:
        return None
    at = _moment(text, now)
    if at.tzinfo is None:
        raise InvalidJob("time", "a time without an offset may mean anything, write 12:00:00Z")
    try:
        return check_time(at)
    except ValueError as error:
        raise InvalidJob("time", f"{text!r} {error}") from None


def _moment(text: str, now: datetime) -> datetime:
    with suppress(BadDuration):
        return shifted(now, parse_distance(text.removeprefix("+")))
    try:
        return datetime.fromisoformat(text)
    except ValueError:
        problem = f"{text!r} is neither a duration (15m) nor a time (2026-01-01T12:00:00Z)"
        raise InvalidJob("time", problem) from None
