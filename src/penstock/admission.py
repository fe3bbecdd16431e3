"""What lanes and pools say about a new job: its lane is known, has room and takes payloads of this size."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from sys import maxsize
from typing import Any, Final

from penstock.domain.durations import parse_size
from penstock.domain.intake import Given, new_job
from penstock.domain.job import NewJob
from penstock.domain.lanes import Lane, oversize
from penstock.domain.lanes import lane as any_lane
from penstock.domain.names import near, unknown
from penstock.domain.sense import target_problem
from penstock.errors import InvalidJob, LaneFull, PenstockError, UnknownLane
from penstock.ports.store import Store

FRESH_FOR_S: Final = 1.0
_WIDEST: Final = 4  # bytes of one character in UTF-8


@dataclass(slots=True)
class _Room:
    """What a lane still takes; `jobs` None = any number."""

    lane: Lane
    bytes: int
    jobs: int | None

    def check_size(self, payload: str) -> None:
        if problem := oversize(payload, self.lane):
            raise InvalidJob("payload", problem)

    def take_place(self, places: int) -> None:
        if places <= 0:
            raise LaneFull(self.lane.name, self.lane["max_depth"])
        self.jobs = places - 1


class Admission:
    """Checks enqueue objects against lanes and pools as they were at most a second ago.

    With a `node` in front of the store they are checked there: who may enqueue need not see settings.
    """

    def __init__(self, store: Store, monotonic: Callable[[], float], *, node: bool = False) -> None:
        self._store = store
        self._node = node
        self._monotonic = monotonic
        self._lanes: dict[str, Lane] = {}
        self._until = monotonic()

    def lane(self, name: str) -> Lane:
        """Return the lane, or raise UnknownLane; one that is not known is looked for again."""
        now = self._monotonic()
        if name not in self._lanes or now >= self._until:
            self._lanes, self._until = self._store.lanes(), now + FRESH_FOR_S
        if name not in self._lanes:
            raise UnknownLane(name, near(name, self._lanes))
        return self._lanes[name]

    def admit(self, given: Iterable[Given]) -> tuple[list[NewJob], dict[int, PenstockError]]:
        """Return the jobs that may be written, in order, and what is wrong with the others, by index."""
        admitted: list[NewJob] = []
        refused: dict[int, PenstockError] = {}
        rooms: dict[str, _Room] = {}
        pools: Sequence[str] | None = None
        for index, one in enumerate(given):
            try:
                job = new_job(one)
                room = rooms.get(job.lane)
                if room is None:
                    room = rooms[job.lane] = self._room(job.lane)
                if job.payload is not None and len(job.payload) * _WIDEST > room.bytes:
                    room.check_size(job.payload)
                if job.target is not None:
                    _check_target(job.target, room.lane)
                if job.pool is not None and not self._node:
                    pools = sorted(self._store.pools()) if pools is None else pools
                    _check_pool(job.pool, pools)
                if room.jobs is not None:
                    room.take_place(room.jobs)
            except (InvalidJob, UnknownLane) as error:
                refused[index] = error
            else:
                admitted.append(job)
        return admitted, refused

    def content(self, lane: str, given: Mapping[str, Any]) -> NewJob:
        """Return what a job of this lane is changed to, checked as if it were new."""
        job = new_job({"lane": lane, **given})
        if job.payload is not None and not self._node:
            self._room(lane, count=False).check_size(job.payload)
        if job.target is not None:
            _check_target(job.target, self._room(lane, count=False).lane)
        return job

    def _room(self, name: str, *, count: bool = True) -> _Room:
        if self._node:
            return _Room(any_lane(name), maxsize, None)
        lane = self.lane(name)
        most = lane["max_depth"] if count else None
        left = None if most is None else most - self._store.depth(name)
        return _Room(lane, parse_size(lane["max_payload"]), left)


def _check_pool(name: str, pools: Sequence[str]) -> None:
    if name not in pools:
        raise InvalidJob("pool", unknown("pool", name, pools))


def _check_target(target: str, lane: Lane) -> None:
    if problem := target_problem(target, sink=lane["sink"]):
        raise InvalidJob("target", problem)
