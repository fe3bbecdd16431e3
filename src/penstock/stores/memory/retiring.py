"""What is old enough goes: finished jobs, dead ones that block nobody, keys nobody needs."""

from datetime import datetime, timedelta

from penstock.domain.breakers import forgotten
from penstock.domain.durations import parse_duration
from penstock.domain.operations import KEPT
from penstock.domain.settlement import NODE_ACTOR
from penstock.domain.times import shifted
from penstock.stores.memory.tables import Ended, Tables


def retire(tables: Tables, slice_rows: int, now: datetime) -> int:
    """Drop finished jobs older than their retention, and dead ones older than their lane's."""
    over = [arrival for arrival, ended in tables.history.items() if _old(ended, now)]
    over += [arrival for arrival, ended in tables.dead.items() if _dead_is_over(tables, ended, now)]
    for arrival in over[:slice_rows]:
        _drop(tables, arrival)
    _forget_keys(tables, now)
    for id_, operation in list(tables.operations.items()):
        if operation.finished_at is not None:
            tables.operation_jobs.pop(id_, None)
            if operation.finished_at < now - KEPT:
                del tables.operations[id_]
    for name, account in list(tables.limits.items()):
        if account.idle_at is not None and account.idle_at < now:  # its bucket is full, as a new one's is
            del tables.limits[name]
    for name in [name for name, known in tables.targets.items() if forgotten(known, now=now)]:
        del tables.targets[name]
    return len(over[:slice_rows])


def _old(ended: Ended, now: datetime) -> bool:
    return now >= ended.at + timedelta(days=ended.job.keep)


def _dead_is_over(tables: Tables, ended: Ended, now: datetime) -> bool:
    row = ended.job
    lane = tables.lanes[tables.lane_names[row.lane]]
    if now < shifted(ended.at, parse_duration(lane["dead_retention"])):
        return False
    # It may block while an ordered job of its group lives, even one it does not stop: modes are mixed.
    return row.grp is None or not tables.group_rows(row.lane, row.grp)


def _drop(tables: Tables, arrival: int) -> None:
    """Forget a job; what people did to it stays in the audit log, not what nodes did."""
    ended = tables.history.pop(arrival, None) or tables.dead.pop(arrival)
    key = tables.key_of(ended.job)
    context = tables.contexts.pop(arrival)
    if key is not None and context.key is not None:  # nobody can be told of a job that is gone
        del tables.keys[ended.job.lane, context.key]
    del tables.by_id[context.id]
    tables.revisions.pop(arrival, None)
    tables.audit = [one for one in tables.audit if (one.arrival, one.actor) != (arrival, NODE_ACTOR)]
    tables.attempts = [attempt for attempt in tables.attempts if attempt.arrival != arrival]


def _forget_keys(tables: Tables, now: datetime) -> None:
    for (lane, name), key in list(tables.keys.items()):
        ttl = parse_duration(tables.lanes[tables.lane_names[lane]]["key_ttl"])
        if key.ended_at is not None and now >= shifted(key.ended_at, ttl):
            del tables.keys[lane, name]
