"""The cost of a job beside a small backlog and beside a big one: rows, pages and time per claimed job.

Nine of ten groups are blocked by a dead head, a tenth of the jobs is due tomorrow, and history is long.
"""

import statistics
import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass, field

from bench.places import Place, PostgresPlace
from bench.record import Record
from bench.shapes import LANE, Backlog
from penstock.domain.job import Claim
from penstock.ports.store import Ask
from penstock.stores.postgres.store import PostgresStore
from penstock.stores.sql.store import SqlStore
from penstock.stores.sqlite.store import SqliteStore
from tests.plans.counting import STEP, touched

BACKLOGS = (10_000, 100_000, 1_000_000)
PLAIN_BATCH, PLAIN_TURNS = 250, 12
# Beside the smallest backlog a hundred groups of four are ready: so many turns leave jobs in each of them, as
# beside the big ones. A group that runs empty is removed, which costs less than finding its next head.
GROUP_BATCH, GROUP_TURNS = 25, 6
WARM_UP = 2


@dataclass
class Costs:
    """What turns cost per job: microseconds of each, and the work of all."""

    jobs: int = 0
    micros: list[float] = field(default_factory=list)
    work: dict[str, float] = field(default_factory=dict)


def backlog_of(jobs: int) -> Backlog:
    """Return half of the jobs unordered and due, a tenth in the future, the rest in groups of four."""
    groups = jobs // 10
    return Backlog(plain=jobs // 2, future=jobs // 10, groups=groups, per_group=4, blocked=groups * 9 // 10)


def scaling(record: Record, place: Place, *, history: int, rounds: int) -> None:
    """Measure the same turns beside each backlog, in turn."""

    def run(jobs: int) -> None:
        with place.copy(backlog_of(jobs), history) as target, closing(_open(place, target)) as store:
            for kind in ("unordered", "heads"):
                _keep(record, place, kind, jobs, _turns(place, store, kind))

    record.rounds(
        rounds, [(f"{place.name}: backlog of {jobs:,}", lambda jobs=jobs: run(jobs)) for jobs in BACKLOGS]
    )
    for kind in ("unordered", "heads"):
        _judge(record, place, kind, history)


def _open(place: Place, target: str) -> SqlStore:
    return (
        PostgresStore(target, max_connections=1) if isinstance(place, PostgresPlace) else SqliteStore(target)
    )


def _turns(place: Place, store: SqlStore, kind: str) -> Costs:
    ordered = kind == "heads"
    batch, turns = (GROUP_BATCH, GROUP_TURNS) if ordered else (PLAIN_BATCH, PLAIN_TURNS)
    ask = Ask(lane=LANE, node=1, limit=batch, run=1)
    take = store.claim_groups if ordered else store.claim
    store.lanes()
    for _ in range(WARM_UP):
        store.settle(_full(take(ask), batch))
    place.tidy(store)
    costs = Costs()
    meter = _pages if isinstance(place, PostgresPlace) else _steps

    def work() -> None:
        for _ in range(turns):
            started = time.perf_counter()
            claim = _full(take(ask), batch)
            store.settle(claim)
            costs.micros.append((time.perf_counter() - started) / len(claim.jobs) * 1e6)
            costs.jobs += len(claim.jobs)

    costs.work = meter(store, work)
    return costs


def _full(claim: Claim | None, batch: int) -> Claim:
    assert claim is not None
    assert len(claim.jobs) == batch, len(claim.jobs)
    return claim


def _pages(store: SqlStore, work: Callable[[], None]) -> dict[str, float]:
    before = touched(store)
    work()
    return touched(store).since(before, 1)._asdict()


def _steps(store: SqlStore, work: Callable[[], None]) -> dict[str, float]:
    ticks = 0

    def tick() -> int:
        nonlocal ticks
        ticks += 1
        return 0

    writer = store.db._writer  # noqa: SLF001 - what is measured is what this connection does
    writer.set_progress_handler(tick, STEP)
    work()
    writer.set_progress_handler(None, STEP)
    return {"steps": ticks * STEP}


def _keep(record: Record, place: Place, kind: str, jobs: int, costs: Costs) -> None:
    key = (place.name, "scaling", kind, f"{jobs:,}")
    record.measured(*key, "time", value=statistics.median(costs.micros), unit="us/job")
    for unit, value in costs.work.items():
        record.measured(*key, unit, value=value / costs.jobs, unit=f"{unit}/job")


def _judge(record: Record, place: Place, kind: str, history: int) -> None:
    units = {key[-1] for key in record.values if key[:3] == (place.name, "scaling", kind)}
    for jobs in BACKLOGS[1:]:
        for unit in sorted(units):
            small, big = (
                record.median(place.name, "scaling", kind, f"{size:,}", unit) for size in (BACKLOGS[0], jobs)
            )
            record.at_most(
                f"{place.name}: {kind}, {unit} per job ({small:.1f} to {big:.1f}), backlog "
                f"{BACKLOGS[0]:,} to {jobs:,}, {history:,} in history",
                big / small,
                1.5 if unit == "time" else 1.2,
            )
