"""Looking, waiting, operators' verbs and executors' reports."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta

import pytest

from penstock import Client, InvalidJob, JobState, Json, NotFound, StoreUnavailable
from penstock.client import FIRST_LOOK_S, LONGEST_LOOK_S, looks
from penstock.domain.filters import Span
from penstock.domain.states import Effect
from penstock.errors import InvalidQuery
from penstock.ports.store import Ask, Done, Reported
from tests.client.conftest import LANE, put_lane

NOON = datetime(2026, 11, 15, 12, tzinfo=UTC)
NOW = Effect.NOW


def dispatched(client: Client) -> str:
    """Enqueue a job and take it as a dispatcher does; return its id."""
    made = client.enqueue(LANE)
    assert client.store.claim(Ask(lane=LANE, node=1)) is not None
    return made.id


class TestVerbs:
    def test_each_does_what_it_says(self, client: Client) -> None:
        one, two = client.enqueue(LANE).id, client.enqueue(LANE).id

        assert client.hold(one, reason="r") == Done(NOW, JobState.HELD)
        assert client.release(one, reason="r") == Done(NOW, JobState.PENDING)
        assert client.cancel(one, reason="r") == Done(NOW, JobState.CANCELLED)
        assert client.retry(one, reason="r") == Done(NOW, JobState.PENDING)
        assert client.skip(one, reason="r") == Done(NOW, JobState.SKIPPED)
        client.hold(two, reason="r")
        assert client.settle(two, "dead", reason="r") == Done(NOW, JobState.DEAD)
        assert client.settle(two, "succeeded", reason="r") == Done(NOW, JobState.SUCCEEDED)
        assert client.skip(two, reason="r").effect is Effect.REFUSED

    def test_what_is_out_is_asked_for_or_forced(self, client: Client) -> None:
        job = dispatched(client)

        assert client.cancel(job, reason="r").effect is Effect.REQUESTED
        assert client.get(job).request == "cancel"

    @pytest.mark.parametrize("reason", ["", " ", "\0", "\ud800", None, "x" * 3000])
    def test_a_reason_must_be_one(self, client: Client, reason: str) -> None:
        job = client.enqueue(LANE).id

        with pytest.raises(InvalidJob, match="reason"):
            client.cancel(job, reason=reason)
        assert client.get(job).state is JobState.PENDING

    def test_an_outcome_must_be_one(self, client: Client) -> None:
        with pytest.raises(InvalidJob, match="neither succeeded nor dead"):
            client.settle(client.enqueue(LANE).id, "done", reason="r")

    @pytest.mark.parametrize("id_", ["01ARZ3NDEKTSV4RRFFQ69G5FAV", "nonsense"])
    def test_an_unknown_job_is_not_found(self, client: Client, id_: str) -> None:
        with pytest.raises(NotFound):
            client.cancel(id_, reason="r")
        with pytest.raises(NotFound):
            client.edit(id_, reason="r", target="x")
        with pytest.raises(NotFound):
            client.report(id_, 1, "succeeded")


class TestEdit:
    def test_changes_what_is_sent_and_when(self, client: Client) -> None:
        job = client.enqueue(LANE, {"n": 1}, target="http://a").id

        done = client.edit(job, reason="r", payload={"n": 2}, headers={"A": "b"}, target=None, run_at=NOON)

        edited = client.get(job)
        assert done.effect is NOW
        assert edited.context is not None
        assert (edited.context.payload, edited.context.headers) == ('{"n":2}', '{"A":"b"}')
        assert (edited.context.target, edited.live.due_at) == (None, NOON)

    def test_leaves_alone_what_is_not_named(self, client: Client) -> None:
        job = client.enqueue(LANE, {"n": 1}, target="http://a").id

        client.edit(job, reason="r", payload=Json(" 2 "))
        client.edit(job, reason="r", target="http://b")

        edited = client.get(job).context
        assert edited is not None
        assert (edited.payload, edited.target) == (" 2 ", "http://b")

    def test_is_checked_like_a_new_job_but_takes_no_place(self, client: Client) -> None:
        put_lane(client.store, max_payload="10B", max_depth=1)
        job = client.enqueue(LANE, 1).id

        with pytest.raises(InvalidJob, match="max_payload"):
            client.edit(job, reason="r", payload="x" * 9)
        with pytest.raises(InvalidJob, match="time zone"):
            client.edit(job, reason="r", run_at="2026-11-15T12:00:00")
        assert client.edit(job, reason="r", payload="x" * 8).effect is NOW

    def test_of_an_ended_job_goes_with_its_replay(self, client: Client) -> None:
        job = client.enqueue(LANE, 1).id
        client.cancel(job, reason="r")
        assert client.edit(job, reason="r", payload=2).effect is Effect.REFUSED

        assert client.edit(job, reason="r", payload=2, replay=True) == Done(NOW, JobState.PENDING)


class TestList:
    def test_goes_on_from_its_cursor(self, client: Client) -> None:
        ids = [client.enqueue(LANE, n).id for n in range(5)]

        first = client.list(lane=LANE, limit=3)
        second = client.list(lane=LANE, limit=3, after=first.next)

        assert [job.id for job in [*first.jobs, *second.jobs]] == ids[::-1]
        assert second.next is None
        assert first.jobs[0].context is None or first.jobs[0].context.payload is None

    def test_filters(self, client: Client) -> None:
        held = client.enqueue(LANE, 1, key="k", tenant="t").id
        client.hold(held, reason="r")
        later = client.enqueue(LANE, 2, run_at=NOON + timedelta(days=3000)).id

        def found(**filters: object) -> list[str]:
            return [job.id for job in client.list(**filters).jobs]  # type: ignore[arg-type]

        assert found(state="held") == found(state=JobState.HELD) == [held]
        assert found(key="k") == found(tenant="t") == [held]
        assert found(state=["held", JobState.PENDING]) == [later, held]
        assert found(order="due") == [later]
        assert found(run=Span(since=NOON + timedelta(days=2999))) == [later]
        [job] = client.list(key="k", payloads=True).jobs
        assert job.context is not None
        assert job.context.payload == "1"

    @pytest.mark.parametrize(
        ("filters", "field"),
        [({"state": "done"}, "state"), ({"order": "best"}, "order"), ({"limit": 0}, "limit")],
    )
    def test_what_is_wrong_is_named(self, client: Client, filters: dict[str, object], field: str) -> None:
        with pytest.raises(InvalidQuery) as caught:
            client.list(**filters)  # type: ignore[arg-type]

        assert caught.value.field == field


class TestReport:
    def test_a_run_from_start_to_end(self, client: Client) -> None:
        job = dispatched(client)

        assert client.report(job, 1, "started") == Reported(applied=True, late=False)
        assert client.report(job, 1, "heartbeat") == Reported(applied=True, late=False)
        assert client.get(job).state is JobState.RUNNING
        assert client.report(job, 1, "succeeded", result={"n": 1}) == Reported(applied=True, late=False)

        done = client.get(job)
        assert (done.state, done.result) == (JobState.SUCCEEDED, '{"n":1}')
        assert client.report(job, 1, "failed") == Reported(applied=False, late=True)

    def test_a_failure_is_tried_again_as_the_lane_says(self, client: Client) -> None:
        put_lane(client.store, retry=["0s", "1h"])
        job = dispatched(client)

        client.report(job, 1, "failed", error="boom\0")

        failed = client.get(job)
        assert (failed.state, failed.live.attempt, failed.error) == (JobState.PENDING, 1, "boom\ufffd")
        assert failed.live.due_at > client.store.now() + timedelta(minutes=59)

    def test_the_last_failure_is_death(self, client: Client) -> None:
        put_lane(client.store, retry=["0s"])
        job = dispatched(client)

        client.report(job, 1, "failed")

        assert (client.get(job).state, client.get(job).live.reason) == (JobState.DEAD, "exhausted")

    def test_a_word_that_is_none_is_refused(self, client: Client) -> None:
        with pytest.raises(InvalidJob, match="is none of started, heartbeat"):
            client.report(dispatched(client), 1, "finished")


class Steps:
    """A clock that moves a second at every look."""

    def __init__(self) -> None:
        self.readings = 0

    def now(self) -> datetime:
        return NOON

    def monotonic(self) -> float:
        self.readings += 1
        return float(self.readings)


class TestWait:
    def test_returns_at_once_what_has_ended(self, client: Client) -> None:
        job = client.enqueue(LANE).id
        client.cancel(job, reason="r")

        assert client.wait(job).state is JobState.CANCELLED

    def test_returns_when_the_job_ends(self, client: Client) -> None:
        job = client.enqueue(LANE).id
        with ThreadPoolExecutor(1) as pool:
            waiting = pool.submit(client.wait, job, timedelta(seconds=60))
            client.cancel(job, reason="r")

            assert waiting.result(timeout=30).state is JobState.CANCELLED

    def test_returns_the_job_as_it_is_when_time_is_up(self, client: Client) -> None:
        job = client.enqueue(LANE).id

        assert client.wait(job, timedelta(0)).state is JobState.PENDING
        assert Client(client.store, clock=Steps()).wait(job, timedelta(seconds=2)).state is JobState.PENDING

    def test_ends_with_the_client(self, sqlite_url: str) -> None:
        client = Client(sqlite_url)
        job = client.enqueue(LANE).id
        client.close()

        with Client(sqlite_url) as other:
            client.store = other.store
            with pytest.raises(StoreUnavailable, match="the client was closed"):
                client.wait(job)

    def test_looks_less_and_less_often(self) -> None:
        def first(pauses: Iterator[float], count: int) -> list[float]:
            return [next(pauses) for _ in range(count)]

        assert first(looks(Steps(), None), 6) == [0.02, 0.04, 0.08, 0.16, 0.32, LONGEST_LOOK_S]

    def test_never_looks_later_than_asked(self) -> None:
        assert list(looks(Steps(), timedelta(seconds=2.01))) == pytest.approx([FIRST_LOOK_S, 0.01])
