"""The part of a node that cleans up after others: takeover, lapses, expiry, retention.

Every node does it, all the time and without a leader: correctness must not depend on there being one.
"""

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from typing import Final, assert_never

from penstock.domain.job import Claim, Claimed
from penstock.domain.leases import trusted_until
from penstock.domain.outcomes import Dispatched, Lapsed, LapsedTooOften, Outcome, Running, Succeeded
from penstock.domain.states import Reason
from penstock.errors import StoreUnavailable
from penstock.testing.sim.dispatcher import Dispatcher, Terms
from penstock.testing.sim.sink import Fate

LIMIT: Final = 10
TRIES: Final = 3
PROBE_TIMEOUT: Final = timedelta(seconds=1)
PROBE_LEASE: Final = timedelta(milliseconds=500)


@dataclass(frozen=True, slots=True)
class Recovery:
    """One node's recovery."""

    node: Dispatcher
    every: timedelta
    housekeeping: timedelta | None

    async def run(self, tasks: asyncio.TaskGroup) -> None:
        """Look for what others left, for ever."""
        if self.housekeeping is not None:
            tasks.create_task(self._housekeep(self.housekeeping))
        while True:
            await asyncio.sleep(self.every.total_seconds() * (1 + self.node.env.rng.random() / 10))
            with suppress(StoreUnavailable):
                await self._take_over()
            with suppress(StoreUnavailable):
                await self._probe_silent()

    async def _take_over(self) -> None:
        node = self.node
        started = node.env.clock.monotonic()
        claims = await node.call(partial(node.store.takeover, node.node, node.lease, LIMIT))
        for claim in claims:
            node.held[claim.epoch] = trusted_until(started, node.lease)
        for claim in claims:
            try:
                await node.settle(claim, await self._of_claim(claim))
            finally:
                node.held.pop(claim.epoch, None)

    async def _of_claim(self, claim: Claim) -> dict[int, Outcome]:
        terms = self.node.lanes[claim.lane]
        jobs = [claimed for claimed in claim.jobs if claimed.job.arrival not in claim.settled]
        fates = await self._probe(jobs)
        return {c.job.arrival: self._left(c, fates[c.job.arrival], claim, terms) for c in jobs}

    def _left(self, claimed: Claimed, fate: Fate, claim: Claim, terms: Terms) -> Outcome:
        """Return what a claim whose holder is gone means for one of its jobs."""
        if terms.hold and not claim.sending:
            return Lapsed(started=False)  # the mark comes before the send, and the old holder is fenced
        match fate:
            case Fate.ENDED:
                return self._ended(claimed) or Succeeded()
            case Fate.RUNNING:
                return Running(terms.within)
            case Fate.NOT_STARTED:
                # For work that must not repeat this is no proof: the message may still be on its way.
                return Lapsed(hold=True) if terms.hold else Lapsed(started=False)
            case Fate.UNKNOWN:
                if terms.policy.ack is not None and self.node.env.rng.random() < 0.5:
                    return Dispatched(terms.policy.ack)  # it may never have gone: nobody passes it
                return Lapsed(hold=terms.hold)
            case _:
                assert_never(fate)

    async def _probe_silent(self) -> None:
        node = self.node
        lapse = await node.call(partial(node.store.lapse, node.node, PROBE_LEASE, LIMIT))
        if lapse is None:
            return
        fates = await self._probe(lapse.jobs)
        outcomes = {
            claimed.job.arrival: self._silent(
                claimed, self.node.lanes[lapse.lanes[claimed.job.lane]], fates[claimed.job.arrival]
            )
            for claimed in lapse.jobs
        }
        for _ in range(TRIES):  # a lost answer says nothing, and a second write of the same changes nothing
            with suppress(StoreUnavailable):
                await node.call(partial(node.store.resolve, lapse, outcomes))
                return
            await asyncio.sleep(0.5)

    def _silent(self, claimed: Claimed, terms: Terms, fate: Fate) -> Outcome:
        """Return what an executor's silence means for one job."""
        job = claimed.job
        match fate:
            case Fate.ENDED:
                return self._ended(claimed) or Succeeded()
            case Fate.RUNNING:
                return Running(terms.within)
            case Fate.NOT_STARTED | Fate.UNKNOWN:
                if job.recoveries >= terms.max_recoveries:
                    return LapsedTooOften(Reason.POISON if job.started_at else Reason.UNREPORTED)
                if fate is Fate.NOT_STARTED and not terms.hold:
                    return Lapsed(started=False)
                return Lapsed(hold=terms.hold)
            case _:
                assert_never(fate)

    def _ended(self, claimed: Claimed) -> Outcome | None:
        return self.node.sink.ended(_send(claimed))

    async def _probe(self, jobs: Sequence[Claimed]) -> Mapping[int, Fate]:
        """Ask the sink; one that does not answer knows nothing."""
        sends = [_send(claimed) for claimed in jobs]
        with suppress(TimeoutError):
            async with asyncio.timeout(PROBE_TIMEOUT.total_seconds()):
                fates = await self.node.env.network.run(partial(self.node.sink.probe, sends))
                if self.node.env.rng.random() < 0.3 and not self.node.sink.calm:  # slow, or too slow
                    await asyncio.sleep(2 * self.node.env.rng.random())
                return {c.job.arrival: fate for c, fate in zip(jobs, fates, strict=True)}
        return {claimed.job.arrival: Fate.UNKNOWN for claimed in jobs}

    async def _housekeep(self, every: timedelta) -> None:
        store = self.node.store
        while True:
            await asyncio.sleep(every.total_seconds() * (1 + self.node.env.rng.random()))
            for chore in (
                partial(store.expire, LIMIT),
                store.fold_counts,
                partial(store.retire, slice_rows=LIMIT),
            ):
                with suppress(StoreUnavailable):
                    await self.node.call(chore)


def _send(claimed: Claimed) -> tuple[str, int]:
    """Return what a sink knows a send by."""
    assert claimed.context is not None
    return claimed.context.id, claimed.job.current_send
