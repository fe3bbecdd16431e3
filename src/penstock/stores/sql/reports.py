"""What executors report and what recovery finds about jobs that are already out."""

from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Final

from penstock.domain.job import Claim, Claimed, Live
from penstock.domain.outcomes import Expired, Outcome
from penstock.domain.settlement import Landing, late
from penstock.domain.states import JobState, Verb
from penstock.ports.store import Lapse, Report, Reported, Settled
from penstock.stores.sql.database import Tx
from penstock.stores.sql.hotpath import ClaimRow, HotPath
from penstock.stores.sql.reading import Found, arrivals_of, contexts_of, lane_names, locate
from penstock.stores.sql.rows import AUDIT_COLUMNS, LIVE
from penstock.stores.sql.settle import landed, requests_for, settle_row, write

REMOVE = "DELETE FROM penstock.jobs WHERE arrival = ANY(:arrivals)"
MOST_PER_LANE = "SELECT id, max_recoveries_per_pass FROM penstock.lanes ORDER BY id"
SILENT = """
    SELECT deadline, arrival FROM penstock.jobs WHERE lane = :lane AND deadline < :now
     ORDER BY lane, deadline, arrival LIMIT :most"""
STILL_SILENT = f"""
    SELECT {LIVE} FROM penstock.jobs WHERE arrival = ANY(:arrivals) AND deadline < :now
     ORDER BY deadline, arrival FOR UPDATE SKIP LOCKED"""
PROBE = "UPDATE penstock.jobs SET epoch = :epoch, deadline = :until WHERE arrival = ANY(:arrivals)"
OURS = f"""
    SELECT {LIVE} FROM penstock.jobs
     WHERE arrival = ANY(:arrivals) AND epoch = :epoch AND state = ANY(:states) ORDER BY arrival FOR UPDATE"""
OVERDUE = f"""
    SELECT {LIVE} FROM penstock.jobs
     WHERE state = 1 AND start_by IS NOT NULL AND start_by < :now ORDER BY start_by, arrival LIMIT :limit
       FOR UPDATE SKIP LOCKED"""
TAKE_OVER = """
    UPDATE penstock.claims SET id = :new, node = :node, lease_until = :until, takeovers = takeovers + 1
     WHERE id = :old"""
LANE_NAME = "SELECT name FROM penstock.lanes WHERE id = :lane"
OUT: Final = (JobState.DISPATCHED, JobState.RUNNING)
_OPEN: Final = frozenset({JobState.DISPATCHED, JobState.RUNNING, JobState.PENDING, JobState.HELD})


def report(tx: Tx, hot: HotPath, reports: Sequence[Report]) -> list[Reported]:
    """Apply executors' words; a job named twice in one batch is taken in turn."""
    answers: dict[int, Reported] = {}
    waiting = list(enumerate(reports))
    while waiting:
        turn: dict[str, tuple[int, Report]] = {}
        for entry in waiting:
            turn.setdefault(entry[1].id, entry)
        _report(tx, hot, list(turn.values()), answers)
        waiting = [entry for entry in waiting if entry[0] not in answers]
    return [answers[index] for index in range(len(reports))]


def _report(
    tx: Tx, hot: HotPath, reports: Sequence[tuple[int, Report]], answers: dict[int, Reported]
) -> None:
    arrivals = arrivals_of(tx, [word.id for _, word in reports])
    found = locate(tx, hot, arrivals.values(), lock=True)
    words = {arrivals[word.id]: word for _, word in reports if arrivals.get(word.id, 0) in found}
    requests = requests_for(tx, list(words))
    applied = _report_live(tx, hot, words, found, requests) | _report_claimed(tx, hot, words, found)
    audit = []
    for index, word in reports:
        arrival = arrivals.get(word.id, 0)
        row = found.row(arrival)
        asked = requests.get(arrival) is Verb.CANCEL and found.ended(arrival) is None
        answers[index] = Reported(arrival in applied, arrival not in applied, cancel_requested=asked)
        if row is not None and arrival not in applied:
            audit.append(late(row, word.send, word.outcome, now=tx.now))
    tx.insert("audit", AUDIT_COLUMNS, audit)


def _report_live(
    tx: Tx, hot: HotPath, words: Mapping[int, Report], found: Found, requests: Mapping[int, Verb]
) -> set[int]:
    """Land jobs that are out, or back but with their last send still open."""
    rows = [found.live[arrival] for arrival in words if arrival in found.live]
    current = [row for row in rows if row.open and row.send == words[row.arrival].send and row.state in _OPEN]
    outcomes = {row.arrival: words[row.arrival].outcome for row in current}
    return land_rows(tx, hot, current, outcomes, requests)


def _report_claimed(tx: Tx, hot: HotPath, words: Mapping[int, Report], found: Found) -> set[int]:
    """Settle positions of claims whose executor was faster than the sender's own settle."""
    claims, outcomes = {}, dict[int, dict[int, Outcome]]()
    for arrival, (job, claim) in found.claimed.items():
        if job.current_send == words[arrival].send:
            claims[claim.epoch] = claim
            outcomes.setdefault(claim.epoch, {})[arrival] = words[arrival].outcome
    applied: set[int] = set()
    for epoch, claim in sorted(claims.items()):
        applied |= settle_row(tx, hot, claim, outcomes[epoch]).applied
    return applied


def land_rows(
    tx: Tx, hot: HotPath, rows: Sequence[Live], outcomes: Mapping[int, Outcome], requests: Mapping[int, Verb]
) -> set[int]:
    """Write outcomes of locked live rows; return the arrivals that moved."""
    now, landings, before = tx.now, [], Counter[tuple[int, int]]()
    moved: list[Live] = []
    for row in rows:
        landing = landed(row, outcomes[row.arrival], now=now, request=requests.get(row.arrival))
        if landing is not None:
            landings.append(landing)
            moved.append(row)
            before[row.lane, row.state] += 1
    replace(tx, hot, moved, landings, before=before, requests=requests, now=now)
    return {row.arrival for row in moved}


def replace(
    tx: Tx,
    hot: HotPath,
    rows: Sequence[Live],
    landings: Sequence[Landing],
    *,
    before: Counter[tuple[int, int]],
    requests: Mapping[int, Verb],
    now: datetime,
) -> None:
    """Take locked rows out of `jobs`, write where they land, and have their groups looked at."""
    if rows:
        tx.execute(REMOVE, arrivals=[row.arrival for row in rows])
        write(tx, hot, landings, before=before, requests=requests, now=now)
        wake_groups(tx, hot, rows)


def wake_groups(tx: Tx, hot: HotPath, rows: Sequence[Live]) -> None:
    """Have the groups of these jobs looked at again."""
    by_lane: dict[int, set[str]] = {}
    for row in rows:
        if row.grp is not None:
            by_lane.setdefault(row.lane, set()).add(row.grp)
    for lane, groups in sorted(by_lane.items()):
        hot.wake(tx, lane, sorted(groups))


def lapse(tx: Tx, hot: HotPath, lease: timedelta, limit: int) -> Lapse | None:
    """Lease jobs whose executor fell silent: a new epoch, and a deadline by which the probe must be done.

    Those who waited longest, of each lane no more than it says.
    """
    lanes = tx.fetch(MOST_PER_LANE)
    each = {"lane": [lane for lane, _ in lanes], "most": [min(most, limit) for _, most in lanes]}
    silent = tx.fetch_each(SILENT, each, best="deadline, arrival", now=tx.now, limit=limit)
    chosen = [arrival for _, arrival in sorted(silent)[:limit]]
    rows = [tx.live(row) for row in tx.fetch(STILL_SILENT, arrivals=chosen, now=tx.now)] if chosen else []
    if not rows:
        return None
    epoch, until = hot.next_epoch(tx), tx.now + lease
    tx.execute(PROBE, epoch=epoch, until=until, arrivals=[row.arrival for row in rows])
    leased = [row._replace(epoch=epoch, deadline=until) for row in rows]
    contexts, names = contexts_of(tx, leased), lane_names(tx)
    jobs = tuple(Claimed(row, contexts.get(row.arrival)) for row in leased)
    return Lapse(epoch, jobs, {row.lane: names[row.lane] for row in leased})


def resolve(tx: Tx, hot: HotPath, lapsed: Lapse, outcomes: Mapping[int, Outcome]) -> Settled:
    """Write what the probe found, for rows nobody else has touched since."""
    states = [int(state) for state in OUT]
    fetched = tx.fetch(OURS, arrivals=list(outcomes), epoch=lapsed.epoch, states=states)
    rows = [tx.live(row) for row in fetched]
    requests = requests_for(tx, [row.arrival for row in rows])
    applied = frozenset(land_rows(tx, hot, rows, outcomes, requests))
    return Settled(applied, frozenset(outcomes) - applied)


def expire(tx: Tx, hot: HotPath, limit: int) -> int:
    """End pending jobs whose `start_by` has passed."""
    rows = [tx.live(row) for row in tx.fetch(OVERDUE, now=tx.now, limit=limit)]
    requests = requests_for(tx, [row.arrival for row in rows]) if rows else {}
    return len(land_rows(tx, hot, rows, {row.arrival: Expired() for row in rows}, requests))


def takeover(tx: Tx, hot: HotPath, node: int, lease: timedelta, limit: int) -> list[Claim]:
    """Give claims whose lease ran out to this node, under new epochs."""
    claims = []
    for old in hot.lapsed_claims(tx, limit):
        row = hot.claim_row(tx, old, lock=True)
        if row is not None:
            claims.append(_take_over(tx, hot, row, node=node, until=tx.now + lease))
    return claims


def _take_over(tx: Tx, hot: HotPath, row: ClaimRow, *, node: int, until: datetime) -> Claim:
    epoch = hot.next_epoch(tx)
    tx.execute(TAKE_OVER, new=epoch, node=node, until=until, old=row.epoch)
    groups = sorted({job.grp for job in row.jobs if job.grp is not None})
    if row.groups:
        hot.hand_over_groups(tx, row.lane, groups, old=row.epoch, new=epoch)
    contexts = contexts_of(tx, row.jobs)
    jobs = tuple(Claimed(job._replace(epoch=epoch, node=node), contexts.get(job.arrival)) for job in row.jobs)
    settled = frozenset(job.arrival for i, job in enumerate(row.jobs) if row.mask >> i & 1)
    name = tx.fetch(LANE_NAME, lane=row.lane)[0][0]
    return Claim(
        epoch,
        name,
        node,
        row.claimed_at,
        until,
        jobs,
        groups=row.groups,
        sending=row.sending,
        takeovers=row.takeovers + 1,
        settled=settled,
        taken_from=row.node,
    )
