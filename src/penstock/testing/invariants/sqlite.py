"""What each transaction changed in a SQLite store, row by row, cheaply enough to look after every commit.

Temporary triggers, which live in the connection and not in the file, write an image of every changed row
into a temporary table; a transaction that is rolled back takes its images with it. `Tables` replays them.
"""

import json
import sqlite3
from collections import defaultdict
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final, NamedTuple

from penstock.domain.job import Attempt, Audit, Live
from penstock.domain.states import JobState
from penstock.stores.sql.rows import ATTEMPT_COLUMNS, AUDIT_COLUMNS, LIVE_COLUMNS
from penstock.stores.sqlite.database import live
from penstock.stores.sqlite.times import at_us, from_us, to_us
from penstock.testing.invariants.facts import NotInOnePlace
from penstock.testing.invariants.model import Fact, GroupKey
from penstock.testing.invariants.moves import Spot

_ENDED_AS_LIVE: Final = {"open": "0", "since": "NULL", "holds": "0", "deadline": "NULL", "slot": "NULL"}
_LIVE: Final = ",".join(f"NEW.{column}" for column in LIVE_COLUMNS)
_ENDED: Final = ",".join(_ENDED_AS_LIVE.get(column, f"NEW.{column}") for column in LIVE_COLUMNS)
_CLAIM: Final = "NEW.id, NEW.node, NEW.lease_until, NEW.takeovers, NEW.sending, hex(NEW.settled)"
# table: (key columns, image of a new row, image of a changed row if that differs)
_IMAGES: Final = {
    "contexts": (
        "arrival",
        "NEW.arrival, NEW.id, NEW.lane, NEW.key, NEW.payload, NEW.max_attempts, NEW.pool",
        None,
    ),
    "jobs": ("arrival", _LIVE, None),
    "dead": ("arrival", f"{_ENDED}, NEW.finished_at", None),
    "history": ("arrival", f"{_ENDED}, NEW.finished_at", None),
    "claims": ("id", f"{_CLAIM}, NEW.lane, NEW.groups, NEW.claimed_at, json(NEW.jobs)", f"{_CLAIM}, OLD.id"),
    "groups": (
        "lane, grp",
        "NEW.lane, NEW.grp, NEW.next_at, NEW.claim, NEW.dead_seq, NEW.dead_arrival, NEW.paused",
        None,
    ),
    "requests": ("arrival", "NEW.arrival, NEW.verb", None),
    "keys": ("id", "NEW.id", "OLD.id"),
    "counts": ("lane, state", "NEW.lane, NEW.state, NEW.n", None),
    "attempts": (None, ",".join(f"NEW.{column}" for column in ATTEMPT_COLUMNS), None),
    "audit": (None, ",".join(f"NEW.{column}" for column in AUDIT_COLUMNS), None),
}
_LOG: Final = "CREATE TEMP TABLE watched (n INTEGER PRIMARY KEY, place TEXT, image TEXT)"


class Group(NamedTuple):
    """A group's row."""

    next_at: datetime | None
    claim: int | None
    dead_seq: int | None
    dead_arrival: int | None
    paused: bool


@dataclass(slots=True)
class Held:
    """A claim's row."""

    epoch: int
    node: int
    lease_until: datetime
    sending: bool
    lane: int
    groups: bool
    claimed_at: datetime
    jobs: tuple[Live, ...]
    mask: int = 0

    def open_jobs(self) -> Iterator[Live]:
        """Yield the jobs that are not settled, as claimed."""
        for position, job in enumerate(self.jobs):
            if not self.mask >> position & 1:
                yield job._replace(
                    state=JobState.CLAIMED, epoch=self.epoch, node=self.node, claimed_at=self.claimed_at
                )


@dataclass(slots=True)
class Touched:
    """What one look found changed."""

    jobs: set[int] = field(default_factory=set)
    groups: set[GroupKey] = field(default_factory=set)
    lanes: set[int] = field(default_factory=set)
    new: list[int] = field(default_factory=list)
    freed: set[str] = field(default_factory=set)
    attempts: dict[int, list[Attempt]] = field(default_factory=lambda: defaultdict(list))
    audit: dict[int, list[Audit]] = field(default_factory=lambda: defaultdict(list))
    anything: bool = False


@dataclass(slots=True)
class Tables:
    """The rows as committed."""

    connection: sqlite3.Connection
    facts: dict[int, Fact] = field(default_factory=dict)
    jobs: dict[int, Live] = field(default_factory=dict)
    dead: dict[int, Spot] = field(default_factory=dict)
    history: dict[int, Spot] = field(default_factory=dict)
    claims: dict[int, Held] = field(default_factory=dict)
    groups: dict[GroupKey, Group] = field(default_factory=dict)
    requests: dict[int, str] = field(default_factory=dict)
    counts: dict[tuple[int, int], int] = field(default_factory=dict)

    def look(self) -> Touched:
        """Take in what was committed since the last look."""
        touched = Touched()
        rows = self.connection.execute("SELECT place, image FROM watched ORDER BY n").fetchall()
        if rows:
            self.connection.execute("DELETE FROM watched")
            touched.anything = True
            for place, image in rows:
                _REPLAY[place](self, json.loads(image), touched)
        return touched

    def spot(self, arrival: int) -> Spot | None:
        """Return where a job is; raise NotInOnePlace unless that is one place, or none for a job dropped."""
        places = self.places(arrival)
        if len(places) != (arrival in self.facts):
            wrong = "is in several places" if places else "is nowhere"
            raise NotInOnePlace(f"job {arrival} {wrong}", fact=self.facts.get(arrival), **places)
        return next(iter(places.values()), None)

    def leases(self, node: int, now: datetime) -> list[tuple[str, int, int]]:
        """Return what a node holds of limits: the name of each, tokens and slots."""
        return self.connection.execute(
            """SELECT name, tokens, slots FROM penstock_limit_leases
                WHERE node = ? AND until > ? AND (tokens > 0 OR slots > 0)""",
            (node, to_us(now)),
        ).fetchall()

    def slots_taken(self, nodes: Collection[int], now: datetime) -> list[tuple[str, int]]:
        """Return how many slots of each limit that these nodes hold some of are theirs, or of jobs out."""
        return self.connection.execute(
            """SELECT b.name, b.slots + (SELECT count(*) FROM penstock_jobs j
                        JOIN penstock_lanes l ON l.id = j.lane
                       WHERE j.state IN (3, 4) AND b.name IN ('lane/' || l.name, 'pool/' || j.slot))
                 FROM (SELECT name, sum(slots) AS slots FROM penstock_limit_leases
                        WHERE until > ? AND node IN (SELECT value FROM json_each(?))
                        GROUP BY name HAVING sum(slots) > 0) b""",
            (to_us(now), json.dumps(list(nodes))),
        ).fetchall()

    def places(self, arrival: int) -> dict[str, Spot]:
        """Return all the places where a job is, by name."""
        places: dict[str, Spot] = {}
        if arrival in self.jobs:
            places["jobs"] = Spot(self.jobs[arrival])
        if arrival in self.dead:
            places["dead"] = self.dead[arrival]
        if arrival in self.history:
            places["history"] = self.history[arrival]
        for epoch, claim in self.claims.items():
            places |= {f"claim {epoch}": Spot(job) for job in claim.open_jobs() if job.arrival == arrival}
        return places


def _context(tables: Tables, row: list[Any], touched: Touched) -> None:
    tables.facts[row[0]] = Fact(*row[1:])
    touched.jobs.add(row[0])
    touched.new.append(row[0])


def _no_context(tables: Tables, row: list[Any], touched: Touched) -> None:
    del tables.facts[row[0]]
    touched.jobs.add(row[0])


def _job(tables: Tables, row: list[Any], touched: Touched) -> None:
    tables.jobs[row[0]] = live(row)
    touched.jobs.add(row[0])


def _no_job(tables: Tables, row: list[Any], touched: Touched) -> None:
    del tables.jobs[row[0]]
    touched.jobs.add(row[0])


def _dead(tables: Tables, row: list[Any], touched: Touched) -> None:
    tables.dead[row[0]] = Spot(live(row[:-1]), at_us(row[-1]))
    touched.jobs.add(row[0])


def _no_dead(tables: Tables, row: list[Any], touched: Touched) -> None:
    del tables.dead[row[0]]
    touched.jobs.add(row[0])


def _ended(tables: Tables, row: list[Any], touched: Touched) -> None:
    tables.history[row[0]] = Spot(live(row[:-1]), at_us(row[-1]))
    touched.jobs.add(row[0])


def _not_ended(tables: Tables, row: list[Any], touched: Touched) -> None:
    del tables.history[row[0]]
    touched.jobs.add(row[0])


def _claim(tables: Tables, row: list[Any], touched: Touched) -> None:
    epoch, node, until, _, sending, _, lane, groups, claimed_at, jobs = row
    missing = (groups, *[None] * (len(Live._fields) - len(jobs[0]) - 1))
    rows = tuple(live((*values, *missing)) for values in jobs)
    tables.claims[epoch] = Held(
        epoch, node, at_us(until), bool(sending), lane, bool(groups), at_us(claimed_at), rows
    )
    touched.jobs.update(job.arrival for job in rows)


def _claim_changed(tables: Tables, row: list[Any], touched: Touched) -> None:
    epoch, node, until, _, sending, mask, old = row
    claim = tables.claims.pop(old)
    tables.claims[epoch] = claim
    claim.epoch, claim.node, claim.lease_until = epoch, node, at_us(until)
    claim.sending, claim.mask = bool(sending), int(mask or "0", 16)
    touched.jobs.update(job.arrival for job in claim.jobs)


def _no_claim(tables: Tables, row: list[Any], touched: Touched) -> None:
    touched.jobs.update(job.arrival for job in tables.claims.pop(row[0]).jobs)


def _group(tables: Tables, row: list[Any], touched: Touched) -> None:
    key = (row[0], row[1])
    tables.groups[key] = Group(from_us(row[2]), row[3], row[4], row[5], bool(row[6]))
    touched.groups.add(key)


def _no_group(tables: Tables, row: list[Any], touched: Touched) -> None:
    del tables.groups[row[0], row[1]]
    touched.groups.add((row[0], row[1]))


def _request(tables: Tables, row: list[Any], touched: Touched) -> None:
    tables.requests[row[0]] = row[1]
    touched.jobs.add(row[0])


def _no_request(tables: Tables, row: list[Any], touched: Touched) -> None:
    del tables.requests[row[0]]
    touched.jobs.add(row[0])


def _key(_: Tables, row: list[Any], touched: Touched) -> None:
    touched.freed.discard(row[0])


def _key_freed(_: Tables, row: list[Any], touched: Touched) -> None:
    touched.freed.add(row[0])


def _count(tables: Tables, row: list[Any], touched: Touched) -> None:
    tables.counts[row[0], row[1]] = row[2]
    touched.lanes.add(row[0])


def _no_count(tables: Tables, row: list[Any], touched: Touched) -> None:
    del tables.counts[row[0], row[1]]
    touched.lanes.add(row[0])


def _attempt(_: Tables, row: list[Any], touched: Touched) -> None:
    row[6], row[7], row[10] = from_us(row[6]), at_us(row[7]), from_us(row[10])
    touched.attempts[row[0]].append(Attempt(*row))


def _audited(_: Tables, row: list[Any], touched: Touched) -> None:
    if row[1] is not None:
        touched.audit[row[1]].append(Audit(at_us(row[0]), *row[1:]))


_REPLAY: Final = {
    "contexts": _context,
    "jobs": _job,
    "dead": _dead,
    "history": _ended,
    "claims": _claim,
    "claims changed": _claim_changed,
    "groups": _group,
    "requests": _request,
    "keys": _key,
    "keys changed": _key_freed,
    "keys gone": _key_freed,
    "counts": _count,
    "attempts": _attempt,
    "audit": _audited,
    "contexts gone": _no_context,
    "jobs gone": _no_job,
    "dead gone": _no_dead,
    "history gone": _not_ended,
    "claims gone": _no_claim,
    "groups gone": _no_group,
    "requests gone": _no_request,
    "counts gone": _no_count,
}


def begin(connection: sqlite3.Connection) -> None:
    """Make the connection remember what changes from now on."""
    if connection.execute("SELECT 1 FROM sqlite_temp_master WHERE name = 'watched'").fetchone():
        connection.execute("DELETE FROM watched")
        return
    connection.execute(_LOG)
    for table, (key, image, changed) in _IMAGES.items():
        _trigger(connection, table, "INSERT", table, image)
        if key is not None:
            _trigger(connection, table, "UPDATE", f"{table} changed" if changed else table, changed or image)
            gone = ",".join(f"OLD.{column.strip()}" for column in key.split(","))
            _trigger(connection, table, "DELETE", f"{table} gone", gone)


def _trigger(connection: sqlite3.Connection, table: str, event: str, place: str, image: str) -> None:
    connection.execute(
        f"""CREATE TEMP TRIGGER watch_{table}_{event.lower()} AFTER {event} ON main.penstock_{table} BEGIN
            INSERT INTO watched (place, image) VALUES ('{place}', json_array({image})); END"""
    )
