"""Writing what came of a claim's jobs: as soon as there is something to write, together where that is free.

A settle that got no answer is repeated: what it wrote the first time is refused the second time. Once the
claim is no longer trusted it is tried once more and then left: if somebody took the claim over the write is
fenced, and if nobody did, recovery will.
"""

import asyncio
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Final

from penstock.domain.job import Claim, Claimed
from penstock.domain.outcomes import Dead, Deferred, Failed, Lapsed, Outcome, Returned, Succeeded
from penstock.domain.traces import traceparent_of
from penstock.errors import StoreUnavailable
from penstock.ports.events import JobDied, LeaseLost, ReturnedJobs, SettledBatch
from penstock.ports.store import Settled
from penstock.scheduler.deck import Deck
from penstock.scheduler.moves import moves
from penstock.scheduler.plans import Plan

AGAIN: Final = (Failed, Deferred, Returned, Lapsed)
GATHER_S: Final = 0.004
AGAIN_S: Final = 0.1
PART: Final = "settle"


class Settling:
    """The outcomes of one claim on their way to the store."""

    def __init__(self, deck: Deck, plan: Plan, claim: Claim, written: Callable[[Settled], None]) -> None:
        self._deck, self._plan, self._claim, self._written = deck, plan, claim, written
        self._jobs = {claimed.job.arrival: claimed for claimed in claim.jobs}
        self._left = len(claim.jobs) - len(claim.settled)
        self._decided = self._left
        self._outcomes: dict[int, Outcome] = {}
        self._news = asyncio.Event()
        self.lost = False
        self.applied = 0
        self.took = 0.0

    def decide(self, outcomes: Mapping[int, Outcome]) -> None:
        """Have outcomes written."""
        if outcomes:
            self._outcomes |= outcomes
            self._decided -= len(outcomes)
            self._news.set()

    def abandon(self) -> None:
        """Write no more: the claim is not ours."""
        self.lost = True
        self._news.set()

    async def run(self) -> None:
        """Write outcomes until all are written, or the claim is lost."""
        while self._left and not self.lost:
            await self._news.wait()
            self._news.clear()
            if self._decided and not self.lost:
                await asyncio.sleep(GATHER_S)
            outcomes, self._outcomes = self._outcomes, {}
            if outcomes and not self.lost:
                await self._write(outcomes)

    async def _write(self, outcomes: dict[int, Outcome]) -> None:
        ground, claim = self._deck.ground, self._claim
        whole = len(outcomes) == len(claim.jobs) and all(map(_plain, outcomes.values()))
        started, failures = ground.monotonic(), 0
        while True:
            trusted = self._deck.holdings.trusts(claim.epoch, ground.monotonic())
            try:
                settled = await ground.call(ground.store.settle, claim, None if whole else outcomes)
            except StoreUnavailable as error:
                failures += 1
                self._deck.outages.failed(PART, error, failures)
                if not trusted or self._deck.hurry.is_set():
                    self._lose(len(outcomes))
                    return
                await asyncio.sleep(AGAIN_S * (1 + ground.rng.random()))
            else:
                break
        self._deck.outages.worked(PART)
        self._left -= len(outcomes)
        self.applied += len(settled.applied)
        took = ground.monotonic() - started
        self.took += took
        self._tell(outcomes, settled, took)
        self._written(settled)
        if any(isinstance(outcome, AGAIN) for outcome in outcomes.values()):
            self._deck.look_soon()

    def _lose(self, jobs: int) -> None:
        self.lost = True
        self._deck.outages.gave_up(PART)
        self._deck.ground.emit(LeaseLost(lane=self._claim.lane, epoch=self._claim.epoch, jobs=jobs))

    def _tell(self, outcomes: Mapping[int, Outcome], settled: Settled, took: float) -> None:
        emit, lane = self._deck.ground.emit, self._claim.lane
        kinds = Counter(type(outcome).__name__.lower() for outcome in outcomes.values())
        emit(
            SettledBatch(
                lane=lane,
                epoch=self._claim.epoch,
                applied=len(settled.applied),
                refused=len(settled.refused),
                outcomes=kinds,
                took=took,
                each=moves(self._claim.jobs, outcomes, refused=settled.refused),
            )
        )
        back = Counter(outcome.why for outcome in outcomes.values() if isinstance(outcome, Returned))
        for why, jobs in back.items():
            self._deck.returned += jobs
            emit(ReturnedJobs(lane=lane, jobs=jobs, why=why))
        for arrival, outcome in outcomes.items():
            if isinstance(outcome, Dead) and arrival in settled.applied:
                claimed = self._jobs[arrival]
                died = JobDied(
                    lane=lane,
                    job=_id(claimed),
                    reason=outcome.reason,
                    error=outcome.error,
                    traceparent=traceparent_of(claimed.context.headers) if claimed.context else None,
                )
                emit(died)


def _plain(outcome: Outcome) -> bool:
    """Say whether it is what `settle` means when it is told nothing."""
    return type(outcome) is Succeeded and outcome.receipt is None and outcome.result is None


def _id(claimed: Claimed) -> str:
    return claimed.context.id if claimed.context else str(claimed.job.arrival)
