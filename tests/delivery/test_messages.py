"""Messages by HTTP: what is taken, what is refused, and what the queue in memory does with them."""

import json
from collections.abc import AsyncIterator
from datetime import timedelta
from typing import Any

import pytest

from penstock.api.messages import message_routes
from penstock.ports.executor import ThreadExecutor
from penstock.ports.store import Store
from penstock.sources.posted import Posted, PostedSource
from tests.delivery.bed import Bed, served

ZERO = timedelta(0)


class Clock:
    seconds = 0.0

    def monotonic(self) -> float:
        return self.seconds

    def now(self) -> Any:  # noqa: ANN401
        raise NotImplementedError


@pytest.fixture(params=["memory"])
def store(request: pytest.FixtureRequest, store: Store) -> Store:
    return store


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def source(clock: Clock) -> PostedSource:
    return PostedSource(clock, most=1001)


@pytest.fixture
async def bed(store: Store, executor: ThreadExecutor, source: PostedSource) -> AsyncIterator[Bed]:
    async with served(Bed(store, executor), routes=tuple(message_routes(source))) as bed:
        yield bed


def pointer(number: int, **said: object) -> dict[str, object]:
    return {"id": f"job{number}", "mediationTarget": "http://127.0.0.1:9/", "send": 1} | said


async def post(bed: Bed, body: object) -> tuple[int, Any]:
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    headers = {"Content-Type": "application/json"}
    async with bed.http.post(f"{bed.url}/api/router/messages", data=data, headers=headers) as answer:
        return answer.status, await answer.json(content_type=None)


async def ids(source: PostedSource, limit: int = 100) -> list[str]:
    return [json.loads(message.body)["id"] for message in await source.receive(limit)]


async def test_one_message_or_a_list_is_taken(bed: Bed, source: PostedSource) -> None:
    assert await post(bed, pointer(1)) == (202, {"id": "job1", "accepted": True})
    _, listed = await post(bed, [pointer(2), pointer(3)])
    _, named = await post(bed, {"messages": [pointer(4), {"id": "x"}]})

    assert listed == {
        "results": [
            {"index": 0, "id": "job2", "accepted": True},
            {"index": 1, "id": "job3", "accepted": True},
        ]
    }
    assert named["results"][1] == {"index": 1, "error": "its mediationTarget is no text"}
    assert await ids(source) == ["job1", "job2", "job3", "job4"]


@pytest.mark.parametrize(
    ("body", "status", "kind"),
    [
        (b"", 422, "invalid-message"),
        (b"{", 422, "invalid-message"),
        (b"[1, 2", 400, "bad-json"),
        (b'{"messages": 1}', 400, "bad-json"),
        ({"id": "x", "mediationTarget": "http://h/\r\nX: y"}, 422, "invalid-message"),
        ({"id": "x", "mediationTarget": "http://h/", "send": -1}, 422, "invalid-message"),
        ([pointer(n) for n in range(1001)], 413, "too-many"),
        (b"[" * 100_000, 400, "bad-json"),
    ],
)
async def test_what_is_no_message_is_refused(
    bed: Bed, source: PostedSource, body: object, status: int, kind: str
) -> None:
    answered, problem = await post(bed, body)

    assert (answered, problem["type"]) == (status, f"urn:penstock:problem:{kind}")
    assert source.room == 1001


async def test_who_is_behind_takes_no_more(bed: Bed, source: PostedSource) -> None:
    source.post([Posted("{}", None, f"{n}") for n in range(1000)])
    assert (await post(bed, pointer(1)))[0] == 202

    status, problem = await post(bed, [pointer(2)])

    assert (status, problem["type"]) == (429, "urn:penstock:problem:router-full")


async def test_the_same_send_is_taken_once(bed: Bed, source: PostedSource) -> None:
    await post(bed, [pointer(1), pointer(1), pointer(1, send=2)])
    await post(bed, pointer(1))

    assert await ids(source) == ["job1", "job1"]


async def test_of_a_group_one_is_out_at_a_time(source: PostedSource, clock: Clock) -> None:
    source.post([Posted(f"{n}", "g", f"{n}") for n in range(3)])
    source.post([Posted("free", None, "free")])
    first, free = await source.receive(10)
    assert (first.body, free.body) == ("0", "free")

    await source.nack([first], delay=timedelta(seconds=5))
    source.post([Posted("3", "g", "3")])
    clock.seconds = 5.0
    [again] = await source.receive(10)
    assert (again.body, again.receives) == ("0", 2)
    await source.ack([again])
    [second] = await source.receive(10)
    await source.bury([second])

    assert [message.body for message in await source.receive(10)] == ["2"]
    assert list(source.buried) == ["1"]


async def test_an_empty_queue_lets_its_reader_go(source: PostedSource) -> None:
    assert list(await source.receive(1)) == []
    await source.close()
