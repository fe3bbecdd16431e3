"""Durations and sizes as people write them: `250ms`, `5s`, `1m`, `2h`, `7d`; `256KiB`, `8MiB`.

One whole number and one unit, nothing else: `1m30s` is written `90s`. A strict grammar keeps every value
comparable at a glance and gives each one a single shortest spelling, so text survives a round trip.

More than a thousand years are a thousand years: whoever writes a million days means for ever, and no time of
today plus or minus that is beyond the calendar.
"""

import re
from datetime import timedelta
from typing import Final

DURATION_PATTERN: Final = r"([0-9]{1,15})(ms|s|m|h|d)"
SIZE_PATTERN: Final = r"([0-9]{1,15})(B|KiB|MiB|GiB)"
_DURATION: Final = re.compile(DURATION_PATTERN)
_SIZE: Final = re.compile(SIZE_PATTERN)
LONGEST: Final = timedelta(days=365_000)
_MILLISECOND: Final = timedelta(milliseconds=1)
_DURATIONS: Final = {
    "d": timedelta(days=1),
    "h": timedelta(hours=1),
    "m": timedelta(minutes=1),
    "s": timedelta(seconds=1),
    "ms": _MILLISECOND,
}
_SIZES: Final = {"GiB": 1 << 30, "MiB": 1 << 20, "KiB": 1 << 10, "B": 1}


class BadDuration(ValueError):
    """The value is not a duration; the message shows how to write one."""

    def __init__(self, value: object, advice: str = "write 5s, 250ms, 1m, 2h or 7d") -> None:
        super().__init__(f"{value!r} is not a duration: {advice}")
        self.value = value


class BadSize(ValueError):
    """The value is not a size; the message shows how to write one."""

    def __init__(self, value: object, advice: str = "write 512B, 256KiB, 8MiB or 1GiB") -> None:
        super().__init__(f"{value!r} is not a size: {advice}")
        self.value = value


def parse_duration(value: object) -> timedelta:
    """Return the duration that the text spells, at most LONGEST, or raise BadDuration; a unit is needed."""
    return min(parse_distance(value), LONGEST)


def parse_distance(value: object) -> timedelta:
    """Return the duration that leads to a time, as it is written: there may be no such time."""
    match = _DURATION.fullmatch(value) if isinstance(value, str) else None
    if match is None:
        raise BadDuration(value)
    try:
        return int(match[1]) * _DURATIONS[match[2]]
    except OverflowError:
        raise BadDuration(value, f"the longest is {timedelta.max.days}d") from None


def format_duration(duration: timedelta) -> str:
    """Return the shortest text that parse_duration reads back.

    What is finer than a millisecond is rounded up: a wait is never shown shorter than it is.
    """
    if duration < timedelta(0):
        raise BadDuration(str(duration), "it is negative; swap the two times it is the difference of")
    milliseconds = -(-duration // _MILLISECOND)
    for unit, length in _DURATIONS.items():
        count, rest = divmod(milliseconds, length // _MILLISECOND)
        if count and not rest:
            return f"{count}{unit}"
    return "0s"


def parse_size(value: object) -> int:
    """Return the number of bytes that the text spells, or raise BadSize."""
    match = _SIZE.fullmatch(value) if isinstance(value, str) else None
    if match is None:
        raise BadSize(value)
    return int(match[1]) * _SIZES[match[2]]


def format_size(size: int) -> str:
    """Return the shortest text that parse_size reads back."""
    if size < 0:
        raise BadSize(size, "it is negative")
    for unit, length in _SIZES.items():
        count, rest = divmod(size, length)
        if count and not rest:
            return f"{count}{unit}"
    return "0B"
