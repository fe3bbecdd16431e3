"""A deterministic asyncio event loop: virtual time, seeded order, nodes that crash and freeze.

One thread, no selector, no signals. Of everything that is ready, a seeded generator picks what runs next, so
one seed is one interleaving; when nothing is ready, time jumps to the next timer. Every step feeds a hash:
equal seeds give equal hashes, whatever PYTHONHASHSEED says.

Every callback and task has an owner, the value of `NODE` in its context ("" is the harness itself):
`crash(owner)` is a power cut, after which nothing of it ever runs, not even a `finally`; `pause(owner)`
freezes it, and when it wakes it goes on as if nothing had happened (a zombie).
"""

import asyncio
import hashlib
import inspect
import random
import threading
from asyncio import Handle, TimerHandle
from collections.abc import Callable, Coroutine, Generator
from contextlib import suppress
from contextvars import Context, ContextVar
from itertools import count
from typing import Any, Final, NamedTuple, NoReturn, TypeVar, TypeVarTuple

from penstock.testing.sim.agenda import Agenda

T = TypeVar("T")
Ts = TypeVarTuple("Ts")

NODE: ContextVar[str] = ContextVar("penstock_sim_node", default="")

_HARNESS: Final = ""
_PRUNE_AT: Final = 64
_MAX_CLOSES: Final = 100


class SimulationError(Exception):
    """The simulation itself cannot go on."""


class Deadlock(SimulationError):
    """Nothing is ready, no timer is set, and what we run for is not done."""


class Livelock(SimulationError):
    """More steps than a healthy run takes, in all or without time moving."""


class NotSimulated(SimulationError):
    """Code in the simulation asked for real input or output."""


class Step(NamedTuple):
    """One callback about to run; `number` counts the steps of all owners but the harness, from 1."""

    number: int
    owner: str
    label: str


class SimLoop(asyncio.BaseEventLoop):
    """See the module. `on_step` is called before each owned step and may crash or pause its owner."""

    def __init__(self, rng: random.Random, *, max_steps: int = 5_000_000, max_spin: int = 200_000) -> None:
        super().__init__()
        self.on_step: Callable[[Step], None] | None = None
        self.steps = 0
        self.owned_steps = 0
        self.complaints: list[str] = []
        self._agenda = Agenda(rng)
        self._max_steps = max_steps
        self._max_spin = max_spin
        self._spin = 0
        self._tasks: dict[str, list[asyncio.Task[Any]]] = {}
        self._prune_at: dict[str, int] = {}
        self._task_number = count(1)
        self._hash = hashlib.blake2b(digest_size=16)
        self._broken: BaseException | None = None

    def time(self) -> float:
        """Return virtual seconds since the loop was made."""
        return self._agenda.time

    def call_soon(
        self, callback: Callable[[*Ts], object], *args: *Ts, context: Context | None = None
    ) -> Handle:
        """Put the callback among those ready; which of them runs first is up to the seed."""
        handle = Handle(callback, args, self, context)
        self._agenda.add(_owner(context), handle)
        return handle

    def call_at(
        self, when: float, callback: Callable[[*Ts], object], *args: *Ts, context: Context | None = None
    ) -> TimerHandle:
        """Make the callback ready at a virtual time."""
        handle = TimerHandle(when, callback, args, self, context)
        self._agenda.add_at(when, _owner(context), handle)
        return handle

    def call_soon_threadsafe(
        self, callback: Callable[[*Ts], object], *args: *Ts, context: Context | None = None
    ) -> Handle:
        """Behave like call_soon: a simulation has one thread."""
        if self.is_running() and threading.get_ident() != getattr(self, "_thread_id", None):
            raise NotSimulated("loop.call_soon_threadsafe: a simulation has one thread")
        return self.call_soon(callback, *args, context=context)

    def run_in_executor(self, executor: object, func: Callable[[*Ts], T], *args: *Ts) -> asyncio.Future[T]:
        """Run the function inline at a later step; like a thread, it runs even when nobody waits any more."""
        del executor
        future: asyncio.Future[T] = self.create_future()
        self.call_soon(_run_for, future, func, args)
        return future

    def create_task(
        self,
        coro: Coroutine[Any, Any, T] | Generator[Any, None, T],
        *,
        name: object = None,
        context: Context | None = None,
        **options: Any,  # noqa: ANN401 - newer versions of Python have more of them
    ) -> asyncio.Task[T]:
        """Return a task named after its coroutine and kept alive until it ends or the loop is closed.

        asyncio numbers tasks per process and holds them weakly; a trace must depend on neither.
        """
        if name is None:
            name = f"{getattr(coro, '__qualname__', 'task')}-{next(self._task_number)}"
        task = asyncio.Task(coro, loop=self, name=str(name), context=context, **options)
        self._keep(_owner(context), task)
        return task

    def crash(self, owner: str) -> None:
        """Cut the owner's power: nothing it has pending, or gets from now on, ever runs."""
        self._agenda.kill(_stoppable(owner))

    def pause(self, owner: str, duration: float | None = None) -> None:
        """Freeze the owner for that long, or until `resume`; its timers run out meanwhile but do not fire."""
        if duration is None:
            self._agenda.freeze(_stoppable(owner), None)
        else:
            until = self.time() + duration
            self._agenda.freeze(_stoppable(owner), until)
            self.call_at(until, self._agenda.thaw_due, owner, context=Context())

    def resume(self, owner: str) -> None:
        """Let a frozen owner go on with everything that came up meanwhile; the dead stay dead."""
        self._agenda.thaw(owner)

    def is_dead(self, owner: str) -> bool:
        """Return whether the owner has crashed."""
        return self._agenda.is_dead(owner)

    def is_paused(self, owner: str) -> bool:
        """Return whether the owner is frozen, not dead."""
        return self._agenda.is_frozen(owner)

    def note(self, text: str) -> None:
        """Make the text part of the trace."""
        self._hash.update(text.encode())

    @property
    def trace_hash(self) -> str:
        """Return the hash of everything that has run so far, in order and with its time."""
        return self._hash.hexdigest()

    def _run_once(self) -> None:
        """Run one ready callback; `run_forever` calls this until it is stopped."""
        agenda = self._agenda
        entry = agenda.pick()
        if entry is None:
            self._spin = 0
            if not agenda.advance():
                raise Deadlock(self._stuck())
            return
        owner, handle = entry
        if handle.cancelled():
            return
        self._count(owner, handle)
        if agenda.is_away(owner):  # on_step has just stopped it
            agenda.add(owner, handle)
            return
        handle._run()  # noqa: SLF001 - what every event loop does with a handle
        if self._broken is not None:
            raise self._broken

    def _count(self, owner: str, handle: Handle) -> None:
        label = _label(handle)
        self._hash.update(f"{self._agenda.time!r} {owner} {label}\n".encode())
        self.steps += 1
        self._spin += 1
        if self._spin > self._max_spin or self.steps > self._max_steps:
            raise Livelock(
                f"{self.steps} steps by {self.time()} s, {self._spin} of them without time moving; "
                f"the last one is {label} of {owner or 'the harness'}"
            )
        if owner:
            self.owned_steps += 1
            if self.on_step is not None:
                self.on_step(Step(self.owned_steps, owner, label))

    def _timer_handle_cancelled(self, handle: TimerHandle) -> None:
        del handle
        self._agenda.timer_cancelled()

    def _keep(self, owner: str, task: asyncio.Task[Any]) -> None:
        tasks = self._tasks.setdefault(owner, [])
        tasks.append(task)
        if len(tasks) > self._prune_at.get(owner, _PRUNE_AT):
            tasks[:] = [task for task in tasks if not task.done()]
            self._prune_at[owner] = 2 * len(tasks) + _PRUNE_AT

    def _stuck(self) -> str:
        waiting = [
            f"{task.get_name()} of {owner or 'the harness'} waits"
            for owner, tasks in self._tasks.items()
            if not self._agenda.is_away(owner)
            for task in tasks
            if not task.done()
        ]
        frozen = [f"{owner} is frozen" for owner in self._agenda.frozen()]
        return f"nobody can go on at {self.time()} s: {', '.join(waiting + frozen) or 'nobody is left'}"

    def call_exception_handler(self, context: dict[str, Any]) -> None:
        """Stop the run for an error in a callback, which asyncio would only log; keep other complaints."""
        if self.is_closed():
            return
        self.complaints.append(str(context.get("message")))
        if "handle" in context and self._broken is None:
            self._broken = context.get("exception")

    def close(self) -> None:
        """End the run: bury whatever was left unfinished, without a word in the log."""
        if self.is_closed():
            return
        super().close()
        for tasks in self._tasks.values():
            for task in tasks:
                _bury(task)
        self._tasks.clear()
        self._agenda.clear()


def _owner(context: Context | None) -> str:
    return NODE.get() if context is None else context.get(NODE, _HARNESS)


def _stoppable(owner: str) -> str:
    if owner == _HARNESS:
        raise SimulationError("the harness can neither crash nor pause")
    return owner


def _label(handle: Handle) -> str:
    """Return a name for what the handle runs that is the same in every process."""
    callback: Any = handle._callback  # type: ignore[attr-defined]  # noqa: SLF001 - no public way
    task = getattr(callback, "__self__", None)
    if isinstance(task, asyncio.Task):
        return task.get_name()
    return getattr(callback, "__qualname__", None) or type(callback).__qualname__


def _run_for(future: asyncio.Future[T], func: Callable[[*Ts], T], args: tuple[*Ts]) -> None:
    try:
        result = func(*args)
    except Exception as error:  # noqa: BLE001 - it belongs to whoever waits
        if not future.done():
            future.set_exception(error)
    else:
        if not future.done():
            future.set_result(result)


def _bury(task: asyncio.Task[Any]) -> None:
    """Close the task's coroutine for good, whatever its cleanup says about that."""
    if task.done():
        if not task.cancelled():
            task.exception()  # nobody is left to ask for it
        return
    # From the inside out: an outer one that is closed first ends with its inner one still open.
    for coroutine in reversed(_awaited(task.get_coro())):
        for _ in range(_MAX_CLOSES):  # one that awaits in its cleanup has to be closed again
            with suppress(Exception, asyncio.CancelledError, BaseExceptionGroup):
                coroutine.close()
                break


def _awaited(coroutine: Any) -> list[Any]:  # noqa: ANN401 - asyncio's own, or ours
    """Return a coroutine and those it waits in, from the outside in."""
    chain = []
    while inspect.iscoroutine(coroutine):
        chain.append(coroutine)
        coroutine = coroutine.cr_await
    return chain


def _refusal(name: str) -> Callable[..., NoReturn]:
    def refuse(self: SimLoop, *_: object, **__: object) -> NoReturn:
        del self
        raise NotSimulated(f"loop.{name}: a simulation has no sockets, files, processes or signals")

    return refuse


_REAL: Final = """
    add_reader remove_reader add_writer remove_writer add_signal_handler remove_signal_handler
    sock_recv sock_recv_into sock_recvfrom sock_recvfrom_into sock_sendall sock_sendto sock_connect
    sock_accept sock_sendfile sendfile start_tls getaddrinfo getnameinfo connect_accepted_socket
    create_connection create_server create_unix_connection create_unix_server create_datagram_endpoint
    connect_read_pipe connect_write_pipe subprocess_exec subprocess_shell
"""

for _name in _REAL.split():
    setattr(SimLoop, _name, _refusal(_name))
