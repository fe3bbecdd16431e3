"""The shapes of what the API takes and gives, as JSON Schema, by name."""

from collections.abc import Mapping
from typing import Any, Final

from penstock.domain.filters import MAX_PAGE
from penstock.domain.gates import Gate
from penstock.domain.operations import MOST_RATE, STATES, OperationState
from penstock.domain.ordering import Mode
from penstock.domain.states import Effect, JobState

Schema = dict[str, Any]
STRING: Final[Schema] = {"type": "string"}
INTEGER: Final[Schema] = {"type": "integer"}
NUMBER: Final[Schema] = {"type": "number"}
BOOLEAN: Final[Schema] = {"type": "boolean"}
ANYTHING: Final[Schema] = {}
TIME: Final[Schema] = {"type": "string", "format": "date-time"}
TEXT: Final[Schema] = {"type": "string", "minLength": 1, "maxLength": 500}
OBJECT: Final[Schema] = {"type": "object"}


def nullable(schema: Schema) -> Schema:
    """Return the same, or null."""
    kind = schema.get("type")
    return (
        {**schema, "type": [kind, "null"]}
        if kind and "enum" not in schema
        else {"anyOf": [schema, {"type": "null"}]}
    )


def listed(schema: Schema) -> Schema:
    """Return a list of it."""
    return {"type": "array", "items": schema}


def ref(name: str) -> Schema:
    """Return a named shape."""
    return {"$ref": f"#/components/schemas/{name}"}


def made(
    required: Mapping[str, Schema], optional: Mapping[str, Schema] | None = None, *, open_: bool = True
) -> Schema:
    """Return an object with these members; `open_`: there may be others."""
    shape: Schema = {
        "type": "object",
        "required": [*required],
        "properties": {**required, **(optional or {})},
    }
    return shape if open_ else {**shape, "additionalProperties": False}


def _by_name(schema: Schema) -> Schema:
    return {"type": "object", "additionalProperties": schema}


def named(*values: object) -> Schema:
    """Return one of these words."""
    return {"type": "string", "enum": [str(value) for value in values]}


STATE: Final = named(*(state.label for state in JobState))
MODE: Final = named(*(mode.label for mode in Mode))
NEXT: Final = nullable(STRING)
_JOB_ID: Final[Schema] = {"type": "string", "pattern": "^[0-7][0-9A-HJKMNP-TV-Za-hjkmnp-tv-z]{25}$"}
_EVENT: Final = made({}, {"id": STRING, "type": STRING, "at": TIME, "subscription": STRING}, open_=False)
_SAID: Final[Mapping[str, Schema]] = {
    "payload": ANYTHING,
    "group": nullable(TEXT),
    "sequence": nullable({"type": "integer", "minimum": 0, "maximum": 2_000_000_000}),
    "mode": nullable(MODE),
    "run_at": nullable(TIME),
    "start_by": nullable(TIME),
    "finish_by": nullable(TIME),
    "key": nullable(TEXT),
    "tenant": nullable(TEXT),
    "target": nullable(STRING),
    "headers": nullable({"type": "object", "additionalProperties": STRING}),
    "pool": nullable(STRING),
    "max_attempts": nullable({"type": "integer", "minimum": 1, "maximum": 1000}),
    "id": nullable(_JOB_ID),
    "entity": nullable(STRING),
    "version": {"type": ["string", "integer", "null"]},
    "event": nullable(_EVENT),
    "correlation": nullable(STRING),
}
REASON: Final[Mapping[str, Schema]] = {"reason": TEXT}
_PAUSED: Final = made(
    {
        "name": STRING,
        "version": INTEGER,
        "paused": BOOLEAN,
        "paused_until": nullable(TIME),
        "pause_reason": nullable(STRING),
        "paused_by": nullable(STRING),
        "settings": OBJECT,
    }
)
_REPORT: Final[Mapping[str, Schema]] = {
    "send": {"type": "integer", "minimum": 0, "maximum": 2**31 - 1},
    "outcome": named("started", "heartbeat", "succeeded", "failed", "deferred"),
}
_REPORT_MORE: Final[Mapping[str, Schema]] = {
    "id": STRING,
    "retryable": BOOLEAN,
    "error": nullable(STRING),
    "result": ANYTHING,
    "after": {"type": ["string", "number", "null"]},
}
_RATE: Final = nullable({"type": "integer", "minimum": 1, "maximum": MOST_RATE})
_FILTER: Final[Schema] = {"type": "string", "maxLength": 4000}

SCHEMAS: Final[Mapping[str, Schema]] = {
    "Problem": made(
        {"type": STRING, "title": STRING, "status": INTEGER, "detail": STRING, "hint": STRING},
        {"field": STRING, "request": STRING},
    ),
    "NewJob": made({"lane": STRING}, _SAID, open_=False),
    "NewJobs": made({"jobs": {"type": "array", "items": ref("NewJob"), "maxItems": 1000}}, open_=False),
    "Job": made(
        {"id": STRING},
        {
            "lane": STRING,
            "group": nullable(STRING),
            "sequence": nullable(INTEGER),
            "mode": MODE,
            "state": STATE,
            "reason": nullable(STRING),
            "run_at": TIME,
            "start_by": nullable(TIME),
            "finish_by": nullable(TIME),
            "attempt": INTEGER,
            "max_attempts": nullable(INTEGER),
            "recoveries": INTEGER,
            "send": INTEGER,
            "tenant": nullable(STRING),
            "key": nullable(STRING),
            "target": nullable(STRING),
            "pool": nullable(STRING),
            "entity": nullable(STRING),
            "version": nullable(STRING),
            "correlation": nullable(STRING),
            "last_error": nullable(STRING),
            "result": ANYTHING,
            "receipt": nullable(STRING),
            "batch": nullable(INTEGER),
            "node": nullable(INTEGER),
            "lease_until": nullable(TIME),
            "cancel_requested": BOOLEAN,
            "created_at": nullable(TIME),
            "claimed_at": nullable(TIME),
            "sent_at": nullable(TIME),
            "started_at": nullable(TIME),
            "finished_at": nullable(TIME),
            "duration_ms": nullable(INTEGER),
            "updated_at": nullable(TIME),
            "payload": ANYTHING,
            "headers": ANYTHING,
            "event": ANYTHING,
            "duplicate": BOOLEAN,
            "hidden": listed(STRING),
        },
    ),
    "Enqueued": made(
        {"results": listed(made({"index": INTEGER}, {"id": STRING, "error": STRING, "field": STRING}))}
    ),
    "Jobs": made({"jobs": listed(ref("Job")), "next": NEXT}, {"hint": STRING}),
    "Explanation": made(
        {"state": STATE, "gate": named(*(gate.value for gate in Gate)), "text": STRING},
        {"since": nullable(TIME), "until": nullable(TIME), "eta": nullable(TIME), "by": nullable(STRING)},
    ),
    "Timeline": made({"id": STRING, "state": STATE, "events": listed(made({"at": TIME, "event": STRING}))}),
    "Versions": made(
        {
            "id": STRING,
            "revision": INTEGER,
            "versions": listed(made({"revision": INTEGER, "at": TIME, "actor": nullable(STRING)})),
        }
    ),
    "Counts": made({"lanes": _by_name(_by_name(INTEGER))}),
    "LaneStats": made(
        {
            "now": TIME,
            "lanes": listed(
                made(
                    {
                        "lane": STRING,
                        "pending": INTEGER,
                        "due": INTEGER,
                        "due_capped": BOOLEAN,
                        "claimed": INTEGER,
                        "dispatched": INTEGER,
                        "running": INTEGER,
                        "held": INTEGER,
                        "dead": INTEGER,
                        "succeeded_24h": INTEGER,
                        "failed_24h": INTEGER,
                        "capped": BOOLEAN,
                        "oldest_due_s": NUMBER,
                        "avg_duration_ms": nullable(NUMBER),
                    }
                )
            ),
            "more_lanes": INTEGER,
        }
    ),
    "Reason": made(REASON, open_=False),
    "Cancel": made(REASON, {"force": BOOLEAN}, open_=False),
    "Retry": made(REASON, {"out_of_order": BOOLEAN}, open_=False),
    "Settle": made({**REASON, "outcome": named("succeeded", "dead")}, open_=False),
    "Edit": made(
        REASON,
        {name: _SAID[name] for name in ("payload", "headers", "target", "run_at")}
        | {"replay": BOOLEAN, "out_of_order": BOOLEAN},
        open_=False,
    ),
    "Done": made({"id": STRING, "effect": named(*Effect), "state": nullable(STATE), "text": STRING}),
    "Report": made(_REPORT, _REPORT_MORE, open_=False),
    "Reported": made({"applied": BOOLEAN, "late": BOOLEAN, "cancel_requested": BOOLEAN}),
    "Reports": made(
        {
            "outcomes": {
                "type": "array",
                "items": made({**_REPORT, "id": STRING}, _REPORT_MORE, open_=False),
                "maxItems": 1000,
            }
        },
        open_=False,
    ),
    "ReportedMany": made({"results": listed(made({"index": INTEGER}))}),
    "Lane": _PAUSED,
    "Lanes": made({"lanes": listed(ref("Lane"))}),
    "Sources": made(
        {"settings": _by_name(made({"source": STRING, "actor": nullable(STRING), "at": nullable(TIME)}))}
    ),
    "Pool": _PAUSED,
    "Pools": made({"pools": listed(ref("Pool"))}),
    "Settings": made({"settings": OBJECT}, {"reason": nullable(STRING)}, open_=False),
    "Deleted": made({"deleted": STRING}),
    "Pause": made(REASON, {"until": nullable(TIME)}, open_=False),
    "Audit": made(
        {
            "entries": listed(
                made(
                    {
                        "number": INTEGER,
                        "at": TIME,
                        "action": STRING,
                        "actor": STRING,
                        "lane": nullable(STRING),
                        "job": nullable(STRING),
                        "reason": nullable(STRING),
                    }
                )
            ),
            "next": NEXT,
        }
    ),
    "Dead": made(
        {
            "causes": listed(
                made(
                    {
                        "fingerprint": STRING,
                        "lane": STRING,
                        "reason": nullable(STRING),
                        "error": STRING,
                        "jobs": INTEGER,
                        "first": nullable(TIME),
                        "last": nullable(TIME),
                        "sample": STRING,
                    }
                )
            ),
            "more": BOOLEAN,
        },
        {"hint": STRING},
    ),
    "NewOperation": made(
        {"verb": named(*STATES, "replay"), "filter": _FILTER},
        {
            "reason": nullable(TEXT),
            "dry_run": BOOLEAN,
            "rate": _RATE,
            "force": BOOLEAN,
            "change": nullable(OBJECT),
        },
        open_=False,
    ),
    "Replay": made(
        {"filter": _FILTER},
        {"reason": nullable(TEXT), "dry_run": BOOLEAN, "rate": _RATE, "out_of_order": BOOLEAN},
        open_=False,
    ),
    "Preview": made(
        {
            "dry_run": BOOLEAN,
            "verb": STRING,
            "filter": STRING,
            "matched": INTEGER,
            "capped": BOOLEAN,
            "lanes": OBJECT,
            "states": OBJECT,
            "ids": listed(STRING),
        }
    ),
    "Operation": made(
        {
            "id": STRING,
            "verb": STRING,
            "filter": STRING,
            "actor": STRING,
            "reason": STRING,
            "rate": nullable(INTEGER),
            "force": BOOLEAN,
            "state": named(*OperationState),
            "created_at": TIME,
            "finished_at": nullable(TIME),
            "found": INTEGER,
            "matched": nullable(INTEGER),
            "done": INTEGER,
            "requested": INTEGER,
            "refused": INTEGER,
            "refusals": OBJECT,
            "edits": BOOLEAN,
            "stopped_by": nullable(STRING),
            "problem": nullable(STRING),
        }
    ),
    "Operations": made({"operations": listed(ref("Operation")), "next": NEXT}),
    "Message": made({"messageId": STRING}),
    "Processed": made({"ack": BOOLEAN}, {"delaySeconds": INTEGER}),
    "Anything": OBJECT,
}
LIMIT: Final[Schema] = {"type": "integer", "minimum": 1, "maximum": MAX_PAGE}
