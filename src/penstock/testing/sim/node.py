"""What a simulated node sees of its world: clocks that skew, calls that fail, and its own name."""

import asyncio
import functools
from collections.abc import Awaitable, Callable
from contextvars import Context, copy_context
from dataclasses import dataclass
from datetime import datetime, timedelta
from math import inf
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar, assert_never

from penstock.errors import StoreUnavailable
from penstock.testing.sim.faults import CallFault, Port, Span
from penstock.testing.sim.loop import NODE, SimLoop, SimulationError

if TYPE_CHECKING:
    import random

    from penstock.testing.sim.world import World

T = TypeVar("T")


class SimClock:
    """A `Clock` on virtual time whose wall clock can be wrong; the monotonic one is the loop's, always."""

    def __init__(self, loop: SimLoop, now: datetime) -> None:
        self._loop = loop
        self._now = now
        self._since = loop.time()
        self._rate = 1.0
        self._forward = 0.0
        self.set_at = -inf

    def now(self) -> datetime:
        """Return the wall clock."""
        return self._now + timedelta(seconds=(self._loop.time() - self._since) * self._rate)

    def monotonic(self) -> float:
        """Return the loop's time."""
        return self._loop.time()

    def forward(self) -> float:
        """Return the seconds that the wall clock has run forward, steps included: what mints tokens."""
        return self._forward + (self._loop.time() - self._since) * self._rate

    def step(self, by: timedelta) -> None:
        """Set the wall clock forward or back."""
        self._now += by
        self._forward += max(0.0, by.total_seconds())
        self.set_at = self._loop.time()

    def drift(self, rate: float) -> None:
        """Let the wall clock run at this rate from now on; 1.0 is right."""
        self._forward = self.forward()
        self._now, self._since, self._rate = self.now(), self._loop.time(), rate


class NodeEnv:
    """One life of a node: what its main function gets.

    `executor` reaches the store with all the faults planned for it; `network` has latency, crashes and pauses
    only, for simulated sinks, which give their bad answers themselves. `id` differs from life to life.

    `faults` counts what happened to this life; it is excused until `troubled_until`, and what it does when it
    wakes up at `frozen_until` may be a zombie's doing.
    """

    def __init__(self, world: "World", name: str, *, life: int, clock: SimClock) -> None:
        self.name = name
        self.life = life
        self.id = f"{name}.{life}"
        self.clock = clock
        self.executor = SimExecutor(world, self, Port.STORE)
        self.network = SimExecutor(world, self, Port.NETWORK)
        self.rng: random.Random = world.stream(f"node {self.id}")
        self.stop = asyncio.Event()
        self.hurry = asyncio.Event()
        self.asked_at: float | None = None
        self.hurried_at: float | None = None
        self.faults = 0
        self.troubled_until = self.frozen_until = self._aftermath = -inf
        self.threads = f"{self.id}/threads"
        self.owners = [self.id, self.threads]
        self._world = world

    def record(self, event: str) -> None:
        """Write the event into the world's journal, which is part of the trace."""
        self._world.record(event, node=self.id)

    def ask_to_stop(self) -> None:
        """Set `stop`, as a signal would; the second time `hurry`."""
        now = self._world.loop.time()
        if self.asked_at is None:
            self.asked_at = now
            self.stop.set()
        else:
            self.hurried_at = now
            self.hurry.set()

    def trouble(self, seconds: float = 0.0) -> None:
        """Note that something befell the node, for that long."""
        self.faults += 1
        self._aftermath = max(self._aftermath, self._world.loop.time() + seconds)
        self.troubled_until = max(self.troubled_until, self._aftermath)

    def freeze(self, until: float) -> None:
        """Note that the node, or its loop alone, stands still until then."""
        self.trouble()
        self.frozen_until = max(self.frozen_until, until)
        self.troubled_until = max(self.troubled_until, until)

    def thaw(self) -> None:
        """Note that the node goes on; what it set in motion before it stood still may come yet."""
        self.frozen_until = self._world.loop.time()
        self.troubled_until = max(self.frozen_until, self._aftermath)

    def beside(self, name: str, main: Callable[[], Awaitable[None]]) -> "asyncio.Task[None]":
        """Start what is a thread in production: it dies and freezes with the node, but never is busy."""
        owner = f"{self.id}/{name}"
        self.owners.append(owner)
        return self._world.start_task(main, env=self, owner=owner)


class Outcome(NamedTuple):
    """What a call returned, or raised."""

    result: Any
    error: Exception | None


@dataclass(frozen=True, slots=True)
class Request:
    """A call on its way; nobody may be waiting for the reply any more."""

    call: Callable[[], Any]
    operation: str
    reply: "asyncio.Future[Any]"


class SimExecutor:
    """An `Executor` that runs calls inline, a step each, with latency either way and the planned faults."""

    def __init__(self, world: "World", env: NodeEnv, port: Port) -> None:
        self._world = world
        self._loop = world.loop
        self._env = env
        self._port = port
        self._rng = world.stream(f"{port.value} of {env.id}")

    async def run(self, call: Callable[[], T]) -> T:
        """Return what the call returns, unless the plan says otherwise."""
        if self._loop.is_closed():
            raise SimulationError("the run is over")  # somebody's cleanup, at the funeral
        request = Request(call, _operation(call), self._loop.create_future())
        # A thread of the pool: a crash or pause of the node stops it, a busy event loop does not.
        thread = copy_context()
        thread.run(NODE.set, self._env.threads)
        self._later(self._world.plan.latency, self._arrive, request, context=thread)
        result: T = await request.reply
        return result

    def _arrive(self, request: Request) -> None:
        if request.reply.cancelled() and self._rng.random() < 0.5:
            return  # given up while it was waiting for a thread; the other half had got one
        self._treat(request, self._world.call_fault(self._port, self._env, request.operation))

    def _treat(self, request: Request, fault: CallFault | None) -> None:
        """Carry the request out, or let the fault happen to it."""
        plan = self._world.plan
        match fault:
            case None:
                self._complete(request)
            case CallFault.ERROR_BEFORE:
                self._lose_reply(request, plan.latency)
            case CallFault.ERROR_AFTER:
                self._carry_out(request)
                self._lose_reply(request, plan.latency)
            case CallFault.TIMEOUT_BEFORE:
                self._lose_reply(request, plan.hang)
            case CallFault.TIMEOUT_AFTER:
                self._carry_out(request)
                self._lose_reply(request, plan.hang)
            case CallFault.LATE_COMMIT:  # the database's own doing by then: not even a crash stops it
                self._env.trouble(plan.hang.high)
                self._later(plan.hang, self._carry_out, request, context=Context())
                self._lose_reply(request, plan.latency)
            case CallFault.LOCKED:
                self._lose_reply(request, plan.locked)
            case CallFault.CRASH_BEFORE:
                self._world.lose(self._env.name)
            case CallFault.CRASH_AFTER:
                self._carry_out(request)
                self._world.lose(self._env.name)
            case CallFault.PAUSE_BEFORE:
                self._world.pause(self._env.name, plan.pause.draw(self._rng))
                self._loop.call_soon(self._complete, request)
            case CallFault.PAUSE_AFTER:
                self._world.pause(self._env.name, plan.pause.draw(self._rng))
                self._complete(request)
            case _:
                assert_never(fault)

    def _complete(self, request: Request) -> None:
        outcome = self._carry_out(request)
        self._later(self._world.plan.latency, _reply, request, outcome)

    def _lose_reply(self, request: Request, after: Span) -> None:
        wait = after.seconds(self._rng)
        self._env.trouble(wait)
        outcome = Outcome(None, self._world.unavailable(request.operation))
        self._loop.call_later(wait, _reply, request, outcome)

    def _carry_out(self, request: Request) -> Outcome:
        try:
            outcome = Outcome(request.call(), None)
        except Exception as error:  # noqa: BLE001 - it belongs to whoever waits
            outcome = Outcome(None, error)
            if isinstance(error, StoreUnavailable):  # its own word: it takes no writes now
                self._env.record(f"{request.operation}: {error}")
                self._env.trouble(self._world.plan.latency.high)
        self._world.check()
        return outcome

    def _later(
        self, span: Span, callback: Callable[..., object], *args: object, context: Context | None = None
    ) -> None:
        self._loop.call_later(span.seconds(self._rng), callback, *args, context=context)


def _reply(request: Request, outcome: Outcome) -> None:
    if request.reply.done():
        return
    if outcome.error is None:
        request.reply.set_result(outcome.result)
    else:
        request.reply.set_exception(outcome.error)


def _operation(call: Callable[[], object]) -> str:
    """Return the name of the function called, or of the one that a lambda stands in."""
    while isinstance(call, functools.partial):
        call = call.func
    name: str = getattr(call, "__qualname__", type(call).__qualname__)
    return name.removesuffix(".<locals>.<lambda>")
