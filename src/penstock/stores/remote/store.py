"""The methods of a store that people use, each a request to the API. What only nodes do is refused."""

import json
import re
from collections.abc import Callable, Collection, Iterator, Sequence
from datetime import datetime
from typing import Any, Final
from urllib.parse import quote

from penstock.domain.edits import Changed, Version
from penstock.domain.filter_line import TIMES, quoted, read_filter
from penstock.domain.filters import JobQuery, Page
from penstock.domain.gates import Explanation
from penstock.domain.groups import GroupRow
from penstock.domain.job import AuditPage, Enqueued, Job, NewJob
from penstock.domain.operations import NewOperation, Operation, OperationPage
from penstock.domain.reports import Word
from penstock.domain.standing import NodeRow
from penstock.domain.states import Effect, JobState, Verb
from penstock.errors import InvalidJob, KeyConflict, NotFound, PenstockError, StoreUnavailable, UnknownLane
from penstock.ports.insight import GroupPage
from penstock.ports.store import Done, Reported, Timeline
from penstock.stores.remote.decoding import (
    LONG_AGO,
    entry_of,
    explanation_of,
    job_of,
    new_job_object,
    operation_of,
    pause_of,
    text_of,
    time_of,
    timeline_of,
)
from penstock.stores.remote.http import NO_NODE, Api, Refused, lane_full
from penstock.stores.remote.settings import SettingsPart
from penstock.wire import Raw, encode

MOST_JOBS: Final = 1_000
MOST_BYTES: Final = 6 * 1024 * 1024
_TOO_LARGE: Final = (
    f"is larger than the {MOST_BYTES >> 20} MiB that go through a node's API: keep it elsewhere, send where"
)
_TAKEN: Final = re.compile(r'key "(.*)" already belongs to job ([0-9A-Z]{26})', re.DOTALL)
_NOWHERE: Final = re.compile(r'unknown lane "(.*?)"(?:; did you mean (.*)\?|; penstock .*)?', re.DOTALL)


class NotRemote(PenstockError):
    """Only a node does that, next to its database."""

    def __init__(self, name: str) -> None:
        super().__init__(f"{name} needs the database itself: give --store instead of --url")


class RemoteStore(SettingsPart):
    """The part of a store that an API offers."""

    def __init__(self, url: str, *, key: str | None, clock: Callable[[], datetime]) -> None:
        self.api = Api(url, key=key)
        self._clock = clock

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - the methods that are not there
        raise NotRemote(name)

    def now(self) -> datetime:
        """Return the time here; a node's own is not asked for."""
        return self._clock()

    def check_schema(self) -> None:
        """See whether a node answers."""
        if "alive" not in self.api.get("/health/live"):
            raise StoreUnavailable(f"GET {self.api.url} ({NO_NODE})")

    def close(self) -> None:
        """Close connections."""
        self.api.close()

    def wake(self, lanes: Collection[str]) -> None:
        """Nothing: the node does that."""

    def depth(self, lane: str) -> int:  # noqa: ARG002
        """Return nothing: the node counts, and refuses what is too much."""
        return 0

    # -- the way in
    def enqueue(self, jobs: Sequence[NewJob]) -> list[Enqueued | PenstockError]:
        """Write jobs, up to 1,000 and 6 MiB with a request."""
        answers = list[Enqueued | PenstockError]()
        for part in _parts([encode(new_job_object(job)) for job in jobs]):
            if len(part) == 1 and len(part[0].encode()) > MOST_BYTES:
                answers.append(InvalidJob("payload", _TOO_LARGE))
                continue
            found = self.api.send("POST", "/api/jobs", {"jobs": [Raw(text) for text in part]})
            answers += [_enqueued(result) for result in found["results"]]
        return answers

    # -- executors and operators
    def tell(self, id: str, send: int, word: Word) -> Reported:  # noqa: A002
        """Tell what became of a send as it was said: what it means depends on the lane, the node knows."""
        body = {
            "send": send,
            "outcome": word.outcome,
            "retryable": word.retryable,
            "error": word.error,
            "result": None if word.result is None else Raw(str(word.result)),
            "after": None if word.after is None else word.after.total_seconds(),
        }
        return Reported(**self.api.send("POST", f"/api/jobs/{id}/outcome", body))

    def operate(
        self, verb: Verb, ids: Sequence[str], *, actor: str, reason: str, force: bool = False
    ) -> list[Done]:
        """Carry out a verb on each job; the node writes the name of the key, not the actor's."""
        del actor
        name, _, outcome = verb.value.partition("_")
        flags = {Verb.CANCEL: "force", Verb.RETRY: "out_of_order"}
        body: dict[str, object] = {"reason": reason, **({"outcome": outcome} if outcome else {})}
        body |= {flags[verb]: force} if verb in flags else {}
        return [self._done(f"/api/jobs/{id_}/{name}", body) for id_ in ids]

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
        """Change what a job sends or when it is due."""
        del actor
        given = {"payload": payload, "headers": headers, "target": target}
        body: dict[str, Any] = {"reason": reason, "replay": replay, "out_of_order": force}
        for name, value in given.items():
            if value is not ...:
                body[name] = Raw(value) if isinstance(value, str) and name != "target" else value
        return self._done(f"/api/jobs/{id}/edit", body | ({} if run_at is None else {"run_at": run_at}))

    def _done(self, path: str, body: object) -> Done:
        try:
            found = self.api.send("POST", path, body)
        except NotFound as error:
            return Done(Effect.REFUSED, None, str(error))
        except Refused as error:
            if error.status != 409:
                raise
            state = error.problem.get("state")
            return Done(
                Effect.REFUSED, JobState[state.upper()] if state else None, str(error.problem.get("detail"))
            )
        state = found["state"]
        return Done(Effect(found["effect"]), JobState[state.upper()] if state else None, found["text"])

    # -- looking
    def find(self, ids: Sequence[str]) -> dict[str, Job]:
        """Return jobs, one request each."""
        found = {}
        for id_ in ids:
            try:
                found[id_] = job_of(self.api.get(f"/api/jobs/{quote(id_, safe='')}"))
            except NotFound:
                continue
        return found

    def list_jobs(self, query: JobQuery) -> Page:
        """Return one page of a list."""
        states = ",".join(sorted(state.label for state in query.states))
        found = self.api.get(
            "/api/jobs", filter=_line(query, self._clock) or None, order=query.order.value,
            limit=query.limit, after=query.after, payloads=query.payloads, state=states or None,
        )  # fmt: skip
        return Page([job_of(one) for one in found["jobs"]], found["next"])

    def timeline(self, id: str) -> Timeline:  # noqa: A002
        """Return what is on record about one job."""
        return timeline_of(self.api.get(f"/api/jobs/{id}/timeline"))

    def explanation(self, id: str) -> Explanation | None:  # noqa: A002
        """Return why a job is where it is, as the node explains it."""
        try:
            return explanation_of(self.api.get(f"/api/jobs/{id}/explain"))
        except NotFound:
            return None

    def payload_versions(self, id: str) -> list[Version]:  # noqa: A002
        """Return what a job was to send at any time."""
        found = self.api.get(f"/api/jobs/{id}/versions")["versions"]
        return [
            Version(one["revision"], time_of(one["at"]) or LONG_AGO, one["actor"], text_of(one["payload"]),
                    text_of(one["headers"]), one["target"])
            for one in found
        ]  # fmt: skip

    def audit_log(
        self, *, lane: str | None = None, people: bool = False, limit: int = 50, after: str | None = None
    ) -> AuditPage:
        """Return audit rows, newest first."""
        found = self.api.get(
            "/api/audit", lane=lane, people="true" if people else None, limit=limit, after=after
        )
        return AuditPage([entry_of(one) for one in found["entries"]], found["next"])

    def list_groups(
        self,
        *,
        lane: str | None = None,
        group: str | None = None,
        blocked: bool = False,
        limit: int = 50,
        after: str | None = None,
    ) -> GroupPage:
        """Return groups by lane and name."""
        found = self.api.get("/api/groups", lane=lane, group=group, blocked=blocked, limit=limit, after=after)
        rows = [
            GroupRow(**{name: one.get(name) for name in GroupRow._fields})._replace(
                since=time_of(one["since"]),
                next_at=time_of(one.get("next_at")),
                until=time_of(one.get("until")),
            )
            for one in found["groups"]
        ]
        return GroupPage(rows, found["next"])

    def nodes(self) -> list[NodeRow]:
        """Return the nodes seen within the last hour."""
        return [
            NodeRow(one["id"], one["name"], one["version"], time_of(one["started_at"]) or LONG_AGO,
                    time_of(one["seen_at"]) or LONG_AGO,
                    None if one["claims_left"] is None else encode({"drains": one["claims_left"]}),
                    pause_of(one, "drain"))
            for one in self.api.get("/api/nodes")["nodes"]
        ]  # fmt: skip

    def leader(self) -> int | None:
        """Return the node that leads now."""
        leader: int | None = self.api.get("/api/nodes")["leader"]
        return leader

    def counts(self) -> dict[tuple[str, JobState], int]:
        """Return jobs per lane and state."""
        lanes: dict[str, dict[str, int]] = self.api.get("/api/jobs/counts")["lanes"]
        return {(lane, JobState[label.upper()]): n for lane, by in lanes.items() for label, n in by.items()}

    # -- bulk operations
    def start_operation(self, new: NewOperation) -> Operation:
        """Begin an operation."""
        body: dict[str, Any] = {
            "verb": new.verb.value, "filter": new.filter, "reason": new.reason, "rate": new.rate,
            "force": new.force, "dry_run": False,
        }  # fmt: skip
        if new.change is not None:
            body["change"] = _change(new.change)
        # Text of a head goes out as Latin-1, and the key is read as UTF-8.
        headers = {} if new.key is None else {"Idempotency-Key": new.key.encode().decode("latin-1")}
        return operation_of(self.api.send("POST", "/api/operations", body, headers=headers))

    def operation(self, id: str) -> Operation | None:  # noqa: A002
        """Return one operation."""
        try:
            return operation_of(self.api.get(f"/api/operations/{id}"))
        except NotFound:
            return None

    def operations(self, *, limit: int = 50, after: str | None = None) -> OperationPage:
        """Return operations, newest first."""
        found = self.api.get("/api/operations", limit=limit, after=after)
        return OperationPage([operation_of(one) for one in found["operations"]], found["next"])

    def stop_operation(self, id: str, *, actor: str, reason: str) -> Operation:  # noqa: A002
        """Stop an operation where it is."""
        del actor
        return operation_of(self.api.send("POST", f"/api/operations/{id}/stop", {"reason": reason}))


def _parts(texts: Sequence[str]) -> Iterator[list[str]]:
    part, size = list[str](), 0
    for text in texts:
        if part and (len(part) == MOST_JOBS or size + len(text) * 4 > MOST_BYTES):
            yield part
            part, size = [], 0
        part.append(text)
        size += len(text) * 4
    if part:
        yield part


def _enqueued(result: dict[str, Any]) -> Enqueued | PenstockError:
    if "id" in result:
        return Enqueued(result["id"], result.get("duplicate", False))
    field, said = result.get("field", "job"), result["error"]
    if field == "key" and (taken := _TAKEN.match(said)):
        return KeyConflict(taken[1], taken[2])
    if field == "lane" and (nowhere := _NOWHERE.fullmatch(said)):
        return UnknownLane(nowhere[1], nowhere[2].split(", ") if nowhere[2] else ())
    return lane_full(said) or InvalidJob(field, said.removeprefix(f"{field}: "))


def _line(query: JobQuery, now: Callable[[], datetime]) -> str:
    """Return the filter line of a query: the one it was read from, and whatever stood beside it.

    A name in the line may be anything, as it may be next to the database; the API's parameters may not.
    """
    known = read_filter(query.line, now=now)
    terms = [query.line] if query.line else []
    for name in ("lane", "group", "tenant", "key"):
        value = getattr(query, name)
        if value is not None and name not in known:
            terms.append(f"{name}:{quoted(value)}")
    for name in TIMES:
        span = getattr(query, name)
        if name not in known:
            terms += [f"{name}>={span.since.isoformat()}"] if span.since else []
            terms += [f"{name}<{span.until.isoformat()}"] if span.until else []
    if query.ids and "ids" not in known:
        terms.append(f"id:{','.join(query.ids)}")
    return " ".join(terms)


def _change(change: str) -> dict[str, Any]:
    """Return what an edit changes as the API takes it: texts of JSON spliced in."""
    kept: dict[str, str | None] = json.loads(change)
    return {name: Raw(text) if text is not None and name != "target" else text for name, text in kept.items()}
