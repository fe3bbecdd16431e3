"""The simulated event loop: asyncio as usual, but its time, order and deaths are ours."""

import asyncio
import gc
import os
import random
import subprocess
import sys
import threading
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from contextlib import closing, contextmanager, suppress
from contextvars import copy_context
from pathlib import Path
from typing import Any, TypeVar

import pytest

from penstock.testing.sim.loop import NODE, Deadlock, Livelock, NotSimulated, SimLoop, Step

T = TypeVar("T")


@contextmanager
def sim_loop(seed: int = 1, *, max_steps: int = 1_000_000, max_spin: int = 50_000) -> Iterator[SimLoop]:
    loop = SimLoop(random.Random(seed), max_steps=max_steps, max_spin=max_spin)  # noqa: S311
    with closing(loop):
        yield loop


@pytest.fixture
def loop() -> Iterator[SimLoop]:
    with sim_loop() as loop:
        yield loop
    gc.collect()  # whatever the burial left would complain here, as an error


def own(loop: SimLoop, owner: str, coroutine: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
    context = copy_context()
    context.run(NODE.set, owner)
    return loop.create_task(coroutine, context=context)


async def busy_family(log: list[str]) -> None:
    """Use timers, queues, locks, timeouts and cancellation, all at once."""
    queue: asyncio.Queue[int] = asyncio.Queue(2)
    lock = asyncio.Lock()

    async def produce(name: str) -> None:
        for i in range(5):
            await asyncio.sleep(i / 10)
            await queue.put(i)
            log.append(f"{name} put {i}")

    async def consume(name: str) -> None:
        with suppress(TimeoutError):
            while True:
                async with asyncio.timeout(1):
                    item = await queue.get()
                async with lock:
                    await asyncio.sleep(0)
                    log.append(f"{name} got {item}")

    async with asyncio.TaskGroup() as group:
        for name in "ab":
            group.create_task(produce(name))
            group.create_task(consume(name))


def trace(seed: int) -> tuple[str, list[str]]:
    log: list[str] = []
    with sim_loop(seed) as loop:
        loop.run_until_complete(busy_family(log))
        return loop.trace_hash, log


def test_the_same_seed_gives_the_same_run() -> None:
    assert trace(7) == trace(7)


def test_the_same_seed_gives_the_same_hash_whatever_the_hash_seed() -> None:
    script = "import sys; sys.path.insert(0, sys.argv[1]); import test_loop; print(test_loop.trace(7)[0])"

    def other_process(hash_seed: str) -> str:
        return subprocess.run(
            [sys.executable, "-c", script, str(Path(__file__).parent)],
            env={**os.environ, "PYTHONHASHSEED": hash_seed},
            check=True,
            capture_output=True,
            text=True,
        ).stdout.strip()

    assert other_process("1") == other_process("2") == trace(7)[0]


def test_different_seeds_interleave_differently() -> None:
    runs = [trace(seed) for seed in range(20)]

    assert len({hash_ for hash_, _ in runs}) == 20
    assert len({tuple(log) for _, log in runs}) > 10


def test_a_task_sees_its_own_steps_in_order() -> None:
    _, log = trace(3)

    assert [line for line in log if line.startswith("a put")] == [f"a put {i}" for i in range(5)]


def test_sleeping_takes_virtual_time_only(loop: SimLoop) -> None:
    before = time.perf_counter()
    loop.run_until_complete(asyncio.sleep(1_000_000))

    assert loop.time() == 1_000_000
    assert time.perf_counter() - before < 5


def test_virtual_time_runs_a_thousand_times_faster(loop: SimLoop) -> None:
    async def poll() -> None:
        for _ in range(3600):
            await asyncio.sleep(1)

    async def nodes() -> None:
        async with asyncio.TaskGroup() as group:
            for _ in range(3):
                group.create_task(poll())

    before = time.perf_counter()
    loop.run_until_complete(nodes())

    assert loop.time() > 1000 * (time.perf_counter() - before)


def test_timeouts_strike_at_their_time_and_only_when_needed(loop: SimLoop) -> None:
    async def main() -> list[float]:
        times = []
        with suppress(TimeoutError):
            async with asyncio.timeout(5):
                await asyncio.Event().wait()
        times.append(loop.time())
        async with asyncio.timeout(1000):
            await asyncio.sleep(1)
        times.append(loop.time())
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(asyncio.sleep(9), 2)
        await asyncio.sleep(1)
        times.append(loop.time())
        return times

    assert loop.run_until_complete(main()) == [5, 6, 9]


def test_a_timeout_that_was_not_needed_does_not_move_the_clock(loop: SimLoop) -> None:
    async def main() -> None:
        async with asyncio.timeout(1000):
            await asyncio.sleep(0)
        await asyncio.Event().wait()

    with pytest.raises(Deadlock):
        loop.run_until_complete(main())
    assert loop.time() == 0


def test_thousands_of_unused_timeouts_do_not_pile_up(loop: SimLoop) -> None:
    async def main() -> None:
        for _ in range(2000):
            async with asyncio.timeout(3600):
                await asyncio.sleep(0)

    loop.run_until_complete(main())

    assert len(loop._agenda._timers) < 300


def test_a_task_group_cancels_the_siblings_of_one_that_fails(loop: SimLoop) -> None:
    ended = []

    async def wait() -> None:
        try:
            await asyncio.sleep(100)
        finally:
            ended.append(loop.time())

    async def fail() -> None:
        await asyncio.sleep(2)
        raise ValueError

    async def main() -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(wait())
            group.create_task(fail())

    with pytest.raises(ExceptionGroup):
        loop.run_until_complete(main())
    assert ended == [2]


def test_events_conditions_and_semaphores_wake_those_who_wait(loop: SimLoop) -> None:
    async def main() -> list[str]:
        log: list[str] = []
        event, condition, semaphore = asyncio.Event(), asyncio.Condition(), asyncio.Semaphore(1)

        async def waiter() -> None:
            await event.wait()
            async with semaphore:
                await asyncio.sleep(1)
            async with condition:
                log.append("here")
                condition.notify_all()

        async with asyncio.TaskGroup() as group:
            for _ in range(3):
                group.create_task(waiter())
            await asyncio.sleep(1)
            event.set()
            async with condition:
                await condition.wait_for(lambda: len(log) == 3)
        return log

    assert loop.run_until_complete(main()) == ["here"] * 3
    assert loop.time() == 4


def test_threads_run_inline_and_pass_on_results_and_errors(loop: SimLoop) -> None:
    async def main() -> tuple[int, int]:
        with pytest.raises(ZeroDivisionError):
            await asyncio.to_thread(lambda: 1 // 0)
        return await asyncio.to_thread(threading.get_ident), await loop.run_in_executor(None, abs, -3)

    assert loop.run_until_complete(main()) == (threading.get_ident(), 3)


@pytest.mark.parametrize(
    "ask",
    [
        lambda: asyncio.open_connection("127.0.0.1", 1),
        lambda: asyncio.create_subprocess_exec("true"),
        lambda: asyncio.get_running_loop().getaddrinfo("localhost", 80),
    ],
    ids=["socket", "process", "names"],
)
def test_real_input_and_output_is_refused(loop: SimLoop, ask: Callable[[], Any]) -> None:
    async def main() -> None:
        await ask()

    with pytest.raises(NotSimulated, match="no sockets"):
        loop.run_until_complete(main())


def test_another_thread_may_not_touch_the_loop(loop: SimLoop) -> None:
    errors: list[Exception] = []

    def intrude() -> None:
        try:
            loop.call_soon_threadsafe(print)
        except NotSimulated as error:
            errors.append(error)

    async def main() -> None:
        thread = threading.Thread(target=intrude)
        thread.start()
        thread.join()

    loop.run_until_complete(main())
    assert len(errors) == 1


def test_an_error_in_a_callback_ends_the_run(loop: SimLoop) -> None:
    loop.call_later(1, lambda: 1 // 0)

    with pytest.raises(ZeroDivisionError):
        loop.run_until_complete(asyncio.sleep(2))


def test_a_deadlock_is_reported_with_who_waits(loop: SimLoop) -> None:
    async def wait_for_nobody() -> None:
        await asyncio.Event().wait()

    with pytest.raises(Deadlock, match="wait_for_nobody"):
        loop.run_until_complete(wait_for_nobody())


def test_a_deadlock_names_those_who_are_frozen(loop: SimLoop) -> None:
    task = own(loop, "a", asyncio.sleep(5))
    loop.pause("a")

    with pytest.raises(Deadlock, match="a is frozen"):
        loop.run_until_complete(task)


async def sleep_for_ever(nap: float) -> None:
    while True:  # noqa: ASYNC110 - it waits for nothing
        await asyncio.sleep(nap)


def test_spinning_without_time_moving_is_a_livelock(loop: SimLoop) -> None:
    with pytest.raises(Livelock, match=r"sleep_for_ever-\d+ of a"):
        loop.run_until_complete(own(loop, "a", sleep_for_ever(0)))


def test_endless_work_is_a_livelock_too() -> None:
    with sim_loop(max_steps=5000) as loop, pytest.raises(Livelock, match="5001 steps"):
        loop.run_until_complete(sleep_for_ever(0.001))


class Diary:
    """Two nodes of one task each, which write down whatever they get to do."""

    def __init__(self, loop: SimLoop) -> None:
        self.loop = loop
        self.lines: list[tuple[float, str]] = []
        for owner in "ab":
            own(loop, owner, self.live(owner))

    def write(self, text: str) -> None:
        self.lines.append((self.loop.time(), text))

    async def live(self, owner: str) -> None:
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(self.tick(owner))
                group.create_task(self.wait(owner))
        finally:
            self.write(f"{owner} finally")

    async def wait(self, owner: str) -> None:
        async with asyncio.Lock():  # nobody but the task itself refers to what it waits for
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                self.write(f"{owner} except")
                raise

    async def tick(self, owner: str) -> None:
        while True:
            await asyncio.sleep(1)
            self.write(owner)


def test_a_crash_runs_no_except_and_no_finally_even_when_garbage_is_collected(loop: SimLoop) -> None:
    diary = Diary(loop)
    loop.call_later(2.5, loop.crash, "a")
    loop.call_later(4.5, gc.collect)

    loop.run_until_complete(asyncio.sleep(6.5))

    assert [line for line in diary.lines if line[1].startswith("a")] == [(1, "a"), (2, "a")]
    assert [line for line in diary.lines if line[1].startswith("b")] == [(t, "b") for t in range(1, 7)]
    assert loop.is_dead("a")
    assert not loop.is_dead("b")
    assert loop.complaints == []


def test_a_dead_node_does_not_hold_up_time_or_hide_a_deadlock(loop: SimLoop) -> None:
    own(loop, "a", asyncio.sleep(1000))
    loop.call_later(1, loop.crash, "a")

    with pytest.raises(Deadlock):
        loop.run_until_complete(asyncio.Event().wait())
    assert loop.time() == 1


def test_what_comes_up_for_a_dead_node_never_runs(loop: SimLoop) -> None:
    ran = []

    async def wait(event: asyncio.Event) -> None:
        await event.wait()
        ran.append("dead")

    async def main() -> None:
        event = asyncio.Event()
        own(loop, "a", wait(event))
        await asyncio.sleep(1)
        loop.crash("a")
        event.set()
        own(loop, "a", asyncio.sleep(0))
        await asyncio.sleep(1)
        loop.resume("a")
        await asyncio.sleep(1)

    loop.run_until_complete(main())
    assert ran == []


def test_a_frozen_node_goes_on_later_and_the_others_meanwhile(loop: SimLoop) -> None:
    diary = Diary(loop)
    loop.call_later(1.5, loop.pause, "a", 3)

    loop.run_until_complete(asyncio.sleep(6.6))

    assert [t for t, who in diary.lines if who == "a"] == [1, 4.5, 5.5, 6.5]
    assert [t for t, who in diary.lines if who == "b"] == [1, 2, 3, 4, 5, 6]


def test_the_longer_of_two_pauses_counts_and_resume_ends_both(loop: SimLoop) -> None:
    diary = Diary(loop)
    loop.call_later(0.5, loop.pause, "a", 5)
    loop.call_later(0.6, loop.pause, "a", 1)
    loop.call_later(0.5, loop.pause, "b")
    loop.call_later(2, loop.resume, "b")

    loop.run_until_complete(asyncio.sleep(6))

    assert next(t for t, who in diary.lines if who == "a") == 5.5
    assert next(t for t, who in diary.lines if who == "b") == 2


def test_a_zombie_finds_its_timeout_and_its_answer_at_the_same_time() -> None:
    async def ask() -> str:
        try:
            async with asyncio.timeout(5):
                return await asyncio.sleep(2, "answer")
        except TimeoutError:
            return "timeout"

    def outcome(seed: int) -> str:
        with sim_loop(seed) as loop:
            loop.call_later(1, loop.pause, "a", 60)
            return loop.run_until_complete(own(loop, "a", ask()))

    assert {outcome(seed) for seed in range(30)} == {"answer", "timeout"}


def test_a_crash_at_every_step_leaves_exactly_the_steps_before_it() -> None:
    def lines(crash_at: int | None) -> tuple[int, list[str]]:
        with sim_loop(5) as loop:

            def crash(step: Step) -> None:
                if step.number == crash_at:
                    loop.crash(step.owner)

            loop.on_step = crash
            diary = Diary(loop)
            loop.run_until_complete(asyncio.sleep(3.5))
            return loop.owned_steps, [who for _, who in diary.lines]

    steps, healthy = lines(None)
    written = [len(lines(k)[1]) for k in range(1, steps + 1)]

    assert len(healthy) == 6
    assert written == sorted(written)
    assert written[0] == 3  # one node never came to write, the other one did
    assert written[-1] == 5  # the last step of all is a line


def test_cleanup_that_waits_or_fails_is_buried_all_the_same(loop: SimLoop) -> None:
    async def stubborn() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            try:
                await loop.create_future()
            finally:
                raise ValueError

    async def numbers() -> AsyncIterator[int]:
        try:
            yield 1
            yield 2
        finally:
            await asyncio.sleep(1)

    async def iterate() -> None:
        async for _ in numbers():
            await asyncio.Event().wait()

    own(loop, "a", stubborn())
    own(loop, "a", iterate())
    loop.call_later(1, loop.crash, "a")
    loop.call_later(1, own, loop, "a", asyncio.sleep(1))

    loop.run_until_complete(asyncio.sleep(2))


def test_the_loop_makes_enough_steps_per_second(loop: SimLoop) -> None:
    async def step() -> None:
        for _ in range(2000):
            await asyncio.sleep(0.001)

    async def main() -> None:
        async with asyncio.TaskGroup() as group:
            for _ in range(10):
                group.create_task(step())

    before = time.process_time()
    loop.run_until_complete(main())

    assert loop.steps / (time.process_time() - before) > 20_000  # 100,000 and more when nothing measures it
