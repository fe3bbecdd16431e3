"""Lists whose filters no index serves are looked through a bounded stretch at a time, and lose nothing."""

import random
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from penstock.domain.job import NewJob
from penstock.domain.lanes import lane
from penstock.domain.ordering import Mode
from penstock.domain.outcomes import Dead, Deferred, Dispatched, Succeeded
from penstock.domain.states import JobState, Reason, Verb
from penstock.ports.store import Ask, JobQuery, Order, Span, Store
from penstock.stores.postgres.store import PostgresStore
from penstock.stores.sql import listing, sources
from penstock.stores.sqlite.store import SqliteStore
from penstock.testing.store_suite.listing import expected
from tests.conftest import PgServer

START = datetime.now(UTC).replace(microsecond=0)
LANES = ("a", "b", "c")
STATES = tuple(JobState)
MINUTE = timedelta(minutes=1)


def shown(store: Store, query: dict[str, Any]) -> list[str]:
    """Return the ids of all pages; a page may be short or empty and still have a next one."""
    found: list[str] = []
    after = None
    for _ in range(2_000):
        page = store.list_jobs(JobQuery(**query, after=after))
        assert len(page.jobs) <= query["limit"]
        found += [job.id for job in page.jobs]
        if page.next is None:
            return found
        after = page.next
    raise AssertionError("the list has no end")


def populate(store: Store, chance: random.Random) -> list[str]:
    """Make some jobs of every kind; return their ids."""
    numbers, made = count(), list[str]()
    for name in LANES:
        store.put_lane(lane(name), actor="test")
    for _ in range(6):
        jobs = [_job(chance, next(numbers)) for _ in range(chance.randint(3, 12))]
        store.enqueue(jobs)
        for name in LANES:
            _work(store, chance, name)
        ids = [job.id for job in jobs if job.id is not None and chance.random() < 0.4]
        verb = chance.choice([Verb.CANCEL, Verb.HOLD, Verb.SKIP])
        store.operate(verb, ids, actor="test", reason="test")
        made += [job.id for job in jobs if job.id is not None]
    return made


def _job(chance: random.Random, number: int) -> NewJob:
    return NewJob(
        lane=chance.choice(LANES),
        id=f"job-{number:03}",
        mode=chance.choice(list(Mode)),
        group=chance.choice(["g", "h", None]),
        tenant=chance.choice(["t", "u", None]),
        run_at=START + chance.choice([-1, 0, 0, 3, 4]) * MINUTE,
    )


def _work(store: Store, chance: random.Random, name: str) -> None:
    """Claim some jobs and do something with some of them; others stay claimed."""
    ask = Ask(lane=name, node=1, limit=100)
    for claim in (store.claim(ask), store.claim_groups(ask)):
        outcomes = (None, None, Succeeded(), Dead(Reason.PERMANENT), Dispatched(MINUTE), Deferred(MINUTE))
        if claim is not None:
            chosen = {claimed.job.arrival: chance.choice(outcomes) for claimed in claim.jobs}
            store.settle(claim, {arrival: outcome for arrival, outcome in chosen.items() if outcome})


def queries(chance: random.Random) -> Iterator[dict[str, Any]]:
    """Yield filters of all sorts."""
    for _ in range(60):
        states = frozenset(chance.sample(STATES, chance.choice([0, 1, 2, 5])))
        order = chance.choice(list(Order))
        if order is Order.DUE:
            states &= {JobState.PENDING, JobState.WAITING}
        yield {
            "limit": chance.choice([1, 2, 5]),
            "states": states,
            "order": order,
            "lane": chance.choice([None, None, "a", "b"]),
            "group": chance.choice([None, None, "g", "default"]),
            "tenant": chance.choice([None, None, "t"]),
            "run": chance.choice([Span(), Span(), Span(since=START), Span(until=START + 3 * MINUTE)]),
            "created": chance.choice([Span(), Span(), Span(since=START - MINUTE), Span(until=START)]),
        }


@pytest.fixture(params=["sqlite", "pg15"])
def tables(request: pytest.FixtureRequest, tmp_path: Path, pg_server: PgServer) -> Iterator[Store]:
    """A store with tables."""
    if request.param == "sqlite":
        store = SqliteStore(tmp_path / "p.db")
        store.migrate()
        yield store
        store.close()
        return
    with pg_server(15).database() as url:
        store = PostgresStore(url)
        store.migrate()
        yield store
        store.close()


@pytest.mark.parametrize("few", [3, 1_000], ids=["short-looks", "long-looks"])
def test_short_looks_find_what_a_long_one_finds(
    tables: Store, monkeypatch: pytest.MonkeyPatch, few: int
) -> None:
    """However little is looked at for one page, all pages together show what they must."""
    monkeypatch.setattr(listing, "TRIED", few)
    monkeypatch.setattr(listing, "FEW", few)
    monkeypatch.setattr(sources, "FEW", few)
    made = populate(tables, random.Random(7))  # noqa: S311

    for query in queries(random.Random(11)):  # noqa: S311
        assert shown(tables, query) == expected(tables, made, **query), query


def test_a_job_without_its_context_is_still_listed(tmp_path: Path) -> None:
    """Somebody must see that it is there."""
    store = SqliteStore(tmp_path / "p.db")
    store.migrate()
    store.put_lane(lane("a"), actor="test")
    store.enqueue([NewJob(lane="a")])
    store.db.write(lambda tx: tx.execute("DELETE FROM penstock.contexts"))

    [job] = store.list_jobs(JobQuery()).jobs
    assert (job.id, job.state, job.context) == (f"#{job.live.arrival}", JobState.PENDING, None)
    store.close()
