"""Where lists go on: cursors of one list, and of no other."""

from collections.abc import Callable
from typing import Any

import pytest

from penstock.domain.states import JobState, Verb
from penstock.errors import InvalidCursor
from penstock.ports.store import JobQuery, Order, Store
from penstock.testing.store_suite.factories import HOUR, LANE, claim, enqueue, job, operate, put_lane, some

S = JobState


class CursorTests:
    """Where lists go on."""

    def test_what_happens_between_two_pages_does_not_shift_them(self, store: Store) -> None:
        """New jobs come before the first page, ended ones go: the rest is where it was."""
        put_lane(store)
        job_ids = enqueue(store, *(job() for _ in range(6)))
        live = frozenset({S.PENDING, S.CLAIMED})
        first = store.list_jobs(JobQuery(states=live, limit=2))
        enqueue(store, job(run_at=store.now() + HOUR))
        operate(store, Verb.CANCEL, job_ids[3])
        batch = some(claim(store, limit=1))
        second = store.list_jobs(JobQuery(states=live, limit=2, after=first.next))

        assert [job.id for job in first.jobs] == [job_ids[5], job_ids[4]]
        assert [job.id for job in second.jobs] == [job_ids[2], job_ids[1]]
        store.settle(batch)
        assert store.list_jobs(JobQuery(states=live, limit=2, after=second.next)) == ([], None)

    def test_a_job_that_ends_between_two_pages_is_not_left_out(self, store: Store) -> None:
        """It is found among the ended."""
        put_lane(store)
        job_ids = enqueue(store, *(job() for _ in range(4)))
        first = store.list_jobs(JobQuery(limit=2))
        store.settle(some(claim(store)))
        rest = store.list_jobs(JobQuery(limit=10, after=first.next))

        assert {job.id for job in [*first.jobs, *rest.jobs]} == set(job_ids)
        assert rest.next is None

    @pytest.mark.parametrize(
        "spoil",
        [
            lambda text: text[:-3],
            lambda text: text + "AAAA",
            lambda text: text[:-1] + ("A" if text[-1] != "A" else "B"),
            lambda text: text.swapcase(),
            lambda _: "",
            lambda _: "1234",
            lambda _: "page 2",
            lambda _: "ünïcödé",
            lambda text: text * 100,
        ],
    )
    def test_a_damaged_cursor_is_refused(self, store: Store, spoil: Callable[[str], str]) -> None:
        """It says so, and changes nothing."""
        put_lane(store)
        enqueue(store, job(), job())
        cursor = store.list_jobs(JobQuery(limit=1)).next
        assert cursor is not None

        with pytest.raises(InvalidCursor, match="no place to go on from"):
            store.list_jobs(JobQuery(limit=1, after=spoil(cursor)))

    @pytest.mark.parametrize(
        "query",
        [
            {"lane": LANE},
            {"states": frozenset({S.PENDING})},
            {"order": Order.DUE},
            {"tenant": "t"},
            {"group": "g"},
            {"key": "k"},
        ],
        ids="-".join,
    )
    def test_a_cursor_of_another_list_is_refused(self, store: Store, query: dict[str, Any]) -> None:
        """Its place means nothing there; only the size of a page may change."""
        put_lane(store)
        enqueue(store, *(job() for _ in range(4)))
        cursor = store.list_jobs(JobQuery(limit=1)).next

        with pytest.raises(InvalidCursor, match="another list"):
            store.list_jobs(JobQuery(after=cursor, **query))
        assert len(store.list_jobs(JobQuery(limit=2, after=cursor)).jobs) == 2
