"""Who else talks to the store: producers, executors that report, operators. Each is a node of its own."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import timedelta
from functools import partial
from typing import Final

from penstock.domain.job import Enqueued, Live, NewJob
from penstock.domain.outcomes import Dead, Deferred, Failed, Outcome, Running, Succeeded, failed
from penstock.domain.states import Reason, Verb
from penstock.errors import InvalidJob, StoreUnavailable
from penstock.ports.store import Report, Store
from penstock.testing.invariants.facts import Ledger
from penstock.testing.sim.dispatcher import Terms
from penstock.testing.sim.node import NodeEnv
from penstock.testing.sim.sink import Message, SimSink
from penstock.testing.sim.world import START

_VERBS: Final = tuple(verb for verb in Verb if verb is not Verb.EDIT)


@dataclass(slots=True)
class Offer:
    """Jobs that a producer enqueues together, from that second on; it insists until it is answered."""

    at: float
    jobs: Sequence[NewJob]
    asked_after: int | None = None
    answered: bool = False


@dataclass(slots=True)
class LateOffer:
    """A job whose transaction takes its place in the order at that second and commits so much later."""

    at: float
    job: NewJob
    after: float
    asked_after: int | None = None
    answered: bool = False


@dataclass(frozen=True, slots=True)
class LateWriter:
    """How a transaction that stays open is told: it takes an arrival, and later writes the job under it."""

    reserve: Callable[[], int]
    write: Callable[[int, NewJob], object]


async def commit_late(env: NodeEnv, writer: LateWriter, ledger: Ledger, offers: Sequence[LateOffer]) -> None:
    """Make the offers, all at the same time; a crash before the commit begins the transaction anew."""
    async with asyncio.TaskGroup() as tasks:
        for offer in offers:
            if not offer.answered:
                tasks.create_task(_commit_late(env, writer, ledger, offer))
        await asyncio.Event().wait()


async def _commit_late(env: NodeEnv, writer: LateWriter, ledger: Ledger, offer: LateOffer) -> None:
    await asyncio.sleep(max(0.0, offer.at - env.clock.monotonic()))
    arrival: int | None = None
    while arrival is None:
        with suppress(StoreUnavailable):
            arrival = await env.executor.run(writer.reserve)
        await asyncio.sleep(0.1)
    await asyncio.sleep(offer.after)
    if offer.asked_after is None:
        offer.asked_after = len(ledger)
    while not offer.answered:
        with suppress(StoreUnavailable):
            await env.executor.run(partial(writer.write, arrival, offer.job))
            offer.answered = True
            ledger.accept(offer.job.id or "", offer.job, asked_after=offer.asked_after)
            return
        await asyncio.sleep(0.1 + env.rng.random() / 5)


async def produce(env: NodeEnv, store: Store, ledger: Ledger, offers: Sequence[Offer]) -> None:
    """Make the offers one after the other; a producer that comes back goes on with the unanswered ones."""
    for offer in offers:
        if not offer.answered:
            await asyncio.sleep(max(0.0, offer.at - env.clock.monotonic()))
            await _offer(env, store, ledger, offer)
    await asyncio.Event().wait()


async def _offer(env: NodeEnv, store: Store, ledger: Ledger, offer: Offer) -> None:
    if offer.asked_after is None:
        offer.asked_after = len(ledger)
    while not offer.answered:
        with suppress(StoreUnavailable):
            answers = await env.executor.run(partial(store.enqueue, offer.jobs))
            offer.answered = True
            for job, answer in zip(offer.jobs, answers, strict=True):
                if isinstance(answer, Enqueued) and not answer.duplicate:
                    ledger.accept(answer.id, job, asked_after=offer.asked_after)
                elif isinstance(answer, Enqueued):
                    ledger.accept(answer.id, job, asked_after=0)
                elif isinstance(answer, InvalidJob) and job.id is not None:
                    # Our own id is taken: an earlier try of ours went through, only its answer was lost.
                    ledger.accept(job.id, job, asked_after=offer.asked_after)
            return
        await asyncio.sleep(0.1 + env.rng.random() / 5)


@dataclass(slots=True)
class Executors:
    """The workers behind a sink: they start, beat, end, and report it early, late, twice or never."""

    env: NodeEnv
    store: Store
    sink: SimSink
    lanes: Mapping[str, Terms]
    row: Callable[[str], Live | None]
    late: list[Report] = field(default_factory=list)

    async def run(self) -> None:
        """Work on what arrives, for ever."""
        self.sink.forget()
        async with asyncio.TaskGroup() as tasks:
            while True:
                while not self.sink.inbox:
                    self.sink.arrived.clear()
                    await self.sink.arrived.wait()
                tasks.create_task(self._work(self.sink.inbox.popleft()))

    async def _work(self, message: Message) -> None:
        rng, terms = self.env.rng, self.lanes[message.lane]
        self.sink.begin(message)
        if rng.random() < 0.6:
            await asyncio.sleep(rng.random() * 0.5)
        if rng.random() < 0.6:
            await self._report(message, Running(terms.within), tries=2)
            await asyncio.sleep(rng.random())
        if rng.random() < 0.1 and not self.sink.calm:
            await asyncio.sleep(
                5 * terms.within.total_seconds()
            )  # silent for long, then it reports after all
        outcome = self._outcome(message, terms)
        self.sink.end(message, outcome)
        await self._report(message, outcome, tries=20)
        if rng.random() < 0.3:  # once more, when the job may have been sent again
            await asyncio.sleep(rng.random() * 2)
            await self._report(message, outcome, tries=1)

    def _outcome(self, message: Message, terms: Terms) -> Outcome:
        rng = self.env.rng
        roll = 0.0 if self.sink.calm else rng.random()
        if roll < 0.7:
            return Succeeded("done")
        if roll < 0.85:
            return failed(
                "executor",
                policy=terms.policy,
                attempt=message.attempt,
                max_attempts=message.max_attempts,
                random=rng.random(),
            )
        return Deferred(timedelta(milliseconds=300)) if roll < 0.95 else Dead(Reason.STOPPED, "executor")

    async def _report(self, message: Message, outcome: Outcome, *, tries: int) -> None:
        def tell() -> None:
            report = Report(id=message.job, send=message.send, outcome=self._counted(message, outcome))
            self.store.report([report])

        for _ in range(tries):
            with suppress(StoreUnavailable):
                await self.env.executor.run(tell)
                return
            await asyncio.sleep(0.2)

    def _counted(self, message: Message, outcome: Outcome) -> Outcome:
        """Count a failure by what is on record when it is told, as a client's report does.

        A send whose answer was lost is a try too: the message may know of fewer than there were.
        """
        row = self.row(message.job)
        exhausted = isinstance(outcome, Dead) and outcome.reason is Reason.EXHAUSTED
        if row is None or not (exhausted or isinstance(outcome, Failed)):
            return outcome
        policy = self.lanes[message.lane].policy
        return failed(
            "executor", policy=policy, attempt=row.attempt, max_attempts=row.max_attempts, random=0.0
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Meddling:
    """What operators do and how often: verbs on any job, now and then by force, edits, pauses of groups."""

    every: timedelta
    verbs: Sequence[Verb] = _VERBS
    edits: float = 0.0
    groups: Sequence[tuple[str, str]] = ()


async def meddle(
    env: NodeEnv, store: Store, ids: Callable[[], Sequence[str]], how: Meddling, *, until: float
) -> None:
    """Be operators in a hurry until that second."""
    rng = env.rng
    while env.clock.monotonic() < until:
        await asyncio.sleep(rng.random() * 2 * how.every.total_seconds())
        known = ids()
        if how.groups and rng.random() < 0.3:
            call = _pause(store, *rng.choice(how.groups), paused=rng.random() < 0.6)
        elif known and rng.random() < how.edits:
            call = _edit(env, store, rng.choice(known))
        elif known:
            chosen = rng.sample(known, min(len(known), rng.choice((1, 1, 2))))
            force = rng.random() < 0.3
            verb = rng.choice(how.verbs)
            call = partial(store.operate, verb, chosen, actor="ops", reason="meddling", force=force)
        else:
            continue
        with suppress(StoreUnavailable):
            await env.executor.run(call)
    await asyncio.Event().wait()


def _edit(env: NodeEnv, store: Store, job_id: str) -> Callable[[], object]:
    rng, now = env.rng, START + timedelta(seconds=env.clock.monotonic())
    edit = partial(store.edit, job_id, actor="ops", reason="meddling", replay=rng.random() < 0.5)
    if rng.random() < 0.7:
        edit = partial(edit, payload=f'{{"edited": {rng.random()}}}')
    if rng.random() < 0.5:
        edit = partial(edit, run_at=now + timedelta(seconds=rng.uniform(-2, 3)))
    return partial(edit, force=rng.random() < 0.3)


def _pause(store: Store, lane: str, group: str, *, paused: bool) -> Callable[[], object]:
    return partial(store.pause_group, lane, group, paused=paused, actor="ops", reason="meddling")
