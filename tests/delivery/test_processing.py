"""The processing endpoint: who may ask, what is delivered, what is written, and asking twice."""

import asyncio
from contextlib import closing
from datetime import timedelta
from pathlib import Path

import pytest
from standardwebhooks import Webhook

from penstock.domain.outcomes import Running
from penstock.domain.states import JobState
from penstock.ports.events import JobDied, Processed
from penstock.ports.executor import ThreadExecutor
from penstock.ports.store import Report
from penstock.stores.connect import connect
from penstock.testing.receiver import Answer, Request, receiver
from penstock.tokens import LIFETIME
from tests.delivery.bed import Bed, ShiftedClock, served

S = JobState


def state(bed: Bed, job_id: str) -> JobState:
    return bed.store.find([job_id])[job_id].state


async def test_a_job_is_delivered_signed_and_succeeds(bed: Bed) -> None:
    async with receiver() as hook:
        bed.lane(target=f"{hook.url}/lane")
        job_id = bed.dispatch(
            payload={"n": 1}, target=f"{hook.url}/own", tenant="acme", headers={"X-Mine": "yes"}
        )

        assert await bed.process(job_id) == (200, {"ack": True})

    [request] = hook.requests
    assert (request.path, request.body) == ("/own", b'{"n":1}')
    assert (request.id, request.send, request.attempt, request.lane) == (job_id, 1, 1, "orders")
    assert request.headers["x-mine"] == "yes"
    assert request.headers["x-flowcatalyst-client-id"] == "acme"
    [secret] = bed.store.secrets("webhook")
    Webhook(secret.secret).verify(request.body, dict(request.headers))
    job = bed.store.find([job_id])[job_id]
    assert (job.state, job.live.attempt, job.live.receipt) == (S.SUCCEEDED, 1, "200")
    assert job.live.sent_at is not None
    assert job.live.started_at is not None
    assert job.live.sent_at <= job.live.started_at <= (job.finished_at or job.live.started_at)
    assert [(event.lane, event.outcome) for event in bed.seen(Processed)] == [("orders", "succeeded")]


async def test_a_job_that_its_sender_has_not_settled_yet_is_delivered(bed: Bed) -> None:
    from penstock.domain.outcomes import Dispatched  # noqa: PLC0415
    from penstock.ports.store import Ask  # noqa: PLC0415

    async with receiver() as hook:
        bed.lane(target=hook.url)
        [job_id] = bed.enqueue({})
        claim = bed.store.claim(Ask(lane="orders", node=1))
        assert claim is not None

        assert await bed.process(job_id) == (200, {"ack": True})

    assert state(bed, job_id) is S.SUCCEEDED
    settled = bed.store.settle(claim, {claim.jobs[0].job.arrival: Dispatched(timedelta(minutes=1))})
    assert not settled.applied


async def test_an_edited_payload_is_what_is_delivered(bed: Bed) -> None:
    async with receiver() as hook:
        bed.lane(target=hook.url)
        [job_id] = bed.enqueue({"payload": {"old": True}})
        bed.client.edit(job_id, reason="typo", payload={"new": True})
        bed.dispatch()

        await bed.process(job_id)

    assert hook.requests[0].body == b'{"new":true}'


@pytest.mark.parametrize(
    ("answer", "lands", "said"),
    [
        (Answer(status=500, body=b"broken"), S.PENDING, "HTTP 500: broken"),
        (Answer(status=404), S.DEAD, "HTTP 404"),
        (Answer(status=302, headers={"Location": "/"}), S.DEAD, "HTTP 302"),
        (Answer(status=429, headers={"Retry-After": "60"}), S.PENDING, "HTTP 429"),
        (Answer(body=b'{"ack": false, "delaySeconds": 30}'), S.PENDING, "delaySeconds"),
    ],
)
async def test_an_answer_means_what_it_means_for_the_sink(
    bed: Bed, answer: Answer, lands: JobState, said: str
) -> None:
    async with receiver(answer=lambda _: answer) as hook:
        bed.lane(target=hook.url)
        job_id = bed.dispatch()

        assert await bed.process(job_id) == (200, {"ack": True})

    job = bed.store.find([job_id])[job_id]
    deferred = answer.status in {200, 429}
    assert (job.state, job.live.attempt, job.live.deferrals) == (lands, not deferred, deferred)
    [attempt] = bed.store.timeline(job_id).attempts
    assert said in (attempt.error or "")
    assert len(bed.seen(JobDied)) == (lands is S.DEAD)


async def test_the_last_attempt_that_fails_is_the_end(bed: Bed) -> None:
    async with receiver(answer=lambda _: Answer(status=500)) as hook:
        bed.lane(target=hook.url, retry=["0s"])
        job_id = bed.dispatch()

        await bed.process(job_id)

    job = bed.store.find([job_id])[job_id]
    assert (job.state, job.live.reason) == (S.DEAD, "exhausted")


async def test_the_lanes_words_and_its_timeout_count(bed: Bed) -> None:
    never = asyncio.Event()

    def answer(request: Request) -> Answer:
        return Answer(status=503) if request.path == "/503" else Answer(gate=never)

    async with receiver(answer=answer) as hook:
        bed.lane(give_up_on="503")
        bed.lane("hasty", timeout="100ms")
        given_up = bed.dispatch(target=f"{hook.url}/503")
        too_slow = bed.dispatch("hasty", target=f"{hook.url}/slow")

        await bed.process(given_up)
        await bed.process(too_slow)
        never.set()

    assert state(bed, given_up) is S.DEAD
    assert state(bed, too_slow) is S.PENDING
    assert "no answer within" in (bed.store.timeline(too_slow).attempts[0].error or "")


async def test_asked_again_after_the_end_nothing_is_sent(bed: Bed) -> None:
    async with receiver() as hook:
        bed.lane(target=hook.url)
        job_id = bed.dispatch()
        for _ in range(3):
            assert await bed.process(job_id) == (200, {"ack": True})

    assert len(hook.requests) == 1


async def test_an_older_send_is_late(bed: Bed) -> None:
    async with receiver(answer=lambda _: Answer(status=500)) as hook:
        bed.lane(target=hook.url, retry=["0s", "0s", "1h"])
        job_id = bed.dispatch()
        await bed.process(job_id)
        bed.dispatch()  # and with it the job's second send

        assert await bed.process(job_id, send=1) == (200, {"ack": True})
        assert state(bed, job_id) is S.DISPATCHED
        await bed.process(job_id, send=2)

    assert [request.send for request in hook.requests] == [1, 2]


async def test_of_many_that_ask_at_once_one_delivers(bed: Bed) -> None:
    gate = asyncio.Event()
    async with receiver(answer=lambda _: Answer(gate=gate)) as hook:
        bed.lane(target=hook.url)
        job_id = bed.dispatch()
        async with asyncio.TaskGroup() as tasks:
            asked = [tasks.create_task(bed.process(job_id)) for _ in range(6)]
            await hook.received(1)
            while sum(task.done() for task in asked) < 5:
                await asyncio.wait(asked, return_when=asyncio.FIRST_COMPLETED, timeout=0.05)
            gate.set()

    answers = [task.result() for task in asked]
    assert len(hook.requests) == 1
    assert answers.count((200, {"ack": True})) == 1
    for status, answer in answers:
        assert status == 200
        assert answer["ack"] or 1 <= answer["delaySeconds"] <= 30
    assert state(bed, job_id) is S.SUCCEEDED


async def test_a_send_that_was_begun_and_given_up_is_taken_over(
    tmp_path: Path, executor: ThreadExecutor
) -> None:
    clock = ShiftedClock()
    with closing(connect(f"sqlite:///{tmp_path}/moved.db", clock=clock.now)) as store:
        store.migrate()
        async with receiver() as hook, served(Bed(store, executor, clock=clock)) as bed:
            bed.lane(target=hook.url, timeout="1s")
            job_id = bed.dispatch()
            begun = Report(id=job_id, send=1, outcome=Running(timedelta(seconds=16), alone=True))
            assert store.report([begun])[0].applied  # by somebody who then died
            assert (await bed.process(job_id))[1]["ack"] is False
            clock.shift = timedelta(seconds=17)

            assert await bed.process(job_id) == (200, {"ack": True})

        assert [request.send for request in hook.requests] == [1]
        assert state(bed, job_id) is S.SUCCEEDED


async def test_when_a_send_that_was_begun_is_over_the_store_says(bed: Bed) -> None:
    async with receiver() as hook:
        bed.lane(target=hook.url, timeout="1s")
        job_id = bed.dispatch()
        bed.client.report(job_id, 1, "started")  # by somebody who then died

        status, answer = await bed.process(job_id)
        assert (status, answer["ack"]) == (200, False)
        assert 1 <= answer["delaySeconds"] <= 16
        bed.clock.shift = timedelta(seconds=17)  # the store's own clock is not there yet, and decides
        assert await bed.process(job_id) == (200, {"ack": False, "delaySeconds": 1})

    assert not hook.requests


async def test_a_job_that_is_to_be_cancelled_is_not_delivered(bed: Bed) -> None:
    async with receiver() as hook:
        bed.lane(target=hook.url)
        job_id = bed.dispatch()
        bed.client.cancel(job_id, reason="no longer wanted")

        assert await bed.process(job_id) == (200, {"ack": True})

    assert not hook.requests
    assert state(bed, job_id) is S.CANCELLED


async def test_a_target_that_asked_to_be_left_alone_is(bed: Bed) -> None:
    answers = iter([Answer(status=429, headers={"Retry-After": "60"}), Answer()])
    async with receiver(answer=lambda _: next(answers)) as hook:
        bed.lane(target=hook.url)
        first, second = bed.dispatch(), bed.dispatch()
        await bed.process(first)
        await bed.process(second)

    assert len(hook.requests) == 1
    assert "left alone" in (bed.store.timeline(second).attempts[0].error or "")
    assert bed.store.find([second])[second].live.deferrals == 1


async def test_refused_addresses_stay_refused(bed: Bed) -> None:
    bed.lane()
    job_id = bed.dispatch(target=bed.endpoint.replace("127.0.0.1", "[::1]"))

    assert await bed.process(job_id) == (200, {"ack": True})

    assert "refused address" in (bed.store.find([job_id])[job_id].error or "")


# -- tokens


async def test_a_token_of_another_job_opens_nothing(bed: Bed) -> None:
    bed.lane(target="http://127.0.0.1:9/")
    mine, other = bed.dispatch(), bed.dispatch()

    status, problem = await bed.process(mine, Authorization=f"Bearer {bed.token(other)}")

    assert (status, problem["type"]) == (401, "urn:penstock:problem:bad-token")
    assert state(bed, mine) is S.DISPATCHED


@pytest.mark.parametrize(
    "header", ["", "Bearer", "Bearer ", "Basic eDp5", "Bearer a.b.c", "bearer " + "x" * 5000]
)
async def test_without_a_token_nobody_gets_in(bed: Bed, header: str) -> None:
    status, problem = await bed.process("01ARZ3NDEKTSV4RRFFQ69G5FAV", Authorization=header)

    assert (status, problem["title"]) == (401, "Unauthorized")


async def test_an_expired_token_is_good_for_the_current_send_only(bed: Bed) -> None:
    async with receiver() as hook:
        bed.lane(target=hook.url)
        job_id = bed.dispatch()
        old = f"Bearer {bed.token(job_id)}"
        bed.clock.shift = LIFETIME + timedelta(minutes=1)

        assert await bed.process(job_id, Authorization=old) == (200, {"ack": True})
        status, problem = await bed.process(job_id, Authorization=old)

    assert len(hook.requests) == 1
    assert (status, "expired" in problem["detail"]) == (401, True)


async def test_a_token_of_a_retired_key_is_good(bed: Bed) -> None:
    async with receiver() as hook:
        bed.lane(target=hook.url)
        job_id = bed.dispatch()
        old = f"Bearer {bed.token(job_id)}"
        bed.store.add_secret("token", "2", "x" * 43, actor="test")
        await bed.tokens.refresh(older_than=0)

        assert await bed.process(job_id, Authorization=old) == (200, {"ack": True})
        assert len(hook.requests) == 1


async def test_an_unknown_job_is_to_be_acknowledged(bed: Bed) -> None:
    status, problem = await bed.process("01ARZ3NDEKTSV4RRFFQ69G5FAV")

    assert (status, problem["ack"]) == (404, True)


@pytest.mark.parametrize(
    "body",
    [b"", b"[]", b"{", b'{"messageId": 1}', b'{"messageId": null}', b"\xff", b'{"id": "x"}', b"[" * 9999],
)
async def test_what_is_no_message_is_refused(bed: Bed, body: bytes) -> None:
    headers = {"Authorization": f"Bearer {bed.token('x')}", "Content-Type": "application/json"}
    async with bed.http.post(bed.endpoint, data=body, headers=headers) as answer:
        assert answer.status == 400
