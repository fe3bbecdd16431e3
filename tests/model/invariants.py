"""What must be true of the tables of a SQL store after every commit.

Looked at in the tables themselves, because the port cannot show it: that a job is in one place only, that
a counter is not merely equal on both sides of a mistake, that a group with something to send will be found.
"""

from collections import Counter
from collections.abc import Iterator
from typing import Any, NamedTuple

from penstock.domain.job import Live
from penstock.domain.ordering import Mode, Place, gate
from penstock.domain.states import JobState
from penstock.stores.sql.database import Tx
from penstock.stores.sql.hotpath import ClaimRow
from penstock.stores.sql.reading import standing_of
from penstock.stores.sql.rows import LIVE
from penstock.stores.sql.store import SqlStore

Group = tuple[int, str]


class GroupRow(NamedTuple):
    next_at: Any
    claim: int | None
    dead: Place | None


class Tables(NamedTuple):
    """Everything a check needs, read in one transaction."""

    contexts: list[int]
    live: list[Live]
    ended: list[tuple[int, int, int]]
    dead: dict[Group, list[Place]]
    claims: list[ClaimRow]
    groups: dict[Group, GroupRow]
    wakes: set[Group]
    counts: dict[tuple[int, int], int]


def read(store: SqlStore) -> Tables:
    """Return what is in the tables now."""
    return store.db.read(lambda tx: _read(tx, store))


def broken(store: SqlStore) -> list[str]:
    """Return a sentence for everything that is not as it must be."""
    tables = read(store)
    return [*misplaced(tables), *miscounted(tables), *unfenced(tables), *misjudged(tables), *stranded(tables)]


def misplaced(tables: Tables) -> Iterator[str]:
    """Every job is in exactly one of jobs, claims, dead and history."""
    places = Counter(row.arrival for row in tables.live)
    places.update(arrival for arrival, _, _ in tables.ended)
    places.update(job.arrival for claim in tables.claims for job in claim.open_jobs())
    for arrival in tables.contexts:
        if places[arrival] != 1:
            yield f"job {arrival} is in {places[arrival]} places"
    for arrival in places.keys() - set(tables.contexts):
        yield f"job {arrival} has no context"


def miscounted(tables: Tables) -> Iterator[str]:
    """The counters say how many jobs there are."""
    real = Counter((row.lane, int(row.state)) for row in tables.live)
    real.update((lane, state) for _, lane, state in tables.ended)
    real.update((claim.lane, 2) for claim in tables.claims for _ in claim.open_jobs())
    for key in real.keys() | tables.counts.keys():
        if real[key] != tables.counts.get(key, 0):
            state = JobState(key[1]).label
            yield f"lane {key[0]} has {real[key]} jobs {state}, its counter says {tables.counts.get(key, 0)}"


def unfenced(tables: Tables) -> Iterator[str]:
    """A group is held by one claim, and by none that has nothing left of it."""
    holders: dict[Group, list[int]] = {}
    for claim in tables.claims:
        for group in {(claim.lane, job.grp) for job in claim.open_jobs() if job.grp is not None}:
            holders.setdefault(group, []).append(claim.epoch)
    for group, epochs in holders.items():
        if len(epochs) > 1:
            yield f"group {group} is in claims {epochs}"
    for group in holders.keys() | {group for group, row in tables.groups.items() if row.claim is not None}:
        row = tables.groups.get(group)
        claim = row.claim if row is not None else None
        if claim not in holders.get(group, [None]):
            yield f"group {group} says it is held by {claim}, it is held by {holders.get(group)}"


def misjudged(tables: Tables) -> Iterator[str]:
    """A group knows the first of its unresolved dead jobs."""
    for group in tables.dead.keys() | {group for group, row in tables.groups.items() if row.dead is not None}:
        row = tables.groups.get(group)
        said, real = row.dead if row is not None else None, min(tables.dead.get(group, []), default=None)
        if said != real:
            yield f"group {group} has its first dead job at {real}, its row says {said}"


def stranded(tables: Tables) -> Iterator[str]:
    """A group with something to send is marked for the time of its head, or woken, or held."""
    heads: dict[Group, Live] = {}
    for row in sorted((row for row in tables.live if row.holds), key=lambda row: (row.ord, row.arrival)):
        if row.grp is not None:
            heads.setdefault((row.lane, row.grp), row)
    for group, head in heads.items():
        known = tables.groups.get(group, GroupRow(None, None, None))
        opens = gate(standing_of(head), min(tables.dead.get(group, []), default=None))
        if opens.due_at is None or opens.blocked or known.claim is not None or group in tables.wakes:
            continue
        if known.next_at is None or known.next_at > opens.due_at:
            yield f"group {group} is due at {opens.due_at}, its row says {known.next_at}"


def _read(tx: Tx, store: SqlStore) -> Tables:
    if store.db.dialect == "postgres":  # one snapshot, so that it may be read while others are at work
        tx.script("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
    epochs = [row[0] for row in tx.fetch("SELECT id FROM penstock.claims ORDER BY id")]
    claims = [store.hot.claim_row(tx, epoch, lock=False) for epoch in epochs]
    dead: dict[Group, list[Place]] = {}
    for lane, grp, seq, arrival, mode in tx.fetch("SELECT lane, grp, seq, arrival, mode FROM penstock.dead"):
        if Mode(mode).ordered:
            dead.setdefault((lane, grp), []).append(Place(seq, arrival))
    groups = {}
    for lane, grp, next_at, claim, seq, arrival in tx.fetch(
        "SELECT lane, grp, next_at, claim, dead_seq, dead_arrival FROM penstock.groups"
    ):
        place = None if arrival is None else Place(seq, arrival)
        groups[lane, grp] = GroupRow(tx.time(next_at), claim, place)
    ended = [
        row
        for table in ("dead", "history")
        for row in tx.fetch(f"SELECT arrival, lane, state FROM penstock.{table}")
    ]
    wakes = store.db.dialect == "postgres" and tx.fetch("SELECT DISTINCT lane, grp FROM penstock.wakes")
    counts = tx.fetch("SELECT lane, state, n FROM penstock.current_counts")
    return Tables(
        contexts=[row[0] for row in tx.fetch("SELECT arrival FROM penstock.contexts")],
        live=[tx.live(row) for row in tx.fetch(f"SELECT {LIVE} FROM penstock.jobs")],
        ended=[(row[0], row[1], row[2]) for row in ended],
        dead=dead,
        claims=[claim for claim in claims if claim is not None],
        groups=groups,
        wakes={(row[0], row[1]) for row in wakes or []},
        counts={(row[0], row[1]): int(row[2]) for row in counts if row[2]},
    )
