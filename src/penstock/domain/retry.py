"""When a failed job is tried again, and when it is not.

Entry *i* of a schedule is the delay before attempt *i*: `["0s"]` is one attempt, `["0s", "1m"]` a second
one a minute after the first failed. The other spelling is a curve, `{first, factor, max, attempts}`:
attempt 1 goes at once, attempt 2 waits `first`, each later one `factor` times longer, never more than
`max`; `attempts` counts the first one too. A job may bring its own number of attempts; past the end of a
list its last delay repeats, past the end of a curve the curve goes on. Jitter only lengthens, by up to a
tenth: nothing is retried early.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Final, assert_never

from penstock.domain.durations import format_duration, parse_duration

MAX_ATTEMPTS: Final = 1_000
LONGEST_DELAY: Final = timedelta(days=365)
MAX_FACTOR: Final = 1_000
JITTER: Final = 0.1

_ZERO: Final = timedelta(0)
_MILLISECOND: Final = timedelta(milliseconds=1)
CURVE_KEYS: Final = ("first", "factor", "max", "attempts")


class BadRetry(ValueError):
    """The value is not a retry schedule; the message shows what to change."""

    def __init__(self, advice: str) -> None:
        super().__init__(f"not a retry schedule: {advice}")


@dataclass(frozen=True, slots=True)
class Curve:
    """Delays that grow from `first` by `factor` up to `max`, for `attempts` attempts in all."""

    first: timedelta
    factor: float
    max: timedelta
    attempts: int

    def __post_init__(self) -> None:
        _check_delay(self.first)
        _check_delay(self.max)
        if self.first == _ZERO:
            raise BadRetry('a curve that begins at 0s never grows, write first = "1s"')
        if self.max < self.first:
            raise BadRetry(f"max is shorter than first, write at least {format_duration(self.first)}")
        if not 1 <= self.factor <= MAX_FACTOR:
            raise BadRetry(f"a factor is from 1 to {MAX_FACTOR}, 2 for example")
        _check_attempts(self.attempts)

    def delay(self, attempt: int) -> timedelta:
        """Return the delay before this attempt, without jitter."""
        if attempt == 1:
            return _ZERO
        try:
            return min(self.max, self.first * float(self.factor) ** (attempt - 2))
        except OverflowError:
            return self.max


@dataclass(frozen=True, slots=True)
class RetrySchedule:
    """How often a job is tried and how long it waits before each attempt."""

    shape: tuple[timedelta, ...] | Curve

    def __post_init__(self) -> None:
        if isinstance(self.shape, tuple):
            for delay in self.shape:
                _check_delay(delay)
            _check_attempts(len(self.shape))

    @classmethod
    def parse(cls, value: object) -> "RetrySchedule":
        """Return the schedule that a configuration value spells: a list of durations or a curve's mapping."""
        match value:
            case Mapping():
                return cls(_parse_curve(value))
            case Sequence() if not isinstance(value, str | bytes):
                return cls(tuple(parse_duration(entry) for entry in value))
            case _:
                raise BadRetry(
                    'write ["0s", "1m", "5m"] or { first = "1s", factor = 2, max = "1h", attempts = 8 }'
                )

    @classmethod
    def from_text(cls, text: str) -> "RetrySchedule":
        """Return the schedule that `to_text` wrote."""
        try:
            value = json.loads(text)
        except ValueError:
            raise BadRetry(f'{text!r} is not JSON, write ["0s","1m","5m"]') from None
        except RecursionError:
            raise BadRetry('it is nested too deeply, write ["0s","1m","5m"]') from None
        return cls.parse(value)

    def to_text(self) -> str:
        """Return compact JSON for a database column; equal schedules give equal text."""
        return json.dumps(self.to_plain(), separators=(",", ":"))

    def to_plain(self) -> list[str] | dict[str, str | float]:
        """Return the value as configuration spells it; `parse` reads it back."""
        match self.shape:
            case tuple():
                return [format_duration(delay) for delay in self.shape]
            case Curve(first=first, factor=factor, max=longest, attempts=attempts):
                return {
                    "first": format_duration(first),
                    "factor": int(factor) if factor == int(factor) else factor,
                    "max": format_duration(longest),
                    "attempts": attempts,
                }
            case _:
                assert_never(self.shape)

    @property
    def max_attempts(self) -> int:
        """How often a job is tried that does not say so itself."""
        match self.shape:
            case tuple():
                return len(self.shape)
            case Curve():
                return self.shape.attempts
            case _:
                assert_never(self.shape)

    def attempts_for(self, own: int | None) -> int:
        """Return how often a job is tried: as it asks itself, fewer or more, else as the schedule says."""
        if own is None:
            return self.max_attempts
        _check_attempts(own)
        return own

    def delay_before(self, attempt: int, *, random: float) -> timedelta:
        """Return how long to wait before this attempt, counted from 1; `random` in [0, 1) lengthens it."""
        if attempt < 1:
            raise BadRetry(f"there is no attempt {attempt}, the first one is 1")
        match self.shape:
            case tuple():
                delay = self.shape[min(attempt, len(self.shape)) - 1]
            case Curve():
                delay = self.shape.delay(attempt)
            case _:
                assert_never(self.shape)
        return lengthen(delay, random=random)


def exhausted(attempts_done: int, max_attempts: int) -> bool:
    """Return whether a job that failed just now has used up its attempts."""
    return attempts_done >= max_attempts


def lengthen(delay: timedelta, *, random: float) -> timedelta:
    """Return the delay plus up to a tenth of it, so that what failed together returns apart."""
    if not 0 <= random < 1:
        raise ValueError(f"random is {random}, give a number from 0 up to but not including 1")
    return delay + delay * (JITTER * random)


def backoff(every: timedelta, failures: int, *, longest: timedelta, random: float) -> timedelta:
    """Return the pause of a loop that failed that many times in a row: `every`, doubled each time."""
    grown = every * 2 ** min(failures, 20)
    return lengthen(max(every, min(longest, grown)), random=random)


def _parse_curve(value: Mapping[object, object]) -> Curve:
    foreign = sorted(str(key) for key in value if key not in CURVE_KEYS)
    if foreign:
        raise BadRetry(f"a curve has no {' and no '.join(foreign)}, only {', '.join(CURVE_KEYS)}")
    missing = [key for key in CURVE_KEYS if key not in value]
    if missing:
        raise BadRetry(f"the curve has no {' and no '.join(missing)}")
    factor, attempts = value["factor"], value["attempts"]
    if isinstance(factor, bool) or not isinstance(factor, int | float):
        raise BadRetry(f"factor is {factor!r}, write a number such as 2")
    if isinstance(attempts, bool) or not isinstance(attempts, int):
        raise BadRetry(f"attempts is {attempts!r}, write a whole number such as 8")
    return Curve(
        first=parse_duration(value["first"]),
        factor=factor,
        max=parse_duration(value["max"]),
        attempts=attempts,
    )


def _check_delay(delay: timedelta) -> None:
    if not _ZERO <= delay <= LONGEST_DELAY:
        spelled = format_duration(delay) if delay >= _ZERO else str(delay)
        raise BadRetry(f"a delay of {spelled} is not between 0s and {format_duration(LONGEST_DELAY)}")
    if delay % _MILLISECOND:
        raise BadRetry(f"a delay of {delay} is finer than a millisecond, round it")


def _check_attempts(attempts: int) -> None:
    if not 1 <= attempts <= MAX_ATTEMPTS:
        raise BadRetry(f"{attempts} attempts, write between 1 and {MAX_ATTEMPTS}")


DEFAULT: Final = RetrySchedule.parse(["0s", "1m", "5m", "15m", "1h"])
