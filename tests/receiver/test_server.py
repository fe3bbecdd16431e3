"""The receiver as tests and `penstock listen` use it, over real connections."""

import asyncio
import base64
import hashlib
import json
import os
from datetime import timedelta
from pathlib import Path
from random import Random

import aiohttp
import pytest

from penstock.domain.webhooks import signed
from penstock.ports.clock import SystemClock
from penstock.receiver import server
from penstock.receiver.log import RequestLog
from penstock.testing.receiver import Answer, Request, failing, receiver

SECRET = "whsec_" + base64.b64encode(b"s" * 32).decode()
JOB = {
    "X-Penstock-Job-Id": "01JOB",
    "X-Penstock-Send": "3",
    "X-Penstock-Attempt": "2",
    "X-Penstock-Lane": "orders",
    "X-Penstock-Group": "caf%C3%A9",
    "X-Penstock-Sequence": "7",
    "X-Penstock-Mode": "block_on_error",
}


async def post(url: str, body: bytes = b"{}", **headers: str) -> tuple[int, bytes]:
    async with (
        asyncio.timeout(60),
        aiohttp.ClientSession() as session,
        session.post(url, data=body, headers=headers) as answer,
    ):
        return answer.status, await answer.read()


async def test_what_arrives_is_kept_as_it_came() -> None:
    async with receiver() as received:
        assert await post(f"{received.url}/hook?x=1", b'{"n": 1}', **JOB) == (200, b"")
        [request] = await received.received(1)

    assert (request.method, request.path, request.body) == ("POST", "/hook?x=1", b'{"n": 1}')
    assert (request.id, request.send, request.attempt, request.lane) == ("01JOB", 3, 2, "orders")
    assert (request.group, request.sequence, request.mode) == ("café", 7, "block_on_error")
    assert request.signature is None
    assert request.headers["x-penstock-job-id"] == "01JOB"


async def test_headers_that_are_none_of_ours_are_taken_as_they_are() -> None:
    async with receiver() as received:
        await post(received.url, **{"X-Penstock-Send": "many", "X-Penstock-Sequence": "²"})
        await post(received.url)
        strange, bare = await received.received(2)

    assert (strange.send, strange.sequence, strange.id) == (None, None, None)
    assert (bare.id, bare.lane, bare.group) == (None, None, None)


async def test_waiting_for_arrivals_ends_when_they_are_there() -> None:
    async with receiver() as received, asyncio.timeout(60):
        async with asyncio.TaskGroup() as tasks:
            waiting = tasks.create_task(received.received(3))
            for _ in range(3):
                await post(received.url)

        assert len(waiting.result()) == 3


async def test_it_answers_as_it_is_told() -> None:
    def answer(request: Request) -> Answer:
        return Answer(
            status=418, body=request.body[::-1], headers={"X-A": "b"}, delay=timedelta(milliseconds=1)
        )

    async with receiver(answer=answer) as received:
        assert await post(received.url, b"abc") == (418, b"cba")

    assert received.requests[0].answer.status == 418


async def test_an_answer_may_wait_for_a_gate() -> None:
    gate = asyncio.Event()
    async with receiver(answer=lambda _: Answer(gate=gate)) as received, asyncio.TaskGroup() as tasks:
        posting = tasks.create_task(post(received.url))
        await received.received(1)
        assert not posting.done()
        gate.set()
        assert await posting == (200, b"")


async def test_which_requests_fail_is_decided_by_the_seed() -> None:
    async def statuses(seed: int) -> list[int]:
        async with receiver(answer=failing(0.5, rng=Random(seed))) as received:  # noqa: S311
            return [(await post(received.url))[0] for _ in range(12)]

    first = await statuses(1)

    assert first == await statuses(1)
    assert set(first) == {200, 500}
    assert first != await statuses(2)


async def test_signatures_are_checked_when_there_is_a_secret() -> None:
    good = signed([SECRET], id="01JOB", at=SystemClock().now(), body=b"{}")
    async with receiver(secrets=[SECRET]) as received:
        assert (await post(received.url, **good))[0] == 200
        assert (await post(received.url, b"{ }", **good))[0] == 401
        assert (await post(received.url))[0] == 401

    assert [request.signature for request in received.requests] == [
        "ok",
        "no signature matches",
        "no webhook-id",
    ]
    assert received.ledger.summary.bad_signatures == 2


async def test_a_line_is_on_disk_before_the_answer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "log"
    order: list[str] = []
    real = os.fsync

    def fsync(descriptor: int) -> None:
        real(descriptor)
        order.append("on disk")

    monkeypatch.setattr(os, "fsync", fsync)
    with RequestLog(path) as log:
        async with receiver(log=log) as received:
            for _ in range(2):
                await post(received.url, b'{"n": 1}', **JOB)
                order.append("answered")

    assert order == ["on disk", "answered"] * 2
    first, second = [json.loads(line) for line in path.read_bytes().splitlines()]
    assert {
        name: first[name] for name in ("id", "send", "attempt", "lane", "group", "sequence", "answer")
    } == {
        "id": "01JOB",
        "send": 3,
        "attempt": 2,
        "lane": "orders",
        "group": "café",
        "sequence": 7,
        "answer": 200,
    }
    assert first["sha256"] == hashlib.sha256(b'{"n": 1}').hexdigest()
    assert first["time"].endswith("Z")
    assert (second["repeat"], second["same_send"]) == ("duplicate", True)


async def test_many_at_once_all_get_their_line_in_order(tmp_path: Path) -> None:
    path = tmp_path / "log"
    with RequestLog(path) as log:
        async with receiver(log=log) as received, asyncio.TaskGroup() as tasks:
            for number in range(60):
                tasks.create_task(post(received.url, **(JOB | {"X-Penstock-Job-Id": f"job-{number}"})))
    ids = [json.loads(line)["id"] for line in path.read_bytes().splitlines()]

    assert sorted(ids) == sorted(f"job-{number}" for number in range(60))
    assert ids == [request.id for request in received.requests]


async def test_what_cannot_be_logged_is_not_answered_with_yes(tmp_path: Path) -> None:
    log = RequestLog(tmp_path / "log")
    log._file.close()
    with open("/dev/full", "wb", buffering=0) as full:  # noqa: ASYNC230, PTH123 - a disk without room
        log._file = full  # type: ignore[assignment]
        async with receiver(log=log) as received:
            assert [(await post(received.url))[0] for _ in range(2)] == [500, 500]
    log.close()

    assert received.requests == []


async def test_what_is_too_large_is_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "MAX_BODY", 1000)
    async with receiver() as received:
        assert (await post(received.url, b"x" * 1000))[0] == 200
        status = await post(received.url, b"x" * 500_000)

    assert status[0] == 413
    assert [len(request.body) for request in received.requests] == [1000, 0]


@pytest.mark.skipif(not Path("/proc/net/if_inet6").exists(), reason="this machine has no IPv6")
async def test_it_listens_on_ipv6_too() -> None:
    async with receiver(host="::1") as received:
        assert received.url.startswith("http://[::1]:")
        assert (await post(received.url))[0] == 200
