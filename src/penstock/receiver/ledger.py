"""How a request compares with what came before it: retries, duplicates, order within groups.

Order is checked by sequence, on the first request of each job: later ones may come at any time. Jobs of one
sequence are not compared: a request does not tell which the store took first, and ids do not either, for each
client makes its own, or the caller does. Nor is a job out of order that was made, by its id, after the higher
one had arrived: nobody could wait for it. Jobs of mode `immediate` keep no order. What is remembered is
bounded; of the jobs that came longest ago nothing is known.
"""

from collections import OrderedDict
from dataclasses import asdict, dataclass, field
from datetime import datetime
from typing import Final, TypeVar

from penstock.domain.ulid import is_valid, timestamp_ms
from penstock.receiver.requests import Answer, Request

REMEMBERED: Final = 1_000_000
Key = TypeVar("Key")
Value = TypeVar("Value")


@dataclass(slots=True)
class _Job:
    """What came of a job so far; `open` requests are not answered yet."""

    sends: set[int | None] = field(default_factory=set)
    open: int = 0
    taken: bool = False


@dataclass(slots=True)
class Summary:
    """Everything that arrived, counted."""

    requests: int = 0
    jobs: int = 0
    groups: int = 0
    taken: int = 0
    turned_down: int = 0
    retries: int = 0
    duplicates: int = 0
    duplicates_of_the_same_send: int = 0
    out_of_order: int = 0
    bad_signatures: int = 0

    def counts(self) -> dict[str, int]:
        """Return the counts by name."""
        return asdict(self)


class Ledger:
    """Remembers jobs and groups."""

    def __init__(self, *, remembered: int = REMEMBERED) -> None:
        self.summary = Summary()
        self._remembered = remembered
        self._jobs: OrderedDict[str, _Job] = OrderedDict()
        self._last: OrderedDict[tuple[str | None, str], tuple[int, datetime]] = OrderedDict()

    def compare(self, request: Request) -> Request:
        """Return the request with what is known of its job and its group, and remember it."""
        self.summary.requests += 1
        self.summary.bad_signatures += request.bad_signature
        if request.id is None:
            return request
        job = self._jobs.get(request.id)
        if job is not None:
            self._jobs.move_to_end(request.id)
            return self._again(request, job)
        self.summary.jobs += 1
        _keep(self._jobs, request.id, _Job({request.send}, open=1), self._remembered)
        return self._ordered(request)

    def answered(self, request: Request, answer: Answer) -> None:
        """Note what the request is answered with."""
        taken = 200 <= answer.status < 300
        self.summary.taken += taken
        self.summary.turned_down += not taken
        job = self._jobs.get(request.id) if request.id is not None else None
        if job is not None:
            job.open -= 1
            job.taken |= taken

    def _again(self, request: Request, job: _Job) -> Request:
        repeat = "duplicate" if job.taken or job.open else "retry"
        same = request.send in job.sends
        job.sends.add(request.send)
        job.open += 1
        if repeat == "retry":
            self.summary.retries += 1
        else:
            self.summary.duplicates += 1
            self.summary.duplicates_of_the_same_send += same
        return request.with_(repeat=repeat, same_send=same)

    def _ordered(self, request: Request) -> Request:
        if request.group is None or request.sequence is None or request.mode == "immediate":
            return request
        place = (request.lane, request.group)
        last = self._last.get(place)
        self.summary.groups += last is None
        if last is None or request.sequence >= last[0]:
            _keep(self._last, place, (request.sequence, request.at), self._remembered)
            return request
        if _made_after(request.id, last[1]):
            return request
        self.summary.out_of_order += 1
        return request.with_(after=last[0])


def _made_after(job: str | None, at: datetime) -> bool:
    """Say whether a job was made later, by its maker's clock."""
    return is_valid(job) and timestamp_ms(str(job)) > at.timestamp() * 1000


def _keep(memory: OrderedDict[Key, Value], key: Key, value: Value, most: int) -> None:
    memory[key] = value
    memory.move_to_end(key)
    if len(memory) > most:
        memory.popitem(last=False)
