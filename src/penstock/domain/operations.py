"""Bulk operations: one verb on all jobs that a filter finds, begun once and carried out piece by piece.

An operation first *collects*: it walks through the list and notes every job that is meant, so that what it
does cannot change what it finds. Then it *works*: slice after slice, in the order of groups and within them,
no faster than its rate. Both are noted where the jobs are: after a crash it goes on where it was.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any, Final, NamedTuple

from penstock.domain.edits import Edit
from penstock.domain.filters import JobQuery
from penstock.domain.job import Context, Job
from penstock.domain.lanes import Lane, oversize
from penstock.domain.ordering import sequence_of
from penstock.domain.patches import BadPatch, merged
from penstock.domain.payloads import BadPayload
from penstock.domain.queries import Filters, job_query
from penstock.domain.states import Effect, JobState, Verb
from penstock.errors import InUse, InvalidQuery

MOST_JOBS: Final = 1_000_000
MOST_OPEN: Final = 20
MOST_OF_TENANT: Final = 5
MOST_RATE: Final = 10_000
COLLECT: Final = 500
SLICE: Final = 100
SECOND: Final = timedelta(seconds=1)
KEPT: Final = timedelta(days=30)
MOST_REFUSALS: Final = 20
S = JobState
# Which jobs a verb is about when the filter names no state.
STATES: Final[Mapping[Verb, frozenset[JobState]]] = {
    Verb.RETRY: frozenset({S.DEAD}),
    Verb.EDIT: frozenset({S.DEAD}),
    Verb.CANCEL: frozenset({S.WAITING, S.PENDING, S.CLAIMED, S.DISPATCHED, S.RUNNING, S.HELD}),
    Verb.SKIP: frozenset({S.WAITING, S.PENDING, S.HELD, S.DEAD}),
    Verb.HOLD: frozenset({S.WAITING, S.PENDING}),
    Verb.RELEASE: frozenset({S.HELD}),
}


class OperationState(StrEnum):
    """How far an operation is."""

    COLLECTING = "collecting"
    WORKING = "working"
    STOPPED = "stopped"
    DONE = "done"
    FAILED = "failed"


_ASKED: Final = ("verb", "filter", "tenant", "rate", "force", "change")
OPEN: Final = (OperationState.COLLECTING, OperationState.WORKING)


@dataclass(frozen=True, slots=True, kw_only=True)
class NewOperation:
    """What somebody wants done; `change` is the JSON of an edit, `rate` how many jobs a second at most.

    `key` makes it safe to ask twice. `force` cancels what is out, and replays out of order.
    """

    verb: Verb
    filter: str
    actor: str
    reason: str
    tenant: str | None = None
    rate: int | None = None
    force: bool = False
    change: str | None = None
    key: str | None = None


class Operation(NamedTuple):
    """An operation as it stands; field names are the column names.

    `matched` jobs are meant (None = still counting); `done` were moved, holders of `requested` were asked,
    `refused` stayed as they were, and `refusals` says why, by how many. `place` is where it goes on.
    """

    id: str
    verb: str
    filter: str
    actor: str
    reason: str
    tenant: str | None
    rate: int | None
    force: bool
    change: str | None
    key: str | None
    state: str
    created_at: datetime
    next_at: datetime
    finished_at: datetime | None = None
    found: int = 0
    matched: int | None = None
    done: int = 0
    requested: int = 0
    refused: int = 0
    refusals: str = "{}"
    place: str | None = None
    stopped_by: str | None = None
    problem: str | None = None


class Meant(NamedTuple):
    """A job that an operation is about, in the order of the work."""

    lane: int
    grp: str
    seq: int
    arrival: int
    id: str


class OperationPage(NamedTuple):
    """Some operations, newest first; `next` is where the following page begins, None = that was the last."""

    operations: list[Operation]
    next: str | None


def begun(new: NewOperation, *, id: str, now: datetime) -> Operation:  # noqa: A002
    """Return the operation as it begins."""
    return Operation(
        id, new.verb, new.filter, new.actor, new.reason, new.tenant, new.rate, new.force, new.change, new.key,
        OperationState.COLLECTING, now, now,
    )  # fmt: skip


def check_same(known: Operation, new: NewOperation) -> None:
    """Raise InUse unless somebody who gives the key of an operation again asks for the same one."""
    asked = begun(new, id=known.id, now=known.created_at)
    if any(getattr(known, name) != getattr(asked, name) for name in _ASKED):
        raise InUse(
            "key", new.key or "", "belongs to another operation: what else is to be done needs another key"
        )


def check_room(new: NewOperation, tenants: Sequence[str | None]) -> None:
    """Raise InUse when no place is left; `tenants` has one entry for each operation that is open.

    Whoever is bound to a tenant neither sees nor stops those of others, so each tenant has a part of them.
    """
    own = 0 if new.tenant is None else tenants.count(new.tenant)
    if own >= MOST_OF_TENANT:
        raise InUse(
            "operation",
            new.filter,
            f"was not begun: {own} of this tenant are open, as many as it may have; stop one or try later",
        )
    if len(tenants) >= MOST_OPEN:
        way = "try later" if new.tenant is not None and not own else "stop one or try later"
        raise InUse(
            "operation", new.filter, f"was not begun: {len(tenants)} are open, as many as there may be; {way}"
        )


def query_of(verb: Verb, line: str, *, now: datetime, tenant: str | None = None) -> JobQuery:
    """Return which jobs a verb on a filter is about, or raise InvalidQuery; times count from `now`."""
    if verb not in STATES:
        raise InvalidQuery("verb", f"{verb} is none of {', '.join(STATES)}")
    filters: Filters = {"filter": line, "limit": COLLECT}
    if tenant is not None:
        filters["tenant"] = tenant
    query = job_query(filters, now=lambda: now)
    if query.states:
        return query
    filters["state"] = STATES[verb]
    return job_query(filters, now=lambda: now)


def meant(job: Job) -> Meant:
    """Return a job with its place in the work."""
    row = job.live
    return Meant(row.lane, row.grp or "", sequence_of(row.ord), row.arrival, job.id)


def collected(operation: Operation, jobs: int, place: str | None, total: int, now: datetime) -> Operation:
    """Return the operation after a page of the list; no place = that was the last."""
    after = operation._replace(found=operation.found + jobs, place=place)
    if after.found > MOST_JOBS:
        problem = f"more than {MOST_JOBS:,} jobs match: narrow the filter, a time range for example"
        return after._replace(state=OperationState.FAILED, problem=problem, finished_at=now)
    return after if place else after._replace(state=OperationState.WORKING, matched=total)


def worked(
    operation: Operation, answers: list[tuple[Effect, str]], last: Meant | None, *, now: datetime
) -> Operation:
    """Return the operation after a slice; none left = it is done."""
    if last is None:
        return operation._replace(state=OperationState.DONE, finished_at=now)
    counted = {effect: sum(1 for found, _ in answers if found is effect) for effect in Effect}
    rate = operation.rate or 0
    # What a slice is less than a second's worth of is looked at once a second, and makes up for that.
    since = max(operation.next_at, now - SECOND) if rate > SLICE else now
    pause = timedelta(seconds=len(answers) / rate) if rate else timedelta(0)
    return operation._replace(
        done=operation.done + counted[Effect.NOW],
        requested=operation.requested + counted[Effect.REQUESTED],
        refused=operation.refused + counted[Effect.REFUSED],
        refusals=_refusals(operation.refusals, answers),
        place=json.dumps(last[:4]),
        next_at=since + pause,
    )


def slice_of(operation: Operation) -> int:
    """Return how many jobs are done at once: no more than a second's worth."""
    return min(SLICE, operation.rate or SLICE)


def place_of(operation: Operation) -> tuple[int, str, int, int]:
    """Return behind which job the work goes on."""
    if operation.place is None:
        return (-1, "", -1, -1)
    lane, group, seq, arrival = json.loads(operation.place)
    return (lane, group, seq, arrival)


def _refusals(before: str, answers: list[tuple[Effect, str]]) -> str:
    """Count why jobs were refused; of very many reasons the first ones."""
    found: dict[str, int] = json.loads(before)
    for effect, text in answers:
        if effect is Effect.REFUSED:
            said = text or "refused"
            if said not in found and len(found) >= MOST_REFUSALS:
                said = "other reasons"
            found[said] = found.get(said, 0) + 1
    return json.dumps(found)


def edit_of(change: str | None, context: Context | None, lane: Lane | None) -> Edit | str:
    """Return what an edit of one job is, or why there is none: the same change, on its own payload.

    What comes of it is held to what its lane takes, as if the job were new.
    """
    wanted: dict[str, Any] = json.loads(change or "{}")
    content = {name: wanted[name] for name in ("payload", "headers", "target") if name in wanted}
    if "merge" in wanted:
        if context is None or context.payload is None:
            return "it has no payload to change"
        try:
            content["payload"] = merged(context.payload, wanted["merge"])
        except (BadPatch, BadPayload) as error:
            return str(error)
    payload = content.get("payload")
    if payload is not None and lane is not None and (problem := oversize(payload, lane)):
        return f"its payload {problem}"
    return Edit(**content)


def facts(operation: Operation) -> str:
    """Return what the audit says of an operation."""
    said = {
        "operation": operation.id,
        "verb": operation.verb,
        "filter": operation.filter,
        "state": operation.state,
        "matched": operation.matched,
        "done": operation.done,
        "refused": operation.refused,
    }
    return json.dumps({name: value for name, value in said.items() if value is not None})
