"""What `penstock doctor` looks for: each examination yields what it found, and what to do about it."""

import asyncio
import os
import platform
import shutil
import sqlite3
import sys
from collections.abc import Iterator, Mapping
from datetime import timedelta
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Final, NamedTuple

from penstock import __version__
from penstock.cli.render import short
from penstock.cli.sink_check import queues_there
from penstock.config.settings import Settings
from penstock.domain.notes import is_alive, read
from penstock.domain.states import IN_FLIGHT, JobState
from penstock.observability.dues import oldest_due
from penstock.observability.logs import hush_drivers
from penstock.ports.clock import Clock
from penstock.ports.executor import ThreadExecutor
from penstock.ports.sink import SinkUnavailable
from penstock.ports.store import Store
from penstock.sinks.open import make_open

LATE_S: Final = 60.0
OVERDUE_S: Final = 60.0
OLD_TRANSACTION_S: Final = 900.0
MANY_DEAD_ROWS: Final = 5_000_000
SINK_PATIENCE_S: Final = 5.0
FEW_FILES: Final = 1024
LITTLE_DISK: Final = 500 * 1024 * 1024
DRIVERS: Final = {
    "psycopg": "postgres",
    "aiobotocore": "sqs",
    "aiokafka": "kafka",
    "redis": "redis",
    "aio-pika": "rabbitmq",
    "stomp.py": "activemq",
    "opentelemetry-sdk": "otel",
}
WITHOUT_CONNECTION: Final = frozenset({"console", "embedded"})


class Symptom(NamedTuple):
    """`ok`, `warning` or `error`; `fix` is what to do."""

    level: str
    part: str
    text: str
    fix: str = ""


def environment(variables: Mapping[str, str]) -> Iterator[Symptom]:
    """Versions, packages, variables and room on this machine."""
    python = platform.python_version()
    yield Symptom(
        "ok",
        "environment",
        f"Penstock {__version__}, Python {python}, {platform.system()} {platform.release()},"
        f" SQLite {sqlite3.sqlite_version}",
    )
    there = [
        f"{extra} ({package} {found})" for package, extra in DRIVERS.items() if (found := _version(package))
    ]
    yield Symptom("ok", "environment", f"extras: {', '.join(there) or 'none'}")
    ours = sorted(name for name in variables if name.startswith("PENSTOCK_"))
    if ours:
        yield Symptom("ok", "environment", f"variables: {', '.join(ours)}")
    if not sys.stdout.encoding.lower().startswith("utf"):
        yield Symptom(
            "warning",
            "environment",
            f"the terminal's encoding is {sys.stdout.encoding}",
            "export LANG=C.UTF-8",
        )
    free = shutil.disk_usage(Path.cwd()).free
    if free < LITTLE_DISK:
        room = f"{free // (1024 * 1024)} MiB are left on the disk of this folder"
        yield Symptom("warning", "environment", room, "make room: a full disk stops a SQLite store")
    files = os.sysconf("SC_OPEN_MAX")
    if 0 < files < FEW_FILES:
        yield Symptom("warning", "environment", f"a process may open {files} files", "ulimit -n 65536")


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def nodes_of(store: Store) -> Iterator[Symptom]:
    """Who is at work, and whether somebody leads."""
    now = store.now()
    seen = [(node, read(node.note)) for node in store.nodes() if is_alive(node, now)]
    alive = [node for node, said in seen if said.sends and not said.stops]
    if not alive:
        start = "start one: penstock serve (or penstock dev)"
        yield Symptom("warning", "nodes", "no node is running: nothing is sent", start)
        return
    leader = store.leader()
    for node in alive:
        if node.drain is not None:
            text = f"node {node.id} ({node.name}) drains, told by {node.drain.actor}: {node.drain.reason}"
            yield Symptom("warning", "nodes", text, f"stop it, or penstock nodes resume {node.id}")
    yield Symptom("ok", "nodes", f"{', '.join(f'{node.name} (node {node.id})' for node in alive[:10])}")
    if leader is None:
        yield Symptom(
            "error",
            "nodes",
            "none of them leads: what dead nodes left is not recovered",
            "look at their logs",
        )
    versions = sorted({node.version for node in alive})
    if len(versions) > 1:
        yield Symptom(
            "warning", "nodes", f"different versions are running: {', '.join(versions)}", "finish the upgrade"
        )


def vital(store: Store) -> Iterator[Symptom]:
    """What the store says of itself."""
    vitals = store.vitals()
    if vitals.lapsed_s > OVERDUE_S:
        text = f"a claim has been without a lease for {_span(vitals.lapsed_s)} and nobody takes it over"
        yield Symptom("error", "recovery", text, "is a node running that leads? its log says what fails")
    oldest = vitals.oldest_transaction_s
    if oldest is not None and oldest > OLD_TRANSACTION_S:
        text = f"a transaction has been open for {_span(oldest)}: vacuum cannot remove what came after it"
        fix = "SELECT pid, xact_start, state, query FROM pg_stat_activity ORDER BY xact_start; then end it"
        yield Symptom("warning", "store", text, fix)
    if vitals.dead_rows is not None and vitals.dead_rows > MANY_DEAD_ROWS:
        fix = "is autovacuum on? does an old transaction or a replication slot hold it back?"
        yield Symptom("warning", "store", f"{vitals.dead_rows:,} dead rows wait for vacuum", fix)
    for lane, seconds in vitals.put_back_s.items():
        if seconds > LATE_S:
            text = f"{lane}: a job that its pool put back has been due for {_span(seconds)}"
            yield Symptom("warning", "pools", text, "penstock pools list shows which key of which is full")
    for name, use in vitals.pools.items():
        if use.saturation >= 1.0:
            key = f" ({use.fullest})" if use.fullest else ""
            yield Symptom(
                "warning", "pools", f"{name}{key} is at its limit", f"penstock pools set {name} rate=..."
            )


def flow(store: Store) -> Iterator[Symptom]:
    """What is stopped by somebody, or left alone because of its answers."""
    scouted = store.scout()
    pause = store.store_pause()
    if pause is not None:
        text = f"everything is paused by {pause.actor}: {pause.reason}"
        yield Symptom("warning", "flow", text, "penstock resume-all --reason ...")
    late = {lane: seconds for lane, seconds in oldest_due(scouted).items() if seconds > LATE_S}
    lanes = store.lanes()
    for name, seconds in sorted(late.items()):
        lane, text = lanes.get(name), f"{name}: a job has been due for {_span(seconds)}"
        if lane is not None and not lane["enabled"]:
            yield Symptom(
                "warning", "flow", f"{text}; the lane is disabled", f"penstock lanes set {name} enabled=true"
            )
        elif lane is not None and lane.stopped(scouted.now):
            why = f"{text}; the lane is paused by {lane.paused_by}: {lane.pause_reason}"
            yield Symptom("warning", "flow", why, f"penstock lanes resume {name} --reason ...")
        else:
            see = f"penstock jobs list --lane {name} --due --limit 1, then penstock jobs explain ID"
            yield Symptom("warning", "flow", text, see)
    for target in store.targets().values():
        if target.pause is not None:
            text = f"{target.name} is paused by {target.pause.actor}: {target.pause.reason}"
            yield Symptom("warning", "targets", text, f"penstock targets resume {target.name}")
            continue
        yield Symptom(
            "warning",
            "targets",
            f"{target.name} is left alone after failures",
            "is it up? it is tried again by itself",
        )


def stuck(store: Store) -> Iterator[Symptom]:
    """Jobs and groups that wait for a person."""
    counts = store.counts()
    dead = {lane: number for (lane, state), number in counts.items() if state is JobState.DEAD and number > 0}
    for lane, number in sorted(dead.items()):
        yield Symptom(
            "warning", "jobs", f"{lane}: {number:,} dead letters", f"penstock dead list --lane {lane}"
        )
    for row in store.list_groups(blocked=True, limit=10).groups:
        text = f"{row.lane}/{row.group} is blocked by {row.blocker}, {row.behind} jobs wait"
        yield Symptom("warning", "groups", text, f"penstock jobs explain {row.blocker}")
    total = sum(max(0, number) for (_, state), number in counts.items() if state in IN_FLIGHT)
    pending = sum(max(0, number) for (_, state), number in counts.items() if state is JobState.PENDING)
    yield Symptom("ok", "jobs", f"{pending:,} pending, {total:,} in flight")


def sinks_in_use(store: Store, settings: Settings, clock: Clock) -> Iterator[Symptom]:
    """Open every connection that a lane uses, and close it again; nothing is sent."""
    hush_drivers()
    names = sorted({str(lane["sink"]) for lane in store.lanes().values()} - WITHOUT_CONNECTION)
    yield from asyncio.run(_opened(names, store, settings, clock))


async def _opened(names: list[str], store: Store, settings: Settings, clock: Clock) -> list[Symptom]:
    executor = ThreadExecutor(2, name="penstock-doctor")
    try:
        open_sink = make_open(
            settings.sinks(),
            executor=executor,
            clock=clock,
            queue=store,
            open_queues=lambda url: queues_there(url, clock),
            secrets=store,
            stream=sys.stderr,
        )
        found = []
        for name in names:
            try:
                async with asyncio.timeout(SINK_PATIENCE_S):
                    sink = await open_sink(name)
                    await sink.close()
            except SinkUnavailable as error:
                text = f"{name} cannot be opened: {error}"
                found.append(Symptom("error", "sinks", text, "its lanes wait; nodes try again by themselves"))
            except TimeoutError:
                text = f"{name} cannot be opened: it did not answer within {SINK_PATIENCE_S:.0f} s"
                found.append(
                    Symptom("error", "sinks", text, "is its address right, and reachable from here?")
                )
            else:
                found.append(Symptom("ok", "sinks", f"{name} can be opened"))
        return found
    finally:
        executor.close()


def _span(seconds: float) -> str:
    return short(timedelta(seconds=int(seconds)))
