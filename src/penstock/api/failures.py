"""How often somebody may guess: failures are counted by name and by address, and then he has to wait."""

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from math import ceil
from typing import Final

from penstock.api.problems import Problem

ROOM: Final = 10_000


class Failures:
    """At most `limit` failures of one kind within `window` seconds; the memory of it is bounded."""

    def __init__(self, limit: int, window: float, monotonic: Callable[[], float]) -> None:
        self._limit, self._window, self._monotonic = limit, window, monotonic
        self._seen: dict[str, list[float]] = {}
        self._trying: Counter[str] = Counter()

    def check(self, *names: str) -> None:
        """Raise the Problem if any of these has failed too often, or would if those who are at it fail."""
        now = self._monotonic()
        for name in names:
            recent = [at for at in self._seen.get(name, ()) if at > now - self._window]
            if len(recent) + self._trying[name] >= self._limit:
                wait = ceil(min(recent, default=now) + self._window - now)
                raise Problem(
                    429,
                    "too-many-failures",
                    "there were too many failures",
                    hint=f"wait {wait} s and try again",
                    headers={"Retry-After": str(wait)},
                )

    @contextmanager
    def trying(self, name: str) -> Iterator[None]:
        """Count somebody as a failure until it is known whether he is one."""
        self._trying[name] += 1
        try:
            yield
        finally:
            self._trying[name] -= 1
            self._trying += Counter()  # drops who is no longer at it

    def note(self, *names: str) -> None:
        """Count a failure of each."""
        now = self._monotonic()
        if len(self._seen) > ROOM:
            self._seen = {name: seen for name, seen in self._seen.items() if seen[-1] > now - self._window}
        if len(self._seen) > ROOM:  # somebody makes up names: what is counted by address stays
            self._seen = {name: seen for name, seen in self._seen.items() if len(seen) > 1}
        for name in names:
            recent = [at for at in self._seen.get(name, ()) if at > now - self._window]
            self._seen[name] = [*recent, now][-self._limit :]

    def forget(self, name: str) -> None:
        """Let bygones be bygones."""
        self._seen.pop(name, None)
