"""What lies in the tables before a run, made by set-based SQL as the store itself would have made it."""

from dataclasses import dataclass

PAYLOAD = '{"order": "' + "x" * 180 + '"}'
LANE = "bench"
Batches = list[tuple[list[str], list[str]]]


def payloads(count: int) -> list[str]:
    """Return so many payloads, no two the same: what all jobs share would be written once, not once each."""
    return [f'{{"order": "{number:08}{"x" * 172}"}}' for number in range(count)]


@dataclass(frozen=True, slots=True)
class Backlog:
    """Due jobs without order, groups of so many ordered jobs, future jobs.

    Groups were enqueued one after the other (`together`), or one job of each in turn. Of those in turn the
    first `blocked` have a dead head; they are the oldest.
    """

    plain: int = 0
    groups: int = 0
    per_group: int = 0
    blocked: int = 0
    future: int = 0
    together: bool = False


POSTGRES_JOBS = """
    INSERT INTO penstock.contexts (keep, lane, mode, sequence, run_at, id, message_group, payload)
    SELECT 7, {lane}, {mode}, 99, now() - interval '1 hour' + i * interval '1 us' + interval '{later}',
           '{name}' || i, {group}, '{payload}'
      FROM generate_series(0, {n} - 1) i"""
# The first job of each blocked group is dead; the group's row says so. Groups were filled in turn, so the
# first jobs of all groups have the lowest arrivals.
_FIRSTS = "holds AND arrival < (SELECT min(arrival) FROM {jobs} WHERE holds) + {{blocked}}"
POSTGRES_BLOCKED = f"""
    INSERT INTO penstock.dead (arrival, due_at, finished_at, lane, ord, seq, send, deferrals, keep, mode,
           state, attempt, recoveries, revision, grp)
    SELECT arrival, due_at, now(), lane, ord - 2147483648, ord, 1, 0, keep, mode, 14, 1, 0, 0, grp
      FROM penstock.jobs WHERE {_FIRSTS.format(jobs="penstock.jobs")};
    INSERT INTO penstock.groups (lane, grp, dead_arrival, dead_seq, blocked)
    SELECT lane, grp, arrival, seq, true FROM penstock.dead;
    DELETE FROM penstock.jobs WHERE {_FIRSTS.format(jobs="penstock.jobs")};
    DELETE FROM penstock.wakes WHERE grp < 'group-' || lpad('{{blocked}}', 8, '0')"""
POSTGRES_HISTORY = """
    INSERT INTO penstock.history (arrival, due_at, finished_at, lane, ord, send, deferrals, keep, mode, state,
           attempt, recoveries, revision, claimed_at, epoch, node)
    SELECT -i, now(), now() - (i % 3600000) * interval '1 ms', {lane}, 99, 1, 0, 7, 0, 10, 1, 0, 0, now(),
           1, 1
      FROM generate_series({first}, {last}) i"""

SQLITE_JOBS = """
    WITH RECURSIVE s (i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM s WHERE i < {n} - 1)
    INSERT INTO penstock_contexts (keep, lane, mode, sequence, run_at, created_at, id, message_group, payload)
    SELECT 7, {lane}, {mode}, 99, {now} - 3600000000 + i + {later}, {now}, '{name}' || i, {group}, '{payload}'
      FROM s"""
SQLITE_BLOCKED = (
    f"""INSERT INTO penstock_dead (arrival, due_at, finished_at, lane, ord, seq, send, deferrals, keep, mode,
               state, attempt, recoveries, revision, grp)
        SELECT arrival, due_at, {{now}}, lane, ord - 2147483648, ord, 1, 0, keep, mode, 14, 1, 0, 0, grp
          FROM penstock_jobs WHERE {_FIRSTS.format(jobs="penstock_jobs")}""",
    f"DELETE FROM penstock_jobs WHERE {_FIRSTS.format(jobs='penstock_jobs')}",
    """UPDATE penstock_groups SET next_at = NULL, blocked = 1, dead_seq = 99, dead_arrival = (
         SELECT arrival FROM penstock_dead d
          WHERE d.lane = penstock_groups.lane AND d.grp = penstock_groups.grp AND d.mode <> 0)
        WHERE (lane, grp) IN (SELECT lane, grp FROM penstock_dead)""",
)
SQLITE_HISTORY = """
    WITH RECURSIVE s (i) AS (SELECT {first} UNION ALL SELECT i + 1 FROM s WHERE i < {last})
    INSERT INTO penstock_history (arrival, due_at, finished_at, lane, ord, send, deferrals, keep, mode, state,
           attempt, recoveries, revision, claimed_at, epoch, node)
    SELECT -i, {now}, {now} - i, {lane}, 99, 1, 0, 7, 0, 10, 1, 0, 0, {now}, 1, 1 FROM s"""
