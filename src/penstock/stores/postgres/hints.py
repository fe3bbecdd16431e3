"""Where a scan may start, while an old snapshot keeps dead entries in the index.

A long transaction anywhere in the database (a backup, a forgotten session) keeps vacuum from removing what
was claimed; every look would read all of it again from the left end. So once a look was expensive for what it
found, the next ones start where the last one ended. A hinted look that fills its batch is enough for a while;
after one that does not comes a full look, so nothing that is due is passed over - unless full looks have been
very expensive several times in a row: then they rest, and what was committed late, with a due time further
left, waits for the next one.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, TypeVar

Rows = TypeVar("Rows")
CHEAP_S: Final = 0.005
DEAR_S: Final = 0.05
PER_ROW_S: Final = 0.00005
STRIKES: Final = 3
REST_S: Final = 0.25
REST_FACTOR: Final = 20


@dataclass(slots=True)
class _Hint:
    low: Any = None
    cost: float = 0.0
    strikes: int = 0
    next_full: float = 0.0


class Hints:
    """One hint per scanned lane."""

    def __init__(self, clock: Callable[[], float], ever: object) -> None:
        self._clock = clock
        self._ever = ever
        self._hints: dict[int, _Hint] = {}

    def look(
        self,
        lane: int,
        scan: Callable[[Any], Rows],
        *,
        limit: int,
        ended: Callable[[Rows], tuple[int, object]],
    ) -> Rows:
        """Scan from where it pays; `ended` says how much a scan found and where it ended."""
        hint = self._hints.setdefault(lane, _Hint())
        if hint.low is not None and hint.cost > CHEAP_S and self._clock() < hint.next_full:
            rows = scan(hint.low)
            found, last = ended(rows)
            hint.low = last if found else hint.low
            if found >= limit or hint.strikes >= STRIKES:
                return rows
            hint.next_full = 0.0
            if found:
                return rows
        started = self._clock()
        rows = scan(self._ever)
        now = self._clock()
        found, last = ended(rows)
        hint.low = last if found else hint.low
        hint.cost = now - started - found * PER_ROW_S
        hint.strikes = hint.strikes + 1 if hint.cost > DEAR_S else 0
        hint.next_full = now + max(REST_S, REST_FACTOR * (now - started))
        return rows
