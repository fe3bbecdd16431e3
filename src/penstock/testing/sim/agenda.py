"""What is to run, for whom and when: the loop's ready callbacks and timers, by owner.

An owner may be *away*: frozen until some time, or dead for good. What comes up for it then is set aside. A
frozen owner gets all of it back; that of a dead one is a morgue, kept to the end of the run, because to let
it be collected would close its coroutines, and closing runs every `finally`.
"""

import heapq
import random
from asyncio import Handle, TimerHandle
from itertools import count
from math import inf
from typing import Final, NamedTuple

_SWEEP_AT: Final = 100


class Entry(NamedTuple):
    """A callback that is ready."""

    owner: str
    handle: Handle


class Timer(NamedTuple):
    """A callback that will be ready; `order` keeps equal times apart, so that handles are never compared."""

    when: float
    order: int
    owner: str
    handle: TimerHandle


class Agenda:
    """See the module."""

    def __init__(self, rng: random.Random) -> None:
        self.time = 0.0
        self._random = rng.random
        self._ready: list[Entry] = []
        self._timers: list[Timer] = []
        self._order = count()
        self._away: dict[str, list[Entry]] = {}
        self._until: dict[str, float] = {}
        self._cancelled = 0

    def add(self, owner: str, handle: Handle) -> None:
        """Make the callback ready, or set it aside while its owner is away."""
        away = self._away.get(owner)
        (self._ready if away is None else away).append(Entry(owner, handle))

    def add_at(self, when: float, owner: str, handle: TimerHandle) -> None:
        """Make the callback ready at that time."""
        if when <= self.time or self.is_dead(owner):
            self.add(owner, handle)
        else:
            heapq.heappush(self._timers, Timer(when, next(self._order), owner, handle))

    def pick(self) -> Entry | None:
        """Take one of the ready callbacks, whichever the seed says; None when there is none."""
        ready = self._ready
        if not ready:
            return None
        index = int(self._random() * len(ready))
        ready[index], ready[-1] = ready[-1], ready[index]
        return ready.pop()

    def advance(self) -> bool:
        """Jump to the next timer that makes somebody ready; False when there is none."""
        while not self._ready:
            # A timeout that was not needed must not drag the clock to where it would have struck.
            while self._timers and self._timers[0].handle.cancelled():
                heapq.heappop(self._timers)
            if not self._timers:
                return False
            self.time = self._timers[0].when
            while self._timers and self._timers[0].when <= self.time:
                timer = heapq.heappop(self._timers)
                self.add(timer.owner, timer.handle)
        return True

    def freeze(self, owner: str, until: float | None) -> None:
        """Set aside everything of the owner; with a time, `thaw_due` gives it back from then on."""
        if owner not in self._away:
            self._away[owner] = [entry for entry in self._ready if entry.owner == owner]
            self._ready = [entry for entry in self._ready if entry.owner != owner]
        if self.is_dead(owner):
            return
        if until is None:
            self._until.pop(owner, None)
        else:
            self._until[owner] = max(until, self._until.get(owner, until))

    def thaw(self, owner: str) -> None:
        """Give a frozen owner everything that came up meanwhile; the dead stay dead."""
        if self.is_frozen(owner):
            self._ready += self._away.pop(owner)
            self._until.pop(owner, None)

    def thaw_due(self, owner: str) -> None:
        """Thaw the owner unless it has been frozen for longer in the meantime."""
        if self._until.get(owner, inf) <= self.time:
            self.thaw(owner)

    def kill(self, owner: str) -> None:
        """Set aside everything of the owner for ever, timers included: nobody waits for the dead."""
        self.freeze(owner, None)
        self._until[owner] = inf
        self._away[owner] += [Entry(owner, timer.handle) for timer in self._timers if timer.owner == owner]
        self._timers = [timer for timer in self._timers if timer.owner != owner]
        heapq.heapify(self._timers)

    def is_away(self, owner: str) -> bool:
        """Return whether the owner is frozen or dead."""
        return owner in self._away

    def is_frozen(self, owner: str) -> bool:
        """Return whether the owner may go on later."""
        return owner in self._away and not self.is_dead(owner)

    def is_dead(self, owner: str) -> bool:
        """Return whether the owner was killed."""
        return self._until.get(owner) == inf

    def frozen(self) -> list[str]:
        """Return who is frozen, longest first."""
        return [owner for owner in self._away if self.is_frozen(owner)]

    def timer_cancelled(self) -> None:
        """Sweep the heap when most of it is timeouts that were not needed."""
        self._cancelled += 1
        if self._cancelled > _SWEEP_AT and self._cancelled * 2 > len(self._timers):
            self._timers = [timer for timer in self._timers if not timer.handle.cancelled()]
            heapq.heapify(self._timers)
            self._cancelled = 0

    def clear(self) -> None:
        """Forget everything, the morgue included."""
        self._ready.clear()
        self._timers.clear()
        self._away.clear()
