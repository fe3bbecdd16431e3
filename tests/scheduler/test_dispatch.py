"""Jobs go at their time, in their order, and end as their sink says."""

import asyncio
import json
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta

import pytest

from penstock.domain.envelopes import Envelope
from penstock.domain.gates import Gate
from penstock.domain.lanes import SETTINGS
from penstock.domain.outcomes import Accepted, Receipt, Rejected, Throttled, TryAgain, Unknown, Unsent
from penstock.domain.states import JobState
from penstock.ports.events import Called, JobDied, LaneFailed, ReturnedJobs, SinkFailed
from penstock.ports.sink import SinkUnavailable
from penstock.scheduler import calling, outlets
from penstock.sinks.python import PythonSink
from penstock.stores.sql.database import Row
from penstock.stores.sql.store import SqlStore
from tests.scheduler.engine import Engine

LATER = datetime(9998, 12, 31, tzinfo=UTC)


async def test_what_is_due_is_sent_and_done(engine: Engine) -> None:
    async with engine.node():
        ids = engine.enqueue(*({"payload": n} for n in range(50)))
        await engine.ended(*ids)

    assert sorted(call.envelope.id for call in engine.sent) == sorted(ids)
    assert {call.envelope.number for call in engine.sent} == {1}


async def test_a_call_says_whom_it_went_to(engine: Engine) -> None:
    engine.lane(target="https://User:pw@Shop.example/hook")
    async with engine.node():
        await engine.ended(*engine.enqueue({}, {"target": "http://other.example:81/x"}))

    found = {event.target for event in engine.events if isinstance(event, Called)}
    assert found == {"https://shop.example", "http://other.example:81"}


async def test_a_pass_leaves_a_row_that_says_where_its_time_went(engine: Engine) -> None:
    def passes() -> list[Row]:
        assert isinstance(engine.store, SqlStore)
        sql = "SELECT claimed, settled, phases FROM penstock.ticks WHERE lane IS NOT NULL"
        return engine.store.db.read(lambda tx: tx.fetch(sql))

    async with engine.node():
        for _ in range(3):
            await engine.ended(*engine.enqueue({}))

    [(claimed, settled, phases)] = passes()  # those of some seconds together
    assert (claimed, settled) == (3, 3)
    took = json.loads(phases)
    assert took.keys() == {"claim", "confirm", "send", "settle"}
    assert min(took.values()) > 0


async def test_what_was_there_before_the_node_is_sent_too(engine: Engine) -> None:
    ids = engine.enqueue({}, {"mode": "block_on_error", "group": "a"})

    async with engine.node():
        await engine.ended(*ids)


async def test_a_future_job_goes_at_its_time_and_never_before(engine: Engine) -> None:
    engine.lane(lookahead="5s")
    async with engine.node():
        now = engine.store.now()
        due = [now + timedelta(milliseconds=700 + 10 * n) for n in range(30)]
        ids = engine.enqueue(*({"run_at": at} for at in due))
        await engine.ended(*ids)

    for id_, at in zip(ids, due, strict=True):
        live = engine.client.get(id_)
        assert live.finished_at is not None
        assert live.finished_at >= at


async def test_an_ordered_group_keeps_its_order_through_retries(engine: Engine) -> None:
    engine.lane(mode="block_on_error", retry=["0s", "50ms", "50ms", "50ms"])
    left = {"tries": 3}

    def flaky(envelope: Envelope) -> Receipt:
        left["tries"] -= 1
        return TryAgain("not now") if left["tries"] >= 0 else Accepted()

    ids = engine.enqueue(*({"group": "a"} for _ in range(5)))
    engine.answers[ids[1]] = flaky
    async with engine.node():
        await engine.ended(*ids)

    assert engine.order()["a"] == [ids[0], *[ids[1]] * 4, *ids[2:]]
    assert [c.envelope.number for c in engine.sent if c.envelope.id == ids[1]] == [1, 2, 3, 4]


async def test_a_dead_job_blocks_its_group_until_somebody_skips_it(engine: Engine) -> None:
    engine.lane(mode="block_on_error")
    ids = engine.enqueue({"group": "a"}, {"group": "a"}, {"group": "b"})
    engine.answers[ids[0]] = lambda _: Rejected("422 no such account")
    async with engine.node():
        await engine.ended(ids[2])
        await engine.ended(ids[0], state=JobState.DEAD)
        assert engine.client.get(ids[1]).state is JobState.PENDING

        engine.client.skip(ids[0], reason="refunded by hand")
        await engine.ended(ids[1])

    [died] = engine.seen(JobDied)
    assert isinstance(died, JobDied)
    assert (died.job, died.reason) == (ids[0], "permanent")


async def test_the_last_attempt_that_fails_is_the_end(engine: Engine) -> None:
    engine.lane(retry=["0s", "20ms", "20ms"])
    engine.answers["orders"] = lambda _: TryAgain("503 down")
    async with engine.node():
        [id_] = engine.enqueue({})
        await engine.ended(id_, state=JobState.DEAD)

    job = engine.client.get(id_)
    assert (job.live.attempt, job.live.reason, job.error) == (3, "exhausted", "503 down")
    assert len(engine.sent) == 3


async def test_a_throttled_job_comes_back_without_losing_an_attempt(engine: Engine) -> None:
    engine.lane(retry=["0s"])
    waits = iter([Throttled(timedelta(milliseconds=100)), None])
    engine.answers["orders"] = lambda _: next(waits)
    async with engine.node():
        [id_] = engine.enqueue({})
        await engine.ended(id_)

    job = engine.client.get(id_)
    assert (job.live.attempt, job.live.deferrals) == (1, 1)


async def test_what_did_not_go_out_costs_nothing_and_says_nothing_of_its_target(engine: Engine) -> None:
    """The target rests for nobody, its breaker stays closed, and no attempt is lost."""
    engine.lane(retry=["0s"], target="http://shop.test/hook")
    tried: set[str] = set()

    def answer(envelope: Envelope) -> Receipt | None:
        first = envelope.id not in tried
        tried.add(envelope.id)
        return Unsent("no place", timedelta(milliseconds=1)) if first else None

    engine.answers["orders"] = answer
    async with engine.node():
        ids = engine.enqueue(*[{}] * 25)
        await engine.ended(*ids)
        assert engine.store.targets() == {}

    jobs = [engine.client.get(id_).live for id_ in ids]
    assert {(job.attempt, job.deferrals, job.send) for job in jobs} == {(1, 0, 1)}


async def test_words_of_the_lane_turn_failures_around(engine: Engine) -> None:
    engine.lane(retry=["0s", "10ms"], retry_on="404", give_up_on="5xx, out of stock, 429")
    ids = engine.enqueue({}, {}, {}, {})
    answers: list[Receipt] = [Rejected("HTTP 404: not there yet"), TryAgain("HTTP 500: broken"),
                              TryAgain("sorry, out of stock"),
                              Throttled(timedelta(seconds=1), "HTTP 429: the month is used up")]  # fmt: skip
    for id_, answer in zip(ids, answers, strict=True):
        engine.answers[id_] = lambda _, answer=answer: answer  # type: ignore[misc]
    async with engine.node():
        await engine.ended(*ids, state=JobState.DEAD)

    jobs = [engine.client.get(id_).live for id_ in ids]
    assert [(job.attempt, job.reason) for job in jobs] == [
        (2, "exhausted"),
        (1, "permanent"),
        (1, "permanent"),
        (1, "permanent"),
    ]


async def test_no_answer_in_time_is_a_failure_and_is_held_where_work_must_not_repeat(engine: Engine) -> None:
    engine.lane(timeout="100ms", retry=["0s"])
    engine.lane("once", timeout="100ms", on_unknown="hold")
    engine.answers["orders"] = engine.answers["once"] = lambda _: asyncio.Event().wait()  # type: ignore[assignment,return-value]
    ids = engine.enqueue({}, {"lane": "once"})
    async with engine.node():
        await engine.ended(ids[0], state=JobState.DEAD)
        await engine.ended(ids[1], state=JobState.HELD)

    assert engine.client.get(ids[1]).live.reason == "outcome_unknown"


async def test_one_message_of_unknown_fate_is_held_and_its_mates_are_done(engine: Engine) -> None:
    engine.lane(on_unknown="hold")
    ids = engine.enqueue({}, {}, {})
    engine.answers[ids[1]] = lambda _: Unknown("the connection was cut")
    async with engine.node():
        await engine.ended(ids[0], ids[2])
        await engine.ended(ids[1], state=JobState.HELD)

    held = engine.client.get(ids[1])
    assert (held.live.reason, held.error) == ("outcome_unknown", "the connection was cut")
    assert "of send 1 (the connection was cut): settle it" in engine.client.explain(ids[1]).text


async def test_a_job_that_may_not_start_so_late_expires(engine: Engine) -> None:
    engine.lane("late", misfire="skip_after(100ms)")
    engine.store.pause_lane("orders", paused=True, actor="test", reason="later")
    now = engine.store.now()
    [start_by] = engine.enqueue({"start_by": now + timedelta(milliseconds=300)})
    [missed] = engine.enqueue({"lane": "late", "run_at": now - timedelta(minutes=1)})
    async with engine.node(expire_every=timedelta(milliseconds=50)):
        await engine.ended(start_by, missed, state=JobState.EXPIRED)

    assert engine.sent == []


async def test_runs_of_a_group_are_sent_in_order_and_never_past_a_failure(engine: Engine) -> None:
    engine.lane(sink="embedded", mode="block_on_error", hold_until="sent", retry=["0s", "100ms"])
    failures = iter([TryAgain("once")])
    ids = engine.enqueue(*({"group": "a"} for _ in range(8)))
    engine.answers[ids[3]] = lambda _: next(failures, None)
    async with engine.node():
        await engine.ended(*ids)

    assert engine.order()["a"] == [*ids[:4], *ids[3:]]


async def test_a_run_in_hand_goes_on_no_longer_once_the_lane_waits_for_each(engine: Engine) -> None:
    how = {"sink": "embedded", "mode": "next_on_error", "complete_on": "reported"}
    engine.lane(hold_until="sent", **how)
    ids = engine.enqueue(*({"group": "a"} for _ in range(8)))
    begun, go_on = asyncio.Event(), asyncio.Event()

    async def slow(_: Envelope) -> None:
        begun.set()
        await go_on.wait()

    engine.answers[ids[0]] = slow
    async with engine.node() as node:
        await begun.wait()
        engine.lane(hold_until="done", **how)
        new = engine.store.lanes()["orders"]
        await engine.until(lambda: node.deck.board.lanes["orders"] == new)
        go_on.set()
        await engine.until(lambda: sum(event.jobs for event in engine.seen(ReturnedJobs)) == 6)  # type: ignore[attr-defined]
        assert [call.envelope.id for call in engine.sent] == ids[:2]  # the first went by the old rule
        for id_ in ids[:2]:
            engine.client.report(id_, 1, "succeeded")
        await engine.until(lambda: len(engine.sent) == 3)


async def test_a_sink_that_cannot_be_opened_hurts_its_own_lanes_only(engine: Engine) -> None:
    engine.lane("other", sink="http")
    engine.closed_sinks["http"] = "no route to host"
    [waits] = engine.enqueue({"lane": "other"})
    async with engine.node():
        [goes] = engine.enqueue({})
        await engine.ended(goes)
        await engine.until(lambda: bool(engine.seen(SinkFailed)))
        assert engine.client.get(waits).state is JobState.PENDING
        assert len(engine.seen(SinkFailed)) == 1  # it is not asked again at once

        engine.closed_sinks.clear()
        await engine.ended(waits)


@pytest.mark.parametrize("length", ["800000d", "999999999d"])
async def test_a_lane_whose_settings_last_for_ever_sends(engine: Engine, length: str) -> None:
    """No time is beyond the calendar by such a length, and no other lane is hurt."""
    lasting = {name: length for name, setting in SETTINGS.items() if setting.kind == "duration"}
    del lasting["poll_interval"], lasting["jitter"]
    engine.lane("lasting", **lasting, misfire=f"skip_after({length})", complete_on="reported")
    [lasts, later] = engine.enqueue({"lane": "lasting"}, {"lane": "lasting", "run_at": LATER})
    async with engine.node():
        await engine.ended(lasts, state=JobState.DISPATCHED)
        for outcome in ("started", "heartbeat", "succeeded"):
            engine.client.report(lasts, 1, outcome)

    assert engine.client.explain(later).eta == LATER
    assert not engine.seen(LaneFailed)


async def test_a_lane_of_which_nothing_is_taken_asks_with_one_call_at_a_time(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its jobs are not claimed and given back over and over, each says why it waits, and then all go."""
    for module, pause in ((outlets, "REST"), (calling, "SINK_PAUSE")):
        monkeypatch.setattr(module, pause, timedelta(milliseconds=300))

    class Choosy:
        max_batch, keeps_order, format, complete_on = 10, False, "payload", "sent"
        calls, missing = 0, True

        async def send(self, batch: Sequence[Envelope]) -> list[Receipt]:
            self.calls += 1
            if self.missing:
                raise SinkUnavailable('there is no queue "nowhere": create it')
            return [Accepted() for _ in batch]

        async def probe(self, sends: object) -> list[object]:  # noqa: ARG002
            return []

        async def close(self) -> None: ...

    sink = engine.sinks["sqs"] = Choosy()  # type: ignore[assignment]
    engine.lane("other", sink="sqs", batch_size=20)
    ids = engine.enqueue(*({"lane": "other"} for _ in range(500)))
    async with engine.node():
        await engine.until(lambda: len(engine.seen(SinkFailed)) >= 3, seconds=60)
        said = engine.client.explain(ids[-1])
        returned = sum(event.jobs for event in engine.seen(ReturnedJobs))  # type: ignore[attr-defined]
        sink.missing = False
        await engine.until(
            lambda: {job.state for job in engine.store.find(ids).values()} == {JobState.SUCCEEDED}, seconds=60
        )

    assert returned <= 40 + 10 * sink.calls
    assert returned < 100
    assert said.gate is Gate.SINK
    assert 'takes nothing: there is no queue "nowhere": create it; nodes try again by themselves' in said.text


class Moody:
    """A sink that misbehaves some times, then is well."""

    max_batch, keeps_order, format, complete_on = 1, False, "payload", "sent"

    def __init__(self, times: int, misbehave: Callable[[], object]) -> None:
        self._left, self._misbehave = times, misbehave

    async def send(self, batch: Sequence[object]) -> object:
        self._left -= 1
        return self._misbehave() if self._left >= 0 else [Accepted() for _ in batch]

    async def probe(self, sends: Sequence[object]) -> object:  # noqa: ARG002
        return self._misbehave()

    async def close(self) -> None:
        self._misbehave()


def cancel() -> object:
    """Do what a driver does whose connection ends: its futures are cancelled, and nobody else is."""
    raise asyncio.CancelledError


MOODS = {"nothing": lambda: None, "no receipt": lambda: ["yes"], "a cancelled future": cancel}


@pytest.mark.parametrize("mood", MOODS.values(), ids=MOODS)
async def test_a_sink_that_was_broken_costs_its_lane_no_slot(
    engine: Engine, mood: Callable[[], object]
) -> None:
    engine.sinks["http"] = Moody(4, mood)  # type: ignore[assignment]
    engine.lane("other", sink="http", max_in_flight=2, retry=["0s", *["10ms"] * 9])
    ids = engine.enqueue(*[{"lane": "other"}] * 5)
    async with engine.node():
        await engine.ended(*ids)


async def test_a_sink_that_takes_for_ever_to_open_is_not_waited_for(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A server that takes a connection and says nothing: recovery, too, stood still for all lanes."""
    monkeypatch.setattr(outlets, "OPENS_WITHIN_S", 0.1)
    engine.silent_sinks.add("http")
    engine.lane("other", sink="http")
    engine.enqueue({"lane": "other"})
    async with engine.node():
        await engine.until(lambda: bool(engine.seen(SinkFailed)))

    [failed, *_] = engine.seen(SinkFailed)
    assert "could not be opened within 0.1 s" in str(failed)


class Shared(PythonSink):
    """A sink with a limit that the nodes keep together."""

    def __init__(self, engine: Engine) -> None:
        super().__init__(engine.answer)
        self.told: list[int] = []

    def divide(self, nodes: int) -> None:
        self.told.append(nodes)


async def test_a_sink_learns_before_its_first_call_how_many_nodes_send(engine: Engine) -> None:
    sink = engine.sinks["http"] = Shared(engine)
    engine.lane("other", sink="http")
    async with engine.node():
        engine.answers["other"] = lambda _: sink.told.append(0)  # a call
        await engine.ended(*engine.enqueue({"lane": "other"}))

    assert sink.told[0] == 1


async def test_a_sink_that_says_itself_that_it_took_too_long_is_quoted(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(outlets, "FIRST_PAUSE", timedelta(milliseconds=100))

    def refuse() -> None:
        raise TimeoutError("no route to the broker")

    engine.opening["http"] = [refuse]
    engine.lane("other", sink="http")
    [job] = engine.enqueue({"lane": "other"})
    async with engine.node():
        await engine.ended(job)

    [failed] = engine.seen(SinkFailed)
    assert "no route to the broker" in str(failed)


async def test_a_sink_that_cannot_be_opened_for_a_cancelled_future_is_opened_later(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(outlets, "FIRST_PAUSE", timedelta(milliseconds=100))
    engine.opening["http"] = [cancel]
    engine.lane("other", sink="http")
    ids = engine.enqueue({"lane": "other"})
    async with engine.node():
        await engine.ended(*ids)

    assert engine.seen(SinkFailed)


async def test_a_sink_with_a_bug_backs_off_its_jobs_and_the_node_goes_on(engine: Engine) -> None:
    class Broken:
        max_batch, keeps_order, format, complete_on = 1, False, "payload", "sent"

        async def send(self, batch: object) -> list[Receipt]:  # noqa: ARG002
            raise ZeroDivisionError

        async def probe(self, sends: object) -> list[object]:  # noqa: ARG002
            return []

        async def close(self) -> None: ...

    engine.sinks["http"] = Broken()  # type: ignore[assignment]
    engine.lane("other", sink="http", retry=["0s"])
    ids = engine.enqueue({"lane": "other"}, {})
    async with engine.node():
        await engine.ended(ids[1])
        await engine.ended(ids[0], state=JobState.DEAD)

    assert engine.seen(LaneFailed)
    assert "ZeroDivisionError" in str(engine.client.get(ids[0]).error)


async def test_executors_report_what_the_sink_only_took(engine: Engine) -> None:
    engine.lane(complete_on="reported", mode="next_on_error")
    async with engine.node():
        ids = engine.enqueue({"group": "a"}, {"group": "a"})
        await engine.ended(ids[0], state=JobState.DISPATCHED)
        assert len(engine.sent) == 1  # the next one waits for the report

        engine.client.report(ids[0], 1, "started")
        assert engine.client.get(ids[0]).state is JobState.RUNNING
        engine.client.report(ids[0], 1, "succeeded", result={"paid": True})
        await engine.ended(ids[0])
        await engine.ended(ids[1], state=JobState.DISPATCHED)
