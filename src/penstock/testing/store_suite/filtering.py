"""The filter language: the same jobs on every store, whatever a line asks for."""

from typing import Final

from penstock.domain.filters import JobQuery, matches, position
from penstock.domain.fingerprints import fingerprint_of
from penstock.domain.job import Job
from penstock.domain.outcomes import Dead, Failed
from penstock.domain.queries import Filters, job_query
from penstock.domain.states import JobState, Reason
from penstock.ports.store import Store
from penstock.testing.store_suite.factories import (
    HOUR,
    LANE,
    by_id,
    claim,
    enqueue,
    find,
    job,
    ordered,
    put_lane,
    settle,
    some,
)

LINES: Final = (
    "",
    "lane:orders",
    "lane:orders,other",
    "lane!=orders",
    "state:dead",
    "state!=dead state!=pending",
    "group:customer-1",
    "tenant:t1,t2 state:pending",
    "tenant!=t1",
    "payload.amount>100",
    "payload.amount>=100 payload.amount<500",
    "payload.amount:7",
    "payload.amount!=7",
    'payload.who.name:"Ann Lee"',
    "payload.who.name~LEE",
    "payload.items.1:true",
    "payload.gone:null",
    "payload~lee",
    "error:timeout",
    "error!=x reason:exhausted,permanent",
    "attempt>0",
    "attempt:0 run<1m",
    "run>30m",
    "created<1h run<2h",
    "finished<1h",
    "finished>1h",
    "batch>0 state:dead",
    "entity:order/1",
    "mode:block_on_error",
    "sequence>5",
    "target:example.org",
    "lane:nowhere",
)


def read(store: Store, line: str, **beside: object) -> JobQuery:
    """Return the query of a line."""
    filters: Filters = {"filter": line, **beside}  # type: ignore[typeddict-item]
    return job_query(filters, now=store.now)


def found(store: Store, line: str, *, limit: int = 500) -> list[str]:
    """Return the ids of all pages of a line."""
    ids, after = list[str](), None
    for _ in range(1_000):
        page = store.list_jobs(read(store, line, limit=limit, after=after))
        ids += [job.id for job in page.jobs]
        after = page.next
        if after is None:
            return ids
    raise AssertionError("the list has no end")


def menagerie(store: Store) -> list[str]:
    """Make jobs that differ in all that a line can ask for; return their ids."""
    put_lane(store, retry=["0s", "1m"])
    put_lane(store, "other")
    later = store.now() + HOUR
    ids = enqueue(
        store,
        job(payload='{"amount": 7, "who": {"name": "Ann Lee"}}', tenant="t1"),
        job(payload='{"amount": 100, "items": [1, true]}', tenant="t2", entity="order/1"),
        job(payload='{"amount": 250.5, "gone": null}', target="https://example.org/hook"),
        job(payload='{"amount": "7"}', run_at=later),
        job("other", payload="[]", tenant="t1"),
        job("other", payload='"lee"', run_at=later, key="k"),
        ordered(payload='{"amount": 1e3}', sequence=9),
    )
    batch = some(claim(store, limit=3))
    timeout, slow = Dead(Reason.EXHAUSTED, "Timeout: no answer\nsecond line"), "read timeout after 5 s"
    store.settle(batch, by_id(batch, {ids[0]: Failed(slow, HOUR), ids[1]: timeout}))
    settle(store, some(claim(store, "other", limit=1)), Dead(Reason.PERMANENT, "HTTP 410"))
    return ids


class FilterTests:
    """Lists by a line of the filter language."""

    def test_a_line_finds_what_it_means(self, store: Store) -> None:
        """Every line, with large pages and with small ones, by the meaning of its predicates."""
        made = menagerie(store)
        for line in LINES:
            query = read(store, line)

            def rank(job: Job, query: JobQuery = query) -> tuple[int, ...]:
                return position(job, query.order).rank

            wanted = sorted((job for job in store.find(made).values() if matches(job, query)), key=rank)
            for limit in (500, 2):
                assert found(store, line, limit=limit) == [job.id for job in wanted], line

    def test_lines_that_matter_find_something(self, store: Store) -> None:
        """A line that always found nothing would agree with its meaning as well."""
        ids = menagerie(store)
        assert found(store, "payload.amount>100") == [ids[6], ids[2]]
        assert found(store, "error:TIMEOUT") == [ids[0], ids[1]]
        assert found(store, "error:timeout state:dead") == [ids[1]]
        assert found(store, "attempt>0 state:pending") == [ids[0]]
        assert found(store, 'payload.who.name:"Ann Lee"') == [ids[0]]
        assert found(store, f"id:{ids[3]},{ids[5]} payload.amount:7") == [ids[3]]
        assert found(store, "state:claimed") == [ids[2]]

    def test_a_payload_is_looked_at_as_last_edited(self, store: Store) -> None:
        """The one that goes out, not the one that came in."""
        put_lane(store)
        [one, two] = enqueue(store, job(payload='{"n": 1}'), job(payload='{"n": 1}'))
        store.edit(one, actor="ops", reason="typo", payload='{"n": 2}')
        assert found(store, "payload.n:2") == [one]
        assert found(store, "payload.n:1") == [two]

    def test_payloads_stay_out_of_a_list_that_looked_at_them(self, store: Store) -> None:
        """Unless they are asked for."""
        menagerie(store)
        for payloads in (False, True):
            [shown] = store.list_jobs(read(store, "payload.amount:100", payloads=payloads)).jobs
            assert shown.context is not None
            assert (shown.context.payload is not None) is payloads

    def test_a_relative_time_does_not_end_a_list_between_two_pages(self, store: Store) -> None:
        """The line stays the same while the clock goes on."""
        put_lane(store)
        ids = enqueue(store, *(job() for _ in range(3)))
        page = store.list_jobs(read(store, "created<1h run<1h", limit=2))
        rest = store.list_jobs(read(store, "created<1h run<1h", limit=2, after=page.next))
        assert [job.id for job in (*page.jobs, *rest.jobs)] == ids[::-1]

    def test_errors_share_a_fingerprint(self, store: Store) -> None:
        """Found again by it."""
        ids = menagerie(store)
        dead = find(store, ids[1])
        assert dead.state is JobState.DEAD
        assert found(store, f"fingerprint:{fingerprint_of(dead.live.reason, dead.error)}") == [ids[1]]
        assert found(store, f"lane:{LANE} fingerprint:000000000000") == []
