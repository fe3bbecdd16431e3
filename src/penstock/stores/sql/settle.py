"""Settling: outcomes of a claim's jobs become rows, in one transaction.

Two ways in. The common one - a whole claim, all succeeded - is a single statement of the dialect. Everything
else locks the claim, asks `domain.settlement.land` for each job, and writes what it says: a constant number
of statements, however mixed the outcomes. A position that somebody settled before (a report that overtook
the sender, or the same settle repeated after a lost reply) is refused, not written twice.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime

from penstock.domain.job import Claim, Live
from penstock.domain.ordering import sequence_of
from penstock.domain.outcomes import Outcome, Succeeded
from penstock.domain.settlement import Landing, land, occupied, still_asked
from penstock.domain.states import JobState, Verb
from penstock.errors import IllegalTransition
from penstock.ports.store import Settled
from penstock.stores.sql.database import Tx
from penstock.stores.sql.hotpath import ClaimRow, HotPath
from penstock.stores.sql.rows import LIVE, LIVE_COLUMNS, insert_landings

REQUESTS = "SELECT arrival, verb FROM penstock.requests WHERE arrival = ANY(:arrivals)"
FORGET = "DELETE FROM penstock.requests WHERE arrival = ANY(:arrivals)"
CLOSE = "DELETE FROM penstock.claims WHERE id = :epoch"
MARK = "UPDATE penstock.claims SET settled = :mask WHERE id = :epoch"
OUT_ALREADY = f"""
    SELECT {LIVE} FROM penstock.jobs WHERE arrival = ANY(:arrivals) AND epoch = :epoch
     ORDER BY arrival FOR UPDATE"""
OCCUPY = "ON CONFLICT (arrival) DO UPDATE SET slot = excluded.slot"
EARLIEST_DEAD = """
    ON CONFLICT (lane, grp) DO UPDATE SET dead_seq = excluded.dead_seq, dead_arrival = excluded.dead_arrival
     WHERE t.dead_arrival IS NULL
        OR (excluded.dead_seq, excluded.dead_arrival) < (t.dead_seq, t.dead_arrival)"""


def requests_for(tx: Tx, arrivals: Sequence[int]) -> dict[int, Verb]:
    """Return what operators asked of jobs that were in flight."""
    return {row[0]: Verb(row[1]) for row in tx.fetch(REQUESTS, arrivals=list(arrivals))}


def settle(tx: Tx, hot: HotPath, claim: Claim, outcomes: Mapping[int, Outcome] | None) -> Settled:
    """Write outcomes of a claim that is not simply done."""
    if outcomes is None:
        outcomes = {claimed.job.arrival: Succeeded() for claimed in claim.jobs}
    row = hot.claim_row(tx, claim.epoch, lock=True)
    if row is None:
        return Settled(frozenset(), frozenset(outcomes))
    return settle_row(tx, hot, row, outcomes)


def overtaken(outcomes: Mapping[int, Outcome] | None, settled: Settled) -> dict[int, Outcome]:
    """Return the refused outcomes that name a slot: their executors may have spoken first."""
    refused = {arrival: outcomes[arrival] for arrival in settled.refused} if outcomes else {}
    return {a: outcome for a, outcome in refused.items() if getattr(outcome, "slot", None) is not None}


def occupy(tx: Tx, epoch: int, refused: Mapping[int, Outcome]) -> None:
    """Note the slots of jobs that are out already; apart from the settle, which holds the claim locked."""
    rows = [tx.live(row) for row in tx.fetch(OUT_ALREADY, arrivals=list(refused), epoch=epoch)]
    found = [occupied(row, epoch, refused[row.arrival]) for row in rows]
    tx.insert("jobs", LIVE_COLUMNS, [row for row in found if row is not None], on_conflict=OCCUPY)


def settle_row(tx: Tx, hot: HotPath, row: ClaimRow, outcomes: Mapping[int, Outcome]) -> Settled:
    """Write outcomes for positions of a locked claim that are still open."""
    now = tx.now
    requests = requests_for(tx, list(outcomes))
    mask, landings = row.mask, []
    for position, job in enumerate(row.jobs):
        outcome = outcomes.get(job.arrival)
        if outcome is None or mask >> position & 1:
            continue
        landing = landed(job, outcome, now=now, request=requests.get(job.arrival))
        if landing is not None:
            landings.append(landing)
            mask |= 1 << position
    released = _released(row, mask, {landing.job.grp for landing in landings}) if row.groups else []
    hot.lock_groups(tx, row.lane, released, row.epoch)
    before = Counter({(row.lane, int(JobState.CLAIMED)): len(landings)})
    write(tx, hot, landings, before=before, requests=requests, now=now)
    _close(tx, row, mask)
    hot.release_groups(tx, row.lane, released, row.epoch)
    applied = frozenset(landing.job.arrival for landing in landings)
    return Settled(applied, frozenset(outcomes) - applied)


def landed(job: Live, outcome: Outcome, *, now: datetime, request: Verb | None) -> Landing | None:
    """Return where the job lands; None = the machine has no such move from where it is."""
    try:
        return land(job, outcome, now=now, request=request)
    except IllegalTransition:
        return None


def write(
    tx: Tx,
    hot: HotPath,
    landings: Sequence[Landing],
    *,
    before: Counter[tuple[int, int]],
    requests: Mapping[int, Verb],
    now: datetime,
) -> None:
    """Write landings, mark groups that got a dead job, count, and forget requests that are answered."""
    insert_landings(tx, landings, now=now)
    bury(tx, (landing.job for landing in landings))
    deltas = Counter((landing.job.lane, int(landing.job.state)) for landing in landings)
    deltas.subtract(before)
    hot.count(tx, {key: n for key, n in deltas.items() if n})
    jobs = (landing.job for landing in landings if landing.job.arrival in requests)
    answered = [job.arrival for job in jobs if not still_asked(requests[job.arrival], job)]
    if answered:
        tx.execute(FORGET, arrivals=answered)


def bury(tx: Tx, jobs: Iterable[Live]) -> None:
    """Note on the group of each dead ordered job that it stands in the way of what is behind it."""
    earliest: dict[tuple[int, str], tuple[int, int]] = {}
    for job in jobs:
        if job.state == JobState.DEAD and job.grp is not None:
            place = (sequence_of(job.ord), job.arrival)
            group = (job.lane, job.grp)
            earliest[group] = min(place, earliest.get(group, place))
    rows = [(*group, *place) for group, place in sorted(earliest.items())]
    tx.insert("groups", ("lane", "grp", "dead_seq", "dead_arrival"), rows, on_conflict=EARLIEST_DEAD)


def _close(tx: Tx, row: ClaimRow, mask: int) -> None:
    if mask == (1 << len(row.jobs)) - 1:
        tx.execute(CLOSE, epoch=row.epoch)
    elif mask != row.mask:
        tx.execute(MARK, epoch=row.epoch, mask=mask.to_bytes((len(row.jobs) + 7) // 8, "big"))


def _released(row: ClaimRow, mask: int, settled: set[str | None]) -> list[str]:
    """Return the groups settled now of which nothing is open any more."""
    open_ = {job.grp for position, job in enumerate(row.jobs) if not mask >> position & 1}
    return sorted(group for group in settled - open_ if group is not None)
