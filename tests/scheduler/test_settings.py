"""Every lane and pool setting does what it says, on a running node and without a restart."""

import asyncio
from collections import Counter
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path

import pytest

from penstock.domain.envelopes import Envelope
from penstock.domain.lanes import SETTINGS
from penstock.domain.outcomes import Accepted, Receipt, TryAgain
from penstock.domain.pools import POOL_SETTINGS, pool
from penstock.domain.states import JobState
from penstock.ports.events import Claimed, LaneChanged
from penstock.ports.sink import SUCCEEDED, Probed
from penstock.scheduler.node import Node
from penstock.sinks.python import PythonSink
from tests.scheduler.engine import ONE, Engine
from tests.scheduler.test_survival import EAGER, left_by_a_dead_node

STORES = ONE
TESTS = Path(__file__).parents[1]
SUITE = TESTS.parent / "src/penstock/testing/store_suite"
# Where each setting is shown to have its effect.
SHOWN = {
    "enabled": "test_a_lane_that_is_enabled_again_goes_on",
    "mode": "test_the_lanes_mode_counts_for_jobs_that_do_not_say",
    "sink": "scheduler/test_control.py::test_a_setting_takes_effect_without_a_restart",
    "queue": "test_what_is_sent_follows_the_lane",
    "target": "test_what_is_sent_follows_the_lane",
    "format": "test_what_is_sent_follows_the_lane",
    "complete_on": "test_when_a_job_is_done_follows_the_lane",
    "pool": "test_a_lane_obeys_the_pool_it_is_given",
    "batch_size": "test_no_claim_is_larger_than_the_batch",
    "poll_interval": "test_a_lane_is_looked_at_as_often_as_it_says",
    "lookahead": "test_of_a_lane_with_a_rate_no_more_is_claimed_ahead_than_can_go",
    "jitter": "test_jobs_that_are_due_together_go_apart",
    "misfire": "scheduler/test_dispatch.py::test_a_job_that_may_not_start_so_late_expires",
    "rate": "scheduler/test_limits.py::test_a_rate_that_is_changed_holds_at_once",
    "max_in_flight": "test_a_limit_in_flight_that_is_raised_is_used",
    "max_groups": "scheduler/test_limits.py::test_no_more_groups_are_in_flight_than_the_lane_allows",
    "retry": "scheduler/test_dispatch.py::test_the_last_attempt_that_fails_is_the_end",
    "retry_on": "scheduler/test_dispatch.py::test_words_of_the_lane_turn_failures_around",
    "give_up_on": "scheduler/test_dispatch.py::test_words_of_the_lane_turn_failures_around",
    "workflow": "",  # for the temporal sink
    "task_queue": "",
    "timeout": "scheduler/test_dispatch.py::"
    "test_no_answer_in_time_is_a_failure_and_is_held_where_work_must_not_repeat",
    "lease": "test_a_claim_lasts_as_long_as_the_lane_says",
    "ack_timeout": "scheduler/test_survival.py::test_an_executor_that_falls_silent_is_given_up_in_the_end",
    "run_timeout": "test_an_executor_that_started_may_be_silent_for_run_timeout",
    "heartbeat": "test_an_executor_that_beats_must_go_on_beating",
    "on_unknown": "scheduler/test_survival.py::"
    "test_work_that_must_not_repeat_is_held_unless_it_was_never_marked",
    "max_recoveries": "scheduler/test_survival.py::test_an_executor_that_falls_silent_is_given_up_in_the_end",
    "max_recoveries_per_pass": "test_one_pass_asks_about_no_more_jobs_than_the_lane_says",
    "hold_until": "scheduler/test_dispatch.py::"
    "test_runs_of_a_group_are_sent_in_order_and_never_past_a_failure",
    "max_depth": "client/test_hostile.py::test_a_full_lane_takes_no_more_and_says_so",
    "max_payload": "client/test_hostile.py::test_bad_input_is_named_with_its_fix",
    "key_ttl": "store_suite/keys.py::test_a_key_is_free_when_its_time_is_over",
    "retention": "conformance/test_memory.py::test_history_goes_when_its_retention_is_over",
    "dead_retention": "test_a_dead_job_goes_when_its_time_is_over",
    "keep_payload": "test_a_payload_is_gone_once_its_job_succeeded",
    "weight": "scheduler/test_limits.py::test_lanes_that_share_a_pool_share_it_by_weight",
}
SHOWN_OF_POOLS = {
    "rate": "scheduler/test_limits.py::test_a_pools_rate_holds_for_its_lanes_on_two_nodes_together",
    "burst": "test_a_pools_burst_may_go_at_once",
    "max_in_flight": "test_no_more_are_in_flight_than_the_pool_allows_each_key",
    "key": "test_a_pools_limit_may_count_for_each_group",
}


def test_every_setting_is_shown_to_have_its_effect() -> None:
    assert (SHOWN.keys(), SHOWN_OF_POOLS.keys()) == (SETTINGS.keys(), POOL_SETTINGS.keys())
    for where in {*SHOWN.values(), *SHOWN_OF_POOLS.values()} - {""}:
        file, _, name = where.rpartition("::")
        folder = SUITE.parent if file.startswith("store_suite/") else TESTS
        text = (folder / (file or "scheduler/test_settings.py")).read_text(encoding="utf-8")
        assert f"def {name}(" in text, where


async def changed(engine: Engine, node: Node, **settings: object) -> None:
    """Change the lane, and wait until the node goes by it."""
    engine.lane(**settings)
    lane = engine.store.lanes()["orders"]
    await engine.until(lambda: node.deck.board.lanes.get("orders") == lane)


async def passed(engine: Engine, seconds: float) -> None:
    """Wait until so much time has passed: for what must not happen meanwhile."""
    start = engine.clock.monotonic()
    await engine.until(lambda: engine.clock.monotonic() - start >= seconds)


async def test_a_lane_that_is_enabled_again_goes_on(engine: Engine) -> None:
    engine.lane(enabled=False)
    async with engine.node():
        [id_, *_] = engine.enqueue({}, {})
        engine.lane("other")
        await engine.ended(*engine.enqueue({"lane": "other"}))
        assert engine.client.get(id_).state is JobState.PENDING
        engine.lane(enabled=True)
        await engine.ended(id_)

    changes = [event for event in engine.seen(LaneChanged) if isinstance(event, LaneChanged)]
    assert [(change.lane, change.stopped) for change in changes] == [("orders", False)]


async def test_the_lanes_mode_counts_for_jobs_that_do_not_say(engine: Engine) -> None:
    engine.lane(mode="block_on_error")
    [first] = engine.enqueue({"group": "a"})
    engine.lane(mode="immediate")
    [second] = engine.enqueue({"group": "a"})

    assert [engine.client.get(id_).mode.label for id_ in (first, second)] == ["block_on_error", "immediate"]


async def test_what_is_sent_follows_the_lane(engine: Engine) -> None:
    said = {"queue": "q1", "target": "http://a.example/1", "format": "full"}
    then = {"queue": "q2", "target": "http://b.example/2", "format": "app"}
    engine.lane(**said)
    async with engine.node() as node:
        await engine.ended(*engine.enqueue({}))
        await changed(engine, node, **then)
        await engine.ended(*engine.enqueue({}, {"target": "http://own.example/"}))

    sent = [(c.envelope.queue, c.envelope.target, c.envelope.format) for c in engine.sent]
    assert sent[0] == tuple(said.values())
    assert sorted(sent[1:]) == [tuple(then.values()), ("q2", "http://own.example/", "app")]


async def test_when_a_job_is_done_follows_the_lane(engine: Engine) -> None:
    engine.lane(complete_on="reported")
    async with engine.node() as node:
        await engine.ended(*engine.enqueue({}), state=JobState.DISPATCHED)
        await changed(engine, node, complete_on="sent")
        await engine.ended(*engine.enqueue({}), state=JobState.SUCCEEDED)


async def test_a_lane_obeys_the_pool_it_is_given(engine: Engine) -> None:
    engine.store.put_pool(pool("web"), actor="test")
    engine.store.pause_pool("web", paused=True, actor="ann", reason="incident")
    async with engine.node() as node:
        await engine.ended(*engine.enqueue({}))
        await changed(engine, node, pool="web")
        engine.lane("other")
        [stopped, other] = engine.enqueue({}, {"lane": "other"})
        await engine.ended(other)
        assert engine.client.get(stopped).state is JobState.PENDING
        engine.store.pause_pool("web", paused=False, actor="ann", reason="over")
        await engine.ended(stopped)


async def test_no_claim_is_larger_than_the_batch(engine: Engine) -> None:
    engine.lane(batch_size=3)
    ids = engine.enqueue(*({} for _ in range(10)))
    async with engine.node() as node:
        await engine.ended(*ids)
        small = [event.jobs for event in engine.events if isinstance(event, Claimed)]
        engine.events.clear()
        await changed(engine, node, batch_size=50, enabled=False)
        ids = engine.enqueue(*({} for _ in range(20)))
        engine.lane(batch_size=50)
        await engine.ended(*ids)

    assert max(small) == 3
    assert max(event.jobs for event in engine.events if isinstance(event, Claimed)) > 3


async def test_a_lane_is_looked_at_as_often_as_it_says(engine: Engine) -> None:
    engine.lane(poll_interval="30s")
    async with engine.node() as node:
        await engine.until(lambda: "orders" in node._cycles)
        await passed(engine, 0.5)  # the first looks
        [id_] = engine.enqueue({})
        await passed(engine, 1.5)
        assert engine.client.get(id_).state is JobState.PENDING  # nobody called: this node hears no wake-ups
        engine.lane(poll_interval="50ms")
        await engine.ended(id_)


async def test_a_retry_is_on_time_however_seldom_the_lane_is_looked_at(engine: Engine) -> None:
    engine.lane(poll_interval="30s", retry=["0s", "100ms"])
    answers = iter([TryAgain("not now")])
    [id_] = engine.enqueue({})
    engine.answers["orders"] = lambda _: next(answers, None)
    async with engine.node():
        before = engine.clock.monotonic()
        await engine.ended(id_)

    assert engine.clock.monotonic() - before < 20


async def test_a_pause_that_runs_out_is_over_however_seldom_the_lane_is_looked_at(engine: Engine) -> None:
    engine.lane(poll_interval="30s")
    [id_] = engine.enqueue({})
    until = engine.store.now() + timedelta(seconds=1)
    engine.store.pause_lane("orders", paused=True, actor="ann", reason="a moment", until=until)
    async with engine.node():
        before = engine.clock.monotonic()
        await engine.ended(id_)

    assert engine.clock.monotonic() - before < 20


async def test_of_a_lane_with_a_rate_no_more_is_claimed_ahead_than_can_go(engine: Engine) -> None:
    engine.lane(rate="2/s", lookahead="5s")
    due = engine.store.now() + timedelta(seconds=2)
    engine.enqueue(*({"run_at": due} for _ in range(60)))
    taken: list[tuple[int, float]] = []

    def note(_: Envelope) -> None:
        late = (engine.store.now() - due).total_seconds()
        taken.append((sum(event.jobs for event in engine.events if isinstance(event, Claimed)), late))

    engine.answers["orders"] = note
    async with engine.node() as node:
        await engine.until(lambda: bool(taken))
        node.hurry.set()

    claimed, late = taken[0]
    # What is due and has not said so counts nowhere; where a call is late, what came after has its tokens.
    assert 2 <= claimed <= 2 * 5 + 2 + 2 * (3 + late)


async def test_jobs_that_are_due_together_go_apart(engine: Engine) -> None:
    async with engine.node() as node:
        await changed(engine, node, jitter="1s")
        ids = engine.enqueue(*({} for _ in range(40)))
        await engine.ended(*ids)

    times = [call.at for call in engine.sent]
    assert max(times) - min(times) > 0.6  # forty chances in a second


async def test_a_limit_in_flight_that_is_raised_is_used(engine: Engine) -> None:
    now, most, go_on = [0], [0], asyncio.Event()

    async def slow(_: Envelope) -> None:
        now[0] += 1
        most[0] = max(most[0], now[0])
        await go_on.wait()
        now[0] -= 1

    engine.lane(max_in_flight=1)
    engine.answers["orders"] = slow
    ids = engine.enqueue(*({} for _ in range(8)))
    async with engine.node():
        await engine.until(lambda: now == [1])
        await passed(engine, 0.5)
        assert most == [1]
        engine.lane(max_in_flight=4)
        await engine.until(lambda: now == [4])
        go_on.set()
        await engine.ended(*ids)

    assert most == [4]


async def test_a_claim_lasts_as_long_as_the_lane_says(engine: Engine) -> None:
    engine.lane(lease="45s", lookahead="5s")
    async with engine.node():
        [id_] = engine.enqueue({"run_at": engine.store.now() + timedelta(seconds=3)})
        await engine.ended(id_, state=JobState.CLAIMED)
        live = engine.client.get(id_).live
        assert live.deadline is not None
        assert live.claimed_at is not None
        assert timedelta(seconds=44) < live.deadline - live.claimed_at < timedelta(seconds=60)


async def test_an_executor_that_started_may_be_silent_for_run_timeout(engine: Engine) -> None:
    engine.lane(complete_on="reported", run_timeout="300ms", ack_timeout="1h", heartbeat="1h")
    async with engine.node(**EAGER):
        [id_] = engine.enqueue({})
        await engine.ended(id_, state=JobState.DISPATCHED)
        engine.client.report(id_, 1, "started")
        await engine.until(lambda: len(engine.sent) == 2)

    assert engine.client.get(id_).live.recoveries == 1


async def test_an_executor_that_beats_must_go_on_beating(engine: Engine) -> None:
    engine.lane(complete_on="reported", run_timeout="1h", ack_timeout="1h", heartbeat="100ms")
    async with engine.node(**EAGER):
        [id_] = engine.enqueue({})
        await engine.ended(id_, state=JobState.DISPATCHED)
        engine.client.report(id_, 1, "heartbeat")
        await engine.until(lambda: len(engine.sent) == 2)

    assert engine.client.get(id_).live.recoveries == 1


@pytest.mark.parametrize("left", ["by a node", "by executors"])
async def test_one_pass_asks_about_no_more_jobs_than_the_lane_says(engine: Engine, left: str) -> None:
    asked: list[int] = []

    class Knowing(PythonSink):
        async def probe(self, sends: Sequence[Envelope]) -> Sequence[Probed]:
            asked.append(len(sends))
            return [Probed(SUCCEEDED)] * len(sends)

    engine.sinks["console"] = Knowing(lambda _: Accepted())
    engine.lane(complete_on="reported", ack_timeout="200ms", max_recoveries_per_pass=2)
    ids = engine.enqueue(*({} for _ in range(5)))
    if left == "by a node":
        left_by_a_dead_node(engine)
    async with engine.node(**EAGER):
        await engine.ended(*ids)

    assert (max(asked), sum(asked)) == (2, 5)


async def test_a_dead_job_goes_when_its_time_is_over(engine: Engine) -> None:
    engine.lane(dead_retention="30d", retry=["0s"])
    engine.answers["orders"] = lambda _: TryAgain("never")
    async with engine.node(housekeep_every=timedelta(milliseconds=100), **EAGER):
        [id_] = engine.enqueue({})
        await engine.ended(id_, state=JobState.DEAD)
        await passed(engine, 0.5)
        assert engine.client.get(id_).state is JobState.DEAD
        engine.lane(dead_retention="0s", retry=["0s"])
        await engine.until(lambda: not engine.store.find([id_]))


@pytest.mark.parametrize("receipt", [None, Accepted("200")], ids=["plain", "receipt"])
async def test_a_payload_is_gone_once_its_job_succeeded(engine: Engine, receipt: Receipt | None) -> None:
    engine.answers["orders"] = lambda _: receipt
    job = {"payload": {"card": 4111}, "headers": {"X-Secret": "s"}}
    async with engine.node() as node:
        [kept] = engine.enqueue(job)
        await engine.ended(kept)
        await changed(engine, node, keep_payload=False)
        [gone] = engine.enqueue(job)
        await engine.ended(gone)
        await changed(engine, node, keep_payload=False, complete_on="reported")
        [reported] = engine.enqueue(job)
        await engine.ended(reported, state=JobState.DISPATCHED)
        engine.client.report(reported, 1, "succeeded", result={"paid": True})

    assert [call.envelope.payload for call in engine.sent] == ['{"card":4111}'] * 3
    contexts = [engine.client.get(id_).context for id_ in (kept, gone, reported)]
    said = [(context.payload, context.headers) for context in contexts if context is not None]
    assert said == [('{"card":4111}', '{"X-Secret":"s"}'), (None, None), (None, None)]


async def test_a_pools_burst_may_go_at_once(engine: Engine) -> None:
    engine.store.put_pool(pool("web", rate="1/s", burst=6), actor="test")
    engine.lane(pool="web")
    engine.enqueue(*({} for _ in range(20)))
    async with engine.node():
        await engine.until(lambda: len(engine.sent) >= 6)
        first = engine.sent[5].at - engine.sent[0].at
        await engine.until(lambda: len(engine.sent) >= 8)

    assert first < 1.0
    assert engine.sent[7].at - engine.sent[0].at > 1.0


@pytest.mark.parametrize("key", [None, "tenant", "target"])
async def test_no_more_are_in_flight_than_the_pool_allows_each_key(engine: Engine, key: str | None) -> None:
    now, go_on = Counter[str](), asyncio.Event()

    async def slow(envelope: Envelope) -> None:
        whose = {"tenant": envelope.tenant, "target": envelope.target}.get(key or "", "all")
        now[str(whose)] += 1
        await go_on.wait()

    engine.store.put_pool(pool("web", max_in_flight=2, key=key), actor="test")
    engine.lane(pool="web")
    engine.answers["orders"] = slow
    hosts = ("http://a.example", "http://b.example")
    ids = engine.enqueue(
        *({"tenant": t, "target": h} for t, h in zip("xy", hosts, strict=True) for _ in "12345")
    )
    each = [2] if key is None else [2, 2]
    async with engine.node():
        await engine.until(lambda: list(now.values()) == each)
        await passed(engine, 0.5)
        assert list(now.values()) == each
        go_on.set()
        await engine.ended(*ids)


async def test_a_pools_limit_may_count_for_each_group(engine: Engine) -> None:
    engine.store.put_pool(pool("web", max_in_flight=2, key="group"), actor="test")
    ordered = {"mode": "next_on_error", "hold_until": "sent", "sink": "embedded"}
    engine.lane(pool="web", complete_on="reported", **ordered)
    ids = engine.enqueue(*({"group": group} for group in "xy" for _ in range(5)))

    def out() -> Counter[str | None]:
        jobs = engine.store.find(ids).values()
        return Counter(job.live.grp for job in jobs if job.state is JobState.DISPATCHED)

    async with engine.node() as node:
        await engine.until(lambda: out() == {"x": 2, "y": 2})
        await passed(engine, 0.5)
        assert out() == {"x": 2, "y": 2}
        engine.client.report(ids[0], 1, "succeeded")
        await engine.until(lambda: len(engine.sent) == 5 and out() == {"x": 2, "y": 2})
        node.hurry.set()
