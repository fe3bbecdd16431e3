"""Where a scan may start, while an old snapshot keeps dead entries in the index.

A long transaction anywhere in the database (a backup, a forgotten session) keeps vacuum from removing what was
claimed; every look would read all of it again from the left end. So a look that was expensive for what it
found makes the next ones start where it ended, and the left end is looked at again only from time to time:
jobs committed late, with a due time further left, wait that long at most.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

CHEAP_S: Final = 0.005
PER_ROW_S: Final = 0.00005
REST_S: Final = 0.25
REST_FACTOR: Final = 20


@dataclass(slots=True)
class _Hint:
    low: Any = None
    until: float = 0.0


class Hints:
    """One hint per scanned key."""

    def __init__(self, clock: Callable[[], float], ever: object) -> None:
        self._clock = clock
        self._ever = ever
        self._hints: dict[int, _Hint] = {}

    def low(self, key: int) -> Any:  # noqa: ANN401 - a time or a number, as the caller counts
        """Return where to start looking."""
        hint = self._hints.get(key)
        return (
            hint.low
            if hint is not None and hint.low is not None and self._clock() < hint.until
            else self._ever
        )

    def looked(self, key: int, *, low: object, started: float, rows: int, last: object) -> None:
        """Note what a look cost and where it ended."""
        hint = self._hints.setdefault(key, _Hint())
        now = self._clock()
        cost = now - started
        if low == self._ever:
            expensive = cost > CHEAP_S + rows * PER_ROW_S
            hint.until = now + max(REST_S, REST_FACTOR * cost) if expensive else 0.0
        if rows:
            hint.low = last
