"""One running node: all its parts, how they start together and how they stop.

    scout ──▶ lane cycles ──▶ flights ──▶ sinks          heartbeat (a thread of its own): renews what is held
      ▲          │  limits, board, breakers              leader ──▶ recovery, expiry, housekeeping
      └── wake-ups                                       (only while its term is trusted)

Stopping has two phases. `stop` asks: nothing more is claimed, what is not due yet or waits for its limits is
given back, the rest is sent. After the grace period, or when asked again, `hurry` insists: what has not begun
to be sent is given back, what is being sent is left as unknown, and the node ends.
"""

import asyncio
import json
from collections.abc import Awaitable, Callable, Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Final

from penstock.domain.leases import Term
from penstock.domain.notes import SLOTS, gist
from penstock.errors import StoreUnavailable, TermOver
from penstock.ports.events import NodeStarted, NodeStopped
from penstock.ports.flow import Work
from penstock.ports.sink import OpenSink
from penstock.scheduler import housekeeping, operations
from penstock.scheduler.board import Board
from penstock.scheduler.breakers import OPEN_FOR, TRIP_AFTER, Breakers
from penstock.scheduler.cycle import LaneCycle
from penstock.scheduler.deck import Deck
from penstock.scheduler.ground import Beside, Ground, wait_for
from penstock.scheduler.holding import beat, heartbeat
from penstock.scheduler.leader import Leader
from penstock.scheduler.limits import Limits
from penstock.scheduler.outlets import Outlets
from penstock.scheduler.recovery import Recovery
from penstock.scheduler.scouting import Scout
from penstock.scheduler.service import run_service
from penstock.scheduler.standby import Standby

BOARD_EVERY: Final = timedelta(milliseconds=500)
TELL_EVERY: Final = timedelta(milliseconds=200)
TICKS_EVERY: Final = timedelta(seconds=10)
NOTE_EVERY: Final = timedelta(milliseconds=500)
LOOK_S: Final = 0.1


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeOptions:
    """What a node is told; the defaults are those of production."""

    name: str = "node"
    store: str = ""
    lanes: tuple[str, ...] = ("*",)
    standby: bool = False
    grace: timedelta = timedelta(seconds=30)
    leader_ttl: timedelta = timedelta(seconds=15)
    leader_every: timedelta = timedelta(seconds=5)
    recover_every: timedelta = timedelta(seconds=5)
    expire_every: timedelta = housekeeping.EXPIRE_EVERY
    housekeep_every: timedelta = housekeeping.EVERY
    operate_every: timedelta = operations.EVERY
    trip_after: int = TRIP_AFTER
    open_for: timedelta = OPEN_FOR


@dataclass(slots=True)
class Node:
    """One node. `run` serves until `stop` is set; set `hurry` to make it end at once."""

    ground: Ground
    open_sink: OpenSink
    beside: Beside
    options: NodeOptions = field(default_factory=NodeOptions)
    stop: asyncio.Event = field(default_factory=asyncio.Event)
    hurry: asyncio.Event = field(default_factory=asyncio.Event)
    standby: Standby | None = None
    figures: Callable[[], Mapping[str, int]] = dict  # of the process, for the note: what only its host knows
    deck: Deck = field(init=False)
    leader: Leader = field(init=False)
    scout: Scout = field(init=False)
    _cycles: dict[str, LaneCycle] = field(default_factory=dict)
    _said: object = None
    _over: asyncio.Event = field(default_factory=asyncio.Event)
    _recovers: bool = False

    def __post_init__(self) -> None:
        ground, board = self.ground, Board(self.ground, self.options.lanes, changed=self._changed)
        self.leader = Leader(ground, ttl=self.options.leader_ttl)
        self.deck = Deck(
            ground,
            board,
            Outlets(ground, self.open_sink),
            Limits(ground),
            Breakers(ground, board, self.options.trip_after, self.options.open_for),
            poke=self._poke,
            look_again=self.wake,
            look_soon=self._look_soon,
            may_dispatch=self._may_dispatch,
        )
        self.scout = Scout(self.deck, self._found, self._wake_lanes)

    async def run(self) -> None:
        """Serve until told to stop, then give back or finish what is claimed."""
        await self._register()
        if not self.deck.node:  # told to stop before the store knew of it
            return
        self.deck.holdings.note = self._note()
        node, name = self.deck.node, self.options.name
        heart = self.beside("heartbeat", lambda ground: heartbeat(self.deck.holdings, node, name, ground))
        self.ground.emit(NodeStarted(node=node, name=name, store=self.options.store))
        async with asyncio.TaskGroup() as services:
            self._start_services(services)
            async with asyncio.TaskGroup() as lanes:
                services.create_task(self._watch_lanes(lanes))
                await self.stop.wait()
                self._tell_lanes(self.deck.stop)
                self.deck.limits.leave(leaving=True)
                services.create_task(self._insist())
                services.create_task(self._take_leave())
            self._over.set()
            self.scout.call()
            self.deck.limits.call()
        await self.leader.resign()  # not before its service is over: that would run for the next term
        if self.standby is not None:
            await self.standby.resign()
        with suppress(StoreUnavailable):
            await self.deck.write_ticks()
        self.deck.holdings.note = self._note(gone=True)
        heart.stop()
        await self.deck.outlets.close()
        with suppress(StoreUnavailable):  # then it is gone for others when it was silent for a while
            await beat(self.ground, self.deck.node, self.options.name, self.deck.holdings.note)
        self.ground.emit(NodeStopped(node=self.deck.node, returned=self.deck.returned))

    def wake(self, lanes: Collection[str] = ()) -> None:
        """Look for work now; in lanes that are named at once, without a look at the others."""
        now = self.deck.time.now(self.ground.monotonic()) if self.deck.time.known else None
        known = [self._cycles[name] for name in lanes if name in self._cycles]
        if now is None or not known or not all(cycle.nudge(now) for cycle in known):
            self.scout.call()

    # -- starting
    async def _register(self) -> None:
        """Get a number and a first look at the settings; a store that is away is waited for."""
        failures = 0
        while not self.stop.is_set():
            self.scout.pulse = self.ground.monotonic()
            try:
                self.deck.node = await self.ground.call(self.ground.store.register_node, self.options.name)
                self.deck.board.node = self.deck.node
                await self.deck.board.refresh()
            except StoreUnavailable as error:
                failures += 1
                self.deck.outages.failed("start", error, failures)
                await wait_for(self.stop, min(5.0, 0.2 * failures))
            else:
                self.deck.outages.worked("start")
                break
        self.leader.node = self.deck.limits.node = self.deck.node
        self.deck.holdings.shortest = self.deck.board.shortest_lease  # before the heartbeat first rests

    def _start_services(self, tasks: asyncio.TaskGroup) -> None:
        ground, over, options = self.ground, self._over, self.options
        services = {
            "scout": (self.scout.tick, timedelta(0)),
            "breakers": (self.deck.breakers.tell, TELL_EVERY),
            "note": (self._tell, NOTE_EVERY),
            "ticks": (self.deck.write_ticks, TICKS_EVERY),
            "leader": (self._lead, options.leader_every),
            "recovery": (self._recover, options.recover_every),
            "expiry": (self._expire, options.expire_every),
            "recall": (self._recall, housekeeping.RECALL_EVERY),
            "housekeeping": (self._housekeep, options.housekeep_every),
            "operations": (self._operate, options.operate_every),
        }
        if self.standby is not None:
            services["standby"] = (self._stand_by, self.standby.every)
        for name, (tick, every) in services.items():
            tasks.create_task(run_service(name, tick, every=every, ground=ground, stop=over))
        tasks.create_task(self.deck.limits.run(over))
        tasks.create_task(self.deck.pulse.run(over))

    async def _watch_lanes(self, lanes: asyncio.TaskGroup) -> None:
        """Keep the board up to date, and a cycle running for every lane there is."""

        async def tick() -> bool:
            again = await self.deck.board.refresh()
            self._serve(lanes)
            return again

        self._serve(lanes)
        await run_service("board", tick, every=BOARD_EVERY, ground=self.ground, stop=self.deck.stop)
        await run_service(
            "board", self.deck.board.refresh, every=BOARD_EVERY, ground=self.ground, stop=self._over
        )

    def _serve(self, lanes: asyncio.TaskGroup) -> None:
        self.deck.limits.nodes = self.deck.board.nodes
        self.deck.outlets.divide(self.deck.board.nodes)
        self.deck.limits.leave(leaving=self.deck.board.drain is not None or self.deck.stop.is_set())
        self.deck.holdings.shortest = self.deck.board.shortest_lease
        if self.deck.stop.is_set():
            return
        for name in [lane for lane in self.deck.board.lanes if lane not in self._cycles]:
            cycle = self._cycles[name] = LaneCycle(self.deck, name, lanes)
            lanes.create_task(cycle.run())
            self.wake()

    def _note(self, *, gone: bool = False) -> str:
        """Return what this node knows that explains why jobs wait, and how it does; or that it is gone."""
        now, clock = self.ground.monotonic(), self.ground.clock.now()
        here = self.deck.time.now(now) if self.deck.time.known else clock
        reached = self.deck.limits.reached()
        limits = {name: _when(limit.next_token, now, here) for name, limit in reached.items()}
        more: dict[str, object] = {}
        if self.deck.board.drain is not None:
            more["drains"] = len(self.deck.holdings.claims)
        if not self._leads():
            more["standby"] = self.standby.trouble if self.standby else ""
        if self.deck.stop.is_set():
            more["stops"] = True
        if gone:
            more["gone"] = True
        if self.deck.time.known:
            more["skew_us"] = (here - clock) // timedelta(microseconds=1)
        return json.dumps(
            {
                "lanes": list(self.options.lanes),
                "sinks": self.deck.outlets.errors(),
                "refused": self.deck.outlets.refusals(),
                "limits": limits,
                "sent": self.deck.sent,
                "failed": self.deck.failed,
                "queues": {name: limit.queue for name, limit in reached.items()},
                "crowded": [name for name, cycle in self._cycles.items() if cycle.crowded],
                "claimed": sum(cycle.claimed for cycle in self._cycles.values()),
                **more,
                **self.figures(),
                **self.leader.told(now, here),
                **self.deck.rescues.told(now, here),
                **self.deck.air.told(now, here),
            }
        )

    async def _tell(self) -> bool | None:
        """Leave the note in the store as soon as it says something else; the heartbeat repeats it."""
        note = self.deck.holdings.note = self._note()
        said = gist(note)
        if said == self._said:
            return None
        await beat(self.ground, self.deck.node, self.options.name, note)
        self._said = said
        return False

    # -- running
    def _may_dispatch(self) -> bool:
        """Say whether this node claims: not while it drains or is blind; on standby if it has the lease."""
        if self.deck.board.drain is not None or self.deck.board.blind:
            return False
        return self._leads()

    async def _lead(self) -> bool:
        """Lead, or try to; where the leader alone dispatches, one that drains lets another."""
        if self.options.standby and self.standby is None and self._gives_way():
            await self.leader.resign()
            return False
        return await self.leader.tick()

    async def _stand_by(self) -> bool:
        """Hold the lease, or try to; one that drains lets another have it."""
        if self.standby is None:
            return False
        if self._gives_way():
            await self.standby.resign()
            return False
        return await self.standby.tick()

    def _gives_way(self) -> bool:
        return self.deck.board.drain is not None and self.deck.board.heirs > 0

    def _leads(self) -> bool:
        return not self.options.standby or (self.standby or self.leader).leads()

    def _found(self, work: Mapping[str, Work]) -> None:
        for name, what in work.items():
            if name in self._cycles:
                self._cycles[name].notice(what)

    def _look_soon(self) -> None:
        self.scout.soon()

    def _wake_lanes(self) -> None:
        for cycle in self._cycles.values():
            cycle.look()

    def _changed(self, lane: str) -> None:
        if lane in self._cycles:
            self._cycles[lane].look()
            self.wake()

    def _poke(self, lane: str) -> None:
        if lane in self._cycles and self.deck.time.known:
            self._cycles[lane].poke(self.deck.time.now(self.ground.monotonic()))

    async def _recover(self) -> bool | None:
        self._recovers = True
        try:
            return await self._as_leader(Recovery(self.deck).tick)
        finally:
            self._recovers = False

    async def _expire(self) -> bool | None:
        return await self._as_leader(self._housekeeping().expire)

    async def _recall(self) -> bool | None:
        return await self._as_leader(self._housekeeping().recall)

    async def _housekeep(self) -> bool | None:
        return await self._as_leader(self._housekeeping().round)

    def _housekeeping(self) -> housekeeping.Housekeeping:
        return housekeeping.Housekeeping(self.ground, self.deck.node, self.stop)

    async def _operate(self) -> bool | None:
        return await self._as_leader(operations.Operating(self.ground).tick)

    async def _as_leader(self, chore: Callable[[Term], Awaitable[bool | None]]) -> bool | None:
        """Do a chore if this node leads, else None; a term that ended meanwhile is no error."""
        term = self.leader.term
        if term is None:
            return None
        try:
            return bool(await chore(term))
        except TermOver:
            return False

    # -- stopping
    async def _take_leave(self) -> None:
        """Say at once that this node sends nothing more: a stop may be over before the next note."""
        with suppress(StoreUnavailable):
            await self._tell()

    async def _insist(self) -> None:
        """Wait for what is being sent or asked as long as the grace period lasts, then no longer."""
        until = self.ground.monotonic() + self.options.grace.total_seconds()
        while self._at_work() and not self.hurry.is_set() and self.ground.monotonic() < until:
            await wait_for(self.hurry, LOOK_S)
        if self._at_work():
            self._tell_lanes(self.deck.hurry)

    def _at_work(self) -> bool:
        return self._recovers or not self._over.is_set()

    def _tell_lanes(self, phase: asyncio.Event) -> None:
        phase.set()
        for cycle in self._cycles.values():
            cycle.look()


def _when(next_token: float | None, now: float, here: datetime) -> str | None:
    """Return when a limit opens, as the note says it."""
    if next_token is None:
        return SLOTS
    return (here + timedelta(seconds=next_token - now)).isoformat() if next_token else None
