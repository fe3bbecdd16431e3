"""When a job is due on the store's clock, in terms of our own monotonic one.

We never read the store's clock directly: every answer that carries its time says "at the moment this reached
you it was at least that late over there". The best such bound of the last seconds tells how long to wait so
that nothing goes early. It is a lower bound, so we err on the late side, by the latency of the quickest
reply. A store whose clock was set back shows as a reply that is too low even if it took all its time on the
way back: then only the new one counts.
"""

from collections import deque
from datetime import datetime, timedelta
from typing import Final

KEEP_S: Final = 10.0
SET_BACK: Final = timedelta(milliseconds=500)


class StoreTime:
    """What we know of the store's clock."""

    def __init__(self) -> None:
        self._samples: deque[tuple[float, datetime]] = deque()

    def learn(self, said: datetime, *, asked: float, at: float) -> None:
        """Note that a reply to what was `asked` then, which came at `at`, carried this time of the store."""
        latest = said + timedelta(seconds=at - asked)
        if self._samples and latest < self.now(at) - SET_BACK:
            self._samples.clear()
        while self._samples and self._samples[0][0] < at - KEEP_S:
            self._samples.popleft()
        # An older sample that promises less than this one is never the best again.
        while self._samples and self._ahead(self._samples[-1], at) <= said:
            self._samples.pop()
        self._samples.append((at, said))

    @property
    def known(self) -> bool:
        """Whether the store has been heard at all."""
        return bool(self._samples)

    def now(self, at: float) -> datetime:
        """Return a time that the store's clock has reached for sure."""
        return max(self._ahead(sample, at) for sample in self._samples)

    @staticmethod
    def _ahead(sample: tuple[float, datetime], at: float) -> datetime:
        heard, said = sample
        return said + timedelta(seconds=at - heard)
