"""Jobs as JSON, the same for `--json` and the API, and enqueue objects from JSON text.

A payload is kept as the exact text received. Going out it is spliced in, coming in it is cut out, so that no
number, escape or blank in it is ever rewritten.
"""

import json
import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from penstock.domain.breakers import Target
from penstock.domain.gates import Explanation
from penstock.domain.groups import GroupRow
from penstock.domain.job import Attempt, Audit, AuditEntry, Enqueued, Job
from penstock.domain.lanes import Lane
from penstock.domain.masking import without_credentials
from penstock.domain.notes import is_alive, read
from penstock.domain.operations import Operation
from penstock.domain.pauses import Pause
from penstock.domain.payloads import NUMBER, BadPayload, Json, no_duplicates
from penstock.domain.pools import Pool
from penstock.domain.standing import NodeRow
from penstock.domain.states import TERMINAL, Verb
from penstock.errors import InvalidJob, KeyConflict, PenstockError, UnknownLane
from penstock.ports.store import Done, Timeline

HIDDEN: Final = ("payload", "headers", "result")
_OPEN: Final = re.compile(r"[ \t\r\n]*\{(?:[ \t\r\n]*(\}))?")
_NAME: Final = re.compile(r'[ \t\r\n]*"((?:[^"\\]|\\.)*)"[ \t\r\n]*:[ \t\r\n]*')
_NEXT: Final = re.compile(r"[ \t\r\n]*([,}])")
_REST: Final = re.compile(r"[ \t\r\n]*")
_ELEMENT: Final = re.compile(r"[ \t\r\n,]*(?=\{)")
_BREAKS: Final = str.maketrans("\r\n", "  ")
_DECODER: Final = json.JSONDecoder()
# Of these two nobody else sees the text: a name that stands twice would lose its first value. The text of a
# payload is looked at later, as a whole.
_KEPT: Final = ("headers", "event")
_STRICT: Final = json.JSONDecoder(object_pairs_hook=no_duplicates)
_ENCODER: Final = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"))


class Raw(str):
    """JSON text that goes out as it is."""

    __slots__ = ()


def encode(value: object) -> str:
    """Return JSON on one line."""
    match value:
        case Raw():
            return value
        case Mapping():
            return "{" + ",".join(f"{_ENCODER.encode(k)}:{encode(v)}" for k, v in value.items()) + "}"
        case list() | tuple():
            return "[" + ",".join(map(encode, value)) + "]"
        case datetime():
            return f'"{stamp(value)}"'
        case _:
            return _ENCODER.encode(value)


def stamp(at: datetime) -> str:
    """Return RFC 3339 in UTC, no finer than it needs to be."""
    text = at.astimezone(UTC).isoformat()
    return text.removesuffix("+00:00") + "Z"


# -- in
def enqueue_object(text: str) -> dict[str, Any]:
    """Return the fields of one enqueue object, its payload as the exact text, or raise InvalidJob.

    Only the outermost object is taken apart here; the values are the decoder's work.
    """
    try:
        return _object(text)
    except json.JSONDecodeError as error:
        msg = error.msg.removesuffix(" at")
        raise InvalidJob("object", f"is not JSON: {msg} at character {error.pos + 1}") from None
    except RecursionError:
        raise InvalidJob(
            "object", "is nested too deeply: flatten it, or send the inner part as text"
        ) from None
    except ValueError as error:
        why = NUMBER if "digits" in str(error) else f"is not JSON that every reader understands: {error}"
        raise InvalidJob("object", why) from None


def job_objects(text: str) -> list[dict[str, Any]]:
    """Return the objects of a page of jobs, `{"jobs": [...], …}`, each with its payload as the exact text."""
    at, found = text.index("[") + 1, []
    while match := _ELEMENT.match(text, at):
        _, at = _DECODER.raw_decode(text, match.end())
        found.append(enqueue_object(text[match.end() : at]))
    return found


def _object(text: str) -> dict[str, Any]:
    match = _OPEN.match(text)
    if match is None:
        _DECODER.decode(text)
        raise InvalidJob("object", 'is no object: write {"payload": …} and other fields of a job')
    found: dict[str, Any] = {}
    at, more = match.end(), match[1] != "}"
    while more:
        name, value, at = _member(text, at)
        if name in found:
            raise InvalidJob(name, "stands twice in one object: name each field once")
        found[name] = value
        match = _NEXT.match(text, at)
        if match is None:
            raise json.JSONDecodeError("Expecting ',' or '}'", text, at)
        at, more = match.end(), match[1] == ","
    if _REST.fullmatch(text, at) is None:
        raise json.JSONDecodeError("Extra data", text, at)
    return found


def _member(text: str, at: int) -> tuple[str, Any, int]:
    match = _NAME.match(text, at)
    if match is None:
        raise json.JSONDecodeError("Expecting a name in double quotes and ':'", text, at)
    name, begin = match[1], match.end()
    if "\\" in name:
        name = _DECODER.decode(f'"{name}"')
    try:
        value, end = (_STRICT if name in _KEPT else _DECODER).raw_decode(text, begin)
    except BadPayload as error:
        raise InvalidJob(name, str(error)) from None
    return name, Json(text[begin:end]) if name == "payload" and value is not None else value, end


# -- out
def enqueued_object(answer: Enqueued | PenstockError) -> dict[str, Any]:
    """Return what became of one enqueue object."""
    match answer:
        case Enqueued(id=id_, duplicate=True):
            return {"id": id_, "duplicate": True}
        case Enqueued():
            return {"id": answer.id}
        case InvalidJob():
            return {"error": str(answer), "field": answer.field}
        case UnknownLane():
            return {"error": str(answer), "field": "lane"}
        case KeyConflict():
            return {"error": str(answer), "field": "key"}
        case _:
            return {"error": str(answer)}


def job_object(job: Job, *, payload: bool = True) -> dict[str, Any]:
    """Return the job object.

    `run_at` is when it goes next, moved by back-off and edits, and of a job that ended after more than one
    try what it was enqueued with; `lease_until` is how long whoever has it may
    stay silent. `hidden` names what is kept from this reader, who lacks the scope `payload`.
    """
    live, said = job.live, job.context
    began = live.started_at or live.sent_at or live.claimed_at
    took = None if job.finished_at is None or began is None else job.finished_at - began
    return {
        "id": job.id,
        "lane": job.lane,
        "group": job.group,
        "sequence": said and said.sequence,
        "mode": job.mode.label,
        "state": job.state.label,
        "reason": live.reason,
        "run_at": _run_at(job),
        "start_by": live.start_by,
        "finish_by": said and said.finish_by,
        "attempt": live.attempt,
        "max_attempts": live.max_attempts,
        "recoveries": live.recoveries,
        "send": live.send,
        "tenant": live.tenant,
        "key": said and said.key,
        "target": said and said.target,
        "pool": said and said.pool,
        "headers": raw(said and without_credentials(said.headers)),
        "entity": said and said.entity,
        "version": said and said.version,
        "event": raw(said and said.event),
        "correlation": said and said.correlation,
        "last_error": job.error,
        "result": job.result,
        "receipt": live.receipt,
        "batch": live.epoch,
        "node": live.node,
        "lease_until": live.deadline,
        "cancel_requested": job.request == Verb.CANCEL,
        "created_at": said and said.created_at,
        "claimed_at": live.claimed_at,
        "sent_at": live.sent_at,
        "started_at": live.started_at,
        "finished_at": job.finished_at,
        "duration_ms": None if took is None else max(0, took // timedelta(milliseconds=1)),
        "updated_at": _newest(job),
        **({"payload": raw(said and said.payload)} if payload else {}),
        **({"hidden": list(HIDDEN)} if job.hidden else {}),
    }


def raw(text: str | None) -> Raw | str | None:
    """Return stored JSON text to be spliced in; what plain SQL wrote and is no JSON stays a text."""
    if text is None:
        return None
    try:
        json.loads(text, parse_constant=_refuse)
    except (ValueError, RecursionError):
        return text
    return Raw(text.translate(_BREAKS))  # between tokens only: a string holds no bare line break


def _refuse(name: str) -> None:
    raise ValueError(name)


def _newest(job: Job) -> datetime | None:
    times = [job.live.claimed_at, job.live.sent_at, job.live.started_at, job.finished_at]
    times += [job.context.created_at] if job.context else []
    return max((at for at in times if at is not None), default=None)


def lane_object(lane: Lane, now: datetime, counts: Mapping[str, int] | None = None) -> dict[str, Any]:
    """Return a lane at this time: its settings, its pause, and how many jobs are in which state."""
    settings = {**lane.settings, "retry": raw(lane["retry"])}
    return _named_object(lane, settings, now) | ({} if counts is None else {"counts": dict(counts)})


def pool_object(pool: Pool, now: datetime) -> dict[str, Any]:
    """Return a pool at this time: its settings and its pause."""
    return _named_object(pool, pool.settings, now)


def _named_object(named: Lane | Pool, settings: Mapping[str, Any], now: datetime) -> dict[str, Any]:
    paused = named.stopped(now)  # a row stays paused when its time is over, and sends
    return {
        "name": named.name,
        "version": named.version,
        "paused": paused,
        "paused_until": named.paused_until if paused else None,
        "pause_reason": named.pause_reason,
        "paused_by": named.paused_by,
        "settings": dict(settings),
    }


def node_object(node: NodeRow, now: datetime, leader: int | None) -> dict[str, Any]:
    """Return what is told of a node."""
    return {
        "id": node.id,
        "name": node.name,
        "version": node.version,
        "started_at": node.started_at,
        "seen_at": node.seen_at,
        "alive": is_alive(node, now),
        "leads": node.id == leader,
        "drain": pause_object(node.drain),
        "claims_left": read(node.note).drains,
    }


def pause_object(pause: Pause | None) -> dict[str, Any] | None:
    """Return who stopped the whole store, or a target."""
    if pause is None:
        return None
    return {"by": pause.actor, "reason": pause.reason, "since": pause.at, "until": pause.until}


def target_object(target: Target) -> dict[str, Any]:
    """Return what is known of a target."""
    return {**target._asdict(), "pause": pause_object(target.pause)}


def done_object(id: str, done: Done) -> dict[str, Any]:  # noqa: A002
    """Return what an operator's verb did."""
    state = None if done.state is None else done.state.label
    return {"id": id, "effect": done.effect.value, "state": state, "text": done.text}


def explanation_object(found: Explanation) -> dict[str, Any]:
    """Return what holds a job."""
    return {**found._asdict(), "state": found.state.label, "gate": found.gate.value}


def group_object(group: GroupRow) -> dict[str, Any]:
    """Return what an ordered group is doing."""
    return {
        "lane": group.lane,
        "group": group.group,
        "state": group.state,
        "head": group.head,
        "blocker": group.blocker,
        "since": group.since,
        "behind": group.behind,
        "next_at": group.next_at,
        "until": group.until,
    }


def _run_at(job: Job) -> datetime:
    again = job.live.recoveries or job.live.attempt > 1  # its row says when the last try was due
    return job.context.run_at if job.state in TERMINAL and again and job.context else job.live.due_at


def timeline_object(job: Job, timeline: Timeline) -> dict[str, Any]:
    """Return everything on record about a job, oldest first."""
    recorded = [*map(_attempt, timeline.attempts), *map(_moved, timeline.audit)]
    events = [*_milestones(job), *recorded, *_end(job)]  # what happens at one time is told in this order
    return {"id": job.id, "state": job.state.label, "events": sorted(events, key=lambda e: e["at"])}


def _milestones(job: Job) -> list[dict[str, Any]]:
    """The times of the happy path, which live in the job's own row; of the last claim only."""
    live, said = job.live, job.context
    by = {"node": live.node, "batch": live.epoch}
    found: list[tuple[datetime | None, str, dict[str, Any]]] = [
        (said and said.created_at, "enqueued", {}),
        (live.claimed_at, "claimed", by),
        (live.sent_at, "sent", {"send": live.send, "receipt": live.receipt}),
        (live.started_at, "started", {"send": live.send}),
    ]
    return [{"at": at, "event": event, **_told(more)} for at, event, more in found if at is not None]


def _end(job: Job) -> list[dict[str, Any]]:
    if job.finished_at is None:
        return []
    facts = {"reason": job.live.reason, "error": job.error}
    return [{"at": job.finished_at, "event": job.state.label, **_told(facts)}]


def _attempt(attempt: Attempt) -> dict[str, Any]:
    more = {
        "attempt": attempt.attempt,
        "send": attempt.send,
        "error": attempt.error,
        "next": attempt.due_at,
        "node": attempt.node,
        "batch": attempt.epoch,
        "claimed_at": attempt.claimed_at,
    }
    return {"at": attempt.ended_at, "event": attempt.outcome, **_told(more)}


def _moved(audit: Audit) -> dict[str, Any]:
    return {"at": audit.at, "event": audit.action, **_told(audit_object(audit))}


def audit_object(audit: Audit) -> dict[str, Any]:
    """Return who did what, with the values before and after."""
    return {
        "at": audit.at,
        "action": audit.action,
        "actor": audit.actor,
        "before": raw(audit.before),
        "after": raw(audit.after),
        "reason": audit.reason,
    }


def audit_entry_object(entry: AuditEntry) -> dict[str, Any]:
    """Return one entry of the audit log."""
    audit = Audit(entry.at, None, None, entry.actor, entry.action, entry.before, entry.after, entry.reason)
    return {"number": entry.number, "lane": entry.lane, "job": entry.job, **audit_object(audit)}


def operation_object(operation: Operation) -> dict[str, Any]:
    """Return how far a bulk operation is; what an edit changes is not shown, it may be secret."""
    hidden = {"change", "key", "place", "refusals", "next_at", "tenant"}
    shown = {name: value for name, value in operation._asdict().items() if name not in hidden}
    return {**shown, "refusals": raw(operation.refusals), "edits": operation.change is not None}


def _told(facts: Mapping[str, Any]) -> dict[str, Any]:
    """Leave out what is not known, and what the event says already."""
    return {name: fact for name, fact in facts.items() if fact is not None and name not in {"at", "action"}}


def batch_object(answers: Sequence[Enqueued | PenstockError]) -> dict[str, Any]:
    """Return the answers to a batch, by index."""
    return {"results": [{"index": i, **enqueued_object(answer)} for i, answer in enumerate(answers)]}
