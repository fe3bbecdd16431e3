"""Times as people type them: `2026-11-15T10:00:00Z`, `+5m`, or `16:30` for the next half past four."""

import re
from datetime import UTC, datetime, timedelta, tzinfo
from typing import Final

import click

from penstock.domain.durations import parse_distance
from penstock.domain.times import check_time, shifted

METAVAR: Final = "TIME"
HELP: Final = "TIME is RFC 3339 (2026-11-15T10:00:00Z), +5m, or HH:MM of your own clock."
_CLOCK: Final = re.compile(r"([01]?[0-9]|2[0-3]):([0-5][0-9])")


def parse_time(text: str, *, now: datetime, zone: tzinfo | None = None) -> datetime:
    """Return the moment in UTC; `now` is the store's time, `zone` the reader's (None: of this machine)."""
    try:
        if text.startswith("+"):
            at = shifted(now, parse_distance(text[1:]))
        elif match := _CLOCK.fullmatch(text):
            at = _next(int(match[1]), int(match[2]), now=now, zone=zone)
        else:
            at = datetime.fromisoformat(text)
    except ValueError as error:
        raise ValueError(f"{text!r} is not a time: write 2026-11-15T10:00:00Z, +5m or 16:30") from error
    if at.utcoffset() is None:
        raise ValueError(f"{text!r} has no time zone: end it with Z or an offset like +01:00")
    try:
        return check_time(at)
    except ValueError as error:
        raise ValueError(f"{text!r} {error}") from None


def _next(hour: int, minute: int, *, now: datetime, zone: tzinfo | None) -> datetime:
    """Return the next moment a clock on the wall shows this; a skipped hour counts as the one after."""
    here = now.astimezone(zone).replace(tzinfo=None)
    shown = here.replace(hour=hour, minute=minute, second=0, microsecond=0)
    if shown <= here:
        shown += timedelta(days=1)
    return (shown.astimezone() if zone is None else shown.replace(tzinfo=zone)).astimezone(UTC)


def time_option(name: str, text: str | None, now: datetime, *, future: bool = False) -> datetime | None:
    """Return what an option says, or end as wrong usage; what is to last until then must be in the future."""
    try:
        at = None if text is None else parse_time(text, now=now)
    except ValueError as error:
        raise click.BadParameter(str(error), param_hint=name) from error
    if future and at is not None and at <= now:
        raise click.BadParameter(
            f"{text} is past already: write a time that is to come, like +30m", param_hint=name
        )
    return at
