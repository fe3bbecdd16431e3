"""Lanes with `keep_payload = false`: what a job said goes when it succeeds, in the transaction that ends it.

Payload and headers are emptied, those of its edits too; who it was, when it came, where it went and its key
stay. A key remembers the payload by its hash, so that whoever repeats the enqueue is still answered: one that
was made by plain INSERT on SQLite comes without and gets it here. The lanes are asked here; whether that is
worth a statement a store knows from its last look.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Final, NamedTuple

from penstock.domain.job import Claimed, Live
from penstock.domain.outcomes import Outcome, Succeeded
from penstock.domain.payloads import fingerprint
from penstock.ports.store import Settled
from penstock.stores.sql.database import Tx
from penstock.stores.sql.hotpath import HotPath

FORGETFUL: Final = "SELECT id FROM penstock.lanes WHERE NOT keep_payload"
PLACES: Final = "SELECT lane, keep, arrival FROM penstock.contexts WHERE id = ANY(:ids)"
EDITS: Final = "UPDATE penstock.revisions SET payload = NULL, headers = NULL WHERE arrival = ANY(:arrivals)"
# One look per job: a join could be planned to read all contexts there are.
KEYED: Final = """
    SELECT id, key FROM penstock.contexts
     WHERE keep = :keep AND arrival = :arrival AND key IS NOT NULL LIMIT 1"""
BARE: Final = """
    SELECT id FROM penstock.keys WHERE key = ANY(:keys) AND lane = ANY(:lanes) AND length(hash) = 0"""
PAYLOADS: Final = "SELECT id, lane, key, payload FROM penstock.contexts WHERE id = ANY(:ids)"
HASH: Final = "UPDATE penstock.keys SET hash = :hash WHERE lane = :lane AND key = :key AND id = :id"


class Place(NamedTuple):
    """Where a job's context is."""

    lane: int
    keep: int
    arrival: int


def succeeded(
    jobs: Iterable[Claimed], outcomes: Mapping[int, Outcome] | None, settled: Settled
) -> list[Live]:
    """Return those of these jobs that ended well just now; no outcomes = all of them did."""
    ended = [claimed.job for claimed in jobs if claimed.job.arrival in settled.applied]
    if outcomes is None:
        return ended
    return [job for job in ended if isinstance(outcomes[job.arrival], Succeeded)]


def forget(tx: Tx, hot: HotPath, jobs: Sequence[Live]) -> None:
    """Empty what these jobs said, as far as their lanes do not keep it."""
    if jobs:
        _forget(tx, hot, [Place(job.lane, job.keep, job.arrival) for job in jobs])


def forget_ids(tx: Tx, hot: HotPath, ids: Sequence[str]) -> None:
    """The same for jobs that are known by their ids."""
    if ids:
        _forget(tx, hot, [Place._make(row) for row in tx.fetch(PLACES, ids=list(ids))])


def _forget(tx: Tx, hot: HotPath, places: Iterable[Place]) -> None:
    forgetful = {row[0] for row in tx.fetch(FORGETFUL)}
    gone = sorted(place for place in places if place.lane in forgetful)
    if not gone:
        return
    _hash_keys(tx, gone)
    for keep in sorted({place.keep for place in gone}):
        hot.forget(tx, keep, [place.arrival for place in gone if place.keep == keep])
    tx.execute(EDITS, arrivals=[place.arrival for place in gone])


def _hash_keys(tx: Tx, gone: Sequence[Place]) -> None:
    """Give those keys their hash that have none yet."""
    each = {"keep": [place.keep for place in gone], "arrival": [place.arrival for place in gone]}
    keyed: dict[str, str] = dict(tx.fetch_each(KEYED, each))
    if not keyed:
        return
    rows = tx.fetch(BARE, keys=sorted(set(keyed.values())), lanes=sorted({place.lane for place in gone}))
    bare = [row[0] for row in rows if row[0] in keyed]
    for id_, lane, key, payload in tx.fetch(PAYLOADS, ids=bare) if bare else []:
        tx.execute(HASH, id=id_, lane=lane, key=key, hash=fingerprint(payload))
