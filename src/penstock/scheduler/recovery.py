"""What dead nodes and silent executors left behind.

Two things can lapse. A *claim* whose node stopped renewing it: it is taken over under a new epoch, which
fences the old holder, and each of its jobs is dealt with. A *job that is out* whose executor fell silent past
its deadline: it is leased for a moment, asked about, and resolved. Either way the sink is asked first
(`probe`): what runs is left alone, what ended gets its outcome, what never began goes again under the same
number. Where nobody knows, the lane's `on_unknown` decides. A claim of a `hold` lane that was never marked
*sending* was never sent: it goes again.

A job that was taken from a node never becomes poison: only executors that had started and fell silent again
and again make it so. A pass asks about at most `max_recoveries_per_pass` silent jobs of a lane, so that one
with very many is in nobody's way; if it was full, the next pass follows at once. A claim is dealt with whole,
that many jobs at a time. A batch is never filled with jobs that are looked at and skipped: each look pushes
the deadline or changes the job.
"""

import asyncio
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Final

from penstock.domain.job import Claim, Claimed
from penstock.domain.lanes import Lane
from penstock.domain.leases import Term
from penstock.domain.outcomes import (
    Dead,
    Dispatched,
    Lapsed,
    LapsedTooOften,
    Outcome,
    Running,
    Succeeded,
    failed,
)
from penstock.domain.states import Reason
from penstock.errors import StoreUnavailable
from penstock.ports.events import Moves, Recovered
from penstock.ports.sink import FAILED, NOT_STARTED, RUNNING, SUCCEEDED, UNKNOWN, Probed
from penstock.scheduler.deck import Deck
from penstock.scheduler.ground import cancelled
from penstock.scheduler.moves import moves
from penstock.scheduler.plans import Plan, plan_of

CLAIMS: Final = 20
JOBS: Final = 1000
PROBE_TIMEOUT: Final = timedelta(seconds=10)
LEASE: Final = timedelta(seconds=30)
MISSED_BEATS: Final = 3
TRIES: Final = 5


@dataclass(frozen=True, slots=True)
class Recovery:
    """One node's recovery, which only the leader runs."""

    deck: Deck

    async def tick(self, term: Term | None) -> bool:
        """Deal with a bounded number of lapsed claims and silent jobs; say whether there may be more."""
        return await self._take_over(term) | await self._ask_silent(term)

    async def _take_over(self, term: Term | None) -> bool:
        deck, ground = self.deck, self.deck.ground
        started = ground.monotonic()
        claims = await ground.call(ground.store.takeover, deck.node, LEASE, CLAIMS, under=term)
        for claim in claims:
            deck.holdings.take(claim.epoch, lease=LEASE, started=started)
        try:
            for claim in claims:
                await self._settle(claim)
                deck.holdings.drop(claim.epoch)
        finally:  # what is held is renewed: of those that nobody gets to any more the leases must run out
            for claim in claims:
                deck.holdings.drop(claim.epoch)
        return len(claims) == CLAIMS

    async def _settle(self, claim: Claim) -> None:
        plan = await self._plan(claim.lane)
        jobs = [claimed for claimed in claim.jobs if claimed.job.arrival not in claim.settled]
        some = plan.recoveries_per_pass if plan is not None else max(1, len(jobs))
        for start in range(0, len(jobs), some):
            if not await self._settle_some(claim, plan, jobs[start : start + some]):
                return  # its lease runs out, and somebody tries again

    async def _settle_some(self, claim: Claim, plan: Plan | None, jobs: Sequence[Claimed]) -> bool:
        if plan is not None and plan.hold and not claim.sending:  # the mark comes before the send: it was not
            found: Sequence[Probed] = [Probed(NOT_STARTED)] * len(jobs)
            outcomes: dict[int, Outcome] = {c.job.arrival: Lapsed(started=False) for c in jobs}
        else:
            found = await self._probe(plan, jobs)
            outcomes = {
                claimed.job.arrival: self._left(plan, claimed, probed)
                for claimed, probed in zip(jobs, found, strict=True)
            }
        outcomes = {arrival: _of(claim, outcome) for arrival, outcome in outcomes.items()}
        for _ in range(TRIES):
            try:
                await self.deck.ground.call(self.deck.ground.store.settle, claim, outcomes)
            except StoreUnavailable:
                await asyncio.sleep(0.2)
            else:
                self._tell(claim.lane, found, moves(jobs, outcomes))
                self.deck.poke(claim.lane)
                self.deck.look_soon()
                return True
        return False

    def _left(self, plan: Plan | None, claimed: Claimed, probed: Probed) -> Outcome:
        """Return what a claim whose holder is gone means for one of its jobs."""
        known = self._known(plan, claimed, probed)
        if known is not None:
            return known
        hold = plan is not None and plan.hold
        if probed.fate == NOT_STARTED and not hold:
            return Lapsed(started=False)
        return Lapsed(
            hold=hold
        )  # for work that must not repeat "not started" is no proof: it may be on its way

    async def _ask_silent(self, term: Term | None) -> bool:
        deck, ground = self.deck, self.deck.ground
        lapse = await ground.call(ground.store.lapse, deck.node, LEASE, JOBS, under=term)
        if lapse is None:
            return False
        lanes = await ground.call(ground.store.lanes)
        by_lane: dict[str, list[Claimed]] = {}
        for claimed in lapse.jobs:
            by_lane.setdefault(lapse.lanes[claimed.job.lane], []).append(claimed)
        outcomes: dict[int, Outcome] = {}
        for lane, jobs in sorted(by_lane.items()):
            plan = await self._plan(lane)
            found = await self._probe(plan, jobs)
            for claimed, probed in zip(jobs, found, strict=True):
                outcomes[claimed.job.arrival] = self._silent(plan, claimed, probed)
            self._tell(lane, found, moves(jobs, outcomes))
        for _ in range(TRIES):
            try:
                await ground.call(ground.store.resolve, lapse, outcomes)
            except StoreUnavailable:
                await asyncio.sleep(0.2)
            else:
                break
        for lane in by_lane:
            deck.poke(lane)
        deck.look_soon()
        full = [name for name, jobs in by_lane.items() if len(jobs) >= _per_pass(lanes, name)]
        return bool(full) or len(lapse.jobs) == JOBS

    def _silent(self, plan: Plan | None, claimed: Claimed, probed: Probed) -> Outcome:
        """Return what an executor's silence means for one job."""
        known = self._known(plan, claimed, probed)
        if known is not None:
            return known
        job = claimed.job
        if plan is not None and job.recoveries >= plan.max_recoveries:
            return LapsedTooOften(Reason.POISON if job.started_at else Reason.UNREPORTED)
        hold = plan is not None and plan.hold
        if probed.fate == NOT_STARTED and not hold:
            return Lapsed(started=False)
        return Lapsed(hold=hold)

    def _known(self, plan: Plan | None, claimed: Claimed, probed: Probed) -> Outcome | None:
        """Return the outcome that the sink knows of, None when it knows of none."""
        if plan is None:
            return None
        job = claimed.job
        match probed.fate:
            case fate if fate == RUNNING:
                if plan.policy.ack is not None and job.started_at is None:
                    return Dispatched(plan.policy.ack, job.receipt, slot=plan.slot_of(claimed))
                return Running(plan.heartbeat * MISSED_BEATS)
            case fate if fate == SUCCEEDED:
                return Succeeded(result=probed.result)
            case fate if fate == FAILED and not probed.retryable:
                return Dead(Reason.PERMANENT, probed.error)
            case fate if fate == FAILED:
                return failed(
                    probed.error,
                    policy=plan.policy,
                    attempt=job.attempt,
                    max_attempts=job.max_attempts,
                    random=self.deck.ground.rng.random(),
                )
            case _:
                return None

    async def _probe(self, plan: Plan | None, jobs: Sequence[Claimed]) -> Sequence[Probed]:
        """Ask the sink; one that cannot be asked or does not answer in time knows nothing.

        Nor does it of a job whose context is missing: nothing to ask with. Its mates are asked about.
        """
        asked = [claimed for claimed in jobs if claimed.context is not None]
        fates = iter(await self._ask(plan, asked))
        return [Probed(UNKNOWN) if claimed.context is None else next(fates) for claimed in jobs]

    async def _ask(self, plan: Plan | None, jobs: Sequence[Claimed]) -> Sequence[Probed]:
        unknown = [Probed(UNKNOWN)] * len(jobs)
        sink = await self.deck.outlets.get(plan.sink) if plan is not None else None
        if sink is None or plan is None or not jobs:
            return unknown
        try:
            async with (
                asyncio.timeout(PROBE_TIMEOUT.total_seconds()) as patience,
                asyncio.TaskGroup() as tasks,
            ):
                hurry = tasks.create_task(self._end_in_a_hurry(patience))
                found = await sink.probe([plan.envelope(claimed) for claimed in jobs])
                hurry.cancel()
        except (Exception, asyncio.CancelledError):  # whatever it is, we know nothing
            if cancelled():
                raise
            return unknown
        return found if len(found) == len(jobs) else unknown

    async def _end_in_a_hurry(self, patience: asyncio.Timeout) -> None:
        await self.deck.hurry.wait()
        patience.reschedule(asyncio.get_running_loop().time())

    async def _plan(self, lane: str) -> Plan | None:
        known = self.deck.board.lanes.get(lane) or (
            await self.deck.ground.call(self.deck.ground.store.lanes)
        ).get(lane)
        if known is None:
            return None
        sink = await self.deck.outlets.get(known["sink"])
        # A sink that is closed here cannot be asked; what the lane says of unknown fates counts all the same.
        board = self.deck.board
        return plan_of(known, board.pools, None) if sink is None else board.plan(known, sink)

    def _tell(self, lane: str, found: Sequence[Probed], each: Moves) -> None:
        fates: Mapping[str, int] = Counter(probed.fate for probed in found)
        self.deck.rescues.note(lane, fates, self.deck.ground.monotonic())
        self.deck.ground.emit(Recovered(lane=lane, fates=fates, each=each))


def _of(claim: Claim, outcome: Outcome) -> Outcome:
    """Return the outcome as that of the node that had the claim: it is on record, not who found it."""
    return replace(outcome, node=claim.taken_from) if isinstance(outcome, Lapsed) else outcome


def _per_pass(lanes: Mapping[str, Lane], name: str) -> int:
    return int(lanes[name]["max_recoveries_per_pass"]) if name in lanes else JOBS
