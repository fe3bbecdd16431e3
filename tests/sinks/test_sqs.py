"""Amazon SQS, standard and FIFO queues, on moto's server."""

import json
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractContextManager, asynccontextmanager
from datetime import datetime, timedelta
from itertools import count
from pathlib import Path
from random import Random
from typing import Any

import boto3
import pytest

from penstock.domain.outcomes import Accepted, Receipt, Rejected, Unsent
from penstock.domain.states import JobState, Reason
from penstock.ports.clock import SystemClock
from penstock.ports.events import SinkFailed
from penstock.ports.executor import ThreadExecutor
from penstock.ports.sink import UNKNOWN, Envelope, Options, Probed, Sink, SinkUnavailable
from penstock.ports.store import Ask
from penstock.sinks.sqs import group_id, open_sqs
from penstock.testing.receiver import Answer, Request, receiver
from penstock.testing.sink_suite import Arrived, SinkSuite
from tests.brokers import Sqs
from tests.sinks.line import Came, line
from tests.sinks.network import Network, answers_lost, cut_meanwhile, cut_off, meanwhile, network, slow_down
from tests.sinks.opening import complaint, opened, supplies

NAMES = count()
KEYS = {"access_key": "test", "secret_key": "test", "region": "eu-central-1"}


class Bed:
    """A queue of its own; what is in it is read with Amazon's own client, past the network."""

    largest = 255 * 1024

    def __init__(self, server: Sqs, net: Network, executor: ThreadExecutor, *, fifo: bool) -> None:
        self.net = net
        self.executor = executor
        self.fifo = fifo
        self.supplies = supplies(executor)
        self.writer = self.supplies.writer("sqs", format="pointer")
        self.client: Any = boto3.client(
            "sqs",
            endpoint_url=server.url,
            region_name="eu-central-1",
            aws_access_key_id="test",
            aws_secret_access_key="test",  # noqa: S106
        )
        self.queue = f"q{next(NAMES)}" + (".fifo" if fifo else "")
        attributes = {"FifoQueue": "true"} if fifo else {}
        self.queue_url = self.client.create_queue(QueueName=self.queue, Attributes=attributes)["QueueUrl"]
        self.seen: list[dict[str, Any]] = []

    async def open(self, **options: str | bool) -> Sink:
        given: Options = KEYS | {"url": f"http://127.0.0.1:{self.net.port}", "fifo": self.fifo} | options
        return await open_sqs(given, self.supplies)

    def address(self, envelope: Envelope) -> Envelope:
        return envelope._replace(queue=self.queue_url, group="g", format="payload")

    def body(self, envelope: Envelope) -> bytes:
        return self.writer.body(envelope)

    async def messages(self, number: int) -> list[dict[str, Any]]:
        """Take messages from the queue until so many have come."""
        while len(self.seen) < number:
            self.seen += await self.executor.run(self._receive)
        return self.seen

    async def more(self) -> list[dict[str, Any]]:
        """Return everything there was, once the queue gives no more."""
        while found := await self.executor.run(self._receive):
            self.seen += found
        return self.seen

    def _receive(self) -> list[dict[str, Any]]:
        found = self.client.receive_message(
            QueueUrl=self.queue_url,
            MaxNumberOfMessages=10,
            AttributeNames=["All"],
            MessageAttributeNames=["All"],
        ).get("Messages", [])
        for one in found:
            self.client.delete_message(QueueUrl=self.queue_url, ReceiptHandle=one["ReceiptHandle"])
        return list(found)

    async def arrived(self, number: int) -> Sequence[Arrived]:
        return [
            Arrived(one["MessageAttributes"]["X-Penstock-Job-Id"]["StringValue"], one["Body"].encode())
            for one in await self.messages(number)
        ]

    def spoil(self, envelope: Envelope) -> Envelope | None:
        return envelope._replace(payload='"\uffff"', group="spoilt")

    def stall(self) -> AbstractContextManager[None]:
        return self.net.holding_answers()

    async def break_down(self) -> bool:
        await self.net.go_down()
        return True


@asynccontextmanager
async def bed_of(server: Sqs, executor: ThreadExecutor, *, fifo: bool) -> AsyncIterator[Bed]:
    async with network(server.port) as net:
        yield Bed(server, net, executor, fifo=fifo)


@pytest.fixture
async def standard(sqs_server: Sqs, executor: ThreadExecutor) -> AsyncIterator[Bed]:
    async with bed_of(sqs_server, executor, fifo=False) as bed:
        yield bed


@pytest.fixture
async def fifo(sqs_server: Sqs, executor: ThreadExecutor) -> AsyncIterator[Bed]:
    async with bed_of(sqs_server, executor, fifo=True) as bed:
        yield bed


class TestStandard(SinkSuite):
    @pytest.fixture
    def bed(self, standard: Bed) -> Bed:
        return standard


class TestFifo(SinkSuite):
    @pytest.fixture
    def bed(self, fifo: Bed) -> Bed:
        return fifo


def envelope(number: int = 1, *, group: str | None = "g", send: int = 1, **more: str) -> Envelope:
    facts: dict[str, Any] = {"payload": "{}", "mode": "block_on_error"} | more
    return Envelope(f"01SQS{number:021}", send, "orders", 1, group=group, sequence=number, **facts)


async def test_a_pointer_is_sent_to_the_lanes_queue_by_name_with_group_and_dedup_id(fifo: Bed) -> None:
    async with opened(fifo.open()) as sink:
        [receipt] = await sink.send([envelope(queue=fifo.queue)])
        [came] = await fifo.messages(1)

    assert receipt == Accepted(came["MessageId"])
    assert json.loads(came["Body"]) == {
        "id": envelope().id,
        "poolCode": "DISPATCH-POOL",
        "authToken": "",
        "mediationType": "HTTP",
        "mediationTarget": "http://node/process",
        "messageGroupId": "g",
        "send": 1,
    }
    assert came["Attributes"]["MessageGroupId"] == "g"
    assert came["Attributes"]["MessageDeduplicationId"] == f"{envelope().id}:1"
    assert {name: value["StringValue"] for name, value in came["MessageAttributes"].items()} == {
        "X-Penstock-Job-Id": envelope().id,
        "X-Penstock-Send": "1",
        "X-Penstock-Lane": "orders",
    }


async def test_messages_without_an_order_are_groups_of_their_own(fifo: Bed) -> None:
    label = envelope(1, queue=fifo.queue, mode="immediate")
    async with opened(fifo.open(queue=fifo.queue)) as sink:
        await sink.send([label, envelope(2, group=None), envelope(3)])
        came = await fifo.messages(3)

    assert {one["Attributes"]["MessageGroupId"] for one in came} == {label.id, envelope(2).id, "g"}


def test_a_group_that_sqs_would_refuse_is_hashed() -> None:
    assert group_id("tenant-7/orders:42") == "tenant-7/orders:42"
    assert group_id("a" * 128) == "a" * 128
    for unfit in ("a" * 129, "two words", "żółw", "line\nbreak"):
        assert group_id(unfit) != group_id(unfit + "x")
        assert len(group_id(unfit)) == len("sha256:") + 64


async def test_it_says_what_it_keeps(fifo: Bed, standard: Bed) -> None:
    async with opened(fifo.open()) as sink:
        assert (sink.keeps_order, sink.max_batch) == (True, 10)
        assert await sink.probe([envelope()]) == [Probed(UNKNOWN)]
    async with opened(standard.open()) as sink:
        assert not sink.keeps_order
    async with opened(standard.open(fifo=False, queue=standard.queue)) as sink:
        assert not sink.keeps_order


async def test_a_retry_is_delivered_and_a_re_send_after_a_crash_is_not(fifo: Bed) -> None:
    """SQS knows a send for five minutes; a retry comes as a send of its own."""
    first = envelope(queue=fifo.queue)
    async with opened(fifo.open()) as sink:
        receipts = [
            *await sink.send([first]),
            *await sink.send([first]),
            *await sink.send([first._replace(number=2)]),
        ]
        came = await fifo.more()

    assert [type(receipt) for receipt in receipts] == [Accepted] * 3
    assert dedup_ids(came) == [f"{first.id}:1", f"{first.id}:2"]


class Moved(SystemClock):
    """A clock that can be moved, together with that of the broker."""

    def __init__(self, server: Sqs) -> None:
        self._server = server
        self.ahead = timedelta()

    def now(self) -> datetime:
        return super().now() + self.ahead

    def move(self, time: timedelta) -> None:
        self._server.advance(time.total_seconds())
        self.ahead += time


async def test_a_retry_one_minute_after_a_failed_attempt_is_delivered(
    fifo: Bed, tmp_path: Path, executor: ThreadExecutor, sqs_server: Sqs
) -> None:
    """SQS still swallows the first send at that moment: the retry gets through because it is another one."""
    clock = Moved(sqs_server)
    settings = {"complete_on": "reported", "retry": ["0s", "1m"]}
    async with (
        opened(fifo.open(queue=fifo.queue)) as sink,
        line(tmp_path, sink, {}, clock=clock, **settings) as ours,
    ):
        store = ours.engine.store
        [job] = ours.engine.enqueue({"group": "g", "payload": 1})
        async with ours.engine.node():
            await ours.engine.ended(job, state=JobState.DISPATCHED)
            await fifo.messages(1)  # taken, and deleted
            before = clock.now()
            await executor.run(lambda: ours.engine.client.report(job, 1, "failed", error="no stock"))
            await ours.engine.ended(job, state=JobState.PENDING)
            clock.move(store.find([job])[job].live.due_at - before)
            assert clock.ahead >= timedelta(minutes=1)
            swallowed = Envelope(job, 1, "orders", 1, "1", group="g", mode="block_on_error", format="payload")
            await sink.send([swallowed])
            await fifo.messages(2)
        came = await fifo.more()

    assert dedup_ids(came) == [f"{job}:1", f"{job}:2"]


@pytest.mark.parametrize(("minutes", "times"), [(4, 1), (6, 2)])
async def test_what_a_node_sent_before_it_died_is_taken_once_within_five_minutes(
    fifo: Bed, tmp_path: Path, sqs_server: Sqs, minutes: int, times: int
) -> None:
    """Its claim lapses, another node repeats the send under its number, and SQS knows that for so long."""
    clock = Moved(sqs_server)
    async with (
        opened(fifo.open(queue=fifo.queue)) as sink,
        line(tmp_path, sink, {}, clock=clock) as ours,
    ):
        [job] = ours.engine.enqueue({"group": "g", "payload": 1})
        dying = Ask(lane="orders", node=99, lease=timedelta(milliseconds=1))
        claim = ours.engine.store.claim_groups(dying)
        assert claim is not None
        number = claim.jobs[0].job.current_send
        sent = Envelope(job, number, "orders", 1, "1", group="g", mode="block_on_error", format="payload")
        assert [type(receipt) for receipt in await sink.send([sent])] == [Accepted]
        await fifo.messages(1)  # taken, and deleted: SQS knows it nevertheless
        clock.move(timedelta(minutes=minutes))
        async with ours.engine.node(recover_every=timedelta(milliseconds=100)):
            await ours.engine.ended(job)
        came = await fifo.more()

        assert [row.outcome for row in ours.engine.store.timeline(job).attempts] == ["lapsed"]
    assert dedup_ids(came) == [f"{job}:1"] * times


def dedup_ids(came: Sequence[dict[str, Any]]) -> list[str]:
    return [one["Attributes"]["MessageDeduplicationId"] for one in came]


async def test_what_comes_into_sight_again_comes_in_order(fifo: Bed, sqs_server: Sqs) -> None:
    """That the server is like Amazon's: all of a group that were out come again from the first on."""
    queue = {"QueueUrl": fifo.queue_url}
    async with opened(fifo.open(queue=fifo.queue)) as sink:
        await sink.send([envelope(number) for number in range(4)])
    out = fifo.client.receive_message(**queue, MaxNumberOfMessages=3)["Messages"]
    assert fifo.client.receive_message(**queue).get("Messages", []) == []
    for one in out:
        receipt = {"ReceiptHandle": one["ReceiptHandle"]}
        fifo.client.change_message_visibility(**queue, **receipt, VisibilityTimeout=60)
    sqs_server.advance(61)

    assert dedup_ids(await fifo.more()) == [f"{envelope(number).id}:1" for number in range(4)]


async def test_what_is_too_large_or_unfit_is_refused_and_the_rest_goes(standard: Bed) -> None:
    good = [envelope(n, group=None, payload='"' + "x" * 100_000 + '"') for n in range(6)]
    large = envelope(7, group=None, payload='"' + "ü" * 131_072 + '"')
    unfit = envelope(8, group=None, payload='"\ufffe"')
    batch = [e._replace(queue=standard.queue, format="payload") for e in [*good, large, unfit]]
    async with opened(standard.open()) as sink:
        receipts = await sink.send(batch)
        came = await standard.messages(6)

    assert [type(receipt) for receipt in receipts] == [Accepted] * 6 + [Rejected] * 2
    assert isinstance(receipts[6], Rejected)
    assert receipts[6].reason is Reason.TOO_LARGE
    assert "this sink takes 256KiB" in receipts[6].error
    assert receipts[7] == Rejected('the message holds U+FFFE, which SQS refuses: send format = "pointer"')
    assert sorted(one["Body"] for one in came) == sorted(str(e.payload) for e in good)


async def test_a_queue_that_is_missing_costs_no_attempt(standard: Bed) -> None:
    async with opened(standard.open()) as sink:
        with pytest.raises(SinkUnavailable, match='there is no queue "nowhere": create it'):
            await sink.send([envelope(queue="nowhere")])
        missing, there = await sink.send(
            [envelope(1, group=None, queue="nowhere"), envelope(2, group=None, queue=standard.queue)]
        )
    assert isinstance(missing, Unsent)
    assert isinstance(there, Accepted)


async def test_a_standard_queue_is_refused_where_order_was_promised(fifo: Bed, standard: Bed) -> None:
    async with opened(fifo.open()) as sink:
        with pytest.raises(SinkUnavailable, match="is not FIFO"):
            await sink.send([envelope(queue=standard.queue)])


SLOW_DOWN = b'{"__type":"com.amazonaws.sqs#ThrottlingException","message":"slow down"}'
THROTTLED = (
    b"HTTP/1.1 400 Bad Request\r\nContent-Type: application/x-amz-json-1.0\r\nContent-Length: %d\r\n\r\n"
    % len(SLOW_DOWN)
) + SLOW_DOWN


@pytest.mark.parametrize(
    "fifo", [pytest.param(False, marks=pytest.mark.soak), True], ids=["standard", "fifo"]
)
async def test_a_node_loses_nothing_through_cuts_a_restart_and_throttling(
    executor: ThreadExecutor,
    tmp_path: Path,
    sqs_server: Sqs,
    fifo: bool,  # noqa: FBT001
) -> None:
    """A FIFO queue has every send once: what is sent again after a lost answer has the same number."""
    with Sqs.running() as server:

        async def restart() -> None:
            """Kill the server; until it is back with all it had, nobody gets through."""
            await bed.net.go_down()
            await executor.run(server.restart)
            await bed.net.come_up()

        async with bed_of(server, executor, fifo=fifo) as bed, opened(bed.open(queue=bed.queue)) as sink:
            net = bed.net
            troubles = [
                answers_lost(net),
                cut_off(net),
                slow_down(net, THROTTLED),
                cut_meanwhile(net),
                meanwhile(restart()),
            ]
            async with line(tmp_path, sink, dict(zip((2, 4, 6, 8, 10), troubles, strict=True))) as ours:
                await ours.carry(groups=8, per_group=11)
                came = [_came(one) for one in await bed.more()]
                ours.judge(came, dedups=fifo)

                assert ours.tried["unanswered"]
                assert ours.tried["deferred"]
                assert ours.engine.seen(SinkFailed)


def _came(one: dict[str, Any]) -> Came:
    """Read a message, received or still to be sent."""
    facts = {name: value["StringValue"] for name, value in one["MessageAttributes"].items()}
    body = one.get("Body") or one["MessageBody"]
    return Came(facts["X-Penstock-Job-Id"], int(facts["X-Penstock-Send"]), body.encode())


# -- what moto never says: a server of our own that answers as SQS is documented to


def sqs_says(*, failed: dict[str, dict[str, object]]) -> Callable[[Request], Answer]:
    """Answer batches; the entry of each job named here fails with what is given."""

    def answer(request: Request) -> Answer:
        if not request.headers["x-amz-target"].endswith("SendMessageBatch"):
            return Answer(body=b"{}", headers={"Content-Type": "application/x-amz-json-1.0"})
        good, bad = [], []
        for entry in json.loads(request.body)["Entries"]:
            said = failed.get(json.loads(entry["MessageBody"])["id"])
            if said is None:
                good.append({"Id": entry["Id"], "MessageId": "m", "MD5OfMessageBody": ""})
            else:
                bad.append({"Id": entry["Id"], "Code": "X", "SenderFault": False} | said)
        body = json.dumps({"Successful": good, "Failed": bad}).encode()
        return Answer(body=body, headers={"Content-Type": "application/x-amz-json-1.0"})

    return answer


def refusal(code: str, status: int = 400) -> Callable[[Request], Answer]:
    """Answer everything with this error."""
    body = json.dumps({"__type": f"com.amazonaws.sqs#{code}", "message": "no"}).encode()
    return lambda _: Answer(status=status, body=body, headers={"Content-Type": "application/x-amz-json-1.0"})


@asynccontextmanager
async def scripted(
    executor: ThreadExecutor, answer: Callable[[Request], Answer], **options: str | bool
) -> AsyncIterator[tuple[Sink, Callable[[], list[list[str]]]]]:
    """Give a sink whose SQS answers so, and what tells which jobs each call carried."""
    async with receiver(answer=answer) as received:
        given: Options = KEYS | {"url": received.url, "fifo": True} | options
        sink = await open_sqs(given, supplies(executor))
        try:
            yield (
                sink,
                lambda: [
                    [json.loads(entry["MessageBody"])["id"] for entry in json.loads(request.body)["Entries"]]
                    for request in received.requests
                    if b"Entries" in request.body
                ],
            )
        finally:
            await sink.close()


URL = "https://sqs.eu-central-1.amazonaws.com/1/q.fifo"


async def test_a_batch_that_fails_in_part_never_reorders_a_group(executor: ThreadExecutor) -> None:
    a1, a2, a3 = (envelope(n, group="a", queue=URL) for n in (1, 2, 3))
    b1, b2 = (envelope(n, group="b", queue=URL) for n in (4, 5))
    async with scripted(executor, sqs_says(failed={a2.id: {"Code": "InternalError"}})) as (sink, calls):
        receipts = await sink.send([a1, b1, a2, b2, a3])

    assert calls() == [[a1.id, b1.id], [a2.id, b2.id]]
    assert [type(receipt).__name__ for receipt in receipts] == [
        *("Accepted", "Accepted", "TryAgain", "Accepted", "Unsent")
    ]
    assert receipts[4] == Unsent("not sent: it is behind a failure in its group")


async def test_a_node_whose_batches_fail_in_part_keeps_every_group_in_order(
    executor: ThreadExecutor, tmp_path: Path
) -> None:
    """A third of all entries is refused by SQS, each for itself, and comes again in its place."""
    rng, came = Random(5), list[Came]()  # noqa: S311

    def answer(request: Request) -> Answer:
        entries = json.loads(request.body).get("Entries", ())
        refused = [entry for entry in entries if rng.random() < 0.3]
        taken = [entry for entry in entries if entry not in refused]
        came.extend(map(_came, taken))
        said = {
            "Successful": [{"Id": entry["Id"], "MessageId": "m", "MD5OfMessageBody": ""} for entry in taken],
            "Failed": [
                {"Id": entry["Id"], "Code": "InternalError", "SenderFault": False} for entry in refused
            ],
        }
        return Answer(body=json.dumps(said).encode(), headers={"Content-Type": "application/x-amz-json-1.0"})

    async with scripted(executor, answer, queue=URL) as (sink, _), line(tmp_path, sink, {}) as ours:
        await ours.carry(groups=5, per_group=12)
        ours.judge(came, dedups=True)

        assert ours.tried["failed"]


@pytest.mark.parametrize(
    ("said", "kind"),
    [
        ({"Code": "InternalError", "Message": "oh"}, "TryAgain"),
        ({"Code": "RequestThrottled"}, "Throttled"),
        ({"Code": "InvalidMessageContents", "SenderFault": True}, "Rejected"),
    ],
)
async def test_what_a_refused_entry_means(
    executor: ThreadExecutor, said: dict[str, object], kind: str
) -> None:
    async with scripted(executor, sqs_says(failed={envelope().id: said})) as (sink, _):
        [receipt] = await sink.send([envelope(queue=URL)])

    assert type(receipt).__name__ == kind


async def answered(executor: ThreadExecutor, code: str, status: int) -> list[Receipt]:
    """Return what two messages of two groups get when SQS refuses every call with this error."""
    answers = [sqs_says(failed={})]

    def answer(request: Request) -> Answer:
        return answers[0](request)

    async with scripted(executor, answer) as (sink, _):
        answers[0] = refusal(code, status)
        return list(await sink.send([envelope(1, queue=URL, group="a"), envelope(2, queue=URL, group="b")]))


@pytest.mark.parametrize(
    ("code", "status", "kind"),
    [
        ("ThrottlingException", 400, "Throttled"),
        ("ServiceUnavailable", 503, "Throttled"),
        ("InternalFailure", 500, "Unknown"),
        ("InvalidParameterValue", 400, "Rejected"),
    ],
)
async def test_what_a_refused_call_means(executor: ThreadExecutor, code: str, status: int, kind: str) -> None:
    assert [type(receipt).__name__ for receipt in await answered(executor, code, status)] == [kind] * 2


@pytest.mark.parametrize(
    ("code", "status", "advice"),
    [
        ("AccessDeniedException", 400, "allow sqs:SendMessage"),
        ("ExpiredToken", 403, "check access_key, secret_key and session_token"),
        ("QueueDoesNotExist", 400, "create it"),
    ],
)
async def test_a_refusal_for_no_fault_of_a_message_says_what_to_do(
    executor: ThreadExecutor, code: str, status: int, advice: str
) -> None:
    with pytest.raises(SinkUnavailable, match=advice):
        await answered(executor, code, status)


async def test_what_is_wrong_is_said_when_it_is_opened(
    executor: ThreadExecutor, sqs_server: Sqs, monkeypatch: pytest.MonkeyPatch
) -> None:
    for variable in ("AWS_DEFAULT_REGION", "AWS_REGION", "AWS_PROFILE", "AWS_ACCESS_KEY_ID"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setenv("AWS_CONFIG_FILE", "/nowhere")
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", "/nowhere")
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    url = sqs_server.url

    assert "write region" in await complaint(open_sqs, executor)
    assert "no credentials" in await complaint(open_sqs, executor, url=url)
    assert "cannot be reached" in await complaint(open_sqs, executor, url="http://127.0.0.1:1", **KEYS)
    assert 'there is no queue "gone"' in await complaint(open_sqs, executor, url=url, queue="gone", **KEYS)
    assert "url: " in await complaint(open_sqs, executor, url="nonsense", **KEYS)
    assert "did you mean queue" in await complaint(open_sqs, executor, url=url, queu="x")
    assert "max_message" in await complaint(open_sqs, executor, url=url, max_message="big")
    assert "fifo: 'yes' is neither true nor false" in await complaint(open_sqs, executor, url=url, fifo="yes")
    async with receiver(answer=refusal("InvalidClientTokenId", 403)) as received:
        assert "check access_key" in await complaint(open_sqs, executor, url=received.url, **KEYS)
