"""Objects of the API as the objects they were made of; what the API does not show is left out."""

import json
from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final

from penstock.domain.breakers import Target
from penstock.domain.gates import Explanation, Gate
from penstock.domain.job import Attempt, Audit, AuditEntry, Context, Job, Live, NewJob
from penstock.domain.lanes import Lane
from penstock.domain.lanes import lane as lane_of
from penstock.domain.operations import Operation
from penstock.domain.ordering import Mode
from penstock.domain.pauses import Pause
from penstock.domain.payloads import Json
from penstock.domain.pools import Pool
from penstock.domain.pools import pool as pool_of
from penstock.domain.states import JobState
from penstock.ports.store import Timeline
from penstock.wire import Raw

Object = Mapping[str, Any]
LONG_AGO: Final = datetime.fromisoformat("1970-01-01T00:00:00+00:00")


def time_of(text: str | None) -> datetime | None:
    """Return a time."""
    return None if text is None else datetime.fromisoformat(text)


def text_of(value: object) -> str | None:
    """Return a value as the text that it is stored as."""
    return value if value is None or isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def job_of(found: Object) -> Job:
    """Return a job; its numbers inside the database are not known here."""
    live = Live(
        arrival=0,
        lane=0,
        keep=0,
        mode=Mode[found["mode"].upper()],
        state=JobState[found["state"].upper()],
        ord=0,
        grp=found["group"],
        tenant=found["tenant"],
        due_at=time_of(found["run_at"]) or LONG_AGO,
        start_by=time_of(found["start_by"]),
        attempt=found["attempt"],
        max_attempts=found["max_attempts"],
        send=found["send"],
        recoveries=found["recoveries"],
        epoch=found["batch"],
        node=found["node"],
        claimed_at=time_of(found["claimed_at"]),
        sent_at=time_of(found["sent_at"]),
        started_at=time_of(found["started_at"]),
        deadline=time_of(found["lease_until"]),
        reason=found["reason"],
        receipt=found["receipt"],
    )
    return Job(
        id=found["id"],
        lane=found["lane"],
        state=JobState(live.state),
        mode=Mode(live.mode),
        live=live,
        context=_context(found),
        finished_at=time_of(found["finished_at"]),
        error=found["last_error"],
        result=found["result"],
        request="cancel" if found["cancel_requested"] else None,
        hidden="hidden" in found,
    )


def _context(found: Object) -> Context:
    created = time_of(found["created_at"]) or LONG_AGO
    payload = found.get("payload")
    return Context(
        id=found["id"],
        message_group=found["group"],
        sequence=found["sequence"],
        run_at=time_of(found["run_at"]) or created,
        created_at=created,
        payload=payload if isinstance(payload, Json | None) else json.dumps(payload, ensure_ascii=False),
        headers=text_of(found["headers"]),
        target=found["target"],
        pool=found["pool"],
        key=found["key"],
        finish_by=time_of(found["finish_by"]),
        entity=found["entity"],
        version=found["version"],
        event=text_of(found["event"]),
        correlation=found["correlation"],
    )


def new_job_object(job: NewJob) -> dict[str, Any]:
    """Return an enqueue object; payload, headers and event are JSON already."""
    given = {name: value for name, value in job._asdict().items() if value is not None}
    for name in ("payload", "headers", "event"):
        if name in given:
            given[name] = Raw(given[name])
    if "mode" in given:
        given["mode"] = Mode(given["mode"]).label
    return given


def named_lane(found: Object) -> Lane:
    """Return a lane."""
    made = lane_of(found["name"], **found["settings"])
    return Lane(made.name, made.settings, version=found["version"], **_pause(found))


def named_pool(found: Object) -> Pool:
    """Return a pool."""
    made = pool_of(found["name"], **found["settings"])
    return Pool(found["name"], **made.settings, version=found["version"], **_pause(found))


def _pause(found: Object) -> dict[str, Any]:
    return {
        "paused": found["paused"],
        "paused_until": time_of(found["paused_until"]),
        "pause_reason": found["pause_reason"],
        "paused_by": found["paused_by"],
    }


def timeline_of(found: Object) -> Timeline:
    """Return what is on record; the times of the happy path are in the job."""
    attempts, audit = list[Attempt](), list[Audit]()
    for event in found["events"]:
        at = time_of(event["at"]) or LONG_AGO
        if "actor" in event:
            before, after = text_of(event.get("before")), text_of(event.get("after"))
            audit.append(
                Audit(at, None, None, event["actor"], event["event"], before, after, event.get("reason"))
            )
        elif "attempt" in event:
            claimed, due = time_of(event.get("claimed_at")), time_of(event.get("next"))
            numbers = (0, 0, event["attempt"], event["send"], event.get("batch"), event.get("node"))
            attempts.append(Attempt(*numbers, claimed, at, event["event"], event.get("error"), due))
    return Timeline(attempts, audit)


def entry_of(found: Object) -> AuditEntry:
    """Return one entry of the audit."""
    values = {**found, "at": time_of(found["at"])}
    values |= {name: text_of(found[name]) for name in ("before", "after")}
    return AuditEntry(**{name: values[name] for name in AuditEntry._fields})


def explanation_of(found: Object) -> Explanation:
    """Return why a job is where it is."""
    since, until, eta = (time_of(found[name]) for name in ("since", "until", "eta"))
    state, gate = JobState[found["state"].upper()], Gate(found["gate"])
    return Explanation(state, gate, found["text"], since, until, found["by"], found["job"], eta)


def operation_of(found: Object) -> Operation:
    """Return how far an operation is."""
    created = time_of(found["created_at"]) or LONG_AGO
    hidden = {"tenant": None, "change": None, "key": None, "next_at": created, "place": None}
    values = {
        **{name: found[name] for name in Operation._fields if name in found},
        **hidden,
        "created_at": created,
        "finished_at": time_of(found["finished_at"]),
        "refusals": json.dumps(found["refusals"]),
    }
    return Operation(**values)


def pause_of(found: Object, name: str = "pause") -> Pause | None:
    """Return the pause of an answer, if there is one."""
    pause = found[name]
    if pause is None:
        return None
    return Pause(pause["by"], pause["reason"], time_of(pause["since"]) or LONG_AGO, time_of(pause["until"]))


def target_of(found: Object) -> Target:
    """Return what a node knows of a target."""
    return Target(
        found["name"],
        found["state"],
        found["failures"],
        time_of(found["opened_at"]),
        time_of(found["until"]),
        time_of(found["slow_until"]),
        pause_of(found),
    )
