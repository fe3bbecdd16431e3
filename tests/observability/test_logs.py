"""The story that log lines tell, and what never gets into them."""

import asyncio
import json
import logging
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from io import StringIO

import pytest

from penstock.observability.logs import ConsoleFormatter, JsonFormatter, configure, redacted
from penstock.observability.story import EVERY_S, Story, keep_telling
from penstock.ports.events import (
    Called,
    Claimed,
    Event,
    Halted,
    Housekept,
    JobDied,
    LaneChanged,
    LaneFailed,
    LeaderChanged,
    LeaseLost,
    Move,
    NodeStarted,
    NodeStopped,
    Recovered,
    ReturnedJobs,
    SettledBatch,
    SinkFailed,
    StoreBack,
    StoreFailed,
    StoreGivenUp,
    TargetChanged,
)
from tests.observability.ticking import Ticking

SECOND = timedelta(seconds=1)


@pytest.fixture
def clock() -> Ticking:
    return Ticking()


@pytest.fixture
def story(clock: Ticking, caplog: pytest.LogCaptureFixture) -> Story:
    caplog.set_level(logging.DEBUG, logger="penstock.node")
    return Story(logging.getLogger("penstock.node"), clock.monotonic)


def called(lane: str = "orders", *, lag: float = 0.003, **outcomes: int) -> Called:
    return Called(lane=lane, sink="http", jobs=sum(outcomes.values()), outcomes=outcomes, took=0.02, lag=lag)


def settled(lane: str = "orders", *, refused: int = 0) -> SettledBatch:
    return SettledBatch(lane=lane, epoch=1, applied=1, refused=refused, outcomes={}, took=0.001)


def test_a_batch_is_one_line(story: Story, caplog: pytest.LogCaptureFixture) -> None:
    story(called(accepted=12, tryagain=1))
    assert caplog.messages == []
    story(settled())

    assert caplog.messages == ["orders: 12 sent, 1 to retry, 3 ms after due"]
    fields = caplog.records[0].fields  # type: ignore[attr-defined]
    assert (fields["lane"], fields["sent"], fields["to_retry"], fields["lag_ms"]) == ("orders", 12, 1, 3.0)


def test_at_debug_every_move_of_a_job_is_a_line(story: Story, caplog: pytest.LogCaptureFixture) -> None:
    moves = [
        Move(job="01K", group="g", node=7, epoch=9, attempt=1, to="succeeded", traceparent="00-a-b-01"),
        Move(job="01L", group=None, node=7, epoch=9, attempt=2, to="failed", why="HTTP 500", refused=True),
    ]
    story(Recovered(lane="orders", fates={"running": 2}, each=lambda: moves))

    assert caplog.messages == [
        "orders: job 01K of group g succeeded; attempt 1, epoch 9, node 7",
        "orders: job 01L failed (HTTP 500), not written: no longer ours; attempt 2, epoch 9, node 7",
        "orders: 2 running, its time begins anew",
    ]
    fields = caplog.records[0].fields  # type: ignore[attr-defined]
    assert fields == {
        "event": "JobMoved",
        "lane": "orders",
        "job": "01K",
        "group": "g",
        "node": 7,
        "epoch": 9,
        "attempt": 1,
        "to": "succeeded",
        "why": None,
        "refused": False,
        "traceparent": "00-a-b-01",
    }


def test_at_info_nobody_asks_for_the_moves_of_a_batch(story: Story, caplog: pytest.LogCaptureFixture) -> None:
    asked = list[str]()

    def each() -> list[Move]:
        asked.append("asked")
        return []

    caplog.set_level(logging.INFO, logger="penstock.node")
    story(Claimed(lane="orders", epoch=9, jobs=3, groups=True, took=0.002, each=each))
    assert asked == []

    caplog.set_level(logging.DEBUG, logger="penstock.node")
    story(Claimed(lane="orders", epoch=9, jobs=3, groups=True, took=0.002, each=each))
    assert asked == ["asked"]
    assert "each" not in caplog.records[-1].fields  # type: ignore[attr-defined]


def test_everything_a_lane_can_meet_is_in_its_line(story: Story, caplog: pytest.LogCaptureFixture) -> None:
    story(called(accepted=1, duplicate=2, rejected=3, throttled=4, unknown=5, notcalled=6, lag=12.0))
    story(ReturnedJobs(lane="orders", jobs=6, why="paused"))
    story(settled(refused=7))

    assert caplog.messages == [
        (
            "orders: 3 sent, 2 duplicate, 6 not sent, 3 rejected, 4 throttled, 5 of unknown fate,"
            " 6 given back (paused), 7 refused: somebody else had taken over, 12 s after due"
        )
    ]


def test_much_traffic_is_summed_up_once_a_second(
    story: Story, clock: Ticking, caplog: pytest.LogCaptureFixture
) -> None:
    for number in range(3000):
        clock.seconds += 0.001
        story(called(accepted=1, lag=clock.seconds - 1000))
        story(settled())
        if number % 250 == 0:
            story.tell_waiting()
    story.tell_waiting(all=True)

    assert len(caplog.messages) <= 5
    assert sum(record.fields["sent"] for record in caplog.records) == 3000  # type: ignore[attr-defined]
    assert "up to 3000 ms after due" in caplog.messages[-1]


def test_a_quiet_lane_is_told_at_once_whatever_another_does(
    story: Story, clock: Ticking, caplog: pytest.LogCaptureFixture
) -> None:
    story(called(accepted=1))
    story(settled())
    story(called("pay", accepted=2))
    story(settled("pay"))
    assert caplog.messages == ["orders: 1 sent, 3 ms after due", "pay: 2 sent, 3 ms after due"]

    clock.seconds += EVERY_S
    story.tell_waiting()
    story(called(accepted=3))
    story(settled())
    assert caplog.messages[2:] == ["orders: 3 sent, 3 ms after due"]


def test_what_no_later_batch_tells_is_told_in_time(
    story: Story, clock: Ticking, caplog: pytest.LogCaptureFixture
) -> None:
    for number in (1, 2):
        story(called(accepted=number))
        story(settled())
    story.tell_waiting()
    assert caplog.messages == ["orders: 1 sent, 3 ms after due"]

    clock.seconds += EVERY_S
    story.tell_waiting()
    story.tell_waiting()
    assert caplog.messages[1:] == ["orders: 2 sent, 3 ms after due"]


async def test_what_is_left_is_told_at_the_end(story: Story, caplog: pytest.LogCaptureFixture) -> None:
    stop = asyncio.Event()
    async with asyncio.TaskGroup() as group:
        group.create_task(keep_telling(story, stop))
        story(called(accepted=1))
        story(settled())
        story(called(accepted=2))
        stop.set()

    assert caplog.messages == ["orders: 1 sent, 3 ms after due", "orders: 2 sent, 3 ms after due"]


@pytest.mark.parametrize(
    ("event", "level", "words"),
    [
        (
            JobDied(lane="orders", job="01K", reason="exhausted", error="500 from https://t"),
            "WARNING",
            (
                "orders: job 01K is dead: exhausted (500 from https://t); what happened: penstock jobs"
                ' timeline 01K; once that is fixed: penstock jobs retry 01K --reason "..."'
            ),
        ),
        (
            NodeStarted(node=7, name="host:1", store="sqlite:///p.db"),
            "INFO",
            "node 7 (host:1) serves sqlite:///p.db",
        ),
        (NodeStopped(node=7, returned=3), "INFO", "node 7 stopped; while it ran, 3 jobs went back unsent"),
        (LeaderChanged(node=7, term=3, leads=True), "INFO", "node 7 leads (term 3)"),
        (LeaderChanged(node=7, term=3, leads=False), "INFO", "node 7 no longer leads (term 3)"),
        (
            StoreFailed(part="claim", error="refused", failures=1),
            "WARNING",
            "the store failed claim: refused; jobs wait, none is lost, it is tried again",
        ),
        (
            StoreFailed(part="claim", error="refused", failures=4),
            "WARNING",
            "the store failed claim 4 times in a row: refused; jobs wait, none is lost, it is tried again",
        ),
        (
            StoreFailed(part="claim", error="refused", failures=5),
            "DEBUG",
            "the store failed claim 5 times in a row: refused; jobs wait, none is lost, it is tried again",
        ),
        (StoreBack(part="claim", after=4.25), "INFO", "the store answers claim again after 4.2 s"),
        (
            StoreGivenUp(part="claim"),
            "INFO",
            "claim no longer waits for the store: there is nothing left for it to do there",
        ),
        (
            LaneFailed(lane="orders", error="KeyError: 'x'", trace="Traceback ...", pause=5 * SECOND),
            "ERROR",
            (
                "orders: its pass failed: KeyError: 'x'; the lane pauses for 5s, others go on. This is a bug"
                " in Penstock or in a sink: please report it with the trace"
            ),
        ),
        (
            SinkFailed(sink="billing", error="no such queue", pause=2 * SECOND, lane="orders"),
            "WARNING",
            "orders: sink billing took nothing: no such queue; its jobs wait, next try in 2s",
        ),
        (
            SinkFailed(sink="billing", error="no such queue", pause=5 * SECOND),
            "WARNING",
            (
                "sink billing cannot be opened: no such queue; its lanes wait, next try in 5s. Look with"
                " penstock doctor"
            ),
        ),
        (
            Halted(node=7, by="ann", reason="a new machine"),
            "INFO",
            (
                "node 7 was told to drain by ann (a new machine): it claims nothing more; penstock nodes"
                " resume 7 lets it go on"
            ),
        ),
        (Halted(node=7), "INFO", "node 7 goes on"),
        (
            Halted(node=None, by="ann", until=datetime(2025, 11, 15, 12, 0, 1, tzinfo=UTC)),
            "INFO",
            (
                "the whole store is paused by ann until 2025-11-15T12:00:01Z: nothing is sent; penstock"
                " resume-all lets it go"
            ),
        ),
        (Halted(node=None), "INFO", "the whole store goes on"),
        (
            LaneChanged(lane="orders", version=5, stopped=True),
            "INFO",
            "orders: version 5 of its settings is in force, it is stopped",
        ),
        (
            TargetChanged(target="https://t", state="open", failures=5, wait=30 * SECOND),
            "WARNING",
            "target https://t: breaker open after 5 failures in a row; its jobs wait, next try in 30s",
        ),
        (
            TargetChanged(target="https://t", state="closed", failures=0, wait=30 * SECOND),
            "WARNING",
            "target https://t asked to be left alone for 30s; its jobs wait",
        ),
        (
            TargetChanged(target="https://t", state="closed", failures=0, wait=None),
            "INFO",
            "target https://t answers again; its jobs go on",
        ),
        (
            LeaseLost(lane="orders", epoch=9, jobs=3),
            "WARNING",
            (
                "orders: lost the lease on claim 9; 3 jobs with no outcome on record are left to its new"
                " holder. If this"
                " happens often, raise the lane's lease or look for a busy machine"
            ),
        ),
        (
            Recovered(lane="orders", fates={"requeued": 2, "held": 1, "dead": 0}),
            "WARNING",
            "orders: recovered what a node or an executor left: 1 held, 2 requeued",
        ),
        (
            Recovered(lane="orders", fates={"running": 1}),
            "DEBUG",
            "orders: 1 running, its time begins anew",
        ),
        (Housekept(did={"expired": 2}), "DEBUG", "housekeeping: 2 expired"),
        (Housekept(did={}), "DEBUG", "housekeeping: nothing to do"),
        (
            Claimed(lane="orders", epoch=9, jobs=3, groups=True, took=0.002),
            "DEBUG",
            "orders: claimed 3 under epoch 9 in 2 ms",
        ),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, Event) else "",
)
def test_an_event_is_told(
    story: Story, caplog: pytest.LogCaptureFixture, event: Event, level: str, words: str
) -> None:
    story(event)

    assert [(record.levelname, record.getMessage()) for record in caplog.records] == [(level, words)]
    assert caplog.records[0].fields["event"] == type(event).__name__  # type: ignore[attr-defined]


def test_an_outage_is_not_told_by_each_of_many_calls(story: Story, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, logger="penstock.node")
    for failures in (1, 1, 1, 2, 1, 2, 3, 4):
        story(StoreFailed(part="settle", error="refused", failures=failures))
    story(StoreFailed(part="scout", error="refused", failures=1))
    story(StoreBack(part="settle", after=4.0))
    story(StoreFailed(part="settle", error="refused", failures=1))

    told = [record.fields for record in caplog.records]  # type: ignore[attr-defined]
    assert [(one["part"], one.get("failures")) for one in told] == [
        ("settle", 1),
        ("settle", 2),
        ("settle", 4),
        ("scout", 1),
        ("settle", None),
        ("settle", 1),
    ]


def record(message: str, **fields: object) -> logging.LogRecord:
    made = logging.LogRecord("penstock.node", logging.WARNING, __file__, 1, "%s", (message,), None)
    made.created = 1763208000.25
    made.fields = fields
    return made


def test_a_line_for_people() -> None:
    assert ConsoleFormatter().format(record("orders: 1 sent")) == "12:00:00.250 warning: orders: 1 sent"


def test_a_line_for_machines() -> None:
    line = JsonFormatter().format(record("orders: 1 sent", lane="orders", sent=1, level="forged"))

    assert json.loads(line) == {
        "at": "2025-11-15T12:00:00.250Z",
        "level": "warning",
        "logger": "penstock.node",
        "message": "orders: 1 sent",
        "lane": "orders",
        "sent": 1,
    }


@pytest.mark.parametrize("formatter", [ConsoleFormatter(), JsonFormatter()], ids=["console", "json"])
def test_an_answer_cannot_forge_a_line(formatter: logging.Formatter) -> None:
    line = formatter.format(record("500 from t\r\n12:00:00 info all is well\x1b[2J\ud800"))

    assert len(line.splitlines()) == 1
    assert "\x1b" not in line
    line.encode()


@pytest.mark.parametrize("formatter", [ConsoleFormatter(), JsonFormatter()], ids=["console", "json"])
def test_a_trace_is_kept(formatter: logging.Formatter) -> None:
    assert "line 42" in formatter.format(record("a bug", trace='File "x", line 42'))

    made = record("a bug")
    made.exc_info = (KeyError, KeyError("lost"), None)
    assert "KeyError: 'lost'" in formatter.format(made)


CANARY = "s3cr3tcanary99"


@pytest.mark.parametrize(
    "text",
    [
        f"postgresql://ann:{CANARY}@host/db",
        f"amqp://ann:{CANARY}@host",
        f"postgresql://ann:a#b?c@{CANARY}@host/db",
        f"postgresql://ann:a/{CANARY}@host/db",
        f"whsec_{CANARY}=",
        f"pk_{CANARY}",
        f"Authorization: Bearer {CANARY}",
        f"Basic {CANARY}",
        f"password={CANARY}",
        f"db_password = {CANARY}",
        f"?api_key={CANARY}&x=1",
        f'{{"client_secret": "{CANARY}"}}',
        f"{{'token': '{CANARY}'}}",
        f"eyJhbGciOiJIUzI1NiJ9.eyJ{CANARY}.{CANARY}",
    ],
)
@pytest.mark.parametrize("formatter", [ConsoleFormatter(), JsonFormatter()], ids=["console", "json"])
def test_no_secret_passes(formatter: logging.Formatter, text: str) -> None:
    for line in (formatter.format(record(f"failed: {text}")), formatter.format(record("x", trace=text))):
        assert CANARY not in line
        if isinstance(formatter, JsonFormatter):
            json.loads(line)


@pytest.mark.parametrize(
    "text",
    [
        "orders: 3 given back (no token)",
        "https://t:8080/hook answered 500",
        "https://t:8080/users/bob@example.com answered 500",
        "https://[::1]:8080/users/bob@example.com answered 500",
        "no token: wait",
        "sqlite:///p.db",
    ],
)
def test_what_is_no_secret_is_left_alone(text: str) -> None:
    assert redacted(text) == text


@pytest.fixture
def _logging_as_before() -> Iterator[None]:
    root, ours = logging.getLogger(), logging.getLogger("penstock")
    before = root.handlers[:], root.level, ours.level
    yield
    root.handlers[:] = before[0]
    root.setLevel(before[1])
    ours.setLevel(before[2])


@pytest.mark.usefixtures("_logging_as_before")
@pytest.mark.parametrize("form", ["console", "json"])
def test_a_process_logs_its_own_from_its_level_and_warnings_of_others(form: str) -> None:
    stream = StringIO()
    configure(level="info", form=form, stream=stream)

    logging.getLogger("penstock.node").info("told")
    logging.getLogger("penstock.node").debug("too fine")
    logging.getLogger("some.library").info("chatter")
    logging.getLogger("some.library").warning("beware")

    lines = stream.getvalue().splitlines()
    assert len(lines) == 2
    assert "told" in lines[0]
    assert "beware" in lines[1]
