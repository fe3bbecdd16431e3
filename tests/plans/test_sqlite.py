"""No statement of a pass reads more of SQLite's tables than its batch, whatever else is in them."""

import re
import shutil
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any, Final

import pytest

from penstock.domain.job import Claim
from penstock.ports.clock import SystemClock
from penstock.stores.sql.store import SqlStore
from penstock.stores.sqlite.store import SqliteStore
from penstock.stores.sqlite.times import to_us
from tests.plans.backlog import BIG, LANES, SMALL, Size, fill_sqlite, put_lanes
from tests.plans.counting import CountingConnection, steps_of
from tests.plans.hotcalls import make_calls
from tests.plans.scenario import day

BATCH: Final = 210
STEPS_PER_JOB: Final = 450
GROWTH: Final = 1.2
IDLE_LANES: Final = 1_000
STEPS_PER_LANE: Final = 100
IDLE: Final = "INSERT INTO penstock_lanes (name) VALUES (?)"
# What may be read from end to end: lists that came as parameters, parts of the statement, tiny tables.
SCANNED: Final = re.compile(
    r"SCAN (json_each|CONSTANT ROW|\(subquery-\d+\)|k|t|c|l|one|q|asked|r LEFT-JOIN|\w+ VIRTUAL TABLE"
    r"|penstock_(lanes|former_lanes|claims|counts|epochs))( |$)"
)
EXPECTED: Final = {
    "scout": {
        "penstock_jobs_due",
        "penstock_jobs_due_tenants",
        "penstock_groups_ready",
        "penstock_groups_ready_tenants",
    },
    "permit": {"penstock_jobs_out", "penstock_jobs_slot"},
    "claim": {"penstock_jobs_due", "penstock_jobs_tenant"},
    "claim fair": {"penstock_jobs_due", "penstock_jobs_tenant", "penstock_jobs_due_tenants"},
    "heads": {"penstock_groups_ready", "penstock_groups_tenant", "penstock_jobs_group"},
    "heads fair": {"penstock_groups_tenant", "penstock_groups_ready_tenants", "penstock_jobs_group"},
    "lapse": {"penstock_jobs_silent"},
    "expire": {"penstock_jobs_start_by"},
    "takeover": {"penstock_claims_lease"},
}
# Statements of a call, whatever its batch; BEGIN and COMMIT included, an executemany counts as one.
STATEMENTS: Final = {
    "enqueue": 4,
    "enqueue grouped": 4,
    "permit": 9,
    "claim plain": 8,
    "settle plain": 5,
    "claim plain, mixed": 8,
    "settle plain, mixed": 12,
    "claim tenants": 14,
    "settle tenants": 5,
    "claim heads": 11,
    "settle heads": 7,
    "claim runs, mixed": 11,
    "settle runs, mixed": 15,
    "claim heads of tenants": 15,
    "settle heads of tenants": 7,
}


@pytest.fixture(scope="module")
def big(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return filled(tmp_path_factory.mktemp("big") / "penstock.db", BIG)


@pytest.fixture
def path(big: Path, tmp_path: Path) -> Path:
    """A copy of the big backlog."""
    return Path(shutil.copy(big, tmp_path))


def filled(path: Path, size: Size) -> Path:
    with closing(SqliteStore(path)) as store:
        store.migrate()
        lanes = put_lanes(store)
    fill_sqlite(path, lanes, size, to_us(SystemClock().now()))
    return path


@pytest.mark.parametrize("statistics", ["none", "fresh"])
def test_a_pass_reads_what_it_works_on(path: Path, statistics: str) -> None:
    with closing(sqlite3.connect(path)) as plain:
        if statistics == "fresh":
            plain.execute("ANALYZE")
        complaints = []
        for call, statements in traced_day(path):
            plans = {statement: plan_of(plain, statement) for statement in statements}
            complaints += [
                f"{call}: {line} in {' '.join(statement.split())[:300]}"
                for statement, lines in plans.items()
                for line in lines
                if line.startswith("SCAN") and not SCANNED.match(line)
            ]
            used = {word for lines in plans.values() for line in lines for word in line.split()}
            complaints += [f"{call}: {index} was not used" for index in EXPECTED.get(call, set()) - used]
    if complaints:
        pytest.fail("\n".join(complaints))


def traced_day(path: Path) -> Iterator[tuple[str, set[str]]]:
    """Yield the statements of every call, one of each shape."""
    shapes: dict[str, str] = {}

    def trace(statement: str) -> None:
        if not statement.startswith("--"):  # what a trigger does
            shapes.setdefault(re.sub(r"'(?:[^']|'')*'|\d+", "?", statement), statement)

    with closing(SqliteStore(path, trace=trace)) as store:
        store.lanes()
        shapes.clear()
        for call, _ in day(store, BATCH):
            yield call, set(shapes.values())
            shapes.clear()


def plan_of(connection: sqlite3.Connection, statement: str) -> list[str]:
    if statement.startswith(("BEGIN", "COMMIT", "ROLLBACK")):
        return []
    return [row[3] for row in connection.execute(f"EXPLAIN QUERY PLAN {statement}")]


def test_the_cost_of_a_job_does_not_grow_with_the_backlog(path: Path, tmp_path: Path) -> None:
    small = steps_per_job(filled(tmp_path / "small.db", SMALL))
    big = steps_per_job(path)
    problems = [
        f"{call}: steps per job grew from {small[call]:.0f} at {SMALL.jobs} jobs "
        f"to {big[call]:.0f} at {BIG.jobs}"
        for call in small
        if big[call] > GROWTH * small[call]
    ]
    problems += [f"{call}: {steps:.0f} steps per job" for call, steps in big.items() if steps > STEPS_PER_JOB]
    assert not problems, "\n".join(problems)


def steps_per_job(path: Path) -> dict[str, float]:
    steps: dict[str, float] = {}

    def metered(store: SqlStore) -> Callable[..., Any]:
        def meter(name: str, jobs: int, call: Callable[[], Claim | None]) -> Claim | None:
            results: list[Claim | None] = []
            taken = steps_of(store.db._writer, lambda: results.append(call()))
            steps[name] = taken / (len(results[0].jobs) if results[0] is not None else jobs)
            return results[0]

        return meter

    with closing(SqliteStore(path)) as store:
        store.lanes()
        make_calls(store, 100, metered(store))
    return steps


def test_the_number_of_statements_does_not_depend_on_the_batch(path: Path) -> None:
    small, large = statements_per_call(path, 50), statements_per_call(path, 500)
    assert large == small, "a call runs more statements for a larger batch"
    assert large == STATEMENTS


def statements_per_call(path: Path, batch: int) -> dict[str, int]:
    counts: dict[str, int] = {}
    with closing(SqliteStore(path)) as store:
        store.lanes()
        counting = store.db._writer = CountingConnection(store.db._writer)

        def meter(name: str, jobs: int, call: Callable[[], Claim | None]) -> Claim | None:
            before = counting.statements
            result = call()
            counts[name] = counting.statements - before
            return result

        make_calls(store, batch, meter)
    return counts


def test_a_look_at_a_thousand_idle_lanes_is_a_probe_of_each(path: Path) -> None:
    with closing(sqlite3.connect(path)) as plain:
        plain.executemany(IDLE, [(f"idle-{number}",) for number in range(IDLE_LANES)])
        plain.commit()
    with closing(SqliteStore(path)) as store:
        reader = store.db.read(lambda tx: tx.connection)
        steps = steps_of(reader, store.scout)
        assert set(store.scout().work) == set(LANES)
    assert steps < STEPS_PER_LANE * IDLE_LANES
