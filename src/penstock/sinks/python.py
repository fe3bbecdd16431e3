"""A Python function as a sink, for tests and for programs that embed Penstock."""

import inspect
from collections.abc import Callable, Sequence

from penstock.domain.envelopes import Envelope
from penstock.domain.outcomes import (
    Accepted,
    Duplicate,
    Receipt,
    Rejected,
    Throttled,
    TryAgain,
    Unknown,
    Unsent,
)
from penstock.domain.texts import shown
from penstock.ports.executor import Executor
from penstock.ports.sink import UNKNOWN, Probed

Function = Callable[[Envelope], object]  # None or a Receipt, or an awaitable of either
ProbeFunction = Callable[[Envelope], Probed]


class PythonSink:
    """Calls the function with each envelope, one after the other.

    None means accepted; a receipt means what it says; an exception means try again. A function that blocks
    needs an `executor`, without one it is called on the event loop.
    """

    def __init__(
        self,
        function: Function,
        *,
        executor: Executor | None = None,
        probe: ProbeFunction | None = None,
        max_batch: int = 1,
        keeps_order: bool = False,
        format: str = "payload",  # noqa: A002 - the port's word
        complete_on: str = "sent",
    ) -> None:
        self.max_batch = max_batch
        self.keeps_order = keeps_order
        self.format = format
        self.complete_on = complete_on
        self._function = function
        self._executor = executor
        self._probe = probe

    async def send(self, batch: Sequence[Envelope]) -> Sequence[Receipt]:
        """Call the function for each message."""
        return [await self._call(envelope) for envelope in batch]

    async def probe(self, sends: Sequence[Envelope]) -> Sequence[Probed]:
        """Ask the probe function, if there is one."""
        return [Probed(UNKNOWN) if self._probe is None else self._probe(envelope) for envelope in sends]

    async def close(self) -> None:
        """There is nothing to give up."""

    async def _call(self, envelope: Envelope) -> Receipt:
        try:
            if self._executor is None or inspect.iscoroutinefunction(self._function):
                answer = self._function(envelope)
            else:
                answer = await self._executor.run(lambda: self._function(envelope))
            if inspect.isawaitable(answer):
                answer = await answer
        except Exception as error:  # noqa: BLE001 - whatever a caller's function raises
            return TryAgain(shown(f"{type(error).__name__}: {error}", 500))
        match answer:
            case None:
                return Accepted()
            case Accepted() | Duplicate() | TryAgain() | Rejected() | Throttled() | Unknown() | Unsent():
                return answer
            case _:
                return TryAgain(f"the function returned {type(answer).__name__}: return None or a receipt")
