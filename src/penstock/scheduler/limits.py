"""Rates and in-flight limits over the whole cluster, as one node sees them.

The store has the books (`Store.permit`, domain/rates.py); a node leases small slices and spends them without
asking. A *token* pays for one call to a sink and is gone; a *slot* is occupied while a job is being sent,
and for as long as it is out when somebody else will report. Jobs that wait say so (`admit`), one loop asks
for all limits at once (`ask`), and whoever waits looks again when something changed.

Lanes that share a pool get what there is by their weight. A lease that could not be renewed in time is worth
nothing: then nothing new is sent. After a lost answer nobody knows what the slice was: it is given up whole.

A job may need several limits, and nodes get them one by one: one may hold the last slot of a lane and wait
for a pool whose last slot another holds, who waits for the lane. So what a node holds and cannot use for a
while it gives back, by the toss of a coin: not all of them at once, or it would begin anew.
"""

import asyncio
from collections import Counter
from collections.abc import Iterable, Sequence
from contextlib import suppress
from datetime import timedelta
from typing import Final

from penstock.domain.rates import Rate, allowance
from penstock.errors import StoreUnavailable
from penstock.ports.flow import Limit, Need
from penstock.scheduler.bounded import Bounded, J
from penstock.scheduler.ground import Ground, wait_for
from penstock.scheduler.plans import Plan
from penstock.scheduler.share import IDLE_S, LATEST_S, NOBODY, OTHERS_S, REST_S, TTL, Name, Reached, Share

SOONEST_S: Final = 0.002
REPORT_S: Final = 0.02
LAST_WORD_S: Final = 1.0
IN_SIGHT: Final = timedelta(seconds=1)
IN_LINE: Final = timedelta(seconds=2)
LONGEST: Final = timedelta(minutes=1)
AT_HAND: Final = 50
ALL: Final = 2**31 - 1


class Limits:
    """All limits of one node."""

    def __init__(self, ground: Ground) -> None:
        self._ground = ground
        self._shares: dict[Name, Share] = {}
        self._waits: dict[tuple[str, int], list[Share]] = {}
        self._keeps: dict[tuple[str, int], Share] = {}
        self._waiters: dict[asyncio.Event, bool] = {}
        self._wanted = asyncio.Event()
        self._serial = 0
        self._asked_at = self._lost_until = 0.0
        self.node, self.nodes, self.leaving = 0, 1, False

    def admit(self, plan: Bounded[J], jobs: Sequence[J], *, who: int) -> tuple[list[J], list[J]]:
        """Return the jobs that may go now, their tokens and slots taken, and those that must wait.

        `who` tells callers of one lane apart, the lower the older: each says here what it waits for from now
        on. What a limit lets go is first for the jobs of older callers that it keeps.
        """
        was_in_line = self._leave(plan.name, who)
        now = self._ground.monotonic()
        shares: dict[int, Share] = {}  # by identity: hashing a limit for every job would cost more
        free: dict[int, int] = {}
        taken, wanted, kept = Counter[int](), Counter[int](), Counter[int]()
        grown: list[Share] = []
        go: list[J] = []
        wait: list[J] = []
        for claimed in jobs:
            names = [id(limit) for limit in plan.limits_of(claimed)]
            for name, limit in zip(names, plan.limits_of(claimed), strict=True):
                if name not in shares:
                    shares[name] = self._share(limit, plan)
                    grown = [*grown, shares[name]] if shares[name].regrow(now) else grown
                    free[name] = shares[name].allows(plan.name, now) - shares[name].before(plan.name, who)
            short = [name for name in names if free[name] <= taken[name]]
            may_go = not short
            kept.update(short)
            (taken if may_go else wanted).update(names)
            (go if may_go else wait).append(claimed)
        for name, number in taken.items():
            shares[name].take(plan.name, number, now)
            if shares[name].spent and shares[name].slice == 1:
                self._wanted.set()  # a bucket this small stands still until it hears that its token is gone
        for name, number in wanted.items():
            self._want(shares[name], plan.name, who, now, jobs=number)
        if any(share.tokens for share in grown):
            self._tell()  # others may have a use for it
        for name, number in kept.items():
            shares[name].line[plan.name, who] = number
            if number == len(wait):
                self._keeps[plan.name, who] = shares[name]
        if any(share.free(now) and not share.line.get((plan.name, who)) for share in was_in_line):
            self._tell()  # those behind may go, if something else keeps us
        return go, wait

    def shut(self, lane: str, who: int) -> bool:
        """Say whether one limit keeps all that this caller waits with, as it did when it last looked.

        Whoever waits is told of every change, most of which are for others: this answer costs little.
        """
        share, now = self._keeps.get((lane, who)), self._ground.monotonic()
        if share is None or share.worth_asking(now):
            return False
        return share.allows(lane, now) <= share.before(lane, who)

    def _want(self, share: Share, lane: str, who: int, now: float, *, jobs: int) -> None:
        """Note that jobs wait; what the store was not asked for yet it is asked for at once."""
        share.wants[lane, who] = share.wants.get((lane, who), 0) + jobs
        self._waits.setdefault((lane, who), []).append(share)
        if share.has_all(now) or now < share.rests_until:  # asking brings nothing
            return
        if share.worth_asking(now):
            self._wanted.set()

    def hold(self, plan: Bounded[J], jobs: Iterable[J]) -> bool:
        """Say whether what was taken for these jobs is still ours: the node may have slept since."""
        now = self._ground.monotonic()
        shares = (self._shares.get(_name(limit)) for claimed in jobs for limit in plan.limits_of(claimed))
        return all(share is not None and now < share.until for share in shares)

    def forget(self, lane: str, who: int) -> None:
        """Note that nobody of that name waits any more."""
        if self._leave(lane, who):
            self._tell()

    def _leave(self, lane: str, who: int) -> list[Share]:
        """Take a caller out of every line, and return those in which others may stand behind it."""
        self._keeps.pop((lane, who), None)
        shares = self._waits.pop((lane, who), ())
        for share in shares:
            share.wants.pop((lane, who), None)
        return [share for share in shares if share.line.pop((lane, who), 0) and share.line]

    def release(self, plan: Bounded[J], jobs: Sequence[J]) -> None:
        """Give back the slots of jobs that are no longer being sent; their tokens are spent."""
        self._put_back(plan, jobs, tokens=False)

    def hand_over(self, plan: Bounded[J], jobs: Sequence[J]) -> None:
        """Give up the slots of jobs that are out: their own rows take them from now on, they are not ours."""
        self._put_back(plan, jobs, tokens=False, slots=True)

    def refund(self, plan: Bounded[J], jobs: Sequence[J]) -> None:
        """Give back tokens and slots of jobs for which no call was made."""
        self._put_back(plan, jobs, tokens=True)

    def _put_back(self, plan: Bounded[J], jobs: Sequence[J], *, tokens: bool, slots: bool = False) -> None:
        now, waited_for, room = self._ground.monotonic(), False, False
        counts = Counter(limit for claimed in jobs for limit in plan.limits_of(claimed))
        for limit, number in counts.items():
            share = self._shares.get(_name(limit))
            if share is None:
                continue
            if share.let_go(number, now, out=slots):
                self._wanted.set()  # in the books it counts twice until they hear of it
            if tokens and limit.rate is not None and not share.here:  # there it grows again as it is
                back = min(number, share.spent)
                share.spent, share.tokens = share.spent - back, share.tokens + back
            if share.wants:
                share.share_out(now)
                waited_for = waited_for or bool(share.line)  # else another limit keeps them all
                room = True
        if waited_for or room:
            self._tell(room=not waited_for)

    def room(self, plan: Plan, limits: Sequence[Limit]) -> int:
        """Return how many jobs of a lane are worth claiming, as far as these limits of its own go.

        Slots that are free now; of tokens this node's part of what a second brings, since jobs that wait here
        are passed by those that wait at other nodes. Zero also tells the loop to ask for more.
        """
        now = self._ground.monotonic()
        self.forget(plan.name, NOBODY)
        room = plan.batch
        for limit in limits:
            share = self._share(limit, plan)
            # Who waits for a limit that is not everybody's needs nothing of this yet, and is in nobody's way.
            before = share.wanted() if plan.shared else sum(share.line.values())
            if limit.rate is not None:
                soon = allowance(limit.rate, limit.burst, window=IN_SIGHT / self.nodes)
                room = min(room, soon - before)
            if limit.max_in_flight is not None:
                left = (share.free_slots if now < share.until else 0) - before
                room = min(room, left)
                if left <= 0 or (left < plan.batch and share.slots < share.enough(now)):  # for jobs to come
                    self._want(share, plan.name, NOBODY, now, jobs=plan.batch)
        return max(0, room)

    def line(self, plan: Plan) -> int:
        """Return how many more jobs of a lane may stand in line for the pool that it shares with others.

        Each lane has this node's part of what two seconds bring, or some that take free slots at once: enough
        for its turns. What waits in the store keeps its place and costs nothing.
        """
        line = plan.batch
        for limit in plan.shared:
            share = self._share(limit, plan)
            standing = sum(jobs for (lane, _), jobs in share.wants.items() if lane == plan.name)
            if limit.rate is not None:
                line = min(line, allowance(limit.rate, limit.burst, window=IN_LINE / self.nodes) - standing)
            if limit.max_in_flight is not None:
                line = min(line, max(AT_HAND, 4 * share.fair) - standing)
        return max(0, line)

    def before(self, limit: Limit, who: int) -> int:
        """Return how many jobs of older callers wait for a limit."""
        share = self._shares.get(_name(limit))
        return share.older(who) if share is not None else 0

    def patience(self, limit: Limit, place: int) -> timedelta:
        """Return how long the `place`-th job here will wait for a limit, at least."""
        share = self._shares.get(_name(limit))
        return share.patience(place, now=self._ground.monotonic()) if share is not None else timedelta(0)

    def book(self, limit: Limit, wait: timedelta) -> timedelta:
        """Return how long a job that has to wait so long is given back for; others may want none of it.

        Where slots are what it waits for it is back before its turn: that one is a guess.
        """
        share, parts = self._shares.get(_name(limit)), self.nodes if limit.rate else 2
        soonest = min(wait / parts, LONGEST)
        return share.book(soonest, LONGEST, now=self._ground.monotonic()) if share is not None else soonest

    def reached(self) -> dict[str, Reached]:
        """Return the limits that somebody waits for and that let nobody go now, by name."""
        now = self._ground.monotonic()
        shut = (share for share in self._shares.values() if share.wanted() and now < share.until)
        return {share.limit.id: reached for share in shut if (reached := share.reached(now)) is not None}

    def watch(self, waiter: asyncio.Event, *, claims: bool = False) -> None:
        """Set the event whenever there may be more than before; `claims`: for jobs it does not have yet."""
        self._waiters[waiter] = claims

    def unwatch(self, waiter: asyncio.Event) -> None:
        """Do not set it any more."""
        self._waiters.pop(waiter, None)

    def call(self) -> None:
        """Have the loop look again."""
        self._wanted.set()

    def leave(self, *, leaving: bool) -> None:
        """Keep nothing that is not in use, as this node drains or stops, or begin again."""
        if leaving != self.leaving:
            self.leaving = leaving
            self._wanted.set()

    async def run(self, stop: asyncio.Event) -> None:
        """Ask the store for what is wanted, and bring back what is not, until told to stop."""
        while not stop.is_set():
            self._wanted.clear()
            now = self._ground.monotonic()
            if [share for share in self._shares.values() if share.regrow(now)]:
                self._tell()
            if shares := self._to_ask():
                await self.ask(shares)
            told, now = await wait_for(self._wanted, self._pause()), self._ground.monotonic()
            for share in self._shares.values():
                if share.over(now) or not told:
                    share.asked = 0
        await self._give_up()

    async def _give_up(self) -> None:
        """Bring back what is left at the end: else others would wait until its lease is over."""
        self._serial += 1
        needs = [
            Need(one.limit, 0, one.spent, one.busy, one.busy, self._serial)
            for one in self._shares.values()
            if not one.void and (one.tokens or one.spent or one.slots or one.gone or one.lacks)
        ]
        if needs:
            with suppress(StoreUnavailable, TimeoutError):
                async with asyncio.timeout(LAST_WORD_S):
                    await self._ground.call(self._ground.store.permit, self.node, needs, ttl=TTL)

    async def ask(self, shares: Sequence[Share]) -> None:
        """Make one call for all of these."""
        self._serial += 1
        needs = [self._need(share) for share in shares]
        self._asked_at = started = self._ground.monotonic()
        for share, need in zip(shares, needs, strict=True):
            share.ask(started)
            # What is given back is not to be used while the answer is on its way.
            share.tokens = min(share.tokens, need.tokens)
            share.slots = max(share.busy, min(share.slots, need.slots))
        try:
            grants = await self._ground.call(self._ground.store.permit, self.node, needs, ttl=TTL)
        except StoreUnavailable:
            self._lost_until = self._ground.monotonic() + TTL.total_seconds()
            for share in shares:  # nobody knows what we hold: nothing, then, and nothing was asked for
                share.void, share.here, share.tokens, share.allowed, share.asked = True, False, 0, {}, 0
            await asyncio.sleep(0.1)
            return
        for share, need, grant in zip(shares, needs, grants, strict=True):
            share.granted(need, grant, started=started, now=self._ground.monotonic())
        self._tell()

    def _need(self, share: Share) -> Need:
        limit, wanted, now = share.limit, share.wanted(), self._ground.monotonic()
        tokens = min(wanted, share.slice)
        if share.turn_over(now):
            share.rests_until = now + REST_S
        if now < share.rests_until:
            tokens = 0
        slots = min(share.busy + wanted, share.enough(now)) if limit.max_in_flight else 0
        if share.useless(now) and self._ground.rng.random() < 0.5:
            tokens, slots, share.useless_since = 0, share.busy, None
        spent = share.spent
        if share.grows(now):  # it is held on to: to the store nothing has happened
            tokens, spent = 1, spent - 1
        if share.void:
            spent = ALL
        # What is kept may be taken while the answer is on its way: the books must not cut it meanwhile.
        kept = min(slots, share.slots) if now < share.until else 0
        lost, busy = now < self._lost_until, max(share.busy, kept)
        return Need(limit, tokens, spent, slots, busy, self._serial, lost, share.fair)

    def _to_ask(self) -> list[Share]:
        """Return the limits there is something to say about, and forget those that nobody uses."""
        now = self._ground.monotonic()
        found = []
        for name, share in list(self._shares.items()):
            if idle := share.idle(now):
                share.wants.clear()
            unmet = self._unmet(share, now) or share.stale(now) or share.useless(now) or share.borrows(now)
            if unmet or share.to_spare(now, leaving=self.leaving) or (idle and (share.tokens or share.slots)):
                found.append(share)
            elif idle and not share.grows(now):
                del self._shares[name]
        return found

    def _unmet(self, share: Share, now: float) -> bool:
        """Say whether there is something to be had, or to be told, that jobs wait for."""
        if share.gone or share.void:  # others wait for what the books say we hold
            return True
        if share.lacks and not share.wants:  # or lack
            return True
        if share.has_all(now):
            if not share.wants:  # others may have a use for the token
                return share.tokens > 0
            slots = share.limit.max_in_flight is None or share.slots > share.busy
            return not slots or share.turn_over(now)
        return share.spent > 0 or (share.wanted() > share.free(now) and now >= share.rests_until)

    def _pause(self) -> float:
        """Return how long to wait before asking again: until a slice's worth of tokens should be there."""
        now, pause = self._ground.monotonic(), LATEST_S if self.leaving else IDLE_S
        for share in self._shares.values():
            if share.has_all(now):
                pause = min(pause, LATEST_S, max(0.0, (share.grows_at or share.turn_ends) - now))
                continue
            if share.spent:
                pause = min(pause, REPORT_S)
            if share.asked or share.slots > share.fair:
                pause = min(pause, LATEST_S)
            if share.tokens or share.slots:
                pause = min(pause, max(SOONEST_S, share.idle_at - now))
            if share.busy:
                pause = min(pause, TTL.total_seconds() / 3)
            if share.wanted() <= share.free(now):
                continue
            pause = min(pause, share.again_in(now))
            if now < share.rests_until:
                pause = min(pause, share.rests_until - now)
            elif share.limit.rate is not None:
                pause = min(pause, max(SOONEST_S, self._minting(share, share.limit.rate, now)))
        return pause

    def _minting(self, share: Share, rate: Rate, now: float) -> float:
        """Return how long it takes until there is something to get: half a slice of everybody, or a token.

        That is minted while the store answers too: a slow one is asked again as soon as it has.
        """
        token, size = rate.per.total_seconds() / rate.count, share.slice
        if size > 1:
            return max(self._asked_at + 0.5 * size * self.nodes * token, share.next_token) - now
        if share.next_token:
            return share.next_token - now
        return min(token, OTHERS_S) if share.whole else token  # another node has it and will spend it

    def _share(self, limit: Limit, plan: Bounded[J]) -> Share:
        name = _name(limit)
        share = self._shares.get(name)
        if share is None:
            share = self._shares[name] = Share(limit)
        elif share.limit != limit:  # changed at run time: what is held was granted by other rules
            share.limit, share.until = limit, 0.0
        share.weights[plan.name], share.nodes = plan.weight, self.nodes
        return share

    def _tell(self, *, room: bool = False) -> None:
        """Have all look again who wait, or only those who may claim more."""
        for waiter, claims in self._waiters.items():
            if claims or not room:
                waiter.set()


def _name(limit: Limit) -> Name:
    return Name(limit.scope, limit.name, limit.key)
