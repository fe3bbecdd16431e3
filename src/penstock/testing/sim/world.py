"""A world in one process: nodes, their clocks, the faults that befall them, and a journal of it all.

    with World(seed, FaultPlan.draw(random.Random(seed))) as world:
        store = MemoryStore(world.store_clock.now, ids)
        world.spawn_node("a", main)             # async def main(env: NodeEnv) -> None
        world.watch(check_invariants)           # after every store call and every arrival at a sink
        world.run(until=timedelta(minutes=10))
        world.stop_faults()
        world.run_until(all_sent, timeout=timedelta(minutes=5))

The same seed and plan give the same run, step by step (`trace_hash`). Anything that goes wrong is raised by
`run` or `run_until` with a report attached: seed, plan and the end of the journal.
"""

import asyncio
import random
from collections import Counter
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from contextvars import Context, copy_context
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from math import inf
from types import TracebackType
from typing import Final, Self

from penstock.errors import StoreUnavailable
from penstock.testing.sim.chaos import chaos
from penstock.testing.sim.faults import NO_FAULTS, CallFault, Disaster, FaultPlan, Port, SinkFault, Span
from penstock.testing.sim.journal import Event, Journal
from penstock.testing.sim.loop import NODE, SimLoop, SimulationError, Step
from penstock.testing.sim.node import NodeEnv, SimClock

Main = Callable[[NodeEnv], Awaitable[object]]

START: Final = datetime(2026, 3, 1, tzinfo=UTC)
POLL: Final = timedelta(milliseconds=100)


class Overdue(SimulationError):
    """What had to come true in time did not."""


@dataclass(slots=True)
class _Node:
    """A machine: it keeps its name and its clock from life to life."""

    name: str
    main: Main
    clock: SimClock
    env: NodeEnv
    up: bool = False
    returns: bool = False


class World:
    """See the module. `tolerate` says which errors a node may die of; it then returns like a crashed one."""

    def __init__(
        self,
        seed: int,
        plan: FaultPlan = NO_FAULTS,
        *,
        unavailable: Callable[[str], Exception] = StoreUnavailable,
        tolerate: Callable[[Exception], bool] = lambda _: False,
        start: datetime = START,
        max_steps: int = 5_000_000,
        max_spin: int = 200_000,
    ) -> None:
        self.seed = seed
        self.plan = plan
        self.unavailable = unavailable
        self.loop = SimLoop(self.stream("order"), max_steps=max_steps, max_spin=max_spin)
        self.store_clock = SimClock(self.loop, start)
        self.journal = Journal()
        self.calls: Counter[Port] = Counter()
        self._tolerate = tolerate
        self._start = start
        self._nodes: dict[str, _Node] = {}
        self._checks: list[Callable[[], None]] = []
        self._unreachable_until: dict[str | None, float] = {}
        self._refuses: tuple[Disaster | None, float] = None, 0.0
        self._failure: Exception | None = None
        self._faults = True
        self._luck = self.stream("faults")
        self._gone = asyncio.Event()
        self._chaos = self.loop.create_task(self._unleash(), name="chaos", context=Context())
        if plan.crash_at_step is not None:
            self.loop.on_step = self._crash_at_step

    def stream(self, purpose: str) -> random.Random:
        """Return a generator of its own, so that more dice rolled for one purpose change no other."""
        return random.Random(f"{self.seed}/{purpose}")  # noqa: S311 - it has to be repeatable

    def spawn_node(self, name: str, main: Main) -> None:
        """Start a node; it lives until its main function returns or it crashes."""
        clock = SimClock(self.loop, self._start + timedelta(seconds=self.loop.time()))
        clock.step(self.plan.skew.draw(self.stream(f"skew of {name}")))
        env = NodeEnv(self, name, life=1, clock=clock)
        self._nodes[name] = _Node(name, main, clock, env)
        self._live(self._nodes[name])

    def crash(self, name: str) -> None:
        """Cut the node's power; it stays down until `restart`."""
        self._shut(self._nodes[name], "crash", returns=False)

    def restart(self, name: str) -> None:
        """Start the node anew, with a new id; crash it first if it is up."""
        self.crash(name)
        node = self._nodes[name]
        node.env = NodeEnv(self, name, life=node.env.life + 1, clock=node.clock)
        self._live(node)

    def lose(self, name: str, *, back_after: Span | None = None) -> None:
        """Crash the node and let it come back when the plan says, if it says so."""
        span = back_after or self.plan.restart
        node = self._nodes[name]
        self._shut(node, "crash", returns=span is not None)
        if span is not None:
            wait = span.draw(self._luck).total_seconds()
            self.loop.call_later(wait, self._come_back, node, node.env, context=Context())

    def pause(self, name: str, duration: timedelta | None = None) -> None:
        """Freeze the whole node for that long, or until `resume`."""
        self._freeze(self.node(name), self.node(name).owners, duration, "frozen")

    def keep_busy(self, name: str, duration: timedelta) -> None:
        """Block the node's event loop for that long; its threads go on."""
        self._freeze(self.node(name), [self.node(name).id], duration, "loop busy")

    def resume(self, name: str) -> None:
        """Let a frozen node go on with everything that came up meanwhile."""
        node = self.node(name)
        if any(self.loop.is_paused(owner) for owner in node.owners):
            node.thaw()
        for owner in node.owners:
            self.loop.resume(owner)

    def ask_to_stop(self, name: str) -> None:
        """Set the node's `stop` event, as a signal would; the second time its `hurry`."""
        self.record("asked to stop", node=self.node(name).id)
        self.node(name).ask_to_stop()

    def node(self, name: str) -> NodeEnv:
        """Return the node's present life."""
        return self._nodes[name].env

    def find(self, life: str) -> NodeEnv | None:
        """Return a node by the id of its present life; None = that life is over."""
        return next((node.env for node in self._nodes.values() if node.env.id == life and node.up), None)

    def returns(self, name: str) -> bool:
        """Say whether a node that is down comes back by itself."""
        return self._nodes[name].returns

    def up(self) -> list[str]:
        """Return the names of the nodes that are up, frozen ones included, in order of their first start."""
        return [node.name for node in self._nodes.values() if node.up]

    def cut_off(self, name: str | None, duration: timedelta) -> None:
        """Keep a node from reaching the store for that long; None takes the store itself down."""
        self.record(f"store unreachable for {duration}", node=name or "")
        self._unreachable_until[name] = self.loop.time() + duration.total_seconds()

    def refuse_writes(self, why: Disaster, duration: timedelta) -> None:
        """Let the store be full, or read-only, for that long; whoever makes the store asks `refuses`."""
        self.record(f"{why.value} for {duration}")
        self._refuses = why, self.loop.time() + duration.total_seconds()

    def refuses(self) -> Disaster | None:
        """Return why the store takes no writes now; None = it takes them."""
        why, until = self._refuses
        return why if self.loop.time() < until else None

    def step_clock(self, name: str | None, by: timedelta) -> None:
        """Set a node's wall clock, or (None) the store's, forward or back."""
        self.record(f"clock steps by {by.total_seconds():+.3f} s", node=name or "store")
        (self.store_clock if name is None else self.node(name).clock).step(by)

    def drift(self, rate: float) -> None:
        """Let the store's clock run at this rate from now on."""
        self.record(f"clock runs at {rate:.6f}", node="store")
        self.store_clock.drift(rate)

    def call_fault(self, port: Port, env: NodeEnv, operation: str) -> CallFault | None:
        """Count the call and return what happens to it."""
        self.calls[port] += 1
        number = self.calls[port]
        fault = self.plan.call_fault(port, number, self._luck) if self._faults else None
        if port is Port.STORE and self._is_unreachable(env.name):
            fault = CallFault.ERROR_BEFORE
        env.record(f"{port.value} {number} {operation}" + (f": {fault.value}" if fault else ""))
        if fault is not None:
            env.trouble()
        return fault

    def sink_fault(self) -> SinkFault | None:
        """Return how a simulated sink shall treat what it was just sent; None for well."""
        return self.plan.sink_fault(self._luck) if self._faults else None

    def stop_faults(self) -> None:
        """End all faults: nothing new happens, the lost return, the frozen go on, the store is reachable.

        Steps of clocks stay, and a commit that is late may still come.
        """
        self._faults = False
        self._chaos.cancel()
        self._unreachable_until.clear()
        self._refuses = None, 0.0
        self.store_clock.drift(1.0)
        self.record("faults end")
        for node in self._nodes.values():
            if node.up:
                self.resume(node.name)
            elif node.returns:
                self.restart(node.name)

    def run(self, *, until: timedelta | None = None) -> None:
        """Run to that virtual time since the start; without one, until every node has left for good."""
        self._drive(self._all_gone() if until is None else self._sleep_to(until))

    def run_until(
        self, predicate: Callable[[], bool], *, timeout: timedelta, every: timedelta = POLL
    ) -> None:
        """Run until the predicate holds, asking it now and then; raise Overdue after the timeout."""
        self._drive(self._wait_for(predicate, self.loop.time() + timeout.total_seconds(), every))

    def watch(self, check: Callable[[], None]) -> None:
        """Call the check after every effect on the store or at a sink; what it raises ends the run."""
        self._checks.append(check)

    def check(self) -> None:
        """Call all checks now."""
        try:
            for check in self._checks:
                check()
        except Exception as error:  # noqa: BLE001 - raised by `run`: no node may swallow it
            self.fail(error)

    def fail(self, error: Exception) -> None:
        """End the run; it raises this error, the first one if there are several."""
        self._failure = self._failure or error
        self.loop.stop()

    def record(self, event: str, *, node: str = "") -> None:
        """Write a line into the journal, which is part of the trace."""
        self.journal.append(Event(self.loop.time(), node, event))
        self.loop.note(f"{node} {event}\n")

    @property
    def trace_hash(self) -> str:
        """Return the hash of all steps and events so far."""
        return self.loop.trace_hash

    def report(self) -> str:
        """Return what one needs to run this again, and how it ended."""
        calls = ", ".join(f"{count} {port.value} calls" for port, count in self.calls.items())
        summary = f"{self.loop.steps} steps, {calls or 'no calls'}, trace {self.trace_hash}"
        return "\n".join(
            [f"seed {self.seed}; {self.plan}", summary, *self.loop.complaints, *self.journal.tail()]
        )

    def close(self) -> None:
        """End the world: what is left of its nodes is buried in silence."""
        self.loop.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def start_task(
        self, main: Callable[[], Awaitable[None]], *, env: NodeEnv, owner: str
    ) -> asyncio.Task[None]:
        """Start a task that belongs to a node's present life."""
        context = copy_context()
        context.run(NODE.set, owner)
        return self.loop.create_task(self._guard(main, env), name=owner, context=context)

    def _live(self, node: _Node) -> None:
        node.up, node.returns = True, False
        self._gone.clear()
        self.record("start", node=node.env.id)
        self.start_task(lambda: self._main(node), env=node.env, owner=node.env.id)

    async def _main(self, node: _Node) -> None:
        await node.main(node.env)
        self._shut(node, "left", returns=False)

    async def _guard(self, main: Callable[[], Awaitable[None]], env: NodeEnv) -> None:
        try:
            await main()
        except Exception as error:  # noqa: BLE001 - the world's to judge
            self.record(f"died of {type(error).__name__}", node=env.id)
            if self._tolerate(error):
                self.lose(env.name)
            else:
                self.fail(error)

    def _shut(self, node: _Node, event: str, *, returns: bool) -> None:
        """Take the node down; a process that ends takes all its tasks with it, so that is a crash as well."""
        if node.up:
            self.record(event, node=node.env.id)
        node.up, node.returns = False, returns
        for owner in node.env.owners:
            self.loop.crash(owner)
        if not self._anybody():
            self._gone.set()

    def _anybody(self) -> bool:
        return any(node.up or node.returns for node in self._nodes.values())

    def _come_back(self, node: _Node, env: NodeEnv) -> None:
        if node.returns and node.env is env:  # else somebody was faster
            self.restart(node.name)

    def _freeze(self, env: NodeEnv, owners: Sequence[str], duration: timedelta | None, event: str) -> None:
        self.record(event if duration is None else f"{event} for {duration}", node=env.id)
        env.freeze(inf if duration is None else self.loop.time() + duration.total_seconds())
        for owner in owners:
            self.loop.pause(owner, None if duration is None else duration.total_seconds())

    def _is_unreachable(self, name: str) -> bool:
        now = self.loop.time()
        return any(now < self._unreachable_until.get(who, 0.0) for who in (None, name))

    def _crash_at_step(self, step: Step) -> None:
        if self._faults and step.number == self.plan.crash_at_step:
            self.lose(next(node.name for node in self._nodes.values() if step.owner in node.env.owners))

    async def _unleash(self) -> None:
        try:
            await chaos(self, self.stream("chaos"))
        except Exception as error:  # noqa: BLE001 - raised by `run`
            self.fail(error)

    async def _all_gone(self) -> None:
        while self._anybody():  # a restart passes through a moment with nobody up
            await self._gone.wait()

    async def _sleep_to(self, time: timedelta) -> None:
        await asyncio.sleep(time.total_seconds() - self.loop.time())

    async def _wait_for(self, predicate: Callable[[], bool], deadline: float, every: timedelta) -> None:
        while not predicate():
            if self.loop.time() >= deadline:
                name = getattr(predicate, "__qualname__", predicate)
                raise Overdue(f"{name} is still false at {self.loop.time()} s")
            await asyncio.sleep(every.total_seconds())

    def _drive(self, goal: Coroutine[None, None, None]) -> None:
        """Run until the goal is reached or something fails."""
        task = self.loop.create_task(goal, name="goal", context=Context())
        task.add_done_callback(lambda _: self.loop.stop(), context=Context())
        try:
            self.loop.run_forever()
            self._verdict()
            task.result()
        except Exception as error:
            error.add_note(self.report())
            raise

    def _verdict(self) -> None:
        if self._failure is not None:
            raise self._failure
