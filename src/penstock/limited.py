"""A store as somebody sees it who may not see everything: another tenant's jobs, or what jobs carry.

This is the one place where both are decided. A client on such a store, and with it the API, the pages, lists,
explanations, timelines and reports, cannot show or touch what its store does not let through. What is not
named here is refused: a new method of stores needs its place in one of the tables below.
"""

import json
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime
from typing import Any, Final, cast

from penstock.domain.access import Scope, Who
from penstock.domain.edits import Changed, Version
from penstock.domain.filters import JobQuery, Page
from penstock.domain.fingerprints import is_coarse
from penstock.domain.job import AuditEntry, AuditPage, Enqueued, Job, NewJob
from penstock.domain.lanes import Lane
from penstock.domain.masking import MASK, is_answer, without_content, without_hashes, without_words
from penstock.domain.operations import NewOperation, Operation, OperationPage, query_of
from penstock.domain.predicates import Op, Predicate
from penstock.domain.standing import Standing
from penstock.domain.states import Effect, Verb
from penstock.errors import Forbidden, InvalidJob, InvalidQuery, KeyConflict, NotFound, PenstockError
from penstock.ports.store import Done, Report, Reported, Store, Timeline

# What holds nothing of any job, and everybody may ask.
COMMON: Final = frozenset(
    {
        "now", "check_schema", "lanes", "pools", "store_pause", "targets", "nodes", "draining", "leader",
        "wake", "depth",
    }
)  # fmt: skip
# What is about everybody's jobs, and shows nothing that they carry.
WHOLE: Final = frozenset(
    {
        "pause_lane", "delete_lane", "put_pool", "pause_pool", "delete_pool", "pause_store",
        "pause_group", "pause_target", "reset_target", "group", "list_groups", "counts", "scout", "add_key",
        "api_keys", "revoke_key", "drain_node", "put_user", "users", "remove_user", "vitals",
        "open_operations",
    }
)  # fmt: skip

# What a filter may not ask for on behalf of somebody who may not see it; receipts are looked at one by one.
SECRET: Final = frozenset({"payload", "error"})
# The settings of a lane that say where its jobs go.
WHERE: Final = ("sink", "queue", "target")


def limited(store: Store, who: Who) -> Store:
    """Return the store as this one sees it."""
    return store if who.sees_all else cast("Store", LimitedStore(store, who))


class LimitedStore:
    """A store without what is kept from somebody."""

    def __init__(self, store: Store, who: Who) -> None:
        self._store, self._who = store, who
        self._tenant = who.tenant
        self._hides = not who.may(Scope.PAYLOAD)
        self._theirs: set[str] = set()  # jobs seen to be theirs: that never changes

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - whatever the store's method is
        if name in COMMON or (name in WHOLE and self._tenant is None):
            return getattr(self._store, name)
        raise Forbidden(self._who.name, f"use {name} of the store")

    @property
    def tenant(self) -> str | None:
        """Whose jobs alone are seen here; None = everybody's."""
        return self._tenant

    def close(self) -> None:
        """Leave the store open: it belongs to others too."""

    # -- the way in
    def enqueue(self, jobs: Sequence[NewJob]) -> list[Enqueued | PenstockError]:
        """Write jobs; those of a tenant's own key are that tenant's."""
        if self._tenant is None:
            return self._store.enqueue(jobs)
        refused: dict[int, PenstockError] = {}
        for index, job in enumerate(jobs):
            if job.tenant not in (None, self._tenant):
                problem = f"{self._who.name} is bound to the tenant {self._tenant!r}: leave it out"
                refused[index] = InvalidJob("tenant", problem)
        own = [job._replace(tenant=self._tenant) for i, job in enumerate(jobs) if i not in refused]
        written = iter(self._checked(own, self._store.enqueue(own) if own else []))
        return [refused[index] if index in refused else next(written) for index in range(len(jobs))]

    def _checked(
        self, jobs: Sequence[NewJob], answers: Sequence[Enqueued | PenstockError]
    ) -> list[Enqueued | PenstockError]:
        """Tell nothing of a job that has the same key or id and is not this tenant's."""
        named = [_named(job, answer) for job, answer in zip(jobs, answers, strict=True)]
        own = self._mine([id_ for id_ in named if id_])
        pairs = zip(answers, named, strict=True)
        return [answer if id_ is None or id_ in own else _taken(answer) for answer, id_ in pairs]

    # -- executors and operators
    def report(self, reports: Sequence[Report]) -> list[Reported]:
        """Apply what executors say of jobs that are theirs."""
        own = self._mine([report.id for report in reports])
        applied = iter(self._store.report([report for report in reports if report.id in own]))
        return [next(applied) if report.id in own else Reported(False, True) for report in reports]

    def operate(
        self, verb: Verb, ids: Sequence[str], *, actor: str, reason: str, force: bool = False
    ) -> list[Done]:
        """Carry out a verb; another tenant's job is no job."""
        own = self._mine(ids)
        mine = [id_ for id_ in ids if id_ in own]
        done = iter(self._store.operate(verb, mine, actor=actor, reason=reason, force=force))
        return [next(done) if id_ in own else Done(Effect.REFUSED, None, "no such job") for id_ in ids]

    def edit(
        self,
        id: str,  # noqa: A002
        *,
        actor: str,
        reason: str,
        payload: Changed = ...,
        headers: Changed = ...,
        target: Changed = ...,
        run_at: datetime | None = None,
        replay: bool = False,
        force: bool = False,
    ) -> Done:
        """Change a job that is theirs."""
        if id not in self._mine([id]):
            raise NotFound("job", id)
        self._check_target(given=target is not ...)
        return self._store.edit(
            id,
            actor=actor,
            reason=reason,
            payload=payload,
            headers=headers,
            target=target,
            run_at=run_at,
            replay=replay,
            force=force,
        )

    # -- lanes
    def put_lane(
        self, lane: Lane, *, actor: str, expect: int | None = None, reason: str | None = None
    ) -> Lane:
        """Make a lane, or change it; where the jobs of one go stays for those who may not see them."""
        if self._tenant is not None:
            raise Forbidden(self._who.name, "use put_lane of the store")
        before = self._store.lanes().get(lane.name)
        self._check_target(given=before is not None and any(before[name] != lane[name] for name in WHERE))
        return self._store.put_lane(lane, actor=actor, expect=expect, reason=reason)

    # -- bulk operations
    def start_operation(self, new: NewOperation) -> Operation:
        """Begin an operation about jobs that are theirs."""
        query = query_of(new.verb, new.filter, now=self._store.now())
        self._check_predicates(query)
        self._check_target(given="target" in json.loads(new.change or "{}"))
        return self._store.start_operation(new if self._tenant is None else replace(new, tenant=self._tenant))

    def operation(self, id: str) -> Operation | None:  # noqa: A002
        """Return an operation of theirs."""
        found = self._store.operation(id)
        return self._told(found) if found is not None and self._tenant in (None, found.tenant) else None

    def operations(self, *, limit: int = 50, after: str | None = None) -> OperationPage:
        """Return operations of theirs; a page may be short."""
        page = self._store.operations(limit=limit, after=after)
        return page._replace(
            operations=[self._told(one) for one in page.operations if self._tenant in (None, one.tenant)]
        )

    def stop_operation(self, id: str, *, actor: str, reason: str) -> Operation:  # noqa: A002
        """Stop an operation of theirs."""
        if self.operation(id) is None:
            raise NotFound("operation", id)
        return self._told(self._store.stop_operation(id, actor=actor, reason=reason))

    def _told(self, operation: Operation) -> Operation:
        """Return an operation without what its filter tells of what jobs carry."""
        hidden = self._hides and self._tells(operation.verb, operation.filter)
        return operation._replace(filter=MASK) if hidden else operation

    def _tells(self, verb: str, line: str) -> bool:
        try:
            query = query_of(Verb(verb), line, now=self._store.now())
        except (InvalidQuery, ValueError):  # one of another version: nobody knows what it says
            return True
        return any(_looks_inside(predicate) for predicate in query.where)

    # -- reading
    @contextmanager
    def frozen(self) -> Iterator[Store]:
        """Return the store as it is now, limited as this one is."""
        with self._store.frozen() as store:
            yield limited(store, self._who)

    def _check_predicates(self, query: JobQuery) -> None:
        """Refuse to look for what may not be seen: whether something is found would tell it."""
        secret = {predicate.field for predicate in query.where if _looks_inside(predicate)}
        if self._hides and secret:
            what = min(secret)
            other = ", except those that begin with k, as /api/dead has them" * (what == "fingerprint")
            raise Forbidden(self._who.name, f"look for {what}: it needs the scope payload{other}")

    def _check_target(self, *, given: bool) -> None:
        """Refuse to have a job sent elsewhere: what it carries would be seen there."""
        if self._hides and given:
            raise Forbidden(self._who.name, "change a target: it needs the scope payload")

    def find(self, ids: Sequence[str]) -> dict[str, Job]:
        """Return jobs that are theirs, without what they may not see."""
        return {id_: self._shown(job) for id_, job in self._own(ids).items()}

    def list_jobs(self, query: JobQuery) -> Page:
        """Return a page of jobs that are theirs."""
        self._check_predicates(query)
        if self._tenant is not None:
            if query.tenant not in (None, self._tenant):
                return Page([], None)
            query = replace(query, tenant=self._tenant)
        if self._hides:
            query = replace(query, payloads=False)
        page = self._store.list_jobs(query)
        return page._replace(jobs=[self._shown(job) for job in page.jobs])

    def timeline(self, id: str) -> Timeline:  # noqa: A002
        """Return what is on record of a job that is theirs."""
        found = self._store.timeline(id) if id in self._mine([id]) else Timeline((), ())
        if not self._hides:
            return found
        attempts = [attempt._replace(error=without_words(attempt.error)) for attempt in found.attempts]
        audit = [
            row._replace(before=without_hashes(row.before), after=without_hashes(row.after))
            for row in found.audit
        ]
        return Timeline(attempts, audit)

    def payload_versions(self, id: str) -> list[Version]:  # noqa: A002
        """Return what a job was to send, to those who may see it."""
        if self._hides:
            raise Forbidden(self._who.name, "see payloads: it needs the scope payload")
        return self._store.payload_versions(id) if id in self._mine([id]) else []

    def standing(self, id: str) -> Standing | None:  # noqa: A002
        """Return why a job of theirs is where it is."""
        found = self._store.standing(id)
        if found is None or self._tenant not in (None, found.job.live.tenant):
            return None
        self._theirs.add(id)
        ahead, tried, around = found.ahead, found.tried, found.around
        if self._tenant is not None:
            around = tuple(each for each in around if each.tenant == self._tenant)
            if ahead is not None and ahead.tenant != self._tenant:
                ahead = ahead._replace(id="", error=None, tenant=None)
        if self._hides:
            ahead = ahead and ahead._replace(error=without_words(ahead.error))
            tried = tried and tried._replace(error=without_words(tried.error))
            around = tuple(each._replace(error=without_words(each.error)) for each in around)
        return found._replace(job=self._shown(found.job), ahead=ahead, tried=tried, around=around)

    def audit_log(
        self, *, lane: str | None = None, people: bool = False, limit: int = 50, after: str | None = None
    ) -> AuditPage:
        """Return audit rows; a tenant sees what was done to lanes, nobody's jobs."""
        page = self._store.audit_log(lane=lane, people=people, limit=limit, after=after)
        if self._hides:
            page = page._replace(entries=[self._noted(entry) for entry in page.entries])
        if self._tenant is None:
            return page
        return page._replace(entries=[entry for entry in page.entries if entry.action.startswith("lane.")])

    def _noted(self, entry: AuditEntry) -> AuditEntry:
        if not entry.action.startswith("operation."):
            return entry._replace(before=without_hashes(entry.before), after=without_hashes(entry.after))
        said = json.loads(entry.after or "{}")
        hidden = self._tells(said.get("verb", ""), said.get("filter", ""))
        return entry._replace(after=json.dumps({**said, "filter": MASK})) if hidden else entry

    def _mine(self, ids: Collection[str]) -> Collection[str]:
        return ids if self._tenant is None or self._theirs.issuperset(ids) else self._own(ids)

    def _own(self, ids: Collection[str]) -> dict[str, Job]:
        found = self._store.find(list(ids)) if ids else {}
        return {id_: job for id_, job in found.items() if self._tenant in (None, job.live.tenant)}

    def _shown(self, job: Job) -> Job:
        return without_content(job) if self._hides else job


def _looks_inside(predicate: Predicate) -> bool:
    """Say whether what a predicate finds tells what jobs carry, or what targets answered.

    A receipt that is no answer is the id of a message: everybody sees it, and may look for it. A coarse
    fingerprint is made of what everybody sees.
    """
    if predicate.field == "fingerprint":
        return predicate.op is Op.HAS or not all(is_coarse(value) for value in predicate.values)
    if predicate.field == "receipt":
        return predicate.op is Op.HAS or any(is_answer(str(value)) for value in predicate.values)
    return predicate.field in SECRET


def _named(job: NewJob, answer: Enqueued | PenstockError) -> str | None:
    """Return the job that an answer is about and did not make."""
    match answer:
        case Enqueued(id=id_, duplicate=True) | KeyConflict(job_id=id_):
            return id_
        case InvalidJob(field="id"):  # there is one already
            return job.id
        case _:
            return None


def _taken(answer: Enqueued | PenstockError) -> InvalidJob:
    """Return the refusal of what another tenant's job has: whose it is, and where to look, is not told."""
    if isinstance(answer, InvalidJob):
        return InvalidJob("id", "is taken: use another; ids are shared by all tenants")
    return InvalidJob("key", "is taken: use another; keys are shared by all tenants of a lane")
