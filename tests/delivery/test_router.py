"""The router on the store's own queues, with targets that are served for real."""

import asyncio
import json
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Any

import pytest

from penstock.cli.symptoms import nodes_of
from penstock.delivery.mediation import Mediator
from penstock.delivery.pointers import read_pointer
from penstock.delivery.router import Router, RouterOptions
from penstock.domain.notes import is_alive, read
from penstock.domain.pools import pool
from penstock.ports.events import Routed, SourceFailed
from penstock.ports.executor import ThreadExecutor
from penstock.ports.queue import Message
from penstock.ports.source import Incoming, SourceUnavailable
from penstock.ports.store import Store
from penstock.scheduler.board import Board
from penstock.sources.embedded import DEAD, EmbeddedSource
from penstock.testing.receiver import Answer, Request, receiver
from tests.delivery.bed import LOOPBACK, Bed

QUEUE = "q"
MINUTE = timedelta(minutes=1)


@pytest.fixture(params=["sqlite"])
def store(request: pytest.FixtureRequest, store: Store) -> Store:
    return store


@pytest.fixture
def bed(store: Store, executor: ThreadExecutor) -> Bed:
    return Bed(store, executor)


def pointer(target: str, number: int = 1, **said: Any) -> Message:  # noqa: ANN401
    body = {
        "id": f"job{number}",
        "poolCode": "DISPATCH-POOL",
        "authToken": f"token{number}",
        "mediationType": "HTTP",
        "mediationTarget": target,
        "messageGroupId": None,
        "send": 1,
    } | said
    return Message(json.dumps(body), body["messageGroupId"], f"job{number}:1")


@asynccontextmanager
async def routing(
    bed: Bed,
    *,
    visibility: timedelta = MINUTE,
    endpoint: str = "",
    stop: asyncio.Event | None = None,
    kind: type[EmbeddedSource] = EmbeddedSource,
    **options: Any,  # noqa: ANN401
) -> AsyncIterator[Router]:
    source = kind(bed.store, queues=lambda: [QUEUE], executor=bed.executor, visibility=visibility)
    mediator = Mediator(endpoint, clock=bed.clock, allow_networks=LOOPBACK)
    ground = bed.ground()
    router = Router(
        ground, Board(ground), [source], mediator, RouterOptions(**options), stop=stop or asyncio.Event()
    )
    async with asyncio.timeout(60), asyncio.TaskGroup() as tasks:
        tasks.create_task(router.run())
        yield router
        router.stop.set()


def fates(bed: Bed) -> list[str]:
    return [event.fate for event in bed.seen(Routed)]


def queued(bed: Bed, queue: str = QUEUE) -> list[str]:
    """Return the ids of messages that are visible now."""
    found = bed.store.receive(queue, 100, visibility=timedelta(0))
    return [json.loads(one.body).get("id") for one in found]


async def test_a_message_is_posted_with_its_token_and_acknowledged(bed: Bed) -> None:
    async with receiver() as hook:
        bed.store.push(QUEUE, [pointer(f"{hook.url}/process")])
        async with routing(bed):
            await bed.until(lambda: bool(fates(bed)))

    [request] = hook.requests
    assert (request.method, request.path, json.loads(request.body)) == (
        "POST",
        "/process",
        {"messageId": "job1"},
    )
    assert request.headers["authorization"] == "Bearer token1"
    assert (fates(bed), queued(bed)) == (["ack"], [])


@pytest.mark.parametrize(
    ("answer", "fate", "comes_again"),
    [
        (Answer(body=b'{"ack": true}'), "ack", False),
        (Answer(status=404, body=b'{"ack": true}'), "ack", False),
        (Answer(body=b'{"ack": false, "delaySeconds": 0}'), "nack", True),
        (Answer(status=500), "nack", True),
        (Answer(status=429), "nack", True),
        (Answer(status=401), "nack", True),
        (Answer(status=404), "nack", True),
        (Answer(status=302), "nack", True),
    ],
)
async def test_an_answer_says_what_becomes_of_a_message(
    bed: Bed, answer: Answer, fate: str, *, comes_again: bool
) -> None:
    async with receiver(answer=lambda _: answer) as hook:
        bed.store.push(QUEUE, [pointer(hook.url)])
        async with routing(bed):
            await bed.until(lambda: bool(fates(bed)))

    assert fates(bed)[0] == fate
    assert bool(bed.store.queued(QUEUE, ["job1:1"])) is comes_again


async def test_a_message_comes_again_until_it_is_taken(bed: Bed) -> None:
    answers = iter([Answer(status=500), Answer(body=b'{"ack": false, "delaySeconds": 1}'), Answer()])
    async with receiver(answer=lambda _: next(answers)) as hook:
        bed.store.push(QUEUE, [pointer(hook.url)])
        async with routing(bed):
            await bed.until(lambda: "ack" in fates(bed))

    assert fates(bed) == ["nack", "nack", "ack"]
    assert len(hook.requests) == 3


async def test_what_nobody_can_deliver_is_put_aside(bed: Bed) -> None:
    bad = ["", "[]", "{", '{"id": "x"}', json.dumps({"id": "x", "mediationTarget": 7}), "[" * 3000]
    soap = pointer("http://127.0.0.1:9/", mediationType="SOAP").body
    bed.store.push(QUEUE, [Message(body) for body in [*bad, soap]])
    async with routing(bed):
        await bed.until(lambda: len(fates(bed)) == 7)

    assert set(fates(bed)) == {"buried"}
    dead = bed.store.receive(QUEUE + DEAD, 100, visibility=MINUTE)
    assert sorted(one.body for one in dead) == sorted([*bad, soap])


async def test_what_is_refused_again_and_again_is_put_aside(bed: Bed) -> None:
    async with receiver(answer=lambda _: Answer(status=401)) as hook:
        bed.store.push(QUEUE, [pointer(hook.url)])
        async with routing(bed, max_refusals=2):
            await bed.until(lambda: "buried" in fates(bed))

    assert (fates(bed), len(hook.requests)) == (["nack", "buried"], 2)
    assert len(bed.store.receive(QUEUE + DEAD, 9, visibility=MINUTE)) == 1


async def test_only_the_processing_endpoint_may_be_anywhere(bed: Bed) -> None:
    async with receiver() as hook:
        mediator = Mediator(f"{hook.url}/process", clock=bed.clock)
        own = await mediator.call(read_pointer(pointer(f"{hook.url}/process").body))
        others = [
            await mediator.call(read_pointer(pointer(target).body))
            for target in (
                f"{hook.url}/other",
                f"{hook.url}/process?x=1",
                f"{hook.url}/process/",
                "http://169.254.169.254/",
                "http://metadata.google.internal/",
                "http://u:p@127.0.0.1/",
                "ftp://127.0.0.1/",
            )
        ]
        await mediator.close()

    assert type(own.message).__name__ == "Accepted"
    assert {type(reply.message).__name__ for reply in others} == {"Rejected"}
    assert len(hook.requests) == 1


async def test_what_leads_to_a_node_that_is_gone_is_brought_to_another(bed: Bed) -> None:
    async with receiver() as gone:
        left = pointer(f"{gone.url}/process")
    refuses = Answer(status=401)
    answers = iter([Answer(), refuses])
    async with receiver(answer=lambda _: next(answers)) as hook:
        mediator = Mediator(f"{hook.url}/process", clock=bed.clock, allow_networks=LOOPBACK)
        taken, refused = [await mediator.call(read_pointer(left.body)) for _ in range(2)]
        elsewhere = await mediator.call(read_pointer(pointer(f"{gone.url}/other").body))
        await mediator.close()

    assert [type(reply.message).__name__ for reply in (taken, refused, elsewhere)] == [
        "Accepted",
        "TryAgain",
        "TryAgain",
    ]
    assert [request.headers["authorization"] for request in hook.requests] == ["Bearer token1"] * 2


@pytest.mark.parametrize(
    "written", ["http://127.0.0.1:{port}", "http://localhost:{port}", "http://[::1]:9", "http://10.0.0.1:9"]
)
async def test_what_leads_to_a_node_by_an_address_that_is_refused_is_brought_to_ours(
    bed: Bed, written: str
) -> None:
    """A node may go by another name than the one we know it by; the address itself is never called."""
    async with receiver() as hook, receiver() as other:
        port = other.url.rpartition(":")[2]
        mediator = Mediator(f"{hook.url}/process", clock=bed.clock)
        message = pointer(f"{written.format(port=port)}/process")
        reply = await mediator.call(read_pointer(message.body))
        await mediator.close()

    assert type(reply.message).__name__ == "Accepted"
    assert (len(hook.requests), len(other.requests)) == (1, 0)


async def test_messages_of_a_group_go_one_at_a_time_in_order(bed: Bed) -> None:
    async with receiver() as hook:
        bed.store.push(QUEUE, [pointer(hook.url, n, messageGroupId=f"g{n % 3}") for n in range(30)])
        async with routing(bed):
            await bed.until(lambda: fates(bed).count("ack") == 30)

    came = [int(request.headers["authorization"].removeprefix("Bearer token")) for request in hook.requests]
    for group in range(3):
        assert [n for n in came if n % 3 == group] == list(range(group, 30, 3))


async def test_a_message_that_comes_again_is_not_overtaken(bed: Bed) -> None:
    seen: list[str] = []

    def answer(request: Request) -> Answer:
        seen.append(json.loads(request.body)["messageId"])
        return Answer(status=500) if len(seen) == 1 else Answer()

    async with receiver(answer=answer) as hook:
        bed.store.push(QUEUE, [pointer(hook.url, n, messageGroupId="g") for n in range(3)])
        async with routing(bed):
            await bed.until(lambda: fates(bed).count("ack") == 3)

    assert seen == ["job0", "job0", "job1", "job2"]


async def test_a_pool_limits_how_many_are_at_work_over_all_routers(bed: Bed) -> None:
    bed.store.put_pool(pool("web", max_in_flight=3), actor="test")
    gates = [asyncio.Event() for _ in range(12)]
    waiting = iter(gates)
    async with receiver(answer=lambda _: Answer(gate=next(waiting))) as hook:
        bed.store.push(QUEUE, [pointer(hook.url, n, poolCode="web") for n in range(12)])
        async with routing(bed), routing(bed):
            for number, gate in enumerate(gates):
                await hook.received(min(number + 3, 12))
                await bed.until(lambda n=number: fates(bed).count("ack") == n)  # type: ignore[misc]
                assert len(hook.requests) == min(number + 3, 12)  # three are at work, the others wait
                gate.set()
            await bed.until(lambda: fates(bed).count("ack") == 12)


async def test_a_pool_limits_the_rate(bed: Bed) -> None:
    bed.store.put_pool(pool("slow", rate="10/s", burst=2), actor="test")
    async with receiver() as hook:
        bed.store.push(QUEUE, [pointer(hook.url, n, poolCode="slow") for n in range(12)])
        began = bed.clock.now()
        async with routing(bed):
            await bed.until(lambda: fates(bed).count("ack") == 12)

    took = (hook.requests[-1].at - began).total_seconds()
    assert took > 0.95  # 12 of them: two at once, the others at ten a second


async def test_many_that_wait_for_one_pool_do_not_keep_others_waiting(bed: Bed) -> None:
    bed.store.put_pool(pool("stuck", max_in_flight=1), actor="test")
    gate = asyncio.Event()

    def answer(request: Request) -> Answer:
        return Answer(gate=gate) if request.path == "/stuck" else Answer()

    async with receiver(answer=answer) as hook:
        stuck = [pointer(f"{hook.url}/stuck", n, poolCode="stuck") for n in range(30)]
        free = [pointer(f"{hook.url}/free", n) for n in range(30, 40)]
        bed.store.push(QUEUE, [*stuck, *free])
        async with routing(bed, prefetch=10, most_waiting=3):
            await bed.until(lambda: sum(request.path == "/free" for request in hook.requests) == 10)
            gate.set()


async def test_a_paused_pool_sends_messages_back(bed: Bed) -> None:
    bed.store.put_pool(pool("web"), actor="test")
    bed.store.pause_pool("web", paused=True, actor="ann", reason="audit")
    async with receiver() as hook:
        bed.store.push(QUEUE, [pointer(hook.url, poolCode="web")])
        async with routing(bed):
            await bed.until(lambda: bool(fates(bed)))

    assert not hook.requests
    [routed] = bed.seen(Routed)
    assert (routed.fate, routed.why) == ("nack", 'pool "web" is paused by ann: audit')


async def test_a_target_that_is_down_is_left_alone(bed: Bed) -> None:
    async with receiver(answer=lambda _: Answer(status=500)) as hook:
        bed.store.push(QUEUE, [pointer(hook.url, n) for n in range(60)])
        async with routing(bed):
            await bed.until(lambda: len(fates(bed)) >= 60 and bool(bed.store.targets()))
            bed.store.push(QUEUE, [pointer(hook.url, 99)])
            await bed.until(lambda: any("left alone" in (e.why or "") for e in bed.seen(Routed)))

    [(_, target)] = bed.store.targets().items()
    assert target.state == "open"


async def test_a_message_at_work_stays_hidden(bed: Bed) -> None:
    gate = asyncio.Event()
    async with receiver(answer=lambda _: Answer(gate=gate)) as hook:
        bed.store.push(QUEUE, [pointer(hook.url)])
        async with routing(bed, visibility=timedelta(seconds=3)) as router:
            await hook.received(1)
            first = next(iter(router._inlets[0].held.values())).until
            await bed.until(lambda: bed.clock.monotonic() > first + 0.5)
            assert queued(bed) == []
            gate.set()
            await bed.until(lambda: fates(bed) == ["ack"])

    assert len(hook.requests) == 1


async def test_nobody_takes_a_router_for_a_node_that_sends_jobs(bed: Bed) -> None:
    """It is seen to be alive, and what explains a job does not count on it."""
    bed.lane()
    [job] = bed.enqueue({"payload": 1})
    async with routing(bed) as router:
        await bed.until(lambda: bool(bed.store.nodes()) and bed.store.nodes()[0].note is not None)
        text = bed.client.explain(job).text
        assert [symptom.level for symptom in nodes_of(bed.store)] == ["warning"]
        assert is_alive(bed.store.nodes()[0], bed.store.now())
        await router.board.refresh()

    assert text == 'no running node serves lane "orders": start penstock serve'
    assert router.board.nodes == 1
    assert not is_alive(bed.store.nodes()[0], bed.store.now())


async def test_a_router_that_drains_calls_for_nothing_until_it_goes_on(bed: Bed) -> None:
    async with receiver() as hook, routing(bed) as router:
        await bed.until(lambda: router.board.node != 0)
        node = router.board.node
        bed.store.drain_node(node, draining=True, actor="ann", reason="the machine is replaced")
        await bed.until(lambda: router.board.drain is not None)
        bed.store.push(QUEUE, [pointer(hook.url)])
        await bed.until(lambda: read(bed.store.nodes()[0].note).drains == 0)
        assert not hook.requests
        bed.store.drain_node(node, draining=False, actor="ann", reason="it stays")
        await bed.until(lambda: "ack" in fates(bed))

    assert len(hook.requests) == 1


async def test_stopping_finishes_calls_and_gives_back_the_rest(bed: Bed) -> None:
    bed.store.put_pool(pool("one", max_in_flight=1), actor="test")
    gate = asyncio.Event()
    async with receiver(answer=lambda _: Answer(gate=gate)) as hook:
        bed.store.push(QUEUE, [pointer(hook.url, n, poolCode="one") for n in range(5)])
        async with routing(bed) as router:
            await hook.received(1)
            router.stop.set()
            await bed.until(lambda: len(fates(bed)) == 4)
            gate.set()

    assert sorted(fates(bed)) == ["ack", "nack", "nack", "nack", "nack"]
    assert len(queued(bed)) == 4


async def test_told_to_hurry_it_gives_up_calls(bed: Bed) -> None:
    never = asyncio.Event()
    async with receiver(answer=lambda _: Answer(gate=never)) as hook:
        bed.store.push(QUEUE, [pointer(hook.url)])
        async with routing(bed) as router:
            await hook.received(1)
            router.stop.set()
            router.hurry.set()
        never.set()

    assert (fates(bed), queued(bed)) == (["nack"], ["job1"])
    assert not bed.store.targets()


async def test_the_grace_period_ends(bed: Bed) -> None:
    never = asyncio.Event()
    async with receiver(answer=lambda _: Answer(gate=never)) as hook:
        bed.store.push(QUEUE, [pointer(hook.url)])
        async with routing(bed, grace=timedelta(milliseconds=50)):
            await hook.received(1)
        never.set()

    assert queued(bed) == ["job1"]


class Stubborn(EmbeddedSource):
    """Nothing can be put aside here, and it does not like to be closed."""

    async def bury(self, _: Sequence[Incoming]) -> None:
        raise SourceUnavailable("there is no room for the dead")

    async def close(self) -> None:
        raise RuntimeError("the door is stuck")


async def test_what_a_source_could_not_be_told_is_told_to_others(bed: Bed) -> None:
    """The message comes again by itself; nobody counts it as put aside."""
    bed.store.push(QUEUE, [Message("no pointer")])
    async with routing(bed, kind=Stubborn):
        await bed.until(lambda: "lost" in fates(bed))

    assert set(fates(bed)) == {"lost"}
    errors = [event.error for event in bed.seen(SourceFailed)]
    assert errors[0] == "there is no room for the dead"
    assert "the door is stuck" in errors[-1]


class Leaky(EmbeddedSource):
    """Its driver lets out what nobody expects when a connection ends."""

    async def bury(self, _: Sequence[Incoming]) -> None:
        raise Exception("rejected without a reason")  # noqa: TRY002 - as drivers do

    async def extend(self, _: Sequence[Incoming]) -> Sequence[Incoming]:
        raise AssertionError


async def test_what_a_driver_lets_out_does_not_end_the_router(bed: Bed) -> None:
    bed.store.push(QUEUE, [Message("no pointer")])
    async with routing(bed, kind=Leaky):
        await bed.until(lambda: "lost" in fates(bed))
        async with receiver() as hook:
            bed.store.push(QUEUE, [pointer(hook.url)])
            await bed.until(lambda: "ack" in fates(bed))

    assert "rejected without a reason" in bed.seen(SourceFailed)[0].error
