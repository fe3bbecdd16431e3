"""Times as forms give them: `15m` from now, or a moment."""

from datetime import datetime

from penstock.domain.durations import parse_duration
from penstock.errors import InvalidJob


def until_of(text: str, now: datetime) -> datetime | None:
    """Return when a pause ends, or a job goes; None = not said. Raise InvalidJob."""
    if not text:
        return None
    try:
        return now + parse_duration(text.removeprefix("+"))
    except (ValueError, TypeError):
        pass
    try:
        at = datetime.fromisoformat(text)
    except ValueError:
        problem = f"{text!r} is neither a duration (15m) nor a time (2026-01-01T12:00:00Z)"
        raise InvalidJob("time", problem) from None
    if at.tzinfo is None:
        raise InvalidJob("time", "a time without an offset may mean anything, write 12:00:00Z")
    return at
