"""A node on a real store that sends through a network that fails, and the judgement of what came out there.

The judge is that of the promises (`penstock.testing.invariants`): nothing lost, order per group, every byte
as it was accepted, and every message that came twice explained by what the store has on record.
"""

import asyncio
import hashlib
from collections import Counter
from collections.abc import AsyncIterator, Collection, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from penstock.client import Client
from penstock.domain.job import Job, NewJob
from penstock.domain.outcomes import Receipt
from penstock.domain.states import JobState
from penstock.ports.clock import SystemClock
from penstock.ports.sink import Envelope, Probed, Sink
from penstock.stores.connect import connect
from penstock.testing.invariants.afterwards import check_afterwards
from penstock.testing.invariants.facts import Ledger
from penstock.testing.invariants.received import log_of
from tests.scheduler.engine import Engine

LANE = "orders"
PATIENCE_S = 120
RETRY = ["0s", *["100ms"] * 30]
Trouble = AbstractAsyncContextManager[None]


class Came(NamedTuple):
    """One message at the other end; `body` None = it is not its payload that was sent."""

    id: str
    send: int
    body: bytes | None = None


class Troubled:
    """A sink of which some calls are made in trouble; `left` are the troubles that are not over yet."""

    def __init__(self, sink: Sink, troubles: Mapping[int, Trouble]) -> None:
        self._sink = sink
        self.max_batch, self.keeps_order = sink.max_batch, sink.keeps_order
        self.format, self.complete_on = sink.format, sink.complete_on
        self.left = dict(troubles)
        self._calls = 0
        self._one_at_a_time = asyncio.Lock()

    async def send(self, batch: Sequence[Envelope]) -> Sequence[Receipt]:
        self._calls += 1
        place = self._calls
        trouble = self.left.get(place)
        try:
            async with self._one_at_a_time if trouble else nullcontext(), trouble or nullcontext():
                return await self._sink.send(batch)
        finally:
            self.left.pop(place, None)

    async def probe(self, sends: Sequence[Envelope]) -> Sequence[Probed]:
        return await self._sink.probe(sends)

    async def close(self) -> None:
        """Whoever opened it closes it."""


@dataclass
class Line:
    """Jobs of some groups on their way; `tried` counts what became of tries that did not succeed at once."""

    engine: Engine
    sink: Troubled
    ledger: Ledger = field(default_factory=Ledger)

    @property
    def tried(self) -> Counter[str]:
        store = self.engine.store
        return Counter(
            str(row.outcome) for job_id in self.ledger.accepted for row in store.timeline(job_id).attempts
        )

    async def carry(self, *, groups: int, per_group: int, **options: object) -> None:
        """Enqueue jobs and have a node with these options send them, until every one is done."""
        for number in range(per_group):
            jobs: list[dict[str, Any]] = [
                {"payload": {"n": number}, "group": f"group-{group}", "sequence": number}
                for group in range(groups)
            ]
            asked_after = len(self.ledger)
            for job_id, job in zip(self.engine.enqueue(*jobs), jobs, strict=True):
                said = NewJob(lane=LANE, **(job | {"payload": f'{{"n":{number}}}'}))
                self.ledger.accept(job_id, said, asked_after=asked_after)
        async with self.engine.node(**options):
            await self.engine.until(self._done, seconds=PATIENCE_S)
        assert not self.sink.left, "not every trouble came"

    def jobs(self) -> Collection[Job]:
        """Return all that were enqueued, as they are now."""
        return self.engine.store.find(list(self.ledger.accepted)).values()

    def _done(self) -> bool:
        return {job.state for job in self.jobs()} == {JobState.SUCCEEDED}

    def judge(self, came: Sequence[Came], *, dedups: bool) -> None:
        """Hold what came against the promises; `dedups` = of one send the other end takes one message."""
        store, ids = self.engine.store, list(self.ledger.accepted)
        jobs = store.find(ids)
        log = log_of(list(self._lines(came, jobs)), store, self.ledger)
        check_afterwards(self.ledger, log, store, ids=ids)
        sends = Counter((one.id, one.send) for one in came)
        assert not dedups or max(sends.values()) == 1, sends.most_common(3)

    def _lines(self, came: Sequence[Came], jobs: Mapping[str, Job]) -> Iterator[dict[str, Any]]:
        """Write what came as a receiver would; the n-th of a send was sent by the n-th try of that number."""
        seen: Counter[tuple[str, int]] = Counter()
        for one in came:
            said, job = self.ledger.accepted[one.id], jobs[one.id]
            body = one.body if one.body is not None else str(said.payload).encode()
            rows = self.engine.store.timeline(one.id).attempts
            tries = [row.claimed_at for row in rows if row.send == one.send]
            if job.live.send == one.send:
                tries.append(job.live.claimed_at)
            at = tries[min(seen[one.id, one.send], len(tries) - 1)]
            seen[one.id, one.send] += 1
            assert at is not None
            yield {
                "id": one.id,
                "send": one.send,
                "lane": LANE,
                "group": said.group,
                "sequence": said.sequence,
                "sha256": hashlib.sha256(body).hexdigest(),
                "answer": 200,
                "time": at.isoformat(),
            }


@asynccontextmanager
async def line(
    folder: Path,
    sink: Sink,
    troubles: Mapping[int, Trouble],
    *,
    clock: SystemClock | None = None,
    **settings: object,
) -> AsyncIterator[Line]:
    """Give a node's surroundings: a store, and a lane that sends to this sink in strict order."""
    url, clock = f"sqlite:///{folder / 'line.db'}", clock or SystemClock()
    store = connect(url, clock=clock.now)
    store.migrate()
    engine = Engine(url, store, Client(store), clock=clock)
    troubled = Troubled(sink, troubles)
    engine.sinks["line"] = troubled
    defaults = {
        "sink": "line",
        "mode": "block_on_error",
        "hold_until": "sent" if sink.keeps_order else "done",
        "complete_on": "sent",
        "format": "payload",
        "timeout": "60s",
        "retry": RETRY,
    }
    engine.lane(LANE, **(defaults | settings))
    try:
        yield Line(engine, troubled)
    finally:
        store.close()
