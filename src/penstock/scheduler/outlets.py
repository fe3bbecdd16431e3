"""The sinks a node has open. One that cannot be opened never stops the node: its lanes wait."""

import asyncio
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Final

from penstock.ports.events import SinkFailed
from penstock.ports.sink import Divided, OpenSink, Sink
from penstock.scheduler.ground import Ground, cancelled

FIRST_PAUSE: Final = timedelta(seconds=1)
LONGEST_PAUSE: Final = timedelta(seconds=60)
OPENS_WITHIN_S: Final = 15.0
REST: Final = timedelta(seconds=2)


@dataclass(slots=True)
class Failure:
    """Why a sink is closed, and when it is tried again."""

    error: str
    failures: int
    again_at: float


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a sink that is open took nothing of a lane, and until when the lane leaves it alone."""

    error: str
    until: float


@dataclass(slots=True)
class Outlets:
    """Sinks by name, and the lanes of which they take nothing.

    Such a lane claims nothing for a while, and then as much as goes in one call. What it claims it gives
    back: else all its jobs would go back and forth for as long as a queue is missing.
    """

    ground: Ground
    open: OpenSink
    _nodes: int = 1
    _sinks: dict[str, Sink] = field(default_factory=dict)
    _failures: dict[str, Failure] = field(default_factory=dict)
    _opening: dict[str, asyncio.Lock] = field(default_factory=dict)
    _refusals: dict[str, Refusal] = field(default_factory=dict)

    async def get(self, name: str) -> Sink | None:
        """Return the sink; None while it cannot be opened."""
        async with self._opening.setdefault(name, asyncio.Lock()):  # two lanes share one connection
            return self._sinks.get(name) or await self._open(name)

    async def _open(self, name: str) -> Sink | None:
        failure = self._failures.get(name)
        if failure is not None and self.ground.monotonic() < failure.again_at:
            return None
        try:
            # Who waits for it may have other lanes to look after.
            async with asyncio.timeout(OPENS_WITHIN_S) as patience:
                sink = self._sinks[name] = await self.open(name)
        except (
            Exception,
            asyncio.CancelledError,
        ) as error:  # what is wrong with a sink is its lanes' trouble
            if cancelled():
                raise
            late = f"it could not be opened within {OPENS_WITHIN_S:g} s" if patience.expired() else ""
            self._fail(name, late or f"{error}" or type(error).__name__)
            return None
        self._failures.pop(name, None)
        self.divide(self._nodes)
        return sink

    def _fail(self, name: str, error: str) -> None:
        failures = self._failures[name].failures + 1 if name in self._failures else 1
        pause = min(FIRST_PAUSE * 2 ** min(failures - 1, 10), LONGEST_PAUSE)
        again_at = self.ground.monotonic() + self.ground.spread(pause)
        self._failures[name] = Failure(error, failures, again_at)
        self.ground.emit(SinkFailed(sink=name, error=error, pause=pause))

    def divide(self, nodes: int) -> None:
        """Tell sinks that have limits of their own how many nodes there are, also those to come."""
        self._nodes = nodes
        for sink in self._sinks.values():
            if isinstance(sink, Divided):
                sink.divide(nodes)

    def refuse(self, lane: str, sink: str, error: str) -> None:
        """The sink took nothing of this lane; calls that were under way together count once."""
        if not self.rests(lane):
            until = self.ground.monotonic() + self.ground.spread(REST)
            self._refusals[lane] = Refusal(error, until)
            self.ground.emit(SinkFailed(sink=sink, error=error, pause=REST, lane=lane))

    def answer(self, lane: str) -> None:
        """The sink said something to a message of this lane."""
        self._refusals.pop(lane, None)

    def rests(self, lane: str) -> bool:
        """Say whether the lane leaves its sink alone."""
        refusal = self._refusals.get(lane)
        return refusal is not None and self.ground.monotonic() < refusal.until

    def refusals(self) -> dict[str, str]:
        """Return of which lanes nothing is taken, and why."""
        return {lane: refusal.error for lane, refusal in self._refusals.items()}

    def errors(self) -> dict[str, str]:
        """Return why sinks are closed, by name."""
        return {name: failure.error for name, failure in self._failures.items()}

    async def close(self) -> None:
        """Close every sink."""
        for name, sink in self._sinks.items():
            try:
                await sink.close()
            except (Exception, asyncio.CancelledError) as error:  # the others are closed all the same
                if cancelled():
                    raise
                self.ground.emit(SinkFailed(sink=name, error=f"closing: {error!r}", pause=timedelta(0)))
        self._sinks.clear()
