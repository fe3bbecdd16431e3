"""A small dispatcher that uses the store as an engine must: claim, confirm, send, settle, and survive.

It is not the product's engine: it has no limits and no fairness of its own. It shows what the port demands of
its callers, and it lets a simulated world drive the real stores through every way a node can fail:

- a call that raises StoreUnavailable may have taken effect: a settle is repeated (what it wrote is refused
  the second time), a claim is left to recovery;
- a lease is trusted from the moment it was asked for, less a margin (`leases.trusted_until`); what may not be
  begun in time is given back or left, never sent;
- messages of one group go one per call, in order, and nothing is sent past a failure in its group;
- a lane whose work must not repeat marks its claim before the first send.
"""

import asyncio
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import timedelta
from functools import partial
from typing import Final, TypeVar

from penstock.domain.durations import parse_duration
from penstock.domain.job import Claim, Claimed
from penstock.domain.lanes import Lane
from penstock.domain.leases import renew_every, trusted, trusted_until
from penstock.domain.outcomes import (
    Accepted,
    Duplicate,
    Expired,
    Held,
    Lapsed,
    Outcome,
    Policy,
    Receipt,
    Returned,
    failed,
    outcome_of,
)
from penstock.domain.retry import RetrySchedule
from penstock.errors import StoreUnavailable
from penstock.ports.store import Ask, Store
from penstock.testing.sim.node import NodeEnv
from penstock.testing.sim.sink import Answers, Message, SimSink

T = TypeVar("T")
BATCH: Final = 4
AT_ONCE: Final = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Terms:
    """A lane's settings as a dispatcher uses them.

    `doubt` says that a send without an answer is of unknown fate; otherwise it is a failure like any other.
    """

    name: str
    ordered: bool
    loose: bool
    batch: int
    run: int
    lease: timedelta
    poll: timedelta
    timeout: timedelta
    within: timedelta
    ahead: timedelta
    policy: Policy
    hold: bool
    doubt: bool
    max_recoveries: int


def terms_of(lane: Lane, *, ordered: bool = True, loose: bool = True, doubt: bool = False) -> Terms:
    """Read a lane's settings; `ordered` and `loose` say which of the two claims the lane needs."""
    passes, reported = lane["hold_until"] == "sent", lane["complete_on"] == "reported"
    return Terms(
        name=lane.name,
        ordered=ordered,
        loose=loose,
        batch=lane["batch_size"],
        run=3 if passes else 1,
        lease=parse_duration(lane["lease"]),
        poll=parse_duration(lane["poll_interval"]),
        timeout=parse_duration(lane["timeout"]),
        within=parse_duration(lane["heartbeat"]),
        ahead=parse_duration(lane["lookahead"]),
        policy=Policy(
            RetrySchedule.from_text(lane["retry"]),
            ack=parse_duration(lane["ack_timeout"]) if reported else None,
            passes=passes,
        ),
        hold=lane["on_unknown"] == "hold",
        doubt=doubt,
        max_recoveries=lane["max_recoveries"],
    )


@dataclass(slots=True)
class Dispatcher:
    """One life of one node. `held` are its claims and how long each may be trusted, in monotonic seconds."""

    env: NodeEnv
    store: Store
    sink: SimSink
    lanes: Mapping[str, Terms]
    node: int = 0
    held: dict[int, float] = field(default_factory=dict)

    @property
    def lease(self) -> timedelta:
        """How long a claim lasts: one length for all lanes of a scenario."""
        return next(iter(self.lanes.values())).lease

    async def call(self, work: Callable[[], T]) -> T:
        """Make a call of the store."""
        return await self.env.executor.run(work)

    async def insist(self, work: Callable[[], T]) -> T:
        """Make a call until it is answered; only for what may happen twice."""
        while True:
            with suppress(StoreUnavailable):
                return await self.call(work)
            await asyncio.sleep(0.1)

    async def dispatch(self, tasks: asyncio.TaskGroup) -> None:
        """Serve every lane for ever."""
        self.node = await self.insist(partial(self.store.register_node, self.env.id))
        self.env.beside("heartbeat", self.heartbeat)
        for terms in self.lanes.values():
            tasks.create_task(self.serve(tasks, terms))

    async def heartbeat(self) -> None:
        """Renew what is held, often enough that one renewal may fail."""
        while True:
            await asyncio.sleep(renew_every(self.lease).total_seconds())
            asked, started = sorted(self.held), self.env.clock.monotonic()
            if not asked:
                continue
            with suppress(StoreUnavailable):
                ours = await self.call(partial(self.store.renew, asked, self.lease))
                for epoch in asked:
                    if epoch in self.held:
                        self.held[epoch] = trusted_until(started, self.lease) if epoch in ours else 0.0

    async def serve(self, tasks: asyncio.TaskGroup, terms: Terms) -> None:
        """Claim again and again: at once while there is work, else after a poll interval."""
        while True:
            busy = False
            with suppress(StoreUnavailable):
                busy = await self.tick(tasks, terms)
            if not busy:
                await asyncio.sleep(terms.poll.total_seconds() * (1 + self.env.rng.random() / 10))

    async def tick(self, tasks: asyncio.TaskGroup, terms: Terms) -> bool:
        """Make one pass over a lane; say whether there may be more."""
        if len(self.held) >= AT_ONCE:
            return False
        ask = Ask(
            lane=terms.name,
            node=self.node,
            limit=terms.batch,
            run=terms.run,
            lease=self.lease,
            ahead=terms.ahead,
        )
        found = False
        for claims, wanted in ((self.store.claim, terms.loose), (self.store.claim_groups, terms.ordered)):
            if wanted:
                started = self.env.clock.monotonic()
                claim = await self.call(partial(claims, ask))
                if claim is not None:
                    found = True
                    self.held[claim.epoch] = trusted_until(started, self.lease)
                    tasks.create_task(self.handle(claim, terms))
        return found

    async def handle(self, claim: Claim, terms: Terms) -> None:
        """Carry a claim through to its settle, as far as the lease allows."""
        try:
            with suppress(StoreUnavailable):
                await self._handle(claim, terms)
        finally:
            self.held.pop(claim.epoch, None)

    async def _handle(self, claim: Claim, terms: Terms) -> None:
        confirmed = await self.call(partial(self.store.confirm, claim))
        if not confirmed.ours:
            return
        asked = confirmed.asked
        outcomes: dict[int, Outcome] = {}
        to_send = []
        for claimed in claim.jobs:
            job = claimed.job
            if claimed.context is None:
                outcomes[job.arrival] = Held("context_missing")
            elif job.arrival in asked:
                outcomes[job.arrival] = Returned(f"{asked[job.arrival]} was asked for")
            elif job.start_by is not None and job.start_by < claim.claimed_at:
                outcomes[job.arrival] = Expired()
            else:
                to_send.append(claimed)
        if to_send and terms.hold and not await self.call(partial(self.store.mark_sending, claim.epoch)):
            return
        await self.send_all(claim, terms, to_send, outcomes)
        await self.settle(claim, outcomes)

    async def send_all(
        self, claim: Claim, terms: Terms, jobs: Sequence[Claimed], outcomes: dict[int, Outcome]
    ) -> None:
        """Send what may still go, wave by wave, and settle in pieces now and then."""
        failed_groups: set[str] = set()
        for wave in _waves(jobs, grouped=claim.groups):
            may_go = [claimed for claimed in wave if claimed.job.grp not in failed_groups]
            behind = [claimed for claimed in wave if claimed.job.grp in failed_groups]
            outcomes |= {claimed.job.arrival: Returned("behind a failure") for claimed in behind}
            if not may_go:
                continue
            await self._wait_until_due(claim, may_go)
            if not self.trusts(claim, needs=terms.timeout / 4):
                outcomes |= {claimed.job.arrival: Returned("no time left") for claimed in may_go}
                failed_groups |= {claimed.job.grp for claimed in may_go if claimed.job.grp is not None}
                continue
            receipts = await self.send([self._message(claimed, claim) for claimed in may_go], terms)
            for claimed, receipt in zip(may_go, receipts, strict=True):
                outcomes[claimed.job.arrival] = self._outcome(claimed, receipt, terms)
                if not isinstance(receipt, Accepted | Duplicate) and claimed.job.grp is not None:
                    failed_groups.add(claimed.job.grp)
            if self.env.rng.random() < 0.3:
                await self.settle(claim, outcomes)
                outcomes.clear()

    def trusts(self, claim: Claim, *, needs: timedelta = timedelta(0)) -> bool:
        """Say whether the claim is ours for at least that long."""
        return trusted(self.env.clock.monotonic(), self.held.get(claim.epoch, 0.0), needs=needs)

    async def send(self, batch: Sequence[Message], terms: Terms) -> Sequence[Receipt | None]:
        """Return the sink's receipts; None for each when it did not answer in time."""
        with suppress(TimeoutError):
            async with asyncio.timeout(terms.timeout.total_seconds()):
                answers: Answers = await self.env.network.run(partial(self.sink.take, batch))
                await asyncio.sleep(answers.delay)
                if answers.receipts is not None:
                    return answers.receipts
                await asyncio.sleep(terms.timeout.total_seconds())
        return [None] * len(batch)

    async def settle(self, claim: Claim, outcomes: Mapping[int, Outcome]) -> None:
        """Write outcomes; try again while the claim is ours, for a lost answer says nothing.

        Once is tried even when the lease is over: nobody may have noticed, and if so the write is fenced.
        """
        whole = len(outcomes) == len(claim.jobs) and all(_plain(outcome) for outcome in outcomes.values())
        written = None if whole and self.env.rng.random() < 0.7 else dict(outcomes)
        while outcomes:
            with suppress(StoreUnavailable):
                await self.call(partial(self.store.settle, claim, written))
                return
            if not self.trusts(claim):
                return
            await asyncio.sleep(0.1 + self.env.rng.random() / 5)

    async def _wait_until_due(self, claim: Claim, jobs: Sequence[Claimed]) -> None:
        """Wait out the look-ahead; counted from the answer, so the store's clock is at least as far."""
        ahead = max(claimed.job.due_at for claimed in jobs) - claim.claimed_at
        if ahead > timedelta(0):
            await asyncio.sleep(ahead.total_seconds())

    def _message(self, claimed: Claimed, claim: Claim) -> Message:
        job, context = claimed
        assert context is not None
        return Message(
            context.id,
            job.current_send,
            claim.epoch,
            claim.lane,
            job.grp,
            context.sequence,
            context.payload,
            job.attempt,
            job.max_attempts,
            self.env.id,
        )

    def _outcome(self, claimed: Claimed, receipt: Receipt | None, terms: Terms) -> Outcome:
        job, random = claimed.job, self.env.rng.random()
        if receipt is not None:
            return outcome_of(
                receipt,
                policy=terms.policy,
                attempt=job.attempt,
                max_attempts=job.max_attempts,
                random=random,
            )
        if terms.hold or terms.doubt:
            return Lapsed(hold=terms.hold)
        return failed(
            "no answer",
            policy=terms.policy,
            attempt=job.attempt,
            max_attempts=job.max_attempts,
            random=random,
        )


def _plain(outcome: Outcome) -> bool:
    """Say whether `settle(claim)` without outcomes would mean the same."""
    return type(outcome).__name__ == "Succeeded"


def _waves(jobs: Sequence[Claimed], *, grouped: bool) -> Iterator[list[Claimed]]:
    """Yield batches: of groups one message each per batch, in order."""
    if not grouped:
        for start in range(0, len(jobs), BATCH):
            yield list(jobs[start : start + BATCH])
        return
    queues: dict[str | None, list[Claimed]] = {}
    for claimed in jobs:
        queues.setdefault(claimed.job.grp, []).append(claimed)
    while queues:
        yield [queue.pop(0) for queue in queues.values()]
        queues = {group: queue for group, queue in queues.items() if queue}
