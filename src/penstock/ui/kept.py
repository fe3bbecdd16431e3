"""What changes seldom, or every page wants: lanes, pools and their use, who stopped them, targets.

It is asked for once a second.
Whoever changes something through a page sees it at once: what is kept is forgotten then.
"""

from collections.abc import Callable
from threading import Lock
from typing import Any, Final

from penstock.domain.job import AuditEntry
from penstock.domain.lanes import Lane
from penstock.domain.pools import Pool
from penstock.explain import who_stopped
from penstock.ports.store import Store

MOST: Final = 10_000
FRESH_S: Final = 1.0
KEPT: Final = frozenset({"lanes", "pools", "store_pause", "targets", "nodes", "leader", "vitals"})


class Kept:
    """A store for looking at, which repeats its answers to some questions for a second."""

    def __init__(self, store: Store, monotonic: Callable[[], float]) -> None:
        self._store, self._monotonic = store, monotonic
        self._answers: dict[object, tuple[float, Any]] = {}
        self._lock = Lock()
        self.fresh_s = FRESH_S

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - whatever the store has
        return (
            getattr(self._store, name)
            if name not in KEPT
            else lambda: self.answer(name, getattr(self._store, name))
        )

    def who_stopped(self, store: Store, of: Lane | Pool) -> AuditEntry | None:
        """Return who disabled or paused a lane or pool, as far as somebody's view of the store shows it."""
        about = (type(of), of.name, of.version, getattr(store, "tenant", None))
        found: AuditEntry | None = self.answer(about, lambda: who_stopped(store, of))
        return found

    def forget(self) -> None:
        """Ask anew the next time."""
        with self._lock:
            self._answers.clear()

    def answer(self, about: object, ask: Callable[[], Any]) -> Any:  # noqa: ANN401 - whatever is answered
        """Return what was answered to this within the last second, or ask."""
        with self._lock:
            at, answer = self._answers.get(about, (None, None))
            if at is None or self._monotonic() - at >= self.fresh_s:
                answer = ask()
                if len(self._answers) >= MOST:
                    self._answers.clear()
                self._answers[about] = (self._monotonic(), answer)
            return answer


class Looking:
    """Somebody's view of a store, with what is the same for everybody taken from what is kept."""

    def __init__(self, store: Store, kept: Kept) -> None:
        self._store, self._kept = store, kept

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - whatever the store has
        return getattr(self._kept if name in KEPT else self._store, name)
