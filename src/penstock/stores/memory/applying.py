"""Outcomes: settle, resolve, report, expire."""

from collections import Counter
from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta

from penstock.domain.job import Audit, Claim, Claimed, Live
from penstock.domain.outcomes import Expired, Outcome, Succeeded
from penstock.domain.pools import marks
from penstock.domain.settlement import NOTES_KEPT, REPEATED, land, late, occupied, recalled, still_asked
from penstock.domain.states import JobState, Verb
from penstock.errors import IllegalTransition
from penstock.ports.store import Lapse, Report, Reported, Settled
from penstock.stores.memory.tables import Tables

_OUT = (JobState.DISPATCHED, JobState.RUNNING)


def settle(tables: Tables, claim: Claim, outcomes: Mapping[int, Outcome] | None, now: datetime) -> Settled:
    """Write what came of a claim's jobs that are still claimed under its epoch."""
    if outcomes is None:
        outcomes = {claimed.job.arrival: Succeeded() for claimed in claim.jobs}
    ours = {
        arrival
        for arrival in outcomes
        if (row := tables.live.get(arrival)) and row.state == JobState.CLAIMED and row.epoch == claim.epoch
    }
    settled = _apply_all(tables, outcomes, ours, now)
    for arrival in settled.refused & set(tables.live):
        row = occupied(tables.live[arrival], claim.epoch, outcomes[arrival])
        if row is not None:  # the executor's word came first, the slot is known only now
            tables.live[arrival] = row
    return settled


def lapse(tables: Tables, lease: timedelta, limit: int, now: datetime) -> Lapse | None:
    """Lease jobs whose executor fell silent: who waited longest, of each lane no more than it says."""
    left = {lane.id: lane["max_recoveries_per_pass"] for lane in tables.lanes.values()}
    chosen: list[int] = []
    for _, arrival, lane in sorted(
        (row.deadline, row.arrival, row.lane)
        for row in tables.live.values()
        if row.state in _OUT and row.deadline is not None and row.deadline < now
    ):
        if left[lane] and len(chosen) < limit:
            left[lane] -= 1
            chosen.append(arrival)
    if not chosen:
        return None
    epoch = next(tables.epochs)
    for arrival in chosen:
        tables.live[arrival] = tables.live[arrival]._replace(epoch=epoch, deadline=now + lease)
    rows = [tables.live[arrival] for arrival in chosen]
    jobs = tuple(Claimed(row, tables.context(row)) for row in rows)
    return Lapse(epoch, jobs, {row.lane: tables.lane_names[row.lane] for row in rows})


def resolve(tables: Tables, lapsed: Lapse, outcomes: Mapping[int, Outcome], now: datetime) -> Settled:
    """Write what the probe found for jobs that are still out under the lapse's epoch."""
    ours = {
        arrival
        for arrival in outcomes
        if (row := tables.live.get(arrival)) and row.state in _OUT and row.epoch == lapsed.epoch
    }
    return _apply_all(tables, outcomes, ours, now)


def report(tables: Tables, word: Report, now: datetime) -> Reported:
    """Apply an executor's word on a job's current, open send; otherwise note that it came late."""
    row = tables.row(tables.by_id.get(word.id, 0))
    if row is None:
        return Reported(applied=False, late=True)
    request = tables.requests.get(row.arrival)
    asked = request is not None and request.verb is Verb.CANCEL
    if word.send == _open_send(row) and _apply(tables, row, word.outcome, now):
        return Reported(applied=True, late=False, cancel_requested=asked)
    tables.audit.append(late(row, word.send, word.outcome, now=now))
    return Reported(applied=False, late=True, cancel_requested=asked)


def expire(tables: Tables, limit: int, now: datetime) -> int:
    """End pending jobs whose `start_by` has passed, those that waited longest first."""
    late_ones = sorted(
        (row.start_by, row.arrival)
        for row in tables.live.values()
        if row.state == JobState.PENDING and row.start_by is not None and row.start_by < now
    )[:limit]
    for _, arrival in late_ones:
        _apply(tables, tables.live[arrival], Expired(), now)
    return len(late_ones)


def recall(tables: Tables, limit: int, now: datetime) -> dict[str, int]:
    """Let jobs come now that need not wait any more for the pool that put them back, the oldest first."""
    right = {lane.id: marks(lane["pool"], tables.pools) for lane in tables.lanes.values()}
    stale = sorted(
        arrival
        for arrival, row in tables.live.items()
        if row.state == JobState.PENDING and row.reason is not None and row.reason not in right[row.lane]
    )[:limit]
    for arrival in stale:
        landing = recalled(tables.live[arrival], now)
        tables.put(landing.job, now)
        _note(tables, landing.audit)
    return dict(Counter(tables.lane_names[tables.live[arrival].lane] for arrival in stale))


def _open_send(row: Live) -> int | None:
    """Return the number of the send whose outcome would still count."""
    match JobState(row.state):
        case JobState.CLAIMED:
            return row.current_send
        case JobState.DISPATCHED | JobState.RUNNING | JobState.PENDING | JobState.HELD if row.open:
            return row.send
        case _:
            return None


def _apply_all(
    tables: Tables, outcomes: Mapping[int, Outcome], ours: Iterable[int], now: datetime
) -> Settled:
    applied = frozenset(a for a in ours if _apply(tables, tables.live[a], outcomes[a], now))
    return Settled(applied, frozenset(outcomes) - applied)


def _apply(tables: Tables, row: Live, outcome: Outcome, now: datetime) -> bool:
    """Land one job; False = the machine has no such move from where it is."""
    request = tables.requests.get(row.arrival)
    try:
        landing = land(row, outcome, now=now, request=request and request.verb)
    except IllegalTransition:
        return False
    if row.state == JobState.CLAIMED and row.epoch is not None:
        lease = tables.claims[row.epoch]
        lease.settled.add(row.arrival)
        if len(lease.settled) == len(lease.jobs):
            del tables.claims[row.epoch]
    tables.put(landing.job, now, landing.error, landing.result)
    if landing.attempt is not None:
        tables.attempts.append(landing.attempt)
    _note(tables, landing.audit)
    if request is not None and not still_asked(request.verb, landing.job):
        del tables.requests[row.arrival]
    return True


def _note(tables: Tables, note: Audit | None) -> None:
    """Write a line of a job's timeline; of the times that it was given back or let go the last few stay."""
    if note is None:
        return
    if note.action in REPEATED:
        alike = [one for one in tables.audit if (one.arrival, one.action) == (note.arrival, note.action)]
        old = alike[: len(alike) - NOTES_KEPT + 1] if len(alike) >= NOTES_KEPT else []
        tables.audit = [one for one in tables.audit if not any(one is gone for gone in old)]
    tables.audit.append(note)
