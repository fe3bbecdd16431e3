"""The router: takes messages from queues and has their targets process them.

    source ──▶ line of its group ──▶ pool: slots and rate ──▶ breaker ──▶ call ──▶ ack, nack or bury

- A message is a pointer; whoever its `mediationTarget` is does the work and says whether it is done with.
- Messages of one group go one at a time, in the order they were received. One that has to come again takes
  those behind it along.
- `poolCode` names a pool of the database, whose concurrency and rate hold over all routers; they are counted
  apart from the dispatchers' own, because a job that is out has its slot there already. A pool with a `key`
  is the dispatchers' business alone: a pointer does not tell the key.
- While a message waits or is at work it is kept hidden; one that could not be kept is not called for.
- What nobody can read, or what its target refuses again and again, is put aside, for a person.

Stopping has two phases, as for a node. `stop` asks: nothing more is received, what has not begun goes back,
calls are waited for. After the grace period, or when asked again, `hurry` insists: calls are given up and
their messages go back; whoever receives them next is told by the target what has become of them. A router
that drains receives nothing more either, and goes on when it is told to.
"""

import asyncio
import json
import traceback
from collections import Counter, deque
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Final, NamedTuple, Protocol

from penstock.delivery.inlet import Held, Inlet
from penstock.delivery.mediation import Reply, wait_of
from penstock.delivery.pointers import BadMessage, Pointer, read_pointer
from penstock.delivery.pools import PoolLimits
from penstock.domain.bodies import DEFAULT_POOL
from penstock.domain.outcomes import Rejected, Throttled, TryAgain
from penstock.domain.pools import Pool
from penstock.domain.targets import target_of
from penstock.errors import StoreUnavailable
from penstock.ports.events import Routed, SourceFailed
from penstock.ports.source import Source
from penstock.scheduler.board import Board
from penstock.scheduler.breakers import Breakers
from penstock.scheduler.ground import Ground, cancelled, wait_for
from penstock.scheduler.holding import BEAT_EVERY, beat
from penstock.scheduler.limits import Limits
from penstock.scheduler.outages import Outages
from penstock.scheduler.service import backoff, run_service

ZERO: Final = timedelta(0)
BOARD_EVERY: Final = timedelta(milliseconds=500)
TELL_EVERY: Final = timedelta(milliseconds=200)
SOURCE_EVERY: Final = timedelta(milliseconds=200)
PAUSED: Final = timedelta(seconds=10)
CROWDED: Final = timedelta(seconds=1)
LOOK_S: Final = 0.1


class Mediate(Protocol):
    """Makes the calls."""

    async def call(self, pointer: Pointer) -> Reply:
        """Ask the target to process the message."""

    async def close(self) -> None:
        """Give up connections."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RouterOptions:
    """What a router is told; the defaults are those of production.

    It holds `prefetch` messages of each source, of which `most_waiting` may wait for one pool. A message that
    was received `max_receives` times, or was refused and received `max_refusals` times, is put aside.
    """

    name: str = "router"
    default_pool: str = DEFAULT_POOL
    prefetch: int = 100
    most_waiting: int = 50
    call_timeout: timedelta = timedelta(minutes=5)
    grace: timedelta = timedelta(seconds=30)
    max_receives: int = 1000
    max_refusals: int = 5


class Verdict(NamedTuple):
    """What becomes of a message: `ack`, `nack` after the delay, `buried`, or `lost` (it came again)."""

    fate: str
    why: str | None = None
    delay: timedelta | None = None


LOST: Final = Verdict("lost", delay=ZERO)


@dataclass(slots=True)
class Router:
    """One router. `run` serves until `stop` is set; set `hurry` to make it end at once."""

    ground: Ground
    board: Board
    sources: Sequence[Source]
    mediator: Mediate
    options: RouterOptions = field(default_factory=RouterOptions)
    stop: asyncio.Event = field(default_factory=asyncio.Event)
    hurry: asyncio.Event = field(default_factory=asyncio.Event)
    _inlets: list[Inlet] = field(init=False)
    _limits: Limits = field(init=False)
    _breakers: Breakers = field(init=False)
    _pools: PoolLimits = field(default_factory=PoolLimits)
    _lines: dict[tuple[str, str, str], deque[tuple[Held, Pointer]]] = field(default_factory=dict)
    _waiting: Counter[str] = field(default_factory=Counter)
    _over: asyncio.Event = field(default_factory=asyncio.Event)
    _insists: asyncio.Event = field(default_factory=asyncio.Event)

    def __post_init__(self) -> None:
        self._inlets = [Inlet(self.ground, one, prefetch=self.options.prefetch) for one in self.sources]
        self._limits = Limits(self.ground)
        self._breakers = Breakers(self.ground, self.board)

    @property
    def held(self) -> int:
        """How many messages it holds."""
        return sum(len(inlet.held) for inlet in self._inlets)

    async def run(self) -> None:
        """Serve until told to stop, then finish or give back what is held."""
        await self._register()
        ground, over = self.ground, self._over
        async with asyncio.TaskGroup() as services:
            for part, tick, every in (
                ("board", self.board.refresh, BOARD_EVERY),
                ("breakers", self._breakers.tell, TELL_EVERY),
                ("note", self._beat, BEAT_EVERY),
            ):
                services.create_task(run_service(part, tick, every=every, ground=ground, stop=over))
            services.create_task(self._limits.run(over))
            for inlet in self._inlets:
                services.create_task(inlet.keep(over))
            async with asyncio.TaskGroup() as work:
                for inlet in self._inlets:
                    work.create_task(self._consume(inlet, work))
                await self.stop.wait()
                self._wake_all()
                services.create_task(self._insist())
            over.set()
            self._limits.call()
        for source in self.sources:
            await self._close(source)
        await self.mediator.close()
        with suppress(StoreUnavailable):  # then it is gone for others when it was silent for a while
            await self._beat(gone=True)

    async def _close(self, source: Source) -> None:
        try:
            await source.close()
        except Exception as error:  # noqa: BLE001 - whatever is wrong with one source, the others are closed
            self.ground.emit(
                SourceFailed(source=source.name, error=f"closing it failed: {error!r}", pause=ZERO)
            )

    async def _register(self) -> None:
        """Get a number to lease limits under, and a first look at the settings; a store may be away."""
        failures, outages = 0, Outages(self.ground)
        while not self.stop.is_set():
            try:
                name = self.options.name
                self._limits.node = await self.ground.call(self.ground.store.register_node, name)
                self.board.node = self._limits.node
                await self._beat()
                await self.board.refresh()
            except StoreUnavailable as error:
                failures += 1
                outages.failed("router", error, failures)
                await wait_for(self.stop, min(5.0, 0.2 * failures))
            else:
                outages.worked("router")
                return

    async def _beat(self, *, gone: bool = False) -> bool:
        """Say that it is alive, or gone, and that it sends no lane's jobs: who explains a job must know."""
        drains = {} if self.board.drain is None else {"drains": self.held}
        leaves = {"stops": True, "gone": True} if gone else {}
        note = json.dumps({"lanes": [], **drains, **leaves})
        await beat(self.ground, self._limits.node, self.options.name, note)
        return False

    # -- taking
    async def _consume(self, inlet: Inlet, work: asyncio.TaskGroup) -> None:
        """Receive until told to stop; a source that fails is asked again, longer after each time."""
        failures = 0
        while not self.stop.is_set():
            if self.board.drain is not None:
                await wait_for(self.stop, BOARD_EVERY.total_seconds())
                continue
            try:
                taken = await inlet.receive()
            except Exception as error:  # noqa: BLE001 - whatever is wrong with one source, the others go on
                failures += 1
                pause = backoff(SOURCE_EVERY, failures)
                text = f"{error}" or type(error).__name__
                self.ground.emit(SourceFailed(source=inlet.source.name, error=text, pause=pause))
                await wait_for(self.stop, self.ground.spread(pause))
            else:
                failures = 0
                for held in taken:
                    self._take(held, work)

    def _take(self, held: Held, work: asyncio.TaskGroup) -> None:
        try:
            pointer = read_pointer(held.message.body)
        except BadMessage as error:
            work.create_task(self._end(held, "", Verdict("buried", f"not a message: {error}")))
            return
        if pointer.group is None:
            work.create_task(self._route(held, pointer))
            return
        place = (held.inlet.source.name, held.message.queue, pointer.group)
        line = self._lines.get(place)
        if line is not None:
            line.append((held, pointer))
        else:
            line = self._lines[place] = deque([(held, pointer)])
            work.create_task(self._walk(place, line))

    async def _walk(self, place: tuple[str, str, str], line: deque[tuple[Held, Pointer]]) -> None:
        """Bring the messages of a group to their targets, one after the other."""
        while line:
            held, pointer = line[0]
            verdict = await self._judge(held, pointer)
            await self._give_back(line, verdict.delay)  # before the first: its broker holds the others for it
            await self._end(held, pointer.pool, verdict)
            await self._give_back(line, verdict.delay)  # what came meanwhile
            line.popleft()
        del self._lines[place]

    async def _give_back(self, line: deque[tuple[Held, Pointer]], delay: timedelta | None) -> None:
        """Send back what is behind a message that comes again: nothing overtakes it."""
        while delay is not None and len(line) > 1:
            behind = [line.pop()[0] for _ in range(len(line) - 1)]
            await behind[0].inlet.nack(behind[::-1], delay)

    # -- one message
    async def _route(self, held: Held, pointer: Pointer) -> None:
        """Bring one message to its target."""
        await self._end(held, pointer.pool, await self._judge(held, pointer))

    async def _judge(self, held: Held, pointer: Pointer) -> Verdict:
        """Call the target, when that may be done, and return what becomes of the message."""
        try:
            return await self._verdict(held, pointer)
        except Exception as error:  # noqa: BLE001 - a bug met by one message is not to hurt the others
            delay = wait_of(TryAgain(""), held.message.receives, spread=self.ground.rng.random())
            return Verdict("nack", f"{error!r}\n{traceback.format_exc()}", delay)

    async def _verdict(self, held: Held, pointer: Pointer) -> Verdict:
        if self.board.drain is not None:
            return Verdict("nack", "the router drains", ZERO)
        if held.message.receives > self.options.max_receives:
            return Verdict("buried", f"received {held.message.receives} times")
        pool = self.board.pools.get(pointer.pool) or self.board.pools.get(self.options.default_pool)
        stopped = self._stopped(pool)
        if stopped is not None:
            return Verdict("nack", stopped, PAUSED)
        if not await self._permitted(held, pool):
            return self._not_begun(held)
        target = target_of(pointer.target)
        wait = self._breakers.wait(target, self.ground.clock.now())
        lost = held.lost or self.ground.monotonic() >= held.until
        if wait is not None or lost:
            self._limits.refund(self._pools, [pool])
            if wait is None:
                self._breakers.not_tried(target)
            return LOST if lost else Verdict("nack", f"{target} is left alone", wait)
        try:
            reply = await self._call(held, pointer)
        except BaseException:
            self._breakers.not_tried(target)
            raise
        finally:
            self._limits.release(self._pools, [pool])
        self._breakers.note(target, reply.target)
        return self._meaning(held, reply)

    def _stopped(self, pool: Pool | None) -> str | None:
        now, pause = self.ground.clock.now(), self.board.pause
        if pause is not None and not pause.over(now):
            return f"everything is paused by {pause.actor}: {pause.reason}"
        if pool is not None and pool.stopped(now):
            return f'pool "{pool.name}" is paused by {pool.paused_by}: {pool.pause_reason}'
        return None

    async def _permitted(self, held: Held, pool: Pool | None) -> bool:
        """Wait for a slot and a token; False = the message is lost, too many wait, or we are to stop."""
        name = pool.name if pool is not None else ""
        self._limits.watch(held.wake)
        self._waiting[name] += 1
        try:
            while not (self.stop.is_set() or held.lost):
                held.wake.clear()
                go, _ = self._limits.admit(self._pools, [pool], who=held.number)
                if go:
                    return True
                if self._waiting[name] > self.options.most_waiting:
                    return False
                await held.wake.wait()
            return False
        finally:
            self._waiting[name] -= 1
            self._limits.forget(self._pools.name, held.number)
            self._limits.unwatch(held.wake)

    def _not_begun(self, held: Held) -> Verdict:
        if held.lost:
            return LOST
        if self.stop.is_set():
            return Verdict("nack", "the router stops", ZERO)
        return Verdict("nack", "many wait for its pool", CROWDED * (1 + self.ground.rng.random()))

    async def _call(self, held: Held, pointer: Pointer) -> Reply:
        limit, task = self.options.call_timeout.total_seconds(), asyncio.current_task()
        held.call = task
        try:
            async with asyncio.timeout(limit):
                return await self.mediator.call(pointer)
        except TimeoutError:
            failed = TryAgain(f"no answer within {limit:g} s")
            return Reply(failed, failed)
        except asyncio.CancelledError:
            if not cancelled():
                failed = TryAgain("its connection ended while it was at work")
                return Reply(failed, failed)
            if not self._insists.is_set() or task is None:
                raise
            task.uncancel()  # we were told to wait no longer; nothing is known against the target
            return Reply(TryAgain("the router stopped while it was at work"), Throttled(ZERO))
        finally:
            held.call = None

    def _meaning(self, held: Held, reply: Reply) -> Verdict:
        receives, why = held.message.receives, getattr(reply.message, "error", None)
        wait = wait_of(reply.message, receives, spread=self.ground.rng.random())
        if wait is None:
            return Verdict("ack")
        if isinstance(reply.message, Rejected) and receives >= self.options.max_refusals:
            return Verdict("buried", why)
        return Verdict("nack", why, ZERO if self._insists.is_set() else wait)

    async def _end(self, held: Held, pool: str, verdict: Verdict) -> None:
        """Tell the source what becomes of a message."""
        held.ending, inlet = True, held.inlet
        match verdict.fate:
            case "ack":
                await inlet.ack(held)
            case "nack":
                await inlet.nack([held], verdict.delay or ZERO)
            case "buried":
                await inlet.bury(held)
            case _:
                inlet.forget(held)
        known = pool if pool in self.board.pools else self.options.default_pool
        took, fate = self.ground.monotonic() - held.since, "lost" if held.lost else verdict.fate
        self.ground.emit(Routed(source=inlet.source.name, pool=known, fate=fate, took=took, why=verdict.why))

    # -- stopping
    def _wake_all(self) -> None:
        for inlet in self._inlets:
            inlet.let_go()
            for held in inlet.held.values():
                held.wake.set()

    async def _insist(self) -> None:
        """Wait for calls as long as the grace period lasts, then no longer."""
        until = self.ground.monotonic() + self.options.grace.total_seconds()
        while not self._over.is_set() and not self.hurry.is_set() and self.ground.monotonic() < until:
            await wait_for(self.hurry, LOOK_S)
        self._insists.set()
        for inlet in self._inlets:
            for held in inlet.held.values():
                if held.call is not None:
                    held.call.cancel()
