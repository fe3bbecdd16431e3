"""Claimers: separate processes that start together and go on until everything is settled.

Each takes turns of `claim` and `settle`, by the store or by bare SQL; a claimer of groups keeps a record of
what it sent when, from which the order is checked afterwards.
"""

import multiprocessing
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass, field
from typing import Any

from bench import raw_pg, raw_sqlite
from bench.places import open_store
from bench.shapes import LANE
from penstock.ports.store import Ask

PATIENCE_S = 300.0
NAP_S = 0.002


@dataclass(frozen=True, slots=True)
class Task:
    """What a claimer does: `how` is store or raw, `run` None for unordered jobs."""

    target: str
    how: str
    batch: int
    jobs: int
    run: int | None = None


@dataclass(slots=True)
class Sent:
    """One claim of groups: when it was there, when its settle began, and its jobs in order."""

    claimed: float
    settled: float
    groups: list[str]
    arrivals: list[int]


@dataclass(slots=True)
class Report:
    """What one claimer did."""

    jobs: int = 0
    batches: int = 0
    started: float = 0.0
    ended: float = 0.0
    cpu: float = 0.0
    sent: list[Sent] = field(default_factory=list)


def drain(task: Task, claimers: int) -> list[Report]:
    """Let so many claimers drain the target; return their reports."""
    spawn = multiprocessing.get_context("spawn")
    barrier, left, reports = spawn.Barrier(claimers), spawn.Value("q", task.jobs), spawn.Queue()
    processes = [
        spawn.Process(target=work, args=(task, node, barrier, left, reports))
        for node in range(1, claimers + 1)
    ]
    for process in processes:
        process.start()
    results = [reports.get(timeout=PATIENCE_S) for _ in processes]
    for process in processes:
        process.join()
    for result in results:
        if isinstance(result, BaseException):
            raise result
    return results


def work(task: Task, node: int, barrier: Any, left: Any, reports: Any) -> None:  # noqa: ANN401
    """Be one claimer."""
    try:
        reports.put(_work(task, node, barrier, left))
    except BaseException as error:  # noqa: BLE001 - it is raised again by the parent
        reports.put(error)


def _work(task: Task, node: int, barrier: Any, left: Any) -> Report:  # noqa: ANN401
    report = Report()
    turns = TURNS[task.how](task, node, report)
    next(turns)
    barrier.wait(PATIENCE_S)
    report.started, cpu = time.monotonic(), time.process_time()
    while left.value > 0:
        settled = next(turns)
        report.jobs += settled
        report.batches += settled > 0
        if settled:
            with left.get_lock():
                left.value -= settled
            report.ended = time.monotonic()
        else:
            time.sleep(NAP_S)
    report.cpu = time.process_time() - cpu
    turns.close()
    return report


def _by_store(task: Task, node: int, report: Report) -> Iterator[int]:
    ask = Ask(lane=LANE, node=node, limit=task.batch, run=task.run or 1)
    with closing(open_store(task.target)) as store:
        store.lanes()
        take = store.claim if task.run is None else store.claim_groups
        yield 0
        while True:
            claim = take(ask)
            if claim is None:
                yield 0
                continue
            claimed = time.monotonic()
            if task.run is not None:
                jobs = [job for job, _ in claim.jobs]
                groups, arrivals = [job.grp or "" for job in jobs], [job.arrival for job in jobs]
                report.sent.append(Sent(claimed, time.monotonic(), groups, arrivals))
            store.settle(claim)
            yield len(claim.jobs)


def _by_hand(task: Task, node: int, report: Report) -> Iterator[int]:  # noqa: ARG001
    bare = raw_pg if task.target.startswith("postgresql:") else raw_sqlite
    yield from bare.turns(task.target, node, task.batch)


TURNS: dict[str, Callable[[Task, int, Report], Iterator[int]]] = {"store": _by_store, "raw": _by_hand}


def disorder(reports: list[Report]) -> int:
    """Count jobs that were sent before a predecessor of their group, or while it was in flight."""
    last: dict[str, tuple[int, float]] = {}
    bad = 0
    for sent in sorted((sent for report in reports for sent in report.sent), key=lambda sent: sent.claimed):
        ended = {}
        for group, arrival in zip(sent.groups, sent.arrivals, strict=True):
            before, settled = ended.get(group) or last.get(group, (-1, 0.0))
            bad += arrival <= before or sent.claimed < settled
            ended[group] = (arrival, 0.0)
        last |= {group: (arrival, sent.settled) for group, (arrival, _) in ended.items()}
    return bad
