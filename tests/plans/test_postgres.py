"""No statement of a pass reads more of PostgreSQL's tables than its batch, whatever else is in them."""

from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from datetime import timedelta
from typing import Final

import psycopg
import pytest

from penstock.domain.job import Claim, NewJob
from penstock.domain.lanes import lane
from penstock.stores.postgres import statements as sql
from penstock.stores.postgres.database import compiled
from penstock.stores.postgres.hints import Hints
from penstock.stores.postgres.store import PostgresStore
from penstock.stores.sql.dearness import LOOKS, MOST_REST_S
from penstock.stores.sql.limits import OUT
from penstock.stores.sql.pacing import CONFIRM, SCOUT, Looks
from penstock.stores.sql.store import SqlStore
from tests.conftest import PgServer
from tests.plans.backlog import BIG, LANES, PLAIN, SMALL, Size, fill_postgres, put_lanes
from tests.plans.counting import Touched, on_the_wire, touched
from tests.plans.explained import BIG_TABLES, Seen, Spy
from tests.plans.hotcalls import make_calls
from tests.plans.scenario import claimed, day, mixed
from tests.servers import Server

BATCH: Final = 210
# A row is met several times on its way (picked, locked, deleted, joined), not once more per job behind it.
ROWS_PER_JOB: Final = 3
SPARE_ROWS: Final = 200

DUE = ("jobs", "jobs_due")
TENANT = ("jobs", "jobs_tenant")
GROUP = ("jobs", "jobs_group")
CONTEXT = ("contexts", "contexts_pkey")
ROW = ("groups", "groups_pkey")
READY = ("groups", "groups_ready")
GROUP_TENANT = ("groups", "groups_tenant")
EXPECTED: Final = {
    "SCOUT": {
        DUE,
        ("jobs", "jobs_due_tenants"),
        READY,
        ("groups", "groups_ready_tenants"),
        ("wakes", "wakes_pkey"),
    },
    "CONFIRM": {("claims", "claims_pkey")},
    "OUT": {("jobs", "jobs_out"), ("jobs", "jobs_slot")},
    "CLAIM": {DUE, TENANT, ("jobs", "ctid"), CONTEXT},
    "CLAIM_FAIR": {DUE, TENANT, ("jobs", "jobs_due_tenants"), ("jobs", "ctid"), CONTEXT},
    "JOB_TENANTS": {TENANT},
    "JOB_NOBODY": {DUE},
    "ENQUEUE": set(),
    "ABSORB": {("wakes", "wakes_pkey"), ("wakes", "ctid"), GROUP, ROW},
    "LEASE": {READY, GROUP_TENANT, ("groups", "ctid")},
    "LEASE_FAIR": {READY, GROUP_TENANT, ("groups", "groups_ready_tenants"), ("groups", "ctid")},
    "GROUP_TENANTS": {GROUP_TENANT},
    "GROUP_NOBODY": {READY},
    "RUNS": {GROUP, ("jobs", "ctid"), CONTEXT},
    "SETTLE": {("claims", "claims_pkey")},
    "LOCKED_CLAIM": {("claims", "claims_pkey")},
    "LAPSED": {("claims", "claims_lease")},
    "LOCK_GROUPS": {ROW},
    "LOCK_IF_CLOSED": {ROW, ("claims", "claims_pkey")},
    "RELEASE_GROUPS": {GROUP, ("groups", "ctid")},
    "HAND_OVER_GROUPS": {("groups", "ctid")},
}


# Statements a call sends, whatever its batch; BEGIN and COMMIT included.
STATEMENTS: Final = {
    "enqueue": 4,
    "enqueue grouped": 4,
    "permit": 7,
    "claim plain": 1,
    "settle plain": 1,
    "claim plain, mixed": 1,
    "settle plain, mixed": 13,
    "claim tenants": 4,
    "settle tenants": 1,
    "claim heads": 5,
    "settle heads": 3,
    "claim runs, mixed": 5,
    "settle runs, mixed": 17,
    "claim heads of tenants": 9,
    "settle heads of tenants": 3,
}
BUFFERS_PER_JOB: Final = 60
GROWTH: Final = 1.2
IDLE_LANES: Final = 1_000
ROWS_PER_LANE: Final = 3
IDLE: Final = """
    SET session_replication_role = replica;
    INSERT INTO penstock.lanes (name) SELECT 'idle-' || i FROM generate_series(1, {}) i"""


@contextmanager
def filled(server: Server, size: Size) -> Iterator[str]:
    """Give a database with a backlog of which the planner has seen nothing yet."""
    with server.database() as url:
        with closing(PostgresStore(url)) as store:
            store.migrate()
            fill_postgres(url, put_lanes(store), size)
        yield url


@contextmanager
def opened(url: str) -> Iterator[SqlStore]:
    """Give a store on one connection; its looks take no time: it never looks twice because one was slow."""
    with closing(PostgresStore(url, max_connections=1)) as store:
        store.hot._due = Hints(lambda: 0.0, sql.EVER)
        store.hot._wakes = Hints(lambda: 0.0, 0)
        store.lanes()
        yield store


@pytest.fixture(scope="module", params=[15, 18], ids=["pg15", "pg18"])
def server(request: pytest.FixtureRequest, pg_server: PgServer) -> Server:
    return pg_server(request.param)


@pytest.fixture(scope="module")
def big(server: Server) -> Iterator[str]:
    with filled(server, BIG) as url:
        yield url


@pytest.fixture
def url(server: Server, big: str) -> Iterator[str]:
    """A copy of the big backlog."""
    with server.database(template=big.rpartition("/")[2]) as url:
        yield url


def test_the_cost_of_a_job_does_not_grow_with_the_backlog(server: Server, url: str) -> None:
    with filled(server, SMALL) as small_url:
        small = cost_per_job(small_url)
    big = cost_per_job(url)
    problems = [
        f"{call}: {unit} per job grew from {getattr(small[call], unit):.1f} at {SMALL.jobs} jobs "
        f"to {getattr(big[call], unit):.1f} at {BIG.jobs}"
        for call in small
        for unit in Touched._fields
        if getattr(big[call], unit) > GROWTH * getattr(small[call], unit)
    ]
    problems += [
        f"{call}: {cost.buffers:.0f} pages per job"
        for call, cost in big.items()
        if cost.buffers > BUFFERS_PER_JOB
    ]
    assert not problems, "\n".join(problems)


def cost_per_job(url: str) -> dict[str, Touched]:
    costs: dict[str, Touched] = {}
    with opened(url) as store:

        def meter(name: str, jobs: int, call: Callable[[], Claim | None]) -> Claim | None:
            before = touched(store)
            result = call()
            costs[name] = touched(store).since(before, jobs if result is None else len(result.jobs))
            return result

        make_calls(store, 100, meter)
    return costs


def test_the_number_of_statements_does_not_depend_on_the_batch(url: str) -> None:
    small, large = statements_per_call(url, 50), statements_per_call(url, 500)
    assert large == small, "a call sends more statements for a larger batch"
    assert large == STATEMENTS


def statements_per_call(url: str, batch: int) -> dict[str, int]:
    counts: dict[str, int] = {}
    with opened(url) as store:
        with store.db._pool.connection() as connection:
            pass

        def meter(name: str, jobs: int, call: Callable[[], Claim | None]) -> Claim | None:
            with on_the_wire(connection) as wire:
                result = call()
            counts[name] = wire.statements
            return result

        make_calls(store, batch, meter)
    return counts


@pytest.mark.parametrize("statistics", ["none", "fresh"])
def test_a_pass_reads_what_it_works_on(url: str, statistics: str) -> None:
    if statistics == "fresh":
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute("ANALYZE")
    complaints, missing = [], set(EXPECTED)
    shared = {
        "SCOUT": compiled(SCOUT["postgres"]),
        "CONFIRM": compiled(CONFIRM["postgres"]),
        "OUT": compiled(OUT["postgres"]),
    }
    names = {shared.get(name) or getattr(sql, name): name for name in EXPECTED}
    for call, jobs, seen in watched_day(url):
        name = names.get(seen.sql, "")
        missing.discard(name)
        complaints += [
            f"{call}, {seen.plan} plan of {name or ' '.join(seen.sql.split())[:100]}: {problem}"
            for problem in problems(seen, jobs, EXPECTED.get(name, set()))
        ]
    assert not missing, f"statements that were never run: {sorted(missing)}"
    if complaints:
        pytest.fail("\n".join(complaints))


def test_forgetting_reads_what_it_empties(url: str) -> None:
    """Lanes that do not keep payloads: a few statements more, each as bounded as the others."""
    spy = Spy()
    with opened(url) as store:
        with store.db._pool.connection() as connection:
            spy.watch(connection)
        spy.listens = True
        store.put_lane(lane(PLAIN, keep_payload=False), actor="test")
        store.settle(claimed(store, PLAIN, BATCH))
        claim = claimed(store, PLAIN, BATCH)
        store.settle(claim, mixed(claim))
    assert sql.FORGET in {seen.sql for seen in spy.seen}
    complaints = [
        f"{seen.plan} plan of {' '.join(seen.sql.split())[:100]}: {problem}"
        for seen in spy.seen
        for problem in problems(seen, BATCH, set())
    ]
    assert not complaints, "\n".join(complaints)


def watched_day(url: str) -> Iterator[tuple[str, int, Seen]]:
    """Yield every statement of every call, with the number of jobs the call was about."""
    spy = Spy()
    with opened(url) as store:
        with store.db._pool.connection() as connection:
            spy.watch(connection)
        spy.listens = True
        for call, jobs in day(store, BATCH):
            spy.listens = False
            for seen in spy.seen:
                yield call, jobs, seen
            spy.seen.clear()
            spy.listens = True


def problems(seen: Seen, jobs: int, expected: set[tuple[str, str]]) -> Iterator[str]:
    """Say what is wrong with a plan."""
    limit = ROWS_PER_JOB * jobs + SPARE_ROWS
    for scan in seen.scans:
        if scan.table in BIG_TABLES and scan.index is None:
            yield f"{scan}, no index"
        if scan.table in BIG_TABLES and scan.rows > limit:
            yield f"{scan}, for {jobs} jobs"
    for table, index in expected - seen.by_index():
        yield f"{table} is not read by {index} but by {sorted(i for t, i in seen.by_index() if t == table)}"


def test_a_look_at_a_thousand_idle_lanes_is_a_probe_of_each(url: str) -> None:
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(IDLE.format(IDLE_LANES).encode())
    with opened(url) as store:
        store.scout()
        before = touched(store)
        scouted = store.scout()
        cost = touched(store).since(before, IDLE_LANES)
    assert set(scouted.work) == set(LANES)
    assert cost.rows < ROWS_PER_LANE


def test_looks_stay_cheap_while_a_snapshot_keeps_what_was_claimed(url: str) -> None:
    """Whole looks read all of it, then looks begin where there was something; whole ones come back."""
    seconds, took = [0.0], [1.0]

    def clock() -> float:
        seconds[0] += took[0]
        return seconds[0]

    with opened(url) as store, psycopg.connect(url) as holder:
        store._looks = Looks(clock)
        holder.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        holder.execute("SELECT 1")
        for _ in range(10):
            store.settle(claimed(store, PLAIN, 500))
        for _ in range(LOOKS):  # one may have met a slow moment of the machine
            assert rows_of(store) > 5_000
        took[0] = 0.01
        assert rows_of(store) < 500
        store.settle(claimed(store, PLAIN, 500))
        assert rows_of(store) < 1_500

        [late] = store.enqueue([NewJob(lane=PLAIN, run_at=store.now() - timedelta(days=2))])
        hidden = store.scout()
        seconds[0] += MOST_REST_S
        found = store.scout()
        assert hidden.work[PLAIN].jobs_at != found.work[PLAIN].jobs_at
        assert store.find([late.id])[late.id].live.due_at == found.work[PLAIN].jobs_at


def rows_of(store: SqlStore) -> float:
    before = touched(store)
    store.scout()
    return touched(store).since(before, 1).rows
