"""What is measured: the way in, claim and settle with and without order, and what does not make it slower."""

import json
import os
import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass, replace

from bench import raw_pg, raw_sqlite
from bench.places import Place, PostgresPlace, open_store
from bench.record import Record, Spent
from bench.shapes import LANE, Backlog, Batches, payloads
from bench.workers import Report, Task, disorder, drain
from penstock.client import Client
from penstock.domain.job import Enqueued, NewJob
from penstock.domain.ulid import Ulids

Way = Callable[[str, Spent], None]
ENQUEUE_BATCH = 1000
BATCH = 500
RUN = 10


@dataclass(frozen=True, slots=True)
class Scale:
    """How much of everything."""

    rounds: int
    enqueued: int
    drained: int
    groups: int
    heads: int


QUICK = Scale(rounds=3, enqueued=30_000, drained=100_000, groups=10_000, heads=40_000)
FULL = Scale(rounds=5, enqueued=100_000, drained=300_000, groups=10_000, heads=100_000)


def with_rounds(scale: Scale, rounds: int) -> Scale:
    """Return the same with so many repetitions."""
    return replace(scale, rounds=rounds)


# -- the way in
def enqueue(record: Record, place: Place, scale: Scale) -> None:
    """Bulk enqueue, 1,000 a call, against bare SQL into the same tables and into a table without anything."""
    name = place.name
    ways: dict[str, Way] = {"store": lambda target, spent: _by_store(target, scale.enqueued, spent)}
    if isinstance(place, PostgresPlace):
        ways["INSERT of arrays"] = lambda target, spent: raw_pg.insert_arrays(
            target, batches(scale.enqueued), spent
        )
        ways["COPY"] = lambda target, spent: raw_pg.copy(target, batches(scale.enqueued), spent)
        ways["flat COPY"] = lambda target, spent: raw_pg.copy(
            target, batches(scale.enqueued), spent, flat=True
        )
    else:
        ways["executemany"] = lambda target, spent: raw_sqlite.insert_many(
            target, batches(scale.enqueued), spent
        )

    def run(way: str) -> None:
        with place.copy(Backlog()) as target:
            spent = Spent(lambda: place.cpu(target))
            ways[way](target, spent)
            if way != "flat COPY":
                [(stored,)] = place.rows(target, "SELECT count(*) FROM penstock.jobs")
                assert stored == scale.enqueued, (way, stored)
        counted = scale.enqueued - spent.skip * ENQUEUE_BATCH
        _keep(record, (name, "enqueue", way), counted, spent.wall, client=spent.cpu, server=spent.server)

    record.rounds(scale.rounds, [(f"{name}: enqueue, {way}", lambda way=way: run(way)) for way in ways])
    for way in ways:
        record.rate(f"{name}: enqueue 1,000 a call, {way}", (name, "enqueue", way))
    store, bare = (
        record.median(name, "enqueue", "store"),
        [way for way in ways if way not in ("store", "flat COPY")],
    )
    best = max(record.median(name, "enqueue", way) for way in bare)
    record.at_least(f"{name}: enqueue, store / best bare SQL", store / best, 0.7)
    _second_opinion(record, name, "enqueue", bare)
    if "flat COPY" in ways:
        record.at_least(
            f"{name}: enqueue, store / flat COPY", store / record.median(name, "enqueue", "flat COPY"), 0
        )


def batches(jobs: int) -> Batches:
    """Return ids and payloads, a thousand at a time."""
    ids = Ulids(lambda: time.time_ns() // 1_000_000, os.urandom)
    return [(ids.batch(ENQUEUE_BATCH), payloads(ENQUEUE_BATCH)) for _ in range(jobs // ENQUEUE_BATCH)]


def _by_store(target: str, jobs: int, spent: Spent) -> None:
    with closing(open_store(target)) as store:
        store.lanes()
        for _ in range(0, jobs, ENQUEUE_BATCH):
            # What the caller has to say is made before the clock runs, but not all of it at once.
            objects = [NewJob(lane=LANE, payload=payload) for payload in payloads(ENQUEUE_BATCH)]
            with spent:
                answers = store.enqueue(objects)
            assert isinstance(answers[-1], Enqueued)
        spent.end()


def client(record: Record, place: Place, scale: Scale) -> None:
    """Bulk enqueue of plain objects through the client, which checks each, against the store alone."""
    name = place.name
    ways = {"store": _by_store, "Client.enqueue_many": _by_client}

    def run(way: str) -> None:
        with place.copy(Backlog()) as target:
            spent = Spent(lambda: place.cpu(target))
            ways[way](target, scale.enqueued, spent)
            assert place.rows(target, "SELECT count(*) FROM penstock.jobs") == [(scale.enqueued,)]
        counted = scale.enqueued - spent.skip * ENQUEUE_BATCH
        _keep(record, (name, "client", way), counted, spent.wall, client=spent.cpu, server=spent.server)

    record.rounds(scale.rounds, [(f"{name}: client, {way}", lambda way=way: run(way)) for way in ways])
    for way in ways:
        record.rate(f"{name}: enqueue 1,000 a call, {way}", (name, "client", way))
        cost = [record.median(name, "client", way, side) for side in ("client", "server")]
        record.note(f"{name}: CPU of {way}", f"{cost[0]:.1f} us/job client, {cost[1]:.1f} us/job server")
    by_client, by_store = ((name, "client", way) for way in ("Client.enqueue_many", "store"))
    record.share(f"{name}: Client.enqueue_many of dicts / store", by_client, by_store, 0.8)


def _by_client(target: str, jobs: int, spent: Spent) -> None:
    with Client(open_store(target)) as client:
        client.lane(LANE)
        for _ in range(0, jobs, ENQUEUE_BATCH):
            objects = [{"lane": LANE, "payload": json.loads(text)} for text in payloads(ENQUEUE_BATCH)]
            with spent:
                answers = client.enqueue_many(objects)
            assert isinstance(answers[-1], Enqueued)
        spent.end()


# -- claim and settle
def claim_and_settle(record: Record, place: Place, scale: Scale) -> None:
    """Drain unordered jobs by bare SQL and by the store, then groups one by one and by runs."""
    each = max(RUN, scale.drained // scale.groups)
    plain = Backlog(plain=scale.drained)
    heads = Backlog(groups=scale.groups, per_group=scale.heads // scale.groups, together=True)
    runs = Backlog(groups=scale.groups, per_group=each, together=True)
    mixed = Backlog(groups=scale.groups, per_group=each)

    def by_runs(target: str) -> Task:
        return Task(target, "store", BATCH // RUN, scale.groups * each, run=RUN)

    ways: dict[str, tuple[Backlog, Callable[[str], Task]]] = {
        "bare": (plain, lambda target: Task(target, "raw", BATCH, scale.drained)),
        "store": (plain, lambda target: Task(target, "store", BATCH, scale.drained)),
        "heads": (heads, lambda target: Task(target, "store", BATCH, scale.heads, run=1)),
        "runs of 10": (runs, by_runs),
        "runs of 10, groups enqueued in turn": (mixed, by_runs),
    }
    name = place.name
    record.rounds(
        scale.rounds,
        [
            (f"{name}: claim and settle, {way}", lambda way=way: _drain(record, place, way, *ways[way]))
            for way in ways
        ],
    )
    for way in ways:
        record.rate(f"{name}: claim + settle, {way}, {place.claimers} claimer(s)", (name, "drain", way))
    store, bare, one_by_one, by_ten = (
        (name, "drain", way) for way in ("store", "bare", "heads", "runs of 10")
    )
    record.share(f"{name}: unordered, store / bare SQL", store, bare, 0.7)
    _second_opinion(record, name, "drain", ["bare"])
    record.share(f"{name}: heads one by one / unordered", one_by_one, store, 0.25)
    record.share(f"{name}: runs of 10 / unordered", by_ten, store, 0.65)


def _drain(record: Record, place: Place, way: str, backlog: Backlog, task_of: Callable[[str], Task]) -> None:
    with place.copy(backlog) as target:
        task, server = task_of(target), place.cpu()
        reports = drain(task, place.claimers)
        server = place.cpu() - server
        _check(place, task, reports)
    seconds = max(report.ended for report in reports) - min(report.started for report in reports)
    client = sum(report.cpu for report in reports)
    _keep(record, (place.name, "drain", way), task.jobs, seconds, client=client, server=server)


def _keep(
    record: Record, key: tuple[str, ...], jobs: int, seconds: float, *, client: float, server: float
) -> None:
    """Keep a rate, and the CPU it took: that says more than the rate when others use the machine."""
    record.measured(*key, value=jobs / seconds, unit="jobs/s")
    record.measured(*key, "client", value=client / jobs * 1e6, unit="us/job of CPU")
    record.measured(*key, "server", value=server / jobs * 1e6, unit="us/job of CPU")


def _second_opinion(record: Record, name: str, what: str, bare: list[str]) -> None:
    """Put what a job costs in CPU into the table, and how that compares."""
    for way in ("store", *bare):
        client, server = (record.median(name, what, way, side) for side in ("client", "server"))
        record.note(
            f"{name}: {what}, CPU of {way}", f"{client:.1f} us/job client, {server:.1f} us/job server"
        )
    cost = {
        way: sum(record.median(name, what, way, side) for side in ("client", "server"))
        for way in ("store", *bare)
    }
    record.at_least(
        f"{name}: {what}, CPU of best bare SQL / store", min(cost[way] for way in bare) / cost["store"], 0
    )


def _check(place: Place, task: Task, reports: list[Report]) -> None:
    """Make sure that everything was done once, and in order."""
    assert sum(report.jobs for report in reports) == task.jobs
    sql = """SELECT count(*), count(DISTINCT arrival), min(state), max(state), max(attempt), max(send)
               FROM penstock.history"""
    assert place.rows(task.target, sql) == [(task.jobs, task.jobs, 10, 10, 1, 1)]
    for table in ("jobs", "claims"):
        assert place.rows(task.target, f"SELECT count(*) FROM penstock.{table}") == [(0,)], table
    assert disorder(reports) == 0, "order was violated"
