"""A simulated world: its faults do what they say, no more, and the same seed does it again."""

import asyncio
import gc
import os
import random
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from datetime import timedelta
from functools import partial
from pathlib import Path

import pytest

from penstock.errors import StoreUnavailable
from penstock.ports.clock import Clock, SystemClock
from penstock.ports.executor import Executor, ThreadExecutor
from penstock.testing.sim.faults import (
    CRASHES,
    ERRORS,
    CallFault,
    Disaster,
    FaultPlan,
    Port,
    SinkFault,
    Span,
    call_sweep,
    step_sweep,
)
from penstock.testing.sim.loop import Deadlock, SimulationError
from penstock.testing.sim.node import NodeEnv
from penstock.testing.sim.world import START, Main, Overdue, World

SECOND = timedelta(seconds=1)
MINUTE = timedelta(minutes=1)


@pytest.fixture(autouse=True)
def _no_noise_from_the_dead() -> Iterator[None]:
    yield
    gc.collect()


def swarm(seed: int) -> FaultPlan:
    return FaultPlan.draw(random.Random(seed))  # noqa: S311


def at_call(number: int, fault: CallFault, port: Port = Port.STORE) -> FaultPlan:
    return FaultPlan(exact={(port, number): fault})


class Tally:
    """The smallest store: it remembers what was added."""

    def __init__(self) -> None:
        self.added: list[str] = []

    def add(self, text: str) -> int:
        self.added.append(text)
        return len(self.added)


def adder(tally: Tally, times: int = 3) -> Main:
    """A node that adds its name and a number, giving up on nothing."""

    async def main(env: NodeEnv) -> None:
        for i in range(times):
            text = f"{env.name}{i}"
            while text not in tally.added:
                with suppress(StoreUnavailable):
                    await env.executor.run(partial(tally.add, text))
            env.record(f"has {text}")

    return main


def two_nodes(seed: int, plan: FaultPlan) -> tuple[World, Tally]:
    tally = Tally()
    with World(seed, plan) as world:
        for name in "ab":
            world.spawn_node(name, adder(tally))
        world.run(until=2 * MINUTE)
    return world, tally


def test_without_faults_every_call_happens_once() -> None:
    world, tally = two_nodes(1, FaultPlan())

    assert sorted(tally.added) == ["a0", "a1", "a2", "b0", "b1", "b2"]
    assert world.calls == {Port.STORE: 6}
    assert world.journal.of("a")[-1] == "left"


def test_the_same_seed_gives_the_same_world() -> None:
    assert two_nodes(5, swarm(5))[0].journal == two_nodes(5, swarm(5))[0].journal


def test_the_same_seed_gives_the_same_hash_whatever_the_hash_seed() -> None:
    script = (
        "import sys; sys.path.insert(0, sys.argv[1]); from test_world import *;"
        "print(*[two_nodes(seed, swarm(seed))[0].trace_hash for seed in range(20)])"
    )

    def other_process(hash_seed: str) -> list[str]:
        return subprocess.run(
            [sys.executable, "-c", script, str(Path(__file__).parent)],
            env={**os.environ, "PYTHONHASHSEED": hash_seed},
            check=True,
            capture_output=True,
            text=True,
        ).stdout.split()

    hashes = other_process("1")
    assert hashes == other_process("2")
    assert len(set(hashes)) == 20


@pytest.mark.parametrize(
    ("fault", "effects"),
    [
        (CallFault.ERROR_BEFORE, 0),
        (CallFault.TIMEOUT_BEFORE, 0),
        (CallFault.LOCKED, 0),
        (CallFault.ERROR_AFTER, 1),
        (CallFault.TIMEOUT_AFTER, 1),
    ],
)
def test_an_error_before_has_no_effect_and_one_after_commit_has(fault: CallFault, effects: int) -> None:
    tally = Tally()
    seen: list[tuple[float, int]] = []

    async def main(env: NodeEnv) -> None:
        with pytest.raises(StoreUnavailable, match="main"):
            await env.executor.run(lambda: tally.add("x"))
        seen.append((env.clock.monotonic(), len(tally.added)))

    with World(1, at_call(1, fault)) as world:
        world.spawn_node("a", main)
        world.run()

    [(time, effect)] = seen
    assert effect == effects
    assert (time > 0.05) == (fault not in ERRORS)


def test_a_late_commit_comes_after_the_error_even_if_the_node_is_dead_by_then() -> None:
    tally = Tally()

    async def main(env: NodeEnv) -> None:
        with pytest.raises(StoreUnavailable):
            await env.executor.run(lambda: tally.add("x"))
        assert tally.added == []

    with World(1, at_call(1, CallFault.LATE_COMMIT)) as world:
        world.spawn_node("a", main)
        world.run()
        assert tally.added == []
        world.run(until=MINUTE)

    assert tally.added == ["x"]


def test_errors_are_made_by_the_world_s_maker() -> None:
    async def main(env: NodeEnv) -> None:
        await env.executor.run(lambda: None)

    with World(1, at_call(1, CallFault.LOCKED), unavailable=OSError) as world:
        world.spawn_node("a", main)
        with pytest.raises(OSError, match="main") as caught:
            world.run()

    assert "seed 1; locked at store call 1" in caught.value.__notes__[0]
    assert "a.1       died of OSError" in caught.value.__notes__[0]


def test_an_error_of_the_call_itself_reaches_the_caller() -> None:
    async def main(env: NodeEnv) -> None:
        with pytest.raises(ZeroDivisionError):
            await env.executor.run(lambda: 1 // 0)

    with World(1) as world:
        world.spawn_node("a", main)
        world.run()


@pytest.mark.parametrize(("fault", "effects"), [(CallFault.CRASH_BEFORE, 0), (CallFault.CRASH_AFTER, 1)])
def test_a_crash_at_a_call_runs_no_cleanup_and_the_node_returns_with_a_new_id(
    fault: CallFault, effects: int
) -> None:
    tally = Tally()
    log: list[str] = []

    async def main(env: NodeEnv) -> None:
        log.append(f"{env.id} finds {len(tally.added)}")
        try:
            await env.executor.run(lambda: tally.add("x"))
            log.append(f"{env.id} done")
        except BaseException:
            log.append(f"{env.id} except")
            raise
        finally:
            log.append(f"{env.id} finally")

    with World(1, at_call(1, fault)) as world:
        world.spawn_node("a", main)
        world.run()
        assert log == ["a.1 finds 0", f"a.2 finds {effects}", "a.2 done", "a.2 finally"]


def test_a_sweep_strikes_every_call_in_both_ways() -> None:
    healthy, _ = two_nodes(3, FaultPlan())
    calls = healthy.calls[Port.STORE]

    struck = []
    for plan in call_sweep(calls, CRASHES + ERRORS):
        world, tally = two_nodes(3, plan)
        assert set(tally.added) == {f"{name}{i}" for name in "ab" for i in range(3)}
        struck += [line.event for line in world.journal if ": " in line.event]

    expected = [f"store {k} {{}}: {fault.value}" for k in range(1, calls + 1) for fault in CRASHES + ERRORS]
    assert [event.replace("Tally.add", "{}") for event in struck] == expected


def test_a_sweep_over_steps_crashes_once_at_each() -> None:
    healthy, _ = two_nodes(3, FaultPlan())
    plans = list(step_sweep(healthy.loop.owned_steps))

    assert len(plans) == 20
    for plan in plans:
        world, tally = two_nodes(3, plan)
        assert set(tally.added) == {f"{name}{i}" for name in "ab" for i in range(3)}
        assert [line.event for line in world.journal].count("crash") == 1


def test_a_paused_node_acts_late_and_the_others_go_on() -> None:
    tally = Tally()
    plan = replace(at_call(1, CallFault.PAUSE_BEFORE), pause=Span(20, 20))

    async def main(env: NodeEnv) -> None:
        await asyncio.sleep(0 if env.name == "a" else 1)
        before = env.clock.monotonic()
        await env.executor.run(lambda: tally.add(env.name))
        env.record(f"took {env.clock.monotonic() - before:.0f} s")

    with World(1, plan) as world:
        world.spawn_node("a", main)
        world.spawn_node("b", main)
        world.run()

    assert tally.added == ["b", "a"]
    assert "took 20 s" in world.journal.of("a")
    assert "took 0 s" in world.journal.of("b")


def test_a_busy_node_cannot_act_but_its_threads_can() -> None:
    tally = Tally()

    async def main(env: NodeEnv) -> None:
        async def beat() -> None:
            while True:
                await asyncio.sleep(1)
                await env.executor.run(lambda: tally.add("beat"))

        env.beside("heart", beat)
        await env.executor.run(lambda: tally.add("under way"))
        env.record("back")
        await asyncio.sleep(100)

    with World(1) as world:
        world.spawn_node("a", main)
        world.run(until=SECOND / 100_000)
        world.keep_busy("a", timedelta(seconds=10))
        world.run(until=timedelta(seconds=5.5))
        assert tally.added == ["under way"] + ["beat"] * 5
        assert "back" not in world.journal.of("a")
        world.pause("a")
        world.run(until=timedelta(seconds=20.5))
        assert tally.added.count("beat") == 5
        world.resume("a")
        world.run(until=timedelta(seconds=22))
        assert "back" in world.journal.of("a")
        world.crash("a")
        beats = tally.added.count("beat")
        world.run(until=timedelta(seconds=30))
        assert tally.added.count("beat") == beats


def test_nodes_are_crashed_and_restarted_by_hand() -> None:
    lives: list[str] = []

    async def main(env: NodeEnv) -> None:
        lives.append(env.id)
        await env.stop.wait()
        lives.append(f"{env.id} stops")

    with World(1) as world:
        world.spawn_node("a", main)
        world.run(until=SECOND)
        world.crash("a")
        world.run(until=2 * SECOND)
        assert world.up() == []
        world.restart("a")
        world.run(until=3 * SECOND)
        world.restart("a")
        world.run(until=4 * SECOND)
        world.ask_to_stop("a")
        world.run()

    assert lives == ["a.1", "a.2", "a.3", "a.3 stops"]


def test_giving_up_on_a_call_does_not_always_undo_it() -> None:
    def added(seed: int) -> int:
        tally = Tally()

        async def main(env: NodeEnv) -> None:
            with suppress(TimeoutError):
                async with asyncio.timeout(0.5):
                    await env.executor.run(lambda: tally.add("x"))
            assert tally.added == []
            await asyncio.sleep(5)

        with World(seed, FaultPlan(latency=Span(1, 1))) as world:
            world.spawn_node("a", main)
            world.run()
        return len(tally.added)

    assert {added(seed) for seed in range(20)} == {0, 1}


def test_a_node_that_is_cut_off_gets_errors_and_the_others_do_not() -> None:
    async def main(env: NodeEnv) -> None:
        try:
            await env.executor.run(lambda: None)
        except StoreUnavailable:
            env.record("refused")

    def refused(cut: str | None) -> list[bool]:
        with World(1) as world:
            world.cut_off(cut, 10 * SECOND)
            for name in "ab":
                world.spawn_node(name, main)
            world.run()
        return ["refused" in world.journal.of(name) for name in "ab"]

    assert refused("a") == [True, False]
    assert refused(None) == [True, True]


def test_clocks_are_skewed_stepped_and_drift_apart_but_waiting_is_not() -> None:
    with World(1, FaultPlan(skew=Span(-600, 600))) as world:
        world.spawn_node("a", lambda env: env.stop.wait())
        clock = world.node("a").clock
        skew = clock.now() - START
        assert timedelta(0) != skew
        assert abs(skew) <= timedelta(minutes=10)

        world.run(until=10 * SECOND)
        assert clock.now() - START == skew + 10 * SECOND
        assert clock.monotonic() == 10
        world.step_clock("a", -MINUTE)
        assert clock.now() - START == skew + 10 * SECOND - MINUTE

        world.drift(1.01)
        world.run(until=110 * SECOND)
        assert world.store_clock.now() - START == 111 * SECOND
        world.step_clock(None, MINUTE)
        world.stop_faults()
        world.run(until=210 * SECOND)
        assert world.store_clock.now() - START == 271 * SECOND
        assert world.store_clock.monotonic() == 210


def test_after_faults_stop_there_are_none_and_everybody_is_back() -> None:
    everything = FaultPlan(
        calls=dict.fromkeys(CallFault, 0.05),
        sends=dict.fromkeys(SinkFault, 0.1),
        disasters=dict.fromkeys(Disaster, 0.2),
    )

    async def main(env: NodeEnv) -> None:
        while True:
            await asyncio.sleep(0.5)
            with suppress(StoreUnavailable):
                await env.executor.run(lambda: None)
                await env.network.run(lambda: None)
            env.record(f"sink {world.sink_fault()}")

    for seed in range(10):
        with World(seed, everything) as world:
            for name in "abc":
                world.spawn_node(name, main)
            world.run(until=5 * MINUTE)
            told = " ".join(line.event for line in world.journal)
            for word in (*CallFault, *SinkFault):
                assert (word.value if isinstance(word, CallFault) else word.name) in told
            for word in ("frozen", "loop busy", "unreachable", "clock steps", "clock runs", "crash"):
                assert word in told

            world.stop_faults()
            assert world.up() == ["a", "b", "c"]
            mark = len(world.journal)
            world.run(until=10 * MINUTE)

        after = [line.event for line in world.journal[mark:]]
        assert len(after) > 1000
        assert not [event for event in after if ": " in event or "SinkFault" in event or event == "crash"]


def test_a_check_that_fails_ends_the_run_though_the_node_swallows_everything() -> None:
    tally = Tally()

    async def main(env: NodeEnv) -> None:
        while True:
            with suppress(Exception):
                await env.executor.run(lambda: tally.add("x"))

    def at_most_three() -> None:
        assert len(tally.added) <= 3

    with World(1) as world:
        world.spawn_node("a", main)
        world.watch(at_most_three)
        with pytest.raises(AssertionError, match="<= 3") as caught:
            world.run(until=MINUTE)

    assert len(tally.added) == 4
    assert "store 4" in caught.value.__notes__[0]


def test_a_tolerated_death_is_followed_by_a_new_life() -> None:
    async def main(env: NodeEnv) -> None:
        if env.life < 3:
            await env.executor.run(lambda: 1 // 0)

    with World(1, tolerate=lambda error: isinstance(error, ZeroDivisionError)) as world:
        world.spawn_node("a", main)
        world.run()

    assert world.journal.of("a.3") == ["start", "left"]


def test_what_does_not_come_true_in_time_is_overdue() -> None:
    tally = Tally()
    with World(1) as world:
        world.spawn_node("a", adder(tally, 5))
        world.run_until(lambda: len(tally.added) == 5, timeout=MINUTE)
        with pytest.raises(Overdue, match="still false"):
            world.run_until(lambda: len(tally.added) == 6, timeout=MINUTE)


def test_a_world_that_cannot_go_on_says_so() -> None:
    async def main(env: NodeEnv) -> None:
        await env.stop.wait()

    with World(1) as world:
        world.spawn_node("a", main)
        with pytest.raises(Deadlock, match=r"a\.1 of a\.1 waits"):
            world.run()


def test_ports_are_closed_when_the_world_has_ended() -> None:
    refused: list[SimulationError] = []

    async def main(env: NodeEnv) -> None:
        try:
            await asyncio.sleep(100)
        finally:
            try:
                await env.executor.run(lambda: None)
            except SimulationError as error:
                refused.append(error)

    with World(1) as world:
        world.spawn_node("a", main)
        world.run(until=SECOND)

    assert len(refused) == 1


class Leases:
    """One job, leased for 5 s at a time; `fenced` is whether a settle must still hold the lease."""

    def __init__(self, clock: Clock, *, fenced: bool) -> None:
        self.clock = clock
        self.fenced = fenced
        self.epoch = 0
        self.until = clock.now()
        self.settled: list[int] = []

    def claim(self) -> int | None:
        if self.clock.now() < self.until:
            return None
        self.epoch, self.until = self.epoch + 1, self.clock.now() + 5 * SECOND
        return self.epoch

    def settle(self, epoch: int) -> None:
        if epoch == self.epoch or not self.fenced:
            self.settled.append(epoch)
            self.until = self.clock.now()

    def check(self) -> None:
        assert self.settled == sorted(set(self.settled)), "a zombie settled what was no longer its own"


def unfenced_writes_found(plan_of: Callable[[int], FaultPlan], *, fenced: bool) -> int:
    found = 0

    def worker(leases: Leases) -> Main:
        async def main(env: NodeEnv) -> None:
            while True:
                with suppress(StoreUnavailable):
                    epoch = await env.executor.run(leases.claim)
                    if epoch is not None:
                        await asyncio.sleep(env.rng.uniform(0, 2))
                        await env.executor.run(partial(leases.settle, epoch))
                await asyncio.sleep(env.rng.uniform(0, 1))

        return main

    for seed in range(40):
        with World(seed, plan_of(seed)) as world:
            leases = Leases(world.store_clock, fenced=fenced)
            world.watch(leases.check)
            world.spawn_node("a", worker(leases))
            world.spawn_node("b", worker(leases))
            with suppress(AssertionError):
                world.run(until=2 * MINUTE)
                continue
            found += 1
    return found


def test_a_missing_fence_is_found_by_pauses_but_not_by_errors() -> None:
    errors = FaultPlan(calls=dict.fromkeys(ERRORS, 0.05))
    pauses = FaultPlan(calls={CallFault.PAUSE_BEFORE: 0.05}, pause=Span(2, 20))

    assert unfenced_writes_found(lambda _: errors, fenced=False) == 0
    assert unfenced_writes_found(lambda _: pauses, fenced=False) > 20
    assert unfenced_writes_found(lambda _: pauses, fenced=True) == 0
    assert unfenced_writes_found(swarm, fenced=True) == 0


def test_a_plan_can_be_shrunk_and_told() -> None:
    plan = swarm(1)
    smaller = plan.without(*plan.calls, *plan.disasters)

    assert smaller.sends == plan.sends
    assert not smaller.calls
    assert not smaller.disasters
    assert str(plan) != str(smaller) != str(FaultPlan()) == "no faults"
    assert str(next(step_sweep(1))) == "crash at step 1"


def test_swarms_differ_in_what_they_suffer_from() -> None:
    plans = [swarm(seed) for seed in range(200)]

    for fault in CallFault:
        assert 60 < sum(fault in plan.calls for plan in plans) < 140
    assert all(sum(plan.calls.values()) < 1 and sum(plan.sends.values()) < 1 for plan in plans)


async def test_the_real_executor_and_clock_do_the_same_for_real() -> None:
    clock: Clock = SystemClock()
    with ThreadExecutor(2, name="test") as threads:
        executor: Executor = threads
        before = clock.monotonic()

        assert await executor.run(lambda: 6 * 7) == 42
        with pytest.raises(ZeroDivisionError):
            await executor.run(lambda: 1 // 0)

    assert clock.monotonic() >= before
    assert clock.now().tzinfo is not None
