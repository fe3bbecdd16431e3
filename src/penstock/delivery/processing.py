"""What the processing endpoint does: deliver one send of a job to its target, and write what came of it.

Whoever brings the token of a pointer may ask for it: the router, or any other consumer of the queue. Asking
twice is safe, at once or later, on one node or on two:

- A send is begun by one alone (`Running(alone=True)`, decided by the store). The second is told to come
  again after the time that the first may take at most: if the first one died, the second takes over.
- A send that has ended, or is no longer the current one, is acknowledged and nothing else happens.

A failure that may pass puts the job back among the pending ones by the lane's schedule, and the dispatcher
sends a new pointer when it is due; so the message of this send is acknowledged. What is told "not now" is a
message whose job is at work elsewhere, or parked.
"""

import asyncio
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Final, NamedTuple

from penstock.domain.job import Claimed, Job
from penstock.domain.outcomes import Dead, Deferred, Failed, Outcome, Policy, Running, Unsent
from penstock.domain.states import JobState
from penstock.domain.targets import target_of
from penstock.domain.traces import traceparent_of
from penstock.errors import NotFound, StoreUnavailable
from penstock.ports.events import JobDied, Processed
from penstock.ports.sink import OpenSink, Sink
from penstock.ports.store import Report, Reported
from penstock.scheduler.board import Board
from penstock.scheduler.breakers import Breakers
from penstock.scheduler.calling import Answer as SinkAnswer
from penstock.scheduler.calling import NotCalled, call_sink, outcome_of_answer
from penstock.scheduler.deck import Deck
from penstock.scheduler.ground import Ground
from penstock.scheduler.limits import Limits
from penstock.scheduler.outlets import Outlets
from penstock.scheduler.plans import Plan
from penstock.tokens import BadToken, Token, Tokens

SINK: Final = "http"
# Beyond the lane's `timeout`, until a send that was begun counts as given up.
MARGIN: Final = timedelta(seconds=15)
PARKED: Final = timedelta(minutes=1)
SOON: Final = timedelta(seconds=1)
SINK_CLOSED: Final = timedelta(seconds=10)
FRESH_FOR_S: Final = 1.0
TRIES: Final = 6
AGAIN_S: Final = 0.2
PART: Final = "process"
_OPEN: Final = frozenset({JobState.DISPATCHED, JobState.RUNNING, JobState.PENDING, JobState.HELD})


class Answer(NamedTuple):
    """What to do with the message: it is done with (`ack`), or is to come again after the delay."""

    ack: bool
    delay: timedelta = timedelta(0)


DONE: Final = Answer(ack=True)


def later(delay: timedelta) -> Answer:
    """Return the answer that has the message come again."""
    return Answer(ack=False, delay=max(delay, SOON))


@dataclass(slots=True)
class Processor:
    """Delivers sends. `open_sink` opens the sink `http`, with everything that it signs and refuses."""

    ground: Ground
    open_sink: OpenSink
    tokens: Tokens
    _deck: Deck = field(init=False)
    _looked_at: float = float("-inf")
    _looking: asyncio.Lock = field(default_factory=asyncio.Lock)

    def __post_init__(self) -> None:
        ground, board = self.ground, Board(self.ground)
        outlets = Outlets(ground, self.open_sink)
        self._deck = Deck(ground, board, outlets, Limits(ground), Breakers(ground, board))

    async def process(self, job_id: str, token: str) -> Answer:
        """Deliver the send that the token is for, if that is still to be done; raise BadToken or NotFound."""
        said = await self.tokens.verify(token)
        if said.job != job_id:
            raise BadToken("the token is for another job")
        job = (await self.ground.call(self.ground.store.find, [job_id])).get(job_id)
        if job is None:
            raise NotFound("job", job_id)
        if not _current(job, said.send):
            return self._late(said)
        sink = await self._deck.outlets.get(SINK)
        if sink is None or job.state is JobState.HELD or job.context is None:
            return later(SINK_CLOSED if sink is None else PARKED)
        plan = await self._plan(job, sink)
        if plan is None:
            return later(SINK_CLOSED)
        busy = self._busy(job, plan)
        if busy is not None:
            return later(busy)
        return await self._begin(job, said.send, plan, sink)

    async def aclose(self) -> None:
        """Give up connections."""
        await self._deck.outlets.close()

    def _late(self, said: Token) -> Answer:
        """A token that expired is good for the current send only."""
        if said.expires_at < self.ground.clock.now():
            raise BadToken("the token has expired, and its send is not the current one")
        return DONE

    async def _plan(self, job: Job, sink: Sink) -> Plan | None:
        """Return how the job's lane delivers: what is sent is the payload, and an answer is the end of it."""
        board = self._deck.board
        async with self._looking:
            if self.ground.monotonic() - self._looked_at >= FRESH_FOR_S or job.lane not in board.lanes:
                await board.refresh()
                self._looked_at = self.ground.monotonic()
        lane = board.lanes.get(job.lane)
        if lane is None:
            return None
        plan = board.plan(lane, sink)
        return replace(plan, format=sink.format, policy=Policy(plan.policy.retry))

    def _busy(self, job: Job, plan: Plan) -> timedelta | None:
        """Return how long somebody else may be at it still, None = nobody is; the store has the last word."""
        begun = job.live.started_at
        if job.state is not JobState.RUNNING or begun is None:
            return None
        left = begun + plan.timeout + MARGIN - self.ground.clock.now()
        return left if left > timedelta(0) else None

    async def _begin(self, job: Job, send: int, plan: Plan, sink: Sink) -> Answer:
        begun = await self._report(job, send, Running(plan.timeout + MARGIN, alone=True))
        if not begun.applied:  # somebody was faster; the next look tells how that ended
            return later(SOON)
        started = self.ground.monotonic()
        if begun.cancel_requested:
            outcome: Outcome = Deferred(timedelta(0), "cancel was asked for")
        else:
            outcome = await self._deliver(Claimed(job.live, job.context), plan, sink)
        await self._settle(job, send, outcome)
        self._tell(job, outcome, self.ground.monotonic() - started)
        return DONE

    async def _deliver(self, claimed: Claimed, plan: Plan, sink: Sink) -> Outcome:
        """Make the call, unless its target is to be left alone, and return what its answer means."""
        said, breakers = claimed.context, self._deck.breakers
        target = target_of((said.target if said else None) or plan.target)
        wait = breakers.wait(target, self.ground.clock.now())
        if wait is not None:
            return Deferred(wait * (1 + self.ground.rng.random() / 10), f"{target} is left alone")
        answer: SinkAnswer = NotCalled("it was not tried")
        try:
            [answer] = await call_sink(self._deck, plan, sink, [claimed])
        finally:
            breakers.note(target, answer)
        if isinstance(answer, NotCalled):
            return Deferred(SINK_CLOSED, answer.error)
        if isinstance(answer, Unsent):
            return Deferred(answer.after, answer.error)
        outcome = outcome_of_answer(self._deck, plan, claimed, answer)
        # What the target made of it nobody may know, but its pointer arrived: a queue would take another one
        # of the same send for a duplicate.
        return replace(outcome, known=True) if isinstance(outcome, Failed) else outcome

    async def _settle(self, job: Job, send: int, outcome: Outcome) -> None:
        """Write the outcome, again if the store did not answer: what was written is late the second time."""
        for failures in range(1, TRIES + 1):
            try:
                await self._report(job, send, outcome)
                await self.ground.call(self.ground.store.wake, [job.lane])
                await self._deck.breakers.tell()
            except StoreUnavailable as error:
                self._deck.outages.failed(PART, error, failures)
                if failures == TRIES:
                    self._deck.outages.gave_up(PART)
                    raise
                await asyncio.sleep(AGAIN_S * failures)
            else:
                self._deck.outages.worked(PART)
                return

    async def _report(self, job: Job, send: int, outcome: Outcome) -> Reported:
        report = Report(id=job.id, send=send, outcome=outcome)
        [reported] = await self.ground.call(self.ground.store.report, [report])
        return reported

    def _tell(self, job: Job, outcome: Outcome, took: float) -> None:
        kind, error = type(outcome).__name__.lower(), getattr(outcome, "error", None)
        trace = traceparent_of(job.context.headers) if job.context else None
        self.ground.emit(
            Processed(lane=job.lane, job=job.id, outcome=kind, took=took, error=error, traceparent=trace)
        )
        if isinstance(outcome, Dead):
            died = JobDied(
                lane=job.lane, job=job.id, reason=outcome.reason, error=outcome.error, traceparent=trace
            )
            self.ground.emit(died)


def _current(job: Job, send: int) -> bool:
    """Say whether an outcome of this send would count."""
    live = job.live
    return live.current_send == send and (job.state is JobState.CLAIMED or (live.open and job.state in _OPEN))
