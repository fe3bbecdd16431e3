"""Whether a node is ready, and why not: what its parts reported, and checks that are asked now."""

from collections.abc import Callable, Mapping
from threading import Lock
from typing import Final, NamedTuple

from penstock.ports.events import Event, NodeStarted, NodeStopped, StoreBack, StoreFailed, StoreGivenUp

Check = Callable[[], str | None]
PATIENCE: Final = 3  # failures in a row before a part counts as cut off: a deadlock is no outage


class Reason(NamedTuple):
    """One thing that keeps the node from being ready."""

    part: str
    text: str


class Health:
    """Subscribes to events; `checks` are asked each time: each returns what is wrong, or None.

    A check must not block: it looks at something that is already known, a lease's age for example. `stops`
    says whether the node was told to stop, which is over only when its last calls are.
    """

    def __init__(
        self, checks: Mapping[str, Check] | None = None, *, stops: Callable[[], bool] = lambda: False
    ) -> None:
        self._checks, self._stops = dict(checks or {}), stops
        self._failing: dict[str, str] = {}
        self._state = "starting"
        self._lock = Lock()

    def __call__(self, event: Event) -> None:
        """Take notice of an event."""
        with self._lock:
            match event:
                case NodeStarted():
                    self._state = ""
                case NodeStopped():
                    self._state = "stopping"
                case StoreFailed(part=part, error=error, failures=failures) if failures >= PATIENCE:
                    self._failing[part] = f"the store failed {failures} times in a row: {error}"
                case StoreBack(part=part) | StoreGivenUp(part=part):
                    self._failing.pop(part, None)
                case _:
                    pass

    def reasons(self) -> list[Reason]:
        """Return what keeps the node from being ready; empty = it is."""
        with self._lock:
            found = [Reason(part, text) for part, text in sorted(self._failing.items())]
            if state := "stopping" if self._stops() else self._state:
                found.append(Reason("node", f"the node is {state}"))
        answers = [(part, check()) for part, check in self._checks.items()]
        return found + [Reason(part, text) for part, text in answers if text is not None]
