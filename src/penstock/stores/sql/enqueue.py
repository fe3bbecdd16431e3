"""The way in: check, resolve keys, append.

Nothing here writes a row that another enqueuer writes: contexts, live rows and wakes are appended, and only
two callers with the same key of the same lane ever wait for each other.
"""

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta
from itertools import repeat
from typing import NamedTuple

from penstock.domain.durations import parse_duration
from penstock.domain.job import Enqueued, NewJob
from penstock.domain.names import near
from penstock.domain.ordering import MAX_SEQUENCE, Mode
from penstock.domain.payloads import fingerprint
from penstock.domain.times import shifted
from penstock.domain.ulid import Ulids
from penstock.errors import InvalidJob, KeyConflict, PenstockError, StoreUnavailable, UnknownLane
from penstock.stores.sql.database import Tx
from penstock.stores.sql.hotpath import Entry, HotPath, LaneRow
from penstock.stores.sql.reading import LOOKS, ended_at
from penstock.stores.sql.said import by_column, in_range, nobody_said, said

Answer = Enqueued | PenstockError
Key = tuple[int, str]
LANES = "SELECT id, name, mode, keep FROM penstock.lanes WHERE name = ANY(:names)"
NAMES = "SELECT name FROM penstock.lanes"
KNOWN_IDS = "SELECT id, lane, key FROM penstock.contexts WHERE id = ANY(:ids)"
KEY_TTLS = "SELECT id, key_ttl FROM penstock.lanes WHERE id = ANY(:lanes)"
KEYS = "SELECT lane, key, id, hash FROM penstock.keys WHERE key = ANY(:keys) AND lane = ANY(:lanes)"
PAYLOADS = "SELECT id, payload FROM penstock.contexts WHERE id = ANY(:ids)"
TAKE_KEY = """
    UPDATE penstock.keys SET id = :id, hash = :hash, created_at = :now
     WHERE lane = :lane AND key = :key AND id = :owner"""
GIVE_BACK = "DELETE FROM penstock.keys WHERE lane = :lane AND key = :key AND id = :id"
KEY_COLUMNS = ("lane", "key", "id", "hash", "created_at")


class Owner(NamedTuple):
    """Whose a key is."""

    id: str
    hash: bytes


def enqueue(tx: Tx, hot: HotPath, jobs: Sequence[NewJob], ids: Callable[[], str]) -> list[Answer]:
    """Write what can be written; one answer per job, in order."""
    fields = said(jobs)
    lanes = load_lane_rows(tx, set(fields["lane"]))
    if (
        nobody_said(fields["key"])
        and nobody_said(fields["id"])
        and lanes.keys() == set(fields["lane"])
        and in_range(fields["sequence"])
    ):
        drawn = new_ids(ids, len(jobs))
        hot.append_contexts(tx, by_column(fields, lanes, drawn))
        new = tuple.__new__  # once per job
        return [new(Enqueued, pair) for pair in zip(drawn, repeat(False))]
    return _one_by_one(tx, hot, jobs, ids, lanes)


def _one_by_one(
    tx: Tx, hot: HotPath, jobs: Sequence[NewJob], ids: Callable[[], str], lanes: Mapping[str, LaneRow]
) -> list[Answer]:
    """Write jobs of which some bring a key or an id, or cannot be written at all."""
    answers: dict[int, Answer] = {}
    entries: dict[int, Entry] = {}
    fresh = iter(new_ids(ids, sum(1 for job in jobs if job.id is None)))
    for index, job in enumerate(jobs):
        lane = lanes.get(job.lane)
        if lane is not None and 0 <= job.sequence <= MAX_SEQUENCE:
            entries[index] = Entry(job, lane, job.id or next(fresh))
        else:
            answers[index] = problem_of(tx, job, lanes)
    keyed = _by_key(entries)
    if keyed:
        _answer_owned(tx, keyed, entries, answers)
    _refuse_known_ids(tx, entries, answers)
    if keyed:
        _own_keys(tx, keyed, entries, answers)
    new = _written(tx, hot, list(entries.values()), lanes) if entries else set()
    for index, entry in entries.items():
        answers[index] = Enqueued(entry.id) if entry.id in new else _lost(tx, entry)
    return [answers[index] for index in range(len(jobs))]


def _written(tx: Tx, hot: HotPath, entries: Sequence[Entry], lanes: Mapping[str, LaneRow]) -> set[str]:
    """Append what is left to be written; return the ids that were new: chosen ones may be taken meanwhile."""
    columns = by_column(said([entry.job for entry in entries]), lanes, [entry.id for entry in entries])
    if any(entry.job.id is not None for entry in entries):
        return hot.insert_contexts(tx, columns)
    hot.append_contexts(tx, columns)
    return {entry.id for entry in entries}


def load_lane_rows(tx: Tx, names: set[str]) -> dict[str, LaneRow]:
    """Return the lanes of these names that exist."""
    rows = tx.fetch(LANES, names=sorted(names))
    return {row[1]: LaneRow(row[0], row[1], Mode[row[2].upper()], row[3]) for row in rows}


def new_ids(ids: Callable[[], str], count: int) -> list[str]:
    """Return this many new ids; our own source makes a batch at half the price."""
    return ids.batch(count) if isinstance(ids, Ulids) else [ids() for _ in range(count)]


def problem_of(tx: Tx, job: NewJob, lanes: Mapping[str, LaneRow]) -> PenstockError:
    """Return what is wrong with an enqueue object that cannot be written."""
    if job.lane not in lanes:
        return UnknownLane(job.lane, near(job.lane, [row[0] for row in tx.fetch(NAMES)]))
    return InvalidJob("sequence", f"write a number from 0 to {MAX_SEQUENCE}")


def _id_taken(id_: str) -> InvalidJob:
    return InvalidJob("id", f"there is a job {id_} already")


def _lost(tx: Tx, entry: Entry) -> InvalidJob:
    """Refuse a job whose id somebody else took at the same moment; its key was taken for nothing."""
    if entry.job.key is not None:
        tx.execute(GIVE_BACK, lane=entry.lane.id, key=entry.job.key, id=entry.id)
    return _id_taken(entry.id)


def _refuse_known_ids(tx: Tx, entries: dict[int, Entry], answers: dict[int, Answer]) -> None:
    """Refuse ids that callers chose and that are taken, in the store or earlier in this batch.

    A job whose key an earlier one of the batch brings is left to be answered by its key, whatever its id.
    """
    given = [entry.id for entry in entries.values() if entry.job.id is not None]
    if not given:
        return
    known = _known(tx, given)
    # Made since the keys were looked at, by somebody who says the same.
    twins = {key: indexes for key, indexes in _by_key(entries).items() if key in known.values()}
    if twins:
        _answer_owned(tx, twins, entries, answers)
    brought: set[Key] = set()
    for index, entry in list(entries.items()):
        key = None if entry.job.key is None else (entry.lane.id, entry.job.key)
        if key in brought:
            continue
        if entry.id in known:
            answers[index] = _id_taken(entry.id)
            del entries[index]
        elif key is not None:
            brought.add(key)
        known.setdefault(entry.id, None)


def _known(tx: Tx, ids: Sequence[str]) -> dict[str, Key | None]:
    """Return those of these ids that are taken, each with the key that its job brought."""
    return {
        id_: None if key is None else (lane, key) for id_, lane, key in tx.fetch(KNOWN_IDS, ids=list(ids))
    }


def _by_key(entries: dict[int, Entry]) -> dict[Key, list[int]]:
    """Return which entries share which key, in their order."""
    keyed: dict[Key, list[int]] = {}
    for index, entry in entries.items():
        if entry.job.key is not None:
            keyed.setdefault((entry.lane.id, entry.job.key), []).append(index)
    return keyed


def _answer_owned(
    tx: Tx, keyed: dict[Key, list[int]], entries: dict[int, Entry], answers: dict[int, Answer]
) -> None:
    """Answer the jobs whose key belongs to a job of before."""
    owners = _owners(tx, list(keyed))
    for key in still_owned(tx, owners):
        for index in keyed.pop(key):
            answers[index] = _taken(entries.pop(index), owners[key])


def _own_keys(
    tx: Tx, keyed: dict[Key, list[int]], entries: dict[int, Entry], answers: dict[int, Answer]
) -> None:
    """Make the first job of each key its owner; the others are answered as its duplicates.

    A caller with the same key at the same time makes the insert wait until it commits, and is then the owner.
    """
    firsts = {
        key: left[0] for key, indexes in keyed.items() if (left := [i for i in indexes if i in entries])
    }
    wanted = {
        key: Owner(entries[i].id, fingerprint(entries[i].job.payload)) for key, i in sorted(firsts.items())
    }
    found = whose(tx, wanted)
    chosen = [entries[i].id for i in firsts.values() if entries[i].job.id is not None]
    # Made by somebody whose key we waited for: if it has this key too, he said what we say now.
    twins = _known(tx, chosen) if chosen else {}
    for key, first in firsts.items():
        mine = found[key].id == entries[first].id and twins.get(entries[first].id) != key
        for index in keyed[key]:
            if index in entries and not (mine and index == first):
                answers[index] = _taken(entries.pop(index), found[key])


def whose(tx: Tx, wanted: Mapping[Key, Owner]) -> dict[Key, Owner]:
    """Take the keys that nobody has, or whose time is over; return whose they all are now.

    A key may be dropped or taken by somebody else between two looks; then it is looked at again.
    """
    found: dict[Key, Owner] = {}
    for _ in range(LOOKS):
        left = [key for key in wanted if key not in found]
        if not left:
            return found
        rows = [(*key, *wanted[key], tx.now) for key in left]
        tx.insert("keys", KEY_COLUMNS, rows, on_conflict="ON CONFLICT (lane, key) DO NOTHING")
        owners = _owners(tx, left)
        others = {key: owner for key, owner in owners.items() if owner.id != wanted[key].id}
        over = others.keys() - still_owned(tx, others)
        found |= {key: owner for key, owner in owners.items() if key not in over}
        for key in sorted(over):
            mine = {"lane": key[0], "key": key[1], **wanted[key]._asdict()}
            if tx.execute(TAKE_KEY, **mine, now=tx.now, owner=others[key].id):
                found[key] = wanted[key]
    raise StoreUnavailable("enqueue (a key kept changing hands)")


def _owners(tx: Tx, keys: Sequence[Key]) -> dict[Key, Owner]:
    rows = tx.fetch(KEYS, keys=[key for _, key in keys], lanes=sorted({lane for lane, _ in keys}))
    wanted = set(keys)
    owners = {(row[0], row[1]): Owner(row[2], bytes(row[3])) for row in rows if (row[0], row[1]) in wanted}
    return owners | _hashed(tx, {owner.id: key for key, owner in owners.items() if not owner.hash})


def _hashed(tx: Tx, bare: Mapping[str, Key]) -> dict[Key, Owner]:
    """Hash what the database could not: on SQLite a key made by plain INSERT comes without."""
    rows = tx.fetch(PAYLOADS, ids=list(bare)) if bare else []
    return {bare[id_]: Owner(id_, fingerprint(payload)) for id_, payload in rows}


def still_owned(tx: Tx, owners: Mapping[Key, tuple[str, bytes]]) -> set[Key]:
    """Return the keys whose job is not finished, or finished less than the lane's key_ttl ago."""
    if not owners:
        return set()
    rows = tx.fetch(KEY_TTLS, lanes=sorted({lane for lane, _ in owners}))
    ttls = {row[0]: parse_duration(row[1]) for row in rows}
    ended = ended_at(tx, [owner[0] for owner in owners.values()])
    return {
        pair
        for pair, owner in owners.items()
        # The keys of a lane that was deleted are free.
        if pair[0] in ttls and _within(ended.get(owner[0]), ttls[pair[0]], now=tx.now)
    }


def _within(end: datetime | None, ttl: timedelta, *, now: datetime) -> bool:
    return end is None or now < shifted(end, ttl)


def _taken(entry: Entry, owner: Owner) -> Answer:
    if owner.hash == fingerprint(entry.job.payload):
        return Enqueued(owner.id, duplicate=True)
    return KeyConflict(entry.job.key or "", owner.id)
