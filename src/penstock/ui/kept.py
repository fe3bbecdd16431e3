"""What changes seldom and every page wants: lanes, pools, pauses, targets, nodes; asked once a second.

Whoever changes something through a page sees it at once: what is kept is forgotten then.
"""

from collections.abc import Callable
from threading import Lock
from typing import Any, Final

from penstock.ports.store import Store

FRESH_S: Final = 1.0
KEPT: Final = frozenset({"lanes", "pools", "store_pause", "targets", "nodes", "leader"})


class Kept:
    """A store for looking at, which repeats its answers to some questions for a second."""

    def __init__(self, store: Store, monotonic: Callable[[], float]) -> None:
        self._store, self._monotonic = store, monotonic
        self._answers: dict[str, tuple[float, Any]] = {}
        self._lock = Lock()
        self.fresh_s = FRESH_S

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - whatever the store has
        return getattr(self._store, name) if name not in KEPT else lambda: self._kept(name)

    def forget(self) -> None:
        """Ask anew the next time."""
        with self._lock:
            self._answers.clear()

    def _kept(self, name: str) -> Any:  # noqa: ANN401 - whatever the store answers
        with self._lock:
            at, answer = self._answers.get(name, (None, None))
            if at is None or self._monotonic() - at >= self.fresh_s:
                answer = getattr(self._store, name)()
                self._answers[name] = (self._monotonic(), answer)
            return answer


class Looking:
    """Somebody's view of a store, with what is the same for everybody taken from what is kept."""

    def __init__(self, store: Store, kept: Kept) -> None:
        self._store, self._kept = store, kept

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - whatever the store has
        return getattr(self._kept if name in KEPT else self._store, name)
