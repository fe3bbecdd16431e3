"""What is wrong with one queue hurts no other, and every refusal says what to do."""

import json
from datetime import timedelta
from typing import Any

import pytest

from penstock.delivery.opening import opener
from penstock.errors import InvalidSetting
from penstock.ports.clock import SystemClock
from penstock.ports.executor import ThreadExecutor
from penstock.ports.source import Options, SourceUnavailable, Supplies
from penstock.sources import turns
from penstock.testing.receiver import Answer, Request, receiver
from penstock.testing.source_suite.suite import is_away, message, persist, receive, settle
from tests.servers import free_port
from tests.sources.beds import RabbitBed, RedisBed, SqsBed

ZERO = timedelta(0)
KEYS: Options = {"access_key": "test", "secret_key": "test", "region": "eu-central-1"}


def supplies(executor: ThreadExecutor, *queues: str) -> Supplies:
    return Supplies(name="mine", queues=lambda: queues, executor=executor, clock=SystemClock())


@pytest.mark.parametrize(
    ("kind", "scheme", "words"),
    [
        ("sqs", "http", "SQS cannot be reached"),
        ("redis", "redis", "Redis cannot be reached.*check url"),
        ("rabbitmq", "amqp", "RabbitMQ at 127.0.0.1:.* cannot be reached.*check url"),
        ("activemq", "stomp", "ActiveMQ at 127.0.0.1:.* does not let us in.*check url"),
    ],
)
async def test_a_broker_that_is_not_there(
    executor: ThreadExecutor, kind: str, scheme: str, words: str
) -> None:
    keys = KEYS if kind == "sqs" else {}
    source = await opener(kind)(
        {"url": f"{scheme}://127.0.0.1:{free_port()}"} | dict(keys), supplies(executor, "q")
    )
    for _ in range(2):
        with pytest.raises(SourceUnavailable, match=words):
            await source.receive(1)
    await source.close()
    await source.close()


@pytest.mark.parametrize("kind", ["sqs", "redis", "rabbitmq", "activemq"])
@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"visibilty": "3s"}, "did you mean visibility"),
        ({"visibility": "soon"}, "visibility"),
        ({"visibility": "10ms"}, "too short"),
        ({"dead_queue": ""}, "dead_queue"),
        ({"url": "nonsense"}, "url"),
    ],
)
async def test_options_that_cannot_be(
    executor: ThreadExecutor, kind: str, options: dict[str, str], words: str
) -> None:
    urls = {"sqs": "http", "redis": "redis", "rabbitmq": "amqp", "activemq": "stomp"}
    usual: dict[str, Any] = {"kind": kind, "url": f"{urls[kind]}://127.0.0.1:1"}
    with pytest.raises(InvalidSetting, match=words):
        await opener(kind)(usual | options, supplies(executor, "q"))


async def test_sqs_hides_nothing_for_longer_than_it_can(executor: ThreadExecutor) -> None:
    with pytest.raises(InvalidSetting, match="12h"):
        await opener("sqs")({**KEYS, "visibility": "13h"}, supplies(executor, "q"))


async def test_an_sqs_queue_that_is_not_there_keeps_nobody_waiting(
    fifo: SqsBed, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(turns, "PAUSE", timedelta(milliseconds=200))
    await one_is_missing(fifo)


async def test_a_rabbitmq_queue_that_is_not_there_keeps_nobody_waiting(
    rabbit_bed: RabbitBed, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(turns, "PAUSE", timedelta(milliseconds=200))
    await one_is_missing(rabbit_bed)


async def one_is_missing(bed: SqsBed | RabbitBed) -> None:
    later = bed.pattern.format(f"{bed.queues[0].removesuffix('.fifo')}-later")
    bed.queues.insert(0, later)
    source = await bed.open()
    with pytest.raises(SourceUnavailable, match=f'there is no queue "{later}"'):
        await source.receive(5)
    await bed.put(bed.queues[1], [message(1)])
    [one] = await persist(lambda: receive(source, 1))
    await source.ack([one])
    await bed.ready()
    await bed.put(later, [message(2)])
    [two] = await persist(lambda: receive(source, 1))
    await source.ack([two])
    await source.close()

    assert [found.queue for found in (one, two)] == [bed.queues[1], later]


async def test_a_key_that_is_no_stream(redis_bed: RedisBed) -> None:
    await redis_bed.client.set(redis_bed.queues[0], "text")
    source = await redis_bed.open()
    with pytest.raises(SourceUnavailable, match="is no stream: name another"):
        await source.receive(5)
    await redis_bed.put(redis_bed.queues[1], [message(1)])
    await source.ack(await receive(source, 1))
    await source.close()


async def test_what_another_router_took_over_is_not_ours(redis_bed: RedisBed) -> None:
    """Neither to confirm nor to acknowledge."""
    queue = redis_bed.queues[0]
    await redis_bed.put(queue, [message(1)])
    silent, other = await redis_bed.open_brief(), await redis_bed.open_brief()
    [ours] = await receive(silent, 1)
    [theirs] = await receive(other, 1)

    assert list(await silent.extend([ours])) == []
    await silent.ack([ours])
    await silent.bury([ours])
    await silent.close()
    assert (await redis_bed.left(queue), list(await other.extend([theirs]))) == (1, [theirs])
    assert theirs.receives == 2
    await other.ack([theirs])
    await other.close()
    await settle(redis_bed, queue, 0)


async def test_entries_that_somebody_deleted_are_passed_over(redis_bed: RedisBed) -> None:
    queue = redis_bed.queues[0]
    await redis_bed.put(queue, [message(1), message(2)])
    first = await redis_bed.open()
    await receive(first, 2)
    await first.close()
    [(entry, _), _] = await redis_bed.client.xrange(queue)
    await redis_bed.client.xdel(queue, entry)
    second = await redis_bed.open()
    [one] = await receive(second, 1)
    await second.ack([one])
    await second.close()

    assert json.loads(one.body)["id"] == "2"


async def test_bytes_that_are_no_text_are_put_aside_as_they_are(redis_bed: RedisBed) -> None:
    await redis_bed.client.xadd(redis_bed.queues[0], {"body": b"\xff\x00"})
    await redis_bed.client.xadd(redis_bed.queues[0], {"something": "else"})
    source = await redis_bed.open(dead_queue="graveyard")
    await source.bury(await receive(source, 2))
    await source.close()

    found = [fields[b"body"] for _, fields in await redis_bed.client.xrange("graveyard")]
    assert found == [b"\xff\x00", b""]


async def test_a_deleted_queue_is_consumed_again_when_it_is_back(rabbit_bed: RabbitBed) -> None:
    queue = rabbit_bed.queues[0]
    source = await rabbit_bed.open()
    await source.receive(1)
    await rabbit_bed.ask(lambda channel: channel.queue_delete(queue))
    await rabbit_bed.ready()
    await rabbit_bed.put(queue, [message(1)])
    found = await persist(lambda: receive(source, 1))
    await source.ack(found)
    await source.close()

    assert found[0].queue == queue


async def test_a_wrong_password_is_named(rabbit_bed: RabbitBed) -> None:
    source = await rabbit_bed.open(password="wrong")  # noqa: S106
    with pytest.raises(SourceUnavailable, match="check username, password"):
        await source.receive(1)
    await source.close()


async def test_a_message_that_cannot_be_put_aside_stays(rabbit_bed: RabbitBed) -> None:
    queue = rabbit_bed.queues[0]
    await rabbit_bed.put(queue, ["bad"])
    source = await rabbit_bed.open(dead_queue="nowhere")
    found = await receive(source, 1)
    with pytest.raises(SourceUnavailable, match='put aside in "nowhere"'):
        await source.bury(found)
    await source.close()
    await settle(rabbit_bed, queue, 1)


@pytest.mark.parametrize("named", [True, False])
async def test_sqs_has_dead_letter_queues_of_its_own(fifo: SqsBed, *, named: bool) -> None:
    queue, dead = fifo.queues
    url, dead_url = (fifo.client.get_queue_url(QueueName=name)["QueueUrl"] for name in fifo.queues)
    if not named:
        asked = fifo.client.get_queue_attributes(QueueUrl=dead_url, AttributeNames=["QueueArn"])
        policy = {"deadLetterTargetArn": asked["Attributes"]["QueueArn"], "maxReceiveCount": 1000}
        fifo.client.set_queue_attributes(QueueUrl=url, Attributes={"RedrivePolicy": json.dumps(policy)})
    await fifo.put(queue, ["bad"])
    fifo.queues.remove(dead)
    source = await (fifo.open(dead_queue=dead) if named else fifo.open())
    await source.bury(await receive(source, 1))
    await source.close()

    [found] = fifo.client.receive_message(QueueUrl=dead_url)["Messages"]
    assert found["Body"] == "bad"


async def test_what_sqs_could_not_do_is_said_and_what_came_too_late_is_not(executor: ThreadExecutor) -> None:
    """A refusal for a stale receipt means that the message is somebody else's."""
    faults = {"DeleteMessageBatch": False, "ChangeMessageVisibilityBatch": True}

    def answer(request: Request) -> Answer:
        action = request.headers["x-amz-target"].partition(".")[2]
        said: dict[str, Any] = {"QueueUrl": "http://queue"}
        if action == "ReceiveMessage":
            said = {"Messages": [{"MessageId": "1", "ReceiptHandle": "r", "Body": "{}"}]}
        elif action in faults:
            said = {"Failed": [{"Id": "0", "SenderFault": faults[action], "Code": "Broken"}]}
        return Answer(body=json.dumps(said).encode())

    async with receiver(answer=answer) as broker:
        source = await opener("sqs")({**KEYS, "url": broker.url}, supplies(executor, f"{broker.url}/1/q"))
        found = await source.receive(1)
        with pytest.raises(SourceUnavailable, match="Broken"):
            await source.ack(found)
        assert list(await source.extend(found)) == []
        await source.nack(found, delay=ZERO)
        await source.close()
        assert await is_away(source)


@pytest.mark.parametrize(
    ("queues", "waits"), [(["a"], [1]), (["a", "b", "c"], [0, 0, 0, 1])], ids=["one", "several"]
)
async def test_at_sqs_nobody_waits_before_every_queue_was_looked_at(
    executor: ThreadExecutor, queues: list[str], waits: list[int]
) -> None:
    """Who has room for one message only asks one queue at a time, and still finds what another has."""
    asked: list[int] = []

    def answer(request: Request) -> Answer:
        said = json.loads(request.body)
        if "WaitTimeSeconds" in said:
            asked.append(said["WaitTimeSeconds"])
        return Answer(body=b"{}")

    async with receiver(answer=answer) as broker:
        urls = [f"{broker.url}/1/{queue}" for queue in queues]
        source = await opener("sqs")({**KEYS, "url": broker.url}, supplies(executor, *urls))
        assert list(await source.receive(1)) == []
        await source.close()

    assert asked == waits
