"""The way in: what is accepted, what is refused, and what a job is at first."""

from datetime import timedelta
from typing import Any

import pytest

from penstock.domain.job import Enqueued
from penstock.domain.ordering import DEFAULT_GROUP, DEFAULT_SEQUENCE, MAX_SEQUENCE, Mode
from penstock.domain.states import JobState
from penstock.errors import InvalidJob, UnknownLane
from penstock.ports.store import Store
from penstock.testing.store_suite.factories import HOUR, LANE, enqueue, find, job, ordered, put_lane, state


class IntakeTests:
    """Enqueue."""

    def test_a_job_of_nothing_but_a_lane_is_due_now(self, store: Store) -> None:
        """Everything else has a default."""
        put_lane(store)
        before = store.now()
        [job_id] = enqueue(store, job())
        found = find(store, job_id)

        assert (found.id, found.lane, found.state, found.mode) == (
            job_id,
            LANE,
            JobState.PENDING,
            Mode.IMMEDIATE,
        )
        assert before <= found.live.due_at <= store.now()
        assert found.context is not None
        assert found.context.run_at == found.live.due_at
        assert before <= found.context.created_at <= store.now()
        assert found.context.sequence == DEFAULT_SEQUENCE
        assert (found.finished_at, found.error, found.result, found.request) == (None, None, None, None)

    def test_a_job_was_never_sent_at_first(self, store: Store) -> None:
        """All counters start at nought and nothing is open."""
        lane = put_lane(store, retention="30d")
        [job_id] = enqueue(store, job(max_attempts=3, tenant="acme"))
        row = find(store, job_id).live

        assert (row.attempt, row.send, row.recoveries, row.deferrals, row.revision) == (0, 0, 0, 0, 0)
        assert (row.open, row.holds) == (False, False)
        assert (row.lane, row.keep, row.max_attempts, row.tenant) == (lane.id, 30, 3, "acme")
        assert (row.epoch, row.node, row.claimed_at, row.deadline, row.reason) == (None,) * 5
        assert row.current_send == 1

    def test_what_the_caller_said_is_kept_to_the_letter(self, store: Store) -> None:
        """Payload, headers and event are texts and come back byte for byte."""
        put_lane(store)
        now = store.now()
        said: dict[str, Any] = {
            "payload": '{"b": 1,  "a":[1.0, 1e2],"b":2, "s":"ß\\u0000 \u2028 🚰"}\n',
            "headers": '{"X-Trace" : "1"}',
            "event": '{"id":"e1","type":"order.paid"}',
            "target": "https://example.org/hook?x=1&y=2",
            "pool": "web",
            "key": "k-1",
            "entity": "order/17",
            "version": "3",
            "correlation": "c-9",
            "finish_by": now + HOUR,
            "run_at": now + timedelta(microseconds=1),
            "sequence": 7,
        }
        [job_id] = enqueue(store, job(group="label", **said))
        context = find(store, job_id).context

        assert context is not None
        assert {name: getattr(context, name) for name in said} == said
        assert context.message_group == "label"

    def test_an_id_of_the_callers_own_is_kept(self, store: Store) -> None:
        """Clients may make ids before they write."""
        put_lane(store)
        mine = "01ARZ3NDEKTSV4RRFFQ69G5FAV"

        assert store.enqueue([job(id=mine)]) == [Enqueued(mine)]
        assert state(store, mine) is JobState.PENDING

    def test_an_id_that_exists_is_refused(self, store: Store) -> None:
        """An id names one job for ever, also within one batch."""
        put_lane(store)
        mine, other = "01ARZ3NDEKTSV4RRFFQ69G5FAV", "01ARZ3NDEKTSV4RRFFQ69G5FAW"
        enqueue(store, job(id=mine))
        [again, new, twice] = store.enqueue([job(id=mine), job(id=other), job(id=other)])

        assert isinstance(again, InvalidJob)
        assert again.field == "id"
        assert new == Enqueued(other)
        assert isinstance(twice, InvalidJob)

    def test_made_ids_differ(self, store: Store) -> None:
        """A thousand jobs have a thousand ids."""
        put_lane(store)

        assert len(set(enqueue(store, *(job() for _ in range(1_000))))) == 1_000

    def test_an_unknown_lane_is_an_answer_with_near_names(self, store: Store) -> None:
        """The others of the batch are written all the same."""
        put_lane(store)
        [first, wrong, last] = store.enqueue([job(), job("ordres"), job()])

        assert isinstance(first, Enqueued)
        assert isinstance(wrong, UnknownLane)
        assert (wrong.lane, wrong.near) == ("ordres", (LANE,))
        assert isinstance(last, Enqueued)
        assert store.counts() == {(LANE, JobState.PENDING): 2}

    @pytest.mark.parametrize("sequence", [-1, MAX_SEQUENCE + 1])
    def test_a_sequence_out_of_range_is_refused(self, store: Store, sequence: int) -> None:
        """Order lives in 32 bits."""
        put_lane(store)
        [answer, good] = store.enqueue([ordered(sequence=sequence), ordered(sequence=MAX_SEQUENCE)])

        assert isinstance(answer, InvalidJob)
        assert answer.field == "sequence"
        assert isinstance(good, Enqueued)

    def test_the_lane_gives_the_mode_unless_the_job_does(self, store: Store) -> None:
        """The mode is the job's from then on."""
        put_lane(store, mode="next_on_error")
        [plain, own] = enqueue(store, job(group="g"), job(group="g", mode=Mode.IMMEDIATE))
        put_lane(store, mode="block_on_error")

        assert find(store, plain).mode is Mode.NEXT_ON_ERROR
        assert find(store, own).mode is Mode.IMMEDIATE

    def test_an_ordered_job_without_a_group_joins_the_default_one(self, store: Store) -> None:
        """Only a job that asks for order is serialised."""
        put_lane(store)
        [job_id] = enqueue(store, ordered(None, sequence=5))
        row = find(store, job_id).live

        assert (row.grp, row.ord, row.holds) == (DEFAULT_GROUP, 5, True)
        assert store.group(LANE, DEFAULT_GROUP) is not None

    def test_an_immediate_job_with_a_group_is_in_no_group(self, store: Store) -> None:
        """The label stays with the message; it does not order."""
        put_lane(store)
        [job_id] = enqueue(store, job(group="g"))
        found = find(store, job_id)

        assert (found.live.grp, found.live.holds) == (None, False)
        assert found.context is not None
        assert found.context.message_group == "g"
        assert store.group(LANE, "g") is None

    def test_arrivals_increase(self, store: Store) -> None:
        """Arrival is a total order, within a batch and from one to the next."""
        put_lane(store)
        job_ids = enqueue(store, *(job() for _ in range(10))) + enqueue(store, job())
        arrivals = [find(store, job_id).live.arrival for job_id in job_ids]

        assert arrivals == sorted(set(arrivals))

    def test_an_empty_batch_is_no_work(self, store: Store) -> None:
        """Nothing in, nothing out."""
        assert store.enqueue([]) == []
        assert store.find([]) == {}

    def test_retention_is_fixed_when_the_job_comes_in(self, store: Store) -> None:
        """A lane's later change does not move jobs between retention classes."""
        put_lane(store, retention="1d")
        [job_id] = enqueue(store, job())
        put_lane(store, retention="1y")

        assert find(store, job_id).live.keep == 1
