"""What all nodes sent in the last hour, from the counts that each tells with its heartbeat.

A count is some seconds old when it arrives: what it grew by is spread over the time since the one before, and
the steps of the last seconds are left out. Only charts are made of it.
"""

from collections.abc import Callable, Mapping, Sequence
from threading import Lock
from typing import Any, Final, NamedTuple

from penstock.observability.hour import STEP_S, STEPS

LATE: Final = 1  # steps that may still grow


class Sum(NamedTuple):
    """Jobs sent and failed within a step, over all nodes; `at` counts backwards from now."""

    at: int
    sent: float
    failed: float


class _Heard(NamedTuple):
    beat: str
    at: float
    sent: int
    failed: int


class Cluster:
    """Learns of nodes whenever somebody looked at them; safe to ask from any thread."""

    def __init__(self, monotonic: Callable[[], float]) -> None:
        self._monotonic, self._lock = monotonic, Lock()
        self._heard: dict[int, _Heard] = {}
        self._steps: dict[int, tuple[float, float]] = {}
        self._began = self._step()

    @property
    def nodes(self) -> int:
        """How many nodes tell what they sent."""
        return len(self._heard)

    def learn(self, nodes: Sequence[Mapping[str, Any]]) -> None:
        """Take notice of what the nodes that are alive say."""
        now = self._monotonic()
        with self._lock:
            telling = {node["id"]: node for node in nodes if node["sent"] is not None}
            for gone in self._heard.keys() - telling.keys():
                del self._heard[gone]
            for number, node in telling.items():
                before = self._heard.get(number)
                if before is None or before.beat != node["seen_at"]:
                    heard = self._heard[number] = _Heard(node["seen_at"], now, node["sent"], node["failed"])
                    if before is not None:
                        self._spread(before, heard)
            for old in [step for step in self._steps if step < self._step() - STEPS]:
                del self._steps[old]

    def steps(self, *, last: int = STEPS) -> list[Sum]:
        """Return the last steps, oldest first; a quiet one is all zero."""
        with self._lock:
            now = self._step()
            return [
                Sum((at - now) * STEP_S, *self._steps.get(at, (0.0, 0.0)))
                for at in range(max(now - last, self._began), now - LATE)
            ]

    def _spread(self, before: _Heard, after: _Heard) -> None:
        first, last = int(before.at) // STEP_S, int(after.at) // STEP_S
        length = max(after.at - before.at, 1e-9)
        for step in range(max(first, last - STEPS), last + 1):
            share = (min(after.at, (step + 1) * STEP_S) - max(before.at, step * STEP_S)) / length
            sent, failed = self._steps.get(step, (0.0, 0.0))
            sent += max(0, after.sent - before.sent) * share
            failed += max(0, after.failed - before.failed) * share
            self._steps[step] = (sent, failed)

    def _step(self) -> int:
        return int(self._monotonic()) // STEP_S
