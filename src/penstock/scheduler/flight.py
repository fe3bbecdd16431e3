"""One claim from the store to its sink and back.

Each job goes at its moment: due on the store's clock (never early), jitter added, its limits open. Just
before a batch goes the store is asked once more (`confirm`): a cancel, a pause or a kill switch since the
claim wins, and a claim that was taken over sends nothing more. Jobs of a run follow each other: the next one
of a group goes when the one before it was taken, and nothing goes past a failure. What cannot go for a while
is given back rather than kept: it costs nothing while it waits in the store.

Whatever happens, every job of the claim gets exactly one outcome, or the claim is left to recovery.
"""

import asyncio
import heapq
from collections import Counter, deque
from collections.abc import Callable, Iterable, Sequence
from datetime import timedelta
from itertools import count
from typing import Final

from penstock.domain.job import Claim, Claimed
from penstock.domain.outcomes import Dispatched, Expired, Outcome, Returned, Succeeded
from penstock.errors import StoreUnavailable
from penstock.ports.events import LeaseLost
from penstock.ports.flow import Confirmed
from penstock.ports.sink import Sink
from penstock.ports.store import Settled
from penstock.scheduler.calling import call_sink, outcome_of_answer, tell
from penstock.scheduler.deck import Deck
from penstock.scheduler.ground import wait_for
from penstock.scheduler.passes import tick_of
from penstock.scheduler.plans import Plan
from penstock.scheduler.settling import Settling
from penstock.scheduler.taking import Taking
from penstock.scheduler.verdicts import needs
from penstock.scheduler.weeding import instead, kept_back

SLOT_S: Final = 0.005
LONG: Final = timedelta(seconds=2)
TOO_LONG_S: Final = 5.0
BEHIND: Final = "behind one of its group that did not go"
NOT_DONE: Final = "behind one of its group that is not done"


class Flight:
    """A claim in the air. `ahead` of its jobs are not due yet, `due` are and have no outcome."""

    def __init__(
        self,
        deck: Deck,
        plan: Plan,
        sink: Sink,
        claim: Claim,
        *,
        claim_took: float = 0.0,
        moved: Callable[[], None] = lambda: None,
    ) -> None:
        self._moved = moved
        self._deck, self._plan, self._sink, self._claim = deck, plan, sink, claim
        self._phases = {"claim": claim_took, "confirm": 0.0, "send": 0.0}
        self._waiting: list[tuple[float, int, Claimed]] = []
        self._numbers = count()
        self._ready: list[Claimed] = []
        self._ready_since: dict[int, float] = {}
        self._behind: dict[str, deque[Claimed]] = {}
        self._calls: dict[asyncio.Task[None], bool] = {}  # True = it has begun
        self._news = asyncio.Event()
        self._next_slot = 0.0
        self._marked = claim.sending
        self._out: dict[int, Claimed] = {}
        self._limits = Taking(deck, who=min(claimed.job.arrival for claimed in claim.jobs))
        self._settling = Settling(deck, plan, claim, self._written)
        self.undecided = len(claim.jobs)
        self._line_up()

    @property
    def ahead(self) -> int:
        """How many jobs wait for their time."""
        return len(self._waiting) + sum(map(len, self._behind.values()))

    @property
    def due(self) -> int:
        """How many jobs are being sent or want to be."""
        return self.undecided - self.ahead

    async def run(self) -> None:
        """Carry every job to its outcome and the outcomes to the store."""
        deck, epoch = self._deck, self._claim.epoch
        deck.limits.watch(self._news)
        try:
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(self._settling.run())
                await self._fly(tasks)
        finally:
            deck.limits.unwatch(self._news)
            self._limits.close(self._plan.name)
            self._limits.hand_over(self._out.values())
            for claimed in (left := self._limits.left(self._claim.jobs)):
                deck.breakers.not_tried(self._plan.aim(claimed))
            self._limits.release(left)
            deck.holdings.drop(epoch)
            phases = self._phases | {"settle": self._settling.took}
            deck.ticks.append(tick_of(self._claim, settled=self._settling.applied, phases=phases))

    def notice(self) -> None:
        """Look again: the node was told to stop or to hurry."""
        self._news.set()

    # -- the order of things
    def _line_up(self) -> None:
        """Give each job its moment; of a run only the first, the others stand behind it."""
        for claimed in self._claim.jobs:
            group = claimed.job.grp
            if self._claim.groups and group is not None and group in self._behind:
                self._behind[group].append(claimed)
            else:
                self._wait(claimed)
                if self._claim.groups and group is not None:
                    self._behind[group] = deque()
        self._behind = {group: rest for group, rest in self._behind.items() if rest}

    def _wait(self, claimed: Claimed) -> None:
        """Have it wait for its time on the store's clock: how that goes may be known better by then."""
        due = claimed.job.due_at.timestamp()
        if self._plan.jitter:
            due += self._deck.ground.rng.random() * self._plan.jitter.total_seconds()
        heapq.heappush(self._waiting, (due, next(self._numbers), claimed))

    async def _fly(self, tasks: asyncio.TaskGroup) -> None:
        while self._waiting or self._ready or self._behind:
            self._news.clear()
            if self._settling.lost:
                self._abandon()
                break
            if self._deck.hurry.is_set():
                self._return_all("the node stops")
                break
            if leaving := self._deck.leaving:
                self._return_ahead(leaving)
            now = self._deck.ground.monotonic()
            if why := self._stopped(now):
                self._return_all(why)
                break
            self._take_due(now)
            if go := self._admit(now, leaving=leaving):
                await self._launch(go, tasks)
            elif self._waiting or self._ready or self._behind:
                await wait_for(self._news, self._pause(now))
        while self._calls and not self._settling.lost:
            self._news.clear()
            if self._deck.hurry.is_set():
                for call in [call for call, begun in self._calls.items() if begun]:
                    call.cancel()
            await wait_for(self._news, 0.5)

    def _stopped(self, now: float) -> str | None:
        """Say why what waits must go back, None = it need not; then go by the lane's settings of now."""
        board = self._deck.board
        lane = board.lanes.get(self._plan.name)
        if lane is None:
            return None
        if lane["sink"] != self._plan.sink:
            return f"the lane sends to {lane['sink']} now"
        self._plan = board.plan(lane, self._sink)
        return "the lane was stopped" if board.stopped(lane, self._deck.time.now(now)) else None

    def _take_due(self, now: float) -> None:
        """Move those whose moment has come to the ready ones, a slot's worth at a time."""
        if now < self._next_slot or not self._waiting:
            return
        here = self._store_time(now)
        while self._waiting and self._waiting[0][0] <= here:
            claimed = heapq.heappop(self._waiting)[2]
            self._ready.append(claimed)
            self._ready_since[claimed.job.arrival] = now

    def _admit(self, now: float, *, leaving: str | None) -> list[Claimed]:
        """Return those whose limits let them go; some of the others go back, all when the node leaves."""
        if not self._ready or (not leaving and self._limits.keep(self._plan, self._ready, now)):
            return []
        go, self._ready = self._limits.admit(self._plan, self._ready)
        self._return_ready(leaving) if leaving else self._return_hopeless(now)
        return go

    def _pause(self, now: float) -> float:
        if not self._waiting:
            return 1.0
        return min(1.0, max(0.0, self._waiting[0][0] - self._store_time(now), self._next_slot - now))

    def _store_time(self, now: float) -> float:
        return self._deck.time.now(now).timestamp()

    # -- before the call
    async def _launch(self, go: list[Claimed], tasks: asyncio.TaskGroup) -> None:
        deck, epoch = self._deck, self._claim.epoch
        started = deck.ground.monotonic()
        confirmed = await self._confirm()
        self._phases["confirm"] += deck.ground.monotonic() - started
        if confirmed is None:  # the store is away: as long as the claim is trusted we ask again
            self._limits.refund(go)
            self._ready = go + self._ready
            if not deck.holdings.trusts(epoch, deck.ground.monotonic()):
                self._abandon()
            return
        if not confirmed.ours:
            self._limits.refund(go)
            self._abandon()
            return
        if confirmed.stopped is not None:
            deck.board.note_stopped(self._plan.name)
            self._limits.refund(go)
            self._ready = go + self._ready
            self._return_all(confirmed.stopped)
            return
        sendable = self._weed(go, confirmed)
        if sendable and not deck.holdings.trusts(epoch, deck.ground.monotonic(), needs=needs(self._plan)):
            self._unsent(sendable, self._plan)
            spread = timedelta(seconds=0.5 + deck.ground.rng.random())  # by itself it may not get better
            self._give_back(sendable, "too little of the lease is left", spread)
            return
        if sendable and not deck.limits.hold(self._plan, sendable):
            self._unsent(sendable, self._plan)
            self._ready = sendable + self._ready
            return
        self._next_slot = deck.ground.monotonic() + SLOT_S
        self._moved()
        for start in range(0, len(sendable), self._sink.max_batch):
            batch = sendable[start : start + self._sink.max_batch]
            call = tasks.create_task(self._call(batch, confirmed, self._plan))
            self._calls[call] = False
            call.add_done_callback(self._landed)

    def _unsent(self, jobs: Sequence[Claimed], plan: Plan) -> None:
        """Take back that these were about to be sent."""
        self._limits.refund(jobs)
        for claimed in jobs:
            self._deck.breakers.not_tried(plan.aim(claimed))

    def _landed(self, call: asyncio.Task[None]) -> None:
        self._calls.pop(call, None)
        self._news.set()

    async def _confirm(self) -> Confirmed | None:
        """Ask what has changed since the claim; work that must not repeat is marked before its first send."""
        ground = self._deck.ground
        asked = ground.monotonic()
        try:
            confirmed = await ground.call(ground.store.confirm, self._claim)
            self._deck.time.learn(confirmed.now, asked=asked, at=ground.monotonic())
            if self._plan.hold and not self._marked and confirmed.ours and confirmed.stopped is None:
                self._marked = await ground.call(ground.store.mark_sending, self._claim.epoch)
                return confirmed if self._marked else confirmed._replace(ours=False)
        except StoreUnavailable:
            await asyncio.sleep(0.05 + ground.rng.random() / 20)
            return None
        return confirmed

    def _weed(self, go: Sequence[Claimed], confirmed: Confirmed) -> list[Claimed]:
        """Return those that may be sent now; the others get their outcome, or wait again."""
        outcomes: dict[int, Outcome] = {}
        sendable, refused, early = [], [], []
        for claimed in go:
            outcome, target = instead(self._plan, claimed, confirmed), self._plan.aim(claimed)
            if outcome is None and claimed.job.due_at > confirmed.now:  # the store's clock was set back
                early.append(claimed)
                continue
            outcome = outcome or kept_back(self._deck, self._plan, claimed, confirmed, target=target)
            if outcome is None:
                sendable.append(claimed)
            else:
                outcomes[claimed.job.arrival] = outcome
                refused.append(claimed)
        self._limits.refund([*refused, *early])
        for claimed in early:
            self._wait(claimed)
        self._decide(outcomes)
        for claimed in refused:
            self._next_of_group(claimed, went=isinstance(outcomes[claimed.job.arrival], Expired))
        return sendable

    # -- the call
    async def _call(self, batch: Sequence[Claimed], confirmed: Confirmed, plan: Plan) -> None:
        ground, task = self._deck.ground, asyncio.current_task()
        if self._deck.hurry.is_set():
            self._unsent(batch, plan)
            self._give_back(batch, "the node stops")
            return
        if task is not None:
            self._calls[task] = True
        started = ground.monotonic()
        answers = await call_sink(self._deck, plan, self._sink, batch)
        took = ground.monotonic() - started
        self._phases["send"] += took
        asleep = self._deck.pulse.stood_still(since=started)
        outcomes: dict[int, Outcome] = {}
        for claimed, answer in zip(batch, answers, strict=True):
            outcomes[claimed.job.arrival] = outcome_of_answer(self._deck, plan, claimed, answer)
            self._deck.breakers.note(plan.aim(claimed), answer, asleep=asleep)
        lag = max((confirmed.now - claimed.job.due_since).total_seconds() for claimed in batch)
        tell(self._deck, plan, batch, answers, took=took, lag=lag)
        self._finish(batch, outcomes)

    def _finish(self, batch: Sequence[Claimed], outcomes: dict[int, Outcome]) -> None:
        """Free what the calls occupied; a job that is out keeps its slot until that is on record."""
        done, unsent = [], []
        for claimed in batch:
            match outcomes[claimed.job.arrival]:
                case Returned():
                    unsent.append(claimed)
                case _ if self._plan.reported:  # taken, or its executor may have spoken first: it is out
                    self._out[claimed.job.arrival] = claimed
                case _:
                    done.append(claimed)
        self._limits.refund(unsent)
        self._limits.release(done)
        self._decide(outcomes)
        for claimed in batch:
            match outcomes[claimed.job.arrival]:
                case Succeeded() | Dispatched(passes=True):
                    self._next_of_group(claimed, went=True)
                case Dispatched():  # since the claim the lane was told to wait for each
                    self._next_of_group(claimed, went=False, why=NOT_DONE)
                case _:
                    self._next_of_group(claimed, went=False)

    def _next_of_group(self, claimed: Claimed, *, went: bool, why: str = BEHIND) -> None:
        """Let the next job of a run go, or none of the rest."""
        group = claimed.job.grp
        if group is None or group not in self._behind:
            return
        if went:
            self._wait(self._behind[group].popleft())
            if not self._behind[group]:
                del self._behind[group]
        else:
            self._give_back(self._behind.pop(group), why)

    # -- giving back
    def _return_hopeless(self, now: float) -> None:
        """Give back what its limits keep for long: it costs nothing then, and jobs of other pools pass."""
        places: Counter[object] = Counter()
        keep, mixed = list[Claimed](), self._deck.mixed(self._plan.name)
        for claimed in self._ready:
            limit = self._plan.limits_of(claimed)[-1]
            first = limit.scope == "lane" or (limit in self._plan.shared and not mixed)
            if limit[:3] not in places and not first:  # those of older claims stand before it
                places[limit[:3]] = self._limits.before(limit)
            places[limit[:3]] += 1
            wait = self._deck.limits.patience(limit, places[limit[:3]])
            if wait <= LONG and now - self._ready_since[claimed.job.arrival] <= TOO_LONG_S:
                keep.append(claimed)
                continue
            spread = timedelta(seconds=0.5 + self._deck.ground.rng.random())
            soonest = None if first else max(self._deck.limits.book(limit, wait), spread)
            mark = None if first else self._plan.mark_of(claimed)
            self._decide({claimed.job.arrival: Returned(f"limit of {limit.id}", soonest, mark)})
            self._next_of_group(claimed, went=False)
        self._ready = keep if len(keep) < len(self._ready) else self._ready

    def _return_ahead(self, why: str) -> None:
        rest = [claimed for _, _, claimed in self._waiting]
        self._waiting.clear()
        self._give_back(rest, why)

    def _return_ready(self, why: str) -> None:
        ready, self._ready = self._ready, []
        self._give_back(ready, why)

    def _return_all(self, why: str) -> None:
        """Give back everything that is not being sent."""
        self._return_ahead(why)
        self._return_ready(why)
        behind, self._behind = self._behind, {}
        for rest in behind.values():
            self._give_back(rest, why)

    def _give_back(self, jobs: Iterable[Claimed], why: str, wait: timedelta | None = None) -> None:
        """Return jobs unsent, and with each what stands behind it."""
        for claimed in jobs:
            self._decide({claimed.job.arrival: Returned(why, wait)})
            self._next_of_group(claimed, went=False, why=why)

    def _abandon(self) -> None:
        """The claim is not ours any more: send nothing, write nothing, whoever has it now will."""
        self._deck.ground.emit(LeaseLost(lane=self._plan.name, epoch=self._claim.epoch, jobs=self.undecided))
        self._waiting.clear()
        self._ready.clear()
        self._behind.clear()
        self._settling.abandon()

    def _decide(self, outcomes: dict[int, Outcome]) -> None:
        self.undecided -= len(outcomes)
        self._settling.decide(outcomes)

    def _written(self, settled: Settled) -> None:
        gone = self._out.keys() & (settled.applied | settled.refused)
        self._limits.hand_over([self._out.pop(arrival) for arrival in gone])
        if self._claim.groups:
            self._deck.poke(self._plan.name)
