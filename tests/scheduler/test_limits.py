"""Rates and concurrency hold over all nodes, per key where a pool has one; nobody is in another's way."""

import asyncio
from bisect import bisect_left
from collections import Counter
from datetime import timedelta

import pytest

from penstock.domain.envelopes import Envelope
from penstock.domain.outcomes import Receipt
from penstock.domain.pools import pool
from penstock.domain.rates import parse_rate
from penstock.domain.states import JobState
from penstock.ports.events import Called, Claimed, LaneChanged, Recalled, ReturnedJobs
from penstock.ports.flow import Limit, Need
from tests.scheduler.engine import Engine

TTL = timedelta(seconds=1)
BEFORE_THEIR_TIME_S = 25  # those of a limit as slow as 2/h are put back for a minute
SLACK_S = 0.1  # what a busy test machine may shift a call by


class Busy:
    """A slow sink that notes how many calls it has at once, per lane and in all."""

    def __init__(self) -> None:
        self.now: Counter[str] = Counter()
        self.most: Counter[str] = Counter()

    async def __call__(self, envelope: Envelope) -> None:
        self.now[envelope.lane] += 1
        self.most[envelope.lane] = max(self.most[envelope.lane], self.now[envelope.lane])
        await asyncio.sleep(0.05)
        self.now[envelope.lane] -= 1


def most_within(times: list[float], seconds: float) -> int:
    times = sorted(times)
    return max(bisect_left(times, at + seconds) - index for index, at in enumerate(times))


async def test_no_more_are_in_flight_than_the_lane_allows_on_two_nodes(engine: Engine) -> None:
    busy = Busy()
    engine.lane(max_in_flight=4)
    engine.answers["orders"] = busy
    ids = engine.enqueue(*({} for _ in range(40)))
    async with engine.node(), engine.node():
        await engine.ended(*ids)

    assert 2 <= busy.most["orders"] <= 4


@pytest.mark.parametrize("of", ["lane", "pool", "key"])
async def test_a_node_that_alone_has_jobs_uses_all_of_a_limit(engine: Engine, of: str) -> None:
    """It had its part of the nodes: of four slots one."""
    busy = Busy()
    if of != "lane":
        key = "tenant" if of == "key" else None
        engine.store.put_pool(pool("few", max_in_flight=4, key=key), actor="test")
    engine.lane(**({"max_in_flight": 4} if of == "lane" else {"pool": "few"}))
    engine.answers["orders"] = busy
    async with engine.node(lanes=["other"]), engine.node(lanes=["other"]):
        await engine.until(lambda: len(engine.store.nodes()) == 2)
        async with engine.node() as node:
            await engine.until(lambda: node.deck.limits.nodes == 3)
            await engine.ended(*engine.enqueue(*({} for _ in range(40))))

    assert busy.most["orders"] == 4


async def test_a_node_gives_back_what_it_borrowed_when_another_has_jobs(engine: Engine) -> None:
    busy = Busy()
    engine.store.put_pool(pool("few", max_in_flight=4), actor="test")
    for name in ("orders", "mails"):
        engine.lane(name, pool="few")
        engine.answers[name] = busy
    async with engine.node(lanes=["mails"]):
        await engine.until(lambda: len(engine.store.nodes()) == 1)
        async with engine.node(lanes=["orders"]) as node:
            await engine.until(lambda: node.deck.limits.nodes == 2)
            ids = engine.enqueue(*({} for _ in range(600)))
            await engine.until(lambda: busy.most["orders"] == 4)
            await engine.ended(*engine.enqueue(*({"lane": "mails"} for _ in range(10))))
            left = len(ids) - sum(call.envelope.lane == "orders" for call in engine.sent)
            node.hurry.set()

    assert left > 100  # the others did not wait for them


async def test_a_limit_that_is_lowered_holds_once_what_is_in_the_air_has_landed(engine: Engine) -> None:
    """Each node has slots in use at that moment; of those that are too many none is used again."""
    busy = Busy()
    engine.lane(max_in_flight=6)
    engine.answers["orders"] = busy
    ids = engine.enqueue(*({} for _ in range(120)))
    async with engine.node(), engine.node():
        await engine.until(lambda: busy.most["orders"] == 6)
        engine.lane(max_in_flight=2)
        await engine.until(lambda: len(engine.seen(LaneChanged)) == 2)
        landed = len(engine.sent) + 12
        await engine.until(lambda: len(engine.sent) >= landed)
        busy.most.clear()
        await engine.ended(*ids)

    assert busy.most["orders"] <= 2


async def test_no_more_groups_are_in_flight_than_the_lane_allows(engine: Engine) -> None:
    busy = Busy()
    engine.lane(mode="block_on_error", max_groups=2)
    engine.answers["orders"] = busy
    ids = engine.enqueue(*({"group": f"g{n % 10}"} for n in range(20)))
    async with engine.node():
        await engine.ended(*ids)

    assert busy.most["orders"] == 2


async def test_a_pools_rate_holds_for_its_lanes_on_two_nodes_together(engine: Engine) -> None:
    engine.store.put_pool(pool("web", rate="40/s", burst=8), actor="test")
    engine.lane(pool="web")
    engine.lane("more", pool="web")
    ids = engine.enqueue(*({"lane": lane} for _ in range(30) for lane in ("orders", "more")))
    async with engine.node(), engine.node():
        await engine.ended(*ids)

    times = [call.at for call in engine.sent]
    assert max(times) - min(times) >= (60 - 8) / 40 - SLACK_S
    for window in (0.2, 0.5, 1.0):
        assert most_within(times, window) <= 40 * (window + SLACK_S) + 8


async def test_the_one_token_of_a_pool_goes_from_node_to_node(engine: Engine) -> None:
    engine.store.put_pool(pool("web", rate="40/s", burst=1), actor="test")
    engine.lane(pool="web")
    engine.lane("more", pool="web")
    ids = engine.enqueue(*({"lane": lane} for _ in range(25) for lane in ("orders", "more")))
    async with engine.node(lanes=("orders",)), engine.node(lanes=("more",)):
        await engine.ended(*ids)

    times = [call.at for call in engine.sent]
    for window in (0.2, 0.5, 1.0):
        assert most_within(times, window) <= 40 * (window + SLACK_S) + 1


async def test_a_node_that_stops_brings_back_the_token_it_holds(engine: Engine) -> None:
    engine.store.put_pool(pool("web", rate="2/s", burst=1), actor="test")
    engine.lane(pool="web")
    engine.enqueue({}, {})
    async with engine.node():
        await engine.until(lambda: len(engine.sent) == 1)
    limit = Limit("pool", "web", rate=parse_rate("2/s"), burst=1)

    [grant] = engine.store.permit(99, [Need(limit, tokens=1)], ttl=TTL)
    assert grant.tokens or grant.ready_in  # None: somebody holds it


async def test_a_node_that_stops_brings_back_the_slots_it_holds(engine: Engine) -> None:
    """Also those of a lane without settings of its own: whoever comes next would send nothing for seconds."""
    engine.lane()
    engine.enqueue({})
    async with engine.node():
        await engine.until(lambda: len(engine.sent) == 1)
    most = engine.store.lanes()["orders"]["max_in_flight"]
    limit = Limit("lane", "orders", max_in_flight=most)

    [grant] = engine.store.permit(99, [Need(limit, slots=most)], ttl=TTL)
    assert grant.slots == most


async def test_a_node_that_is_alone_leaves_slots_for_whoever_comes(engine: Engine) -> None:
    """It hears of others late, and they may have claimed jobs ahead of their time by then."""
    engine.lane()
    async with engine.node():
        engine.enqueue({})
        await engine.until(lambda: len(engine.seen(Called)) == 1)
        limit = Limit("lane", "orders", max_in_flight=engine.store.lanes()["orders"]["max_in_flight"])
        [grant] = engine.store.permit(99, [Need(limit, slots=50)], ttl=TTL)

    assert grant.slots == 50


async def test_of_a_pool_no_more_is_claimed_than_can_go_soon(engine: Engine) -> None:
    engine.store.put_pool(pool("web", rate="4/s", burst=1), actor="test")
    engine.lane(pool="web", batch_size=50)
    engine.enqueue(*({} for _ in range(300)))
    async with engine.node() as node:
        await engine.until(lambda: len(engine.sent) >= 6)
        node.hurry.set()

    assert sum(event.jobs for event in engine.seen(Claimed)) < 100  # one look at many, and then a few


async def test_a_job_with_a_pool_of_its_own_does_not_wait_for_that_of_its_lane(engine: Engine) -> None:
    for name, rate in (("slow", "1/m"), ("fast", "100/s")):
        engine.store.put_pool(pool(name, rate=rate, burst=1), actor="test")
    engine.lane(pool="slow")
    engine.enqueue(*({} for _ in range(300)))
    quick = engine.enqueue(*({"pool": "fast"} for _ in range(5)))
    async with engine.node() as node:
        await engine.ended(*quick)
        node.hurry.set()

    assert len(engine.sent) == 6


async def test_a_node_that_stops_does_not_wait_for_the_tokens_of_what_is_due(engine: Engine) -> None:
    engine.store.put_pool(pool("web", rate="30/m", burst=1), actor="test")
    engine.lane(pool="web")
    engine.enqueue({}, {})
    async with engine.node():
        await engine.until(lambda: sum(event.jobs for event in engine.seen(Claimed)) == 2)
        await engine.until(lambda: len(engine.sent) == 1)

    assert [event.why for event in engine.seen(ReturnedJobs)] == ["the node stops"]
    assert len(engine.sent) == 1


async def test_a_node_that_stops_says_so_of_the_rest_of_a_run_too(engine: Engine) -> None:
    ordered = {"mode": "block_on_error", "hold_until": "sent", "sink": "embedded"}
    engine.lane(rate="1/m", **ordered)
    engine.enqueue(*[{"group": "g"}] * 4)
    async with engine.node():
        await engine.until(lambda: sum(event.jobs for event in engine.seen(Claimed)) == 4)

    assert {event.why for event in engine.seen(ReturnedJobs)} == {"the node stops"}


async def test_jobs_of_a_slow_pool_come_again_soon_enough_to_notice_that_it_is_faster(engine: Engine) -> None:
    engine.store.put_pool(pool("web", rate="2/h", burst=1, key="tenant"), actor="test")
    engine.lane(pool="web")
    *_, last = engine.enqueue(*[{}] * 5)
    async with engine.node():
        await engine.until(lambda: engine.client.get(last).live.due_at > engine.store.now())
        assert engine.client.get(last).live.due_at - engine.store.now() < timedelta(seconds=70)


async def test_what_waits_for_the_pool_of_its_lane_goes_at_once_when_that_is_faster(engine: Engine) -> None:
    engine.store.put_pool(pool("web", rate="2/h", burst=1), actor="test")
    engine.lane(pool="web")
    ids = engine.enqueue(*[{}] * 20)
    async with engine.node():
        await engine.until(lambda: bool(engine.seen(ReturnedJobs)))
        engine.store.put_pool(pool("web", rate="100/s", burst=10), actor="test")
        await engine.ended(*ids)

    assert {call.envelope.id for call in engine.sent} == set(ids)


@pytest.mark.parametrize("change", ["raised", "without rate", "another pool", "no pool"])
async def test_what_a_key_of_a_pool_put_back_goes_at_once_when_that_is_set_otherwise(
    engine: Engine, change: str
) -> None:
    """Jobs that were put back kept the time they were given, up to a minute."""
    engine.store.put_pool(pool("web", rate="2/h", burst=1, key="tenant"), actor="test")
    engine.store.put_pool(pool("more", rate="100/s", burst=50), actor="test")
    engine.lane(pool="web")
    ids = engine.enqueue(*({"tenant": "acme", **({"group": "g"} if each % 2 else {})} for each in range(20)))
    async with engine.node():
        await engine.until(lambda: any(job.live.reason for job in engine.store.find(ids).values()))
        if change in ("another pool", "no pool"):
            engine.lane(pool="more" if change == "another pool" else None)
        else:
            rate = "100/s" if change == "raised" else None
            engine.store.put_pool(pool("web", rate=rate, burst=50, key="tenant"), actor="test")
        began = engine.clock.monotonic()
        await engine.ended(*ids)

    assert {call.envelope.id for call in engine.sent} == set(ids)
    assert engine.clock.monotonic() - began < BEFORE_THEIR_TIME_S
    assert engine.seen(Recalled)


async def test_what_a_pool_put_back_is_no_less_late(engine: Engine) -> None:
    """`misfire` counted from when a job was put back."""
    engine.store.put_pool(pool("web", rate="2/h", burst=1, key="tenant"), actor="test")
    engine.lane(pool="web", misfire="skip_after(1h)")
    ids = engine.enqueue(*({"tenant": "acme", "run_at": engine.store.now()} for _ in range(5)))
    async with engine.node():
        await engine.until(lambda: any(job.live.since for job in engine.store.find(ids).values()))
        engine.lane(pool="web", misfire="skip_after(1ms)")
        await engine.until(lambda: bool(engine.seen(LaneChanged)))
        engine.store.put_pool(pool("web", rate="100/s", burst=50, key="tenant"), actor="test")
        await engine.ended(*ids[1:], state=JobState.EXPIRED)

    assert [call.envelope.id for call in engine.sent] == ids[:1]


async def test_lanes_that_share_a_pool_share_it_by_weight(engine: Engine) -> None:
    engine.store.put_pool(pool("web", rate="60/s", burst=6), actor="test")
    engine.lane(pool="web", weight=3)
    engine.lane("more", pool="web", weight=1)
    engine.enqueue(*({"lane": lane} for _ in range(120) for lane in ("orders", "more")))
    async with engine.node() as node:
        await engine.until(lambda: len(engine.sent) >= 120)
        node.hurry.set()

    counts = Counter(call.envelope.lane for call in engine.sent[20:120])
    assert 60 <= counts["orders"] <= 90  # three quarters, when all goes well


async def test_a_backlog_of_one_key_stands_in_no_other_ones_way(engine: Engine) -> None:
    """Its jobs took the places of the lane, a few each time, and waited there for their turn."""
    engine.store.put_pool(pool("each", rate="2/s", burst=2, key="target"), actor="test")
    engine.lane(pool="each", batch_size=50, max_in_flight=20)
    engine.enqueue(*({"target": "http://a.example"} for _ in range(300)))
    async with engine.node() as node:
        await engine.until(lambda: len(engine.sent) >= 2)
        others = engine.enqueue(*[{"target": "http://b.example"}] * 2)
        await engine.ended(*others)  # the backlog takes minutes
        node.hurry.set()


@pytest.mark.parametrize(
    ("lane", "each"),
    [({}, {}), ({"rate": "10/s"}, {}), ({}, {"rate": "100/s", "burst": 100})],
    ids=["slots", "rate of the lane", "rate of the pool"],
)
async def test_a_slow_key_stands_in_no_other_ones_way(
    engine: Engine, lane: dict[str, object], each: dict[str, object]
) -> None:
    never = asyncio.Event()
    engine.store.put_pool(pool("each", max_in_flight=1, key="target", **each), actor="test")
    engine.lane(pool="each", batch_size=10, max_in_flight=20, **lane)
    slow = engine.enqueue(*({"target": "http://a.example"} for _ in range(60)))
    engine.answers |= dict.fromkeys(slow, lambda _: wait_for_ever(never))
    async with engine.node() as node:
        await engine.until(lambda: len(engine.sent) >= 1)
        await engine.ended(*engine.enqueue({"target": "http://b.example"}))
        never.set()
        node.hurry.set()


async def test_a_key_of_quick_calls_never_waits_while_its_slot_is_free(engine: Engine) -> None:
    """Beyond four of a key jobs were put back for seconds, whatever a call takes."""
    engine.store.put_pool(pool("each", max_in_flight=1, key="tenant"), actor="test")
    engine.lane(pool="each")
    async with engine.node():
        await engine.ended(*engine.enqueue(*({"tenant": "acme"} for _ in range(8))))

    assert engine.seen(ReturnedJobs) == []


async def wait_for_ever(never: asyncio.Event) -> Receipt | None:
    await never.wait()
    return None


async def test_a_tenant_without_tokens_stands_in_nobodys_way(engine: Engine) -> None:
    engine.store.put_pool(pool("each", rate="2/s", burst=2, key="tenant"), actor="test")
    engine.lane(pool="each", batch_size=50)
    engine.enqueue(*({"tenant": "greedy"} for _ in range(300)))
    async with engine.node() as node:
        await engine.until(lambda: len(engine.sent) >= 2)
        modest = engine.enqueue({"tenant": "modest"}, {"tenant": "modest"}, {"tenant": None})
        await engine.ended(*modest)  # two and a half minutes before all of the other have gone
        node.hurry.set()

    greedy = [call.at for call in engine.sent if call.envelope.tenant == "greedy"]
    assert most_within(greedy, 1.0) <= 2 * (1 + SLACK_S) + 2


async def test_a_rate_that_is_changed_holds_at_once(engine: Engine) -> None:
    engine.lane(rate="5/s")
    ids = engine.enqueue(*({} for _ in range(600)))
    async with engine.node():
        await engine.until(lambda: len(engine.sent) >= 6)
        engine.lane(rate="1000/s")
        await engine.ended(*ids)  # two minutes at the old rate
