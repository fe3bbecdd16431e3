"""Lists: the right jobs, in the right order, page by page."""

from datetime import datetime, timedelta
from itertools import product
from typing import Any

import pytest

from penstock.domain.filters import matches, position
from penstock.domain.job import Job
from penstock.domain.ordering import Mode
from penstock.domain.outcomes import Dead, Failed, Returned, Succeeded
from penstock.domain.states import JobState, Reason, Verb
from penstock.errors import InvalidQuery
from penstock.ports.store import JobQuery, Order, Span, Store
from penstock.testing.store_suite.factories import (
    HOUR,
    LANE,
    by_id,
    claim,
    claim_groups,
    enqueue,
    find,
    ids,
    in_state,
    job,
    operate,
    ordered,
    put_lane,
    settle,
    some,
)

S = JobState
REACHABLE = [state for state in JobState if state is not S.WAITING]


def pages(store: Store, **query: Any) -> list[list[str]]:  # noqa: ANN401
    """Return the ids of every page of a list."""
    found, after = list[list[str]](), None
    while True:
        page = store.list_jobs(JobQuery(**query, after=after))
        found.append([job.id for job in page.jobs])
        if page.next is None:
            return found
        assert len(found) < 1_000, "the list has no end"
        after = page.next


def listed(store: Store, **query: Any) -> list[str]:  # noqa: ANN401
    """Return the ids of all pages."""
    return [job_id for page in pages(store, **query) for job_id in page]


def expected(store: Store, everything: list[str], **query: Any) -> list[str]:  # noqa: ANN401
    """Return what a list must show, by the definition of its filters and its order."""
    wanted = JobQuery(**query)
    jobs = [job for job in store.find(everything).values() if matches(job, wanted)]

    def rank(job: Job) -> tuple[int, ...]:
        return position(job, wanted.order).rank

    return [job.id for job in sorted(jobs, key=rank)]


def _time(job: Job, which: str) -> datetime | None:
    created = None if job.context is None else job.context.created_at
    return {"created": created, "run": job.live.due_at, "finished": job.finished_at}[which]


def zoo(store: Store) -> list[str]:
    """Make jobs of two lanes in every state that there is, more than once; return their ids."""
    put_lane(store, key_ttl="0s")
    put_lane(store, "other", mode="next_on_error")
    made = []
    ended = (S.SUCCEEDED, S.DEAD, S.CANCELLED, S.SKIPPED, S.EXPIRED)
    for state in (*ended, S.DISPATCHED, S.RUNNING, S.SUCCEEDED, S.CANCELLED, S.DEAD, S.HELD):
        # A key belongs to a live or dead job for good: only the last of them can have this one.
        key = "k" if state in (S.SUCCEEDED, S.CANCELLED, S.HELD) else None
        made.append(in_state(store, state, key=key, tenant="t1"))
        made.append(in_state(store, state, lane="other", group=f"g{len(made) % 3}-{state.label}"))
    some_jobs = [job(tenant="t2") for _ in range(4)] + [ordered("g", lane="other") for _ in range(4)]
    made += enqueue(store, *some_jobs)
    for batch in (claim(store, limit=2), claim_groups(store, "other", limit=1)):
        assert batch is not None
    due, minute = store.now() + HOUR, timedelta(minutes=1)
    later = [job(run_at=due - n * minute, tenant=tenant) for n, tenant in enumerate("ab")]
    later += [ordered(f"later-{n}", run_at=due - n * minute) for n in range(3)]
    return made + enqueue(store, *later)


class ListingTests:
    """Lists of jobs."""

    def test_an_empty_list_is_one_empty_page(self, store: Store) -> None:
        """Nothing there, nothing next; a lane nobody knows has no jobs either."""
        assert store.list_jobs(JobQuery()) == ([], None)
        assert store.list_jobs(JobQuery(lane="nowhere", order=Order.DUE)) == ([], None)
        assert store.list_jobs(JobQuery(key="nobody's")) == ([], None)

    def test_live_jobs_are_listed_last_arrived_first(self, store: Store) -> None:
        """Whatever they wait for."""
        put_lane(store)
        job_ids = enqueue(store, job(), ordered(), job(run_at=store.now() + HOUR), ordered("other"), job())

        assert listed(store, lane=LANE) == job_ids[::-1]
        assert listed(store) == job_ids[::-1]

    def test_a_job_that_is_claimed_again_is_listed_once(self, store: Store) -> None:
        """Its first claim stays until its mates are settled too."""
        put_lane(store)
        back, mate = enqueue(store, job(), job())
        first = some(claim(store))
        store.settle(first, by_id(first, {back: Returned("no token")}))
        some(claim(store))

        assert listed(store) == listed(store, states=frozenset({S.CLAIMED})) == [mate, back]

    def test_pages_neither_overlap_nor_leave_anything_out(self, store: Store) -> None:
        """Live, claimed, dead and finished jobs are merged; every page but the last is full."""
        made = zoo(store)
        for limit in (1, 2, 3, 7, 500):
            found = pages(store, limit=limit)

            assert [job_id for page in found for job_id in page] == expected(store, made)
            assert {len(page) for page in found[:-1]} <= {limit}

    def test_a_list_that_ends_with_its_page_has_no_next_one(self, store: Store) -> None:
        """No empty page at the end."""
        put_lane(store)
        enqueue(store, *(job() for _ in range(4)))

        assert [len(page) for page in pages(store, limit=2)] == [2, 2]
        assert [len(page) for page in pages(store, limit=4)] == [4]

    def test_each_state_can_be_listed_alone(self, store: Store) -> None:
        """In one lane or in all."""
        made = zoo(store)
        for state, lane in product(REACHABLE, [None, "other"]):
            query: dict[str, Any] = {"states": frozenset({state}), "lane": lane}
            shown = listed(store, limit=2, **query)

            assert shown == expected(store, made, **query)
            assert {job.state for job in store.find(shown).values()} == {state}

    def test_states_are_merged(self, store: Store) -> None:
        """What is not ended first, last arrived first; then what ended, last ended first."""
        made = zoo(store)
        mixtures = (
            {S.PENDING, S.CLAIMED},
            {S.CLAIMED, S.SUCCEEDED},
            {S.DEAD, S.SUCCEEDED, S.CANCELLED},
            {S.DEAD, S.EXPIRED, S.SKIPPED},
            {S.PENDING, S.CLAIMED, S.DISPATCHED, S.RUNNING, S.HELD, S.WAITING},
            {S.HELD, S.DEAD, S.CANCELLED},
        )
        for states, lane in product(mixtures, [None, LANE]):
            query: dict[str, Any] = {"states": frozenset(states), "lane": lane}

            assert listed(store, limit=3, **query) == expected(store, made, **query), states

    def test_a_claim_that_is_partly_settled_lists_what_is_left_of_it(self, store: Store) -> None:
        """The others are where their outcomes took them."""
        put_lane(store)
        [a, b, c, d] = enqueue(store, *(job() for _ in range(4)))
        batch = some(claim(store))
        store.settle(batch, by_id(batch, {a: Succeeded(), c: Failed("no", HOUR)}))

        assert listed(store, states=frozenset({S.CLAIMED}), limit=1) == [d, b]
        assert listed(store, states=frozenset({S.PENDING})) == [c]
        assert listed(store) == [d, c, b, a]

    def test_a_listed_job_says_what_find_says(self, store: Store) -> None:
        """Errors, requests and all; the payload too if it is asked for."""
        made = zoo(store)
        [last] = [job_id for job_id in made if find(store, job_id).state is S.CLAIMED][-1:]
        operate(store, Verb.CANCEL, last)
        page = store.list_jobs(JobQuery(limit=500, payloads=True))

        assert {job.id: job for job in page.jobs} == store.find(made)

    def test_payloads_are_left_out_unless_asked_for(self, store: Store) -> None:
        """They may be large, and not for everybody; the rest of what the caller said is there."""
        put_lane(store)
        enqueue(store, job(payload="secret", headers='{"a": "b"}', target="http://127.0.0.1/", key="k"))

        for query in (JobQuery(), JobQuery(order=Order.DUE), JobQuery(key="k")):
            [shown] = store.list_jobs(query).jobs
            assert shown.context is not None
            assert shown.context[5:8] == (None, '{"a": "b"}', "http://127.0.0.1/")
        [whole] = store.list_jobs(JobQuery(payloads=True)).jobs
        assert whole.context is not None
        assert whole.context.payload == "secret"

    def test_scheduled_jobs_are_listed_in_the_order_they_are_due(self, store: Store) -> None:
        """Ordered or not, with a tenant or without; those of the same time by arrival."""
        put_lane(store)
        now = store.now()
        [c, a, d, b, e, f] = enqueue(
            store,
            job(run_at=now + 3 * HOUR),
            job(run_at=now + HOUR, tenant="t"),
            ordered(run_at=now + 3 * HOUR),
            ordered("other", run_at=now + 2 * HOUR),
            job(run_at=now + 3 * HOUR, tenant="t"),
            job(run_at=now + 4 * HOUR),
        )

        for limit in (1, 2, 4, 10):
            assert listed(store, order=Order.DUE, limit=limit) == [a, b, c, d, e, f]
        assert listed(store, order=Order.DUE, lane=LANE, tenant="t", limit=1) == [a, e]
        assert listed(store, order=Order.DUE, group="other") == [b]
        assert listed(store, order=Order.DUE, states=frozenset({S.WAITING})) == []

    def test_a_list_by_arrival_has_the_order_of_a_group(self, store: Store) -> None:
        """Wherever its jobs are, and whichever of them ended first."""
        put_lane(store, mode="next_on_error")
        [a, b, c, d] = enqueue(store, *(ordered() for _ in range(4)))
        operate(store, Verb.CANCEL, c)
        settle(store, some(claim_groups(store, limit=1)), Dead(Reason.PERMANENT))

        for limit in (1, 3, 10):
            assert listed(store, order=Order.OLDEST, limit=limit) == [a, b, c, d]
        ended = frozenset({S.DEAD, S.CANCELLED})
        assert listed(store, order=Order.OLDEST, states=ended, lane=LANE, limit=1) == [a, c]

    def test_a_list_by_arrival_does_not_run_after_what_is_made_of_it(self, store: Store) -> None:
        """Whoever enqueues each page again comes to an end."""
        put_lane(store)
        made = enqueue(store, *(job() for _ in range(3)))
        if store.now() == store.now():
            pytest.skip("the store's clock stands still")
        shown, after = list[str](), None
        for _ in range(4):
            page = store.list_jobs(JobQuery(order=Order.OLDEST, limit=2, after=after))
            shown += [one.id for one in page.jobs]
            enqueue(store, *(job() for _ in page.jobs))
            if (after := page.next) is None:
                break

        assert shown == made

    def test_a_list_by_arrival_has_all_that_there_is(self, store: Store) -> None:
        """In every state, narrowed by every filter."""
        made = zoo(store)
        narrowed: tuple[dict[str, Any], ...] = (
            {},
            {"lane": "other"},
            {"tenant": "t1"},
            {"group": "g"},
            {"group": "g1-dead"},
            {"key": "k"},
            {"states": frozenset({S.CLAIMED, S.SUCCEEDED}), "lane": LANE},
            {"states": frozenset({S.DEAD, S.EXPIRED, S.HELD})},
        )
        for filters, limit in product(narrowed, (2, 500)):
            query = {"order": Order.OLDEST, **filters}
            assert listed(store, limit=limit, **query) == expected(store, made, **query), query

    def test_scheduled_jobs_are_pending_ones(self, store: Store) -> None:
        """Nothing in flight, held or ended."""
        made = zoo(store)

        assert listed(store, order=Order.DUE, limit=3) == expected(store, made, order=Order.DUE)

    @pytest.mark.parametrize("states", [{S.HELD}, {S.PENDING, S.DEAD}])
    def test_only_what_waits_has_a_time_to_come(self, states: set[JobState]) -> None:
        """A list by due time of anything else is refused."""
        with pytest.raises(InvalidQuery, match="order"):
            JobQuery(order=Order.DUE, states=frozenset(states))

    def test_filters_narrow_the_list(self, store: Store) -> None:
        """Alone and together."""
        made = zoo(store)
        queries: tuple[dict[str, Any], ...] = (
            {"tenant": "t1"},
            {"tenant": "t2", "lane": LANE},
            {"tenant": "nobody"},
            {"group": "g"},
            {"group": "g", "lane": "other", "states": frozenset({S.CLAIMED, S.PENDING})},
            {"group": "g1-dead"},
            {"group": "later-1", "order": Order.DUE},
            {"group": "g", "lane": LANE},
            {"key": "k"},
            {"key": "k", "states": frozenset({S.DEAD, S.HELD}), "tenant": "t1"},
            {"key": "k", "lane": "other"},
            {"key": "k", "order": Order.DUE},
        )
        for query in queries:
            assert listed(store, limit=2, **query) == expected(store, made, **query), query

    def test_a_group_is_all_its_jobs_wherever_they_are(self, store: Store) -> None:
        """Immediate jobs are in no group, whatever they say."""
        put_lane(store, mode="next_on_error")
        [done, dead, out, first, second] = enqueue(store, *(job(group="g") for _ in range(5)))
        store.settle(some(claim_groups(store)))
        settle(store, some(claim_groups(store)), Dead(Reason.PERMANENT))
        assert ids(claim_groups(store)) == [out]
        enqueue(store, job(group="g", mode=Mode.IMMEDIATE), job(group="h"))

        assert listed(store, group="g", limit=2) == [second, first, out, dead, done]

    @pytest.mark.parametrize("which", ["created", "run", "finished"])
    def test_times_are_bounded_below_inclusively_and_above_exclusively(
        self, store: Store, which: str
    ) -> None:
        """Whatever time it is: of creation, the one a job is due at, or of its end."""
        made = zoo(store)
        times = sorted({at for job in store.find(made).values() if (at := _time(job, which)) is not None})
        low, high = times[len(times) // 3], times[-1]
        spans = (Span(since=low), Span(until=high), Span(low, high), Span(since=high), Span(until=low))
        for span, order, lane in product(spans, Order, (None, LANE)):
            query: dict[str, Any] = {which: span, "order": order, "lane": lane}

            assert listed(store, limit=3, **query) == expected(store, made, **query), query

    def test_a_time_long_ago_or_far_ahead_is_a_bound_too(self, store: Store) -> None:
        """Where nothing is, nothing is found."""
        made = zoo(store)
        now = store.now()
        everything = expected(store, made)

        assert listed(store, created=Span(since=now - 48 * HOUR)) == everything
        assert listed(store, created=Span(until=now - 48 * HOUR)) == []
        assert listed(store, created=Span(since=now + 48 * HOUR)) == []
        assert listed(store, finished=Span(until=now - 300 * HOUR)) == []
        assert set(listed(store, finished=Span(since=now - 300 * HOUR))) < set(everything)

    def test_a_bound_finds_nothing_where_no_job_lives(self, store: Store) -> None:
        """Also where there is a lane for one."""
        put_lane(store)
        for span in (Span(since=store.now()), Span(until=store.now())):
            assert listed(store, created=span) == []

    def test_a_time_without_offset_is_refused(self, store: Store) -> None:
        """Nobody knows when it is."""
        naive = store.now().replace(tzinfo=None)

        with pytest.raises(InvalidQuery, match="run"):
            JobQuery(run=Span(since=naive))

    @pytest.mark.parametrize("limit", [0, -1, 501])
    def test_a_page_has_from_one_to_five_hundred_jobs(self, limit: int) -> None:
        """Not none, and not all there are."""
        with pytest.raises(InvalidQuery, match="limit"):
            JobQuery(limit=limit)
