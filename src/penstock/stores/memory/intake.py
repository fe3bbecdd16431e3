"""Enqueue and idempotency keys."""

from collections.abc import Callable
from datetime import datetime

from penstock.domain.durations import parse_duration
from penstock.domain.job import Context, Enqueued, Live, NewJob
from penstock.domain.lanes import Lane
from penstock.domain.names import near
from penstock.domain.ordering import DEFAULT_GROUP, MAX_SEQUENCE
from penstock.domain.payloads import fingerprint
from penstock.domain.states import JobState
from penstock.domain.times import shifted
from penstock.errors import InvalidJob, KeyConflict, PenstockError, UnknownLane
from penstock.stores.memory.tables import Key, Tables


def enqueue(
    tables: Tables, job: NewJob, *, now: datetime, ids: Callable[[], str]
) -> Enqueued | PenstockError:
    """Write one job, or say why not."""
    lane = tables.lanes.get(job.lane)
    if lane is None:
        return UnknownLane(job.lane, near(job.lane, tables.lanes))
    if not 0 <= job.sequence <= MAX_SEQUENCE:
        return InvalidJob("sequence", f"write a number from 0 to {MAX_SEQUENCE}")
    owned = owner(tables, lane, job.key, now)
    if owned is not None:
        if owned.hash == fingerprint(job.payload):
            return Enqueued(owned.job_id, duplicate=True)
        return KeyConflict(job.key or "", owned.job_id)
    if job.id in tables.by_id:
        return InvalidJob("id", f"there is a job {job.id} already")
    return Enqueued(_write(tables, lane, job, job.id or ids(), now))


def owner(tables: Tables, lane: Lane, name: str | None, now: datetime) -> Key | None:
    """Return whose the key is: of a live or dead job, or of one that finished less than `key_ttl` ago."""
    key = None if name is None else tables.keys.get((lane.id, name))
    if key is None or key.ended_at is None:
        return key
    return key if now < shifted(key.ended_at, parse_duration(lane["key_ttl"])) else None


def _write(tables: Tables, lane: Lane, job: NewJob, job_id: str, now: datetime) -> str:
    mode = lane.mode if job.mode is None else job.mode
    arrival = next(tables.arrivals)
    run_at = job.run_at or now
    tables.by_id[job_id] = arrival
    tables.contexts[arrival] = Context(
        id=job_id,
        message_group=job.group,
        sequence=job.sequence,
        run_at=run_at,
        created_at=now,
        payload=job.payload,
        headers=job.headers,
        target=job.target,
        pool=job.pool,
        key=job.key,
        finish_by=job.finish_by,
        entity=job.entity,
        version=job.version,
        event=job.event,
        correlation=job.correlation,
    )
    if job.key is not None:
        tables.keys[lane.id, job.key] = Key(job_id, arrival, fingerprint(job.payload))
    row = Live(
        arrival=arrival,
        lane=lane.id,
        keep=lane.keep,
        mode=mode,
        state=JobState.PENDING,
        ord=job.sequence,
        grp=(job.group or DEFAULT_GROUP) if mode.ordered else None,
        tenant=job.tenant,
        due_at=run_at,
        start_by=job.start_by,
        max_attempts=job.max_attempts,
        holds=mode.ordered,
    )
    tables.put(row, now)
    return job_id
