"""Where a scan may start, while an old snapshot keeps dead entries in the index.

A long transaction anywhere in the database (a backup, a forgotten session) keeps vacuum from removing what
was claimed; every look would read all of it again from the left end. So while looks are expensive for what
they find, the next ones start where the last one ended. A hinted look that fills its batch is enough for a
while; after one that does not comes a full look, so nothing that is due is passed over - unless full looks
are very expensive: then they rest, and what was committed late, or was given back, waits for the next one.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final, TypeVar

from penstock.stores.sql.dearness import Dearness

Rows = TypeVar("Rows")
CHEAP_S: Final = 0.005
PER_ROW_S: Final = 0.00005


@dataclass(slots=True)
class _Hint:
    low: Any = None
    full_next: bool = False
    dearness: Dearness = field(default_factory=Dearness)


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
        started = self._clock()
        rests = hint.dearness.rests(started)
        if hint.low is not None and (rests or self._short_cut(hint, started)):
            rows = scan(hint.low)
            now = self._clock()
            found, last = ended(rows)
            hint.low = last if found else hint.low
            hint.dearness.part(now - started - found * PER_ROW_S)
            hint.full_next = found < limit
            if found or rests:
                return rows
            started = now
        rows = scan(self._ever)
        now = self._clock()
        found, last = ended(rows)
        hint.low = last if found else hint.low
        hint.dearness.whole(now - started - found * PER_ROW_S, at=now)
        hint.full_next = False
        return rows

    @staticmethod
    def _short_cut(hint: _Hint, now: float) -> bool:
        """Say whether a hinted look may be enough: the last one filled its batch."""
        return not hint.full_next and hint.dearness.rests(now, above=CHEAP_S)
