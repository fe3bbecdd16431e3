"""What people and tests look at."""

from collections import Counter

from penstock.domain.job import Job
from penstock.domain.ordering import Mode, gate
from penstock.domain.states import JobState
from penstock.ports.store import GroupState, Timeline
from penstock.stores.memory.claiming import standing
from penstock.stores.memory.tables import Tables


def find(tables: Tables, job_id: str) -> Job | None:
    """Return one job wherever it is; a live one shows its last error, a claimed one its lease."""
    arrival = tables.by_id.get(job_id, 0)
    row = tables.row(arrival)
    if row is None:
        return None
    ended = tables.dead.get(arrival) or tables.history.get(arrival)
    errors = [attempt.error for attempt in tables.attempts if attempt.arrival == arrival]
    request = tables.requests.get(arrival)
    lease = tables.claims.get(row.epoch or 0) if row.state == JobState.CLAIMED else None
    return Job(
        id=job_id,
        lane=tables.lane_names[row.lane],
        state=JobState(row.state),
        mode=Mode(row.mode),
        live=row if lease is None else row._replace(deadline=lease.lease_until),
        context=tables.context(row),
        finished_at=ended.at if ended else None,
        error=ended.error if ended else (errors[-1] if errors else None),
        result=ended.result if ended else None,
        request=request.verb if request else None,
    )


def timeline(tables: Tables, job_id: str) -> Timeline:
    """Return what is on record about one job, oldest first."""
    arrival = tables.by_id.get(job_id, 0)
    return Timeline(
        [attempt for attempt in tables.attempts if attempt.arrival == arrival],
        [audit for audit in tables.audit if audit.arrival == arrival],
    )


def group(tables: Tables, lane: str, name: str) -> GroupState | None:
    """Return one group as the next claim would see it."""
    known = tables.lanes.get(lane)
    if known is None:
        return None
    rows = tables.group_rows(known.id, name)
    earliest_dead = tables.earliest_dead(known.id, name)
    paused = (known.id, name) in tables.paused
    if not rows and earliest_dead is None and not paused:
        return None
    claim = next((row.epoch for row in rows if row.state == JobState.CLAIMED), None)
    head = standing(rows[0]) if rows and claim is None else None
    opens = gate(head, earliest_dead)
    return GroupState(
        lane,
        name,
        next_at=opens.due_at,
        claim=claim,
        blocked=opens.blocked,
        paused=paused,
        dead_arrival=earliest_dead.arrival if earliest_dead else None,
    )


def counts(tables: Tables) -> dict[tuple[str, JobState], int]:
    """Return how many jobs of each lane are in each state."""
    ended = [e.job for table in (tables.dead, tables.history) for e in table.values()]
    names = {lane.id: name for name, lane in tables.lanes.items()}  # a deleted lane is not counted
    rows = [row for row in [*tables.live.values(), *ended] if row.lane in names]
    return dict(Counter((names[row.lane], JobState(row.state)) for row in rows))


def depth(tables: Tables, lane: int) -> int:
    """Return how many jobs of a lane are not ended."""
    return sum(1 for row in tables.live.values() if row.lane == lane)
