"""One lane's share of a node: due → order → limit → claim, again and again while there is something to claim.

A lane sleeps until somebody says it has work: the scout, a settle that freed a group, a limit that opened.
A pass that got all it asked for runs again at once. A bug in one lane's pass backs off that lane only.
"""

import asyncio
import traceback
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Final

from penstock.domain.job import Claim
from penstock.domain.lanes import Lane
from penstock.errors import StoreUnavailable
from penstock.ports.events import Claimed, LaneFailed
from penstock.ports.flow import Work
from penstock.ports.sink import Sink
from penstock.ports.store import Ask
from penstock.scheduler.deck import Deck
from penstock.scheduler.flight import Flight
from penstock.scheduler.ground import wait_for
from penstock.scheduler.moves import moves
from penstock.scheduler.plans import Plan
from penstock.scheduler.share import NOBODY

NONE: Final = timedelta(0)
FIRST_BACKOFF: Final = timedelta(seconds=1)
LONGEST_BACKOFF: Final = timedelta(seconds=60)
URGENT: Final = timedelta(milliseconds=100)
NOW_AND_THEN_S: Final = 0.02


class LaneCycle:
    """One lane on one node."""

    def __init__(self, deck: Deck, name: str, tasks: asyncio.TaskGroup) -> None:
        self.name = name
        self._deck, self._tasks = deck, tasks
        self._flights: dict[Flight, None] = {}  # in order: a run must not depend on addresses
        self._wake = asyncio.Event()
        self._alarm: asyncio.TimerHandle | None = None
        self._jobs_at: datetime | None = None
        self._groups_at: datetime | None = None
        self._had_jobs = self._had_groups = False
        self._claimed_at = float("-inf")
        self._failures = 0
        self.crowded = False
        self._part = f"claim {name}"

    @property
    def claimed(self) -> int:
        """How many jobs of the lane this node has in hand."""
        return sum(flight.undecided for flight in self._flights)

    def notice(self, work: Work) -> None:
        """Learn from the scout when there is something to do."""
        self._jobs_at, self._groups_at = work
        self._wake.set()

    def poke(self, now: datetime) -> None:
        """Learn that a group may be ready."""
        self._groups_at = now
        self._wake.set()

    def nudge(self, now: datetime) -> bool:
        """Learn that something was enqueued; False = nobody knows of which kind, it takes a look."""
        self._jobs_at = now if self._had_jobs else self._jobs_at
        self._groups_at = now if self._had_groups else self._groups_at
        self._wake.set()
        return self._had_jobs or self._had_groups

    def look(self) -> None:
        """Have every flight look again, and the lane too."""
        self._wake.set()
        for flight in self._flights:
            flight.notice()

    async def run(self) -> None:
        """Serve the lane until the node stops."""
        self._deck.limits.watch(self._wake, claims=True)
        try:
            while not self._deck.stop.is_set():
                await self._wake.wait()
                self._wake.clear()
                while await self._guarded_pass():
                    if self._deck.stop.is_set():
                        break
        finally:
            self._deck.limits.unwatch(self._wake)

    async def _guarded_pass(self) -> bool:
        before = self._claimed_at
        try:
            busy = await self.one_pass()
        except StoreUnavailable as error:
            self._failures += 1
            self._deck.outages.failed(self._part, error, self._failures)
            await asyncio.sleep(min(5.0, 0.1 * 2 ** min(self._failures, 6)))
            return True
        except Exception as error:  # noqa: BLE001 - a bug here is this lane's trouble alone
            self._failures += 1
            pause = min(FIRST_BACKOFF * 2 ** min(self._failures - 1, 10), LONGEST_BACKOFF)
            text, trace = repr(error), traceback.format_exc()
            self._deck.ground.emit(LaneFailed(lane=self.name, error=text, trace=trace, pause=pause))
            await wait_for(self._deck.stop, pause.total_seconds())
            return True
        self._failures = 0
        if self._claimed_at != before:
            self._deck.outages.worked(self._part)
        else:  # it asked the store for nothing: that is no sign that it answers
            self._deck.outages.gave_up(self._part)
        return busy

    async def one_pass(self) -> bool:
        """Claim what is due and may go, then what will be due soon; say whether there may be more."""
        deck, store = self._deck, self._deck.ground.store
        self.crowded = False
        lane = deck.board.lanes.get(self.name)
        sink = None if lane is None or not self._may_go(lane) else await deck.outlets.get(lane["sink"])
        if lane is None or sink is None or deck.outlets.rests(self.name):
            deck.limits.forget(self.name, NOBODY)  # what it wanted others may have
            return False
        now = deck.time.now(deck.ground.monotonic())
        plan = deck.board.plan(lane, sink)
        room, soon = self._room(plan, sink)
        self.crowded = room <= 0
        whole = deck.mixed(self.name) or deck.strays[self.name].due(deck.ground.monotonic())
        line, more = plan.batch if whole else deck.limits.line(plan), False
        if self._jobs_at is not None:
            now_room = min(room, line, deck.limits.room(plan, plan.limits))
            limit, ahead = self._share(self._jobs_at, now, plan, room=now_room, soon=soon)
            got = await self._claim(store.claim, plan, sink, limit=limit, ahead=ahead)
            more, self._jobs_at = self._next(got, limit, self._jobs_at)
            room, line, soon = room - got, line - got, soon - got
        if self._groups_at is not None:
            now_room = min(room, line, deck.limits.room(plan, plan.group_limits))
            limit, ahead = self._share(self._groups_at, now, plan, room=now_room, soon=soon)
            limit = max(limit > 0, limit // plan.run)
            got = await self._claim(store.claim_groups, plan, sink, limit=limit, ahead=ahead)
            full, self._groups_at = self._next(got, limit, self._groups_at)
            more = more or full
        return more

    def _may_go(self, lane: Lane) -> bool:
        """Say whether there is something to do, and nobody has stopped it."""
        if self._jobs_at is None and self._groups_at is None:
            return False
        now = self._deck.time.now(self._deck.ground.monotonic())
        return not self._deck.board.stopped(lane, now) and self._deck.may_dispatch()

    def _room(self, plan: Plan, sink: Sink) -> tuple[int, int]:
        """Return how many jobs may be claimed that are due, and how many ahead of their time."""
        due, ahead = (sum(getattr(flight, which) for flight in self._flights) for which in ("due", "ahead"))
        if self.name in self._deck.outlets.refusals():  # one call shows whether it takes something again
            return max(0, sink.max_batch - due - ahead), 0
        return 2 * plan.batch - due, plan.most_ahead - ahead

    def _share(
        self, at: datetime, now: datetime, plan: Plan, *, room: int, soon: int
    ) -> tuple[int, timedelta]:
        """Return how many to claim and how far ahead: what is due comes before what will be.

        Few large claims cost less than many small ones: with little room we wait for more of it, a moment for
        what is due, and as long as it is not urgent for what will be.
        """
        if at <= now:
            return self._worth(max(0, min(room, plan.batch)), most=min(plan.batch, plan.max_in_flight)), NONE
        if at > now + plan.ahead:  # the scout looks again before it is that near
            return 0, NONE
        urgent = at <= now + URGENT
        if soon <= 0 or (soon * 2 < plan.most_ahead and not urgent):
            self._look_in(at - now if urgent else at - now - URGENT)
            return 0, NONE
        return min(soon, plan.batch), plan.ahead

    def _look_in(self, span: timedelta) -> None:
        """Look again by then at the latest: a job comes due that there was no room for ahead of its time."""
        loop = asyncio.get_running_loop()
        when = loop.time() + span.total_seconds()
        if self._alarm is not None:
            when = min(when, self._alarm.when()) if self._alarm.when() > loop.time() else when
            self._alarm.cancel()
        self._alarm = loop.call_at(when, self._wake.set)

    def _worth(self, limit: int, *, most: int) -> int:
        """Return the limit, or 0 when it is too small to bother for now; then the lane looks again soon."""
        now = self._deck.ground.monotonic()
        if limit * 4 >= most or not self._flights or now - self._claimed_at >= NOW_AND_THEN_S:
            return limit
        asyncio.get_running_loop().call_later(NOW_AND_THEN_S, self._wake.set)
        return 0

    def _next(self, got: int, limit: int, at: datetime) -> tuple[bool, datetime | None]:
        """Return whether there is more to claim at once, and when there was something to do.

        A claim that got less than it asked for has taken all there was: only the scout knows what is next.
        """
        if got < limit:
            self._deck.look_again()
            return False, None
        return limit > 0, at

    async def _claim(
        self,
        method: Callable[[Ask], Claim | None],
        plan: Plan,
        sink: Sink,
        *,
        limit: int,
        ahead: timedelta,
    ) -> int:
        deck, ground = self._deck, self._deck.ground
        if limit <= 0:
            return 0
        ask = Ask(lane=plan.name, node=deck.node, limit=limit, run=plan.run, lease=plan.lease, ahead=ahead)
        self._claimed_at = started = ground.monotonic()
        claim = await ground.call(method, ask)
        if claim is None:
            return 0
        deck.holdings.take(claim.epoch, lease=plan.lease, started=started)
        deck.time.learn(claim.claimed_at, asked=started, at=ground.monotonic())
        took = ground.monotonic() - started
        ground.emit(
            Claimed(
                lane=plan.name,
                epoch=claim.epoch,
                jobs=len(claim.jobs),
                groups=claim.groups,
                took=took,
                each=moves(claim.jobs),
            )
        )
        self._had_groups, self._had_jobs = (
            self._had_groups or claim.groups,
            self._had_jobs or not claim.groups,
        )
        deck.strays[self.name].learn(plan, claim.jobs, started, line=deck.limits.line(plan))
        flight = Flight(deck, plan, sink, claim, claim_took=took, moved=self._wake.set)
        self._flights[flight] = None
        self._tasks.create_task(self._carry(flight))
        return len(claim.jobs)

    async def _carry(self, flight: Flight) -> None:
        try:
            await flight.run()
        except Exception as error:  # noqa: BLE001 - the claim is left to recovery, the node goes on
            text, trace = repr(error), traceback.format_exc()
            self._deck.ground.emit(LaneFailed(lane=self.name, error=text, trace=trace, pause=NONE))
        finally:
            self._flights.pop(flight, None)
            self._wake.set()
