"""What a filter may ask of a job beyond what lists have an index for.

A store may use `row_test` to try some predicates where the rows are; `holds` is what they mean everywhere.
A job that does not have what is asked for (no error, no such member in its payload) only holds a `NOT`.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any, Final

from penstock.domain.fingerprints import coarse_fingerprint_of, fingerprint_of, is_coarse
from penstock.domain.job import Job

Value = str | int | float | bool | None
PAYLOAD: Final = "payload"
# Fields that are columns of every row there is: a store may compare them without reading anything else.
ROW_COLUMNS: Final[Mapping[str, str]] = {
    "attempt": "attempt",
    "batch": "epoch",
    "node": "node",
    "reason": "reason",
    "recoveries": "recoveries",
    "send": "send",
}


class Op(StrEnum):
    """How a field is compared."""

    IS = ":"
    NOT = "!="
    HAS = "~"
    LT = "<"
    LE = "<="
    GT = ">"
    GE = ">="


@dataclass(frozen=True, slots=True)
class Predicate:
    """One comparison; `IS` is true of any of several values, `NOT` of none. `path` leads into a payload."""

    field: str
    op: Op
    values: tuple[Value, ...]
    path: tuple[str, ...] = ()

    @property
    def deep(self) -> bool:
        """Whether it can only be told from the payload."""
        return self.field == PAYLOAD


def holds(predicate: Predicate, job: Job) -> bool:
    """Say whether a job is as the predicate wants it."""
    if predicate.deep:
        return _holds_in(predicate, None if job.context is None else job.context.payload)
    if predicate.field == "group" and predicate.op is Op.IS:
        return compared(job.live.grp, Op.IS, predicate.values)  # as the index has it: ordered jobs
    if predicate.field == "fingerprint" and predicate.op in (Op.IS, Op.NOT):
        return _marked(job, predicate.values) is (predicate.op is Op.IS)
    return compared(_FIELDS[predicate.field](job), predicate.op, predicate.values)


def _marked(job: Job, marks: tuple[Value, ...]) -> bool:
    """Say whether a job has one of these fingerprints, each of its own kind."""
    reason, error = job.live.reason, job.error
    return any(
        mark == (coarse_fingerprint_of if is_coarse(mark) else fingerprint_of)(reason, error)
        for mark in marks
    )


def compared(found: object, op: Op, values: tuple[Value, ...]) -> bool:
    """Compare what a job has; text contains text whatever its capitals, numbers only compare with numbers."""
    match op:
        case Op.IS:
            return any(_same(found, value) for value in values)
        case Op.NOT:
            return not any(_same(found, value) for value in values)
        case Op.HAS:
            text = _text(found)
            return text is not None and any(str(value).casefold() in text.casefold() for value in values)
        case _:
            return any(_ordered(found, op, value) for value in values)


def _same(found: object, value: Value) -> bool:
    if isinstance(found, bool) or isinstance(value, bool) or found is None or value is None:
        return found is value
    if isinstance(found, str) and not isinstance(value, str):
        return found == str(value)  # a number that somebody sent as text is still what was asked for
    return found == value


def _ordered(found: object, op: Op, value: Value) -> bool:
    numbers = isinstance(found, int | float) and isinstance(value, int | float)
    texts = isinstance(found, str) and isinstance(value, str)
    if isinstance(found, bool) or isinstance(value, bool) or not (numbers or texts):
        return False
    tests: Mapping[Op, Callable[[Any, Any], bool]] = {
        Op.LT: lambda a, b: a < b,
        Op.LE: lambda a, b: a <= b,
        Op.GT: lambda a, b: a > b,
        Op.GE: lambda a, b: a >= b,
    }
    return tests[op](found, value)


def _text(found: object) -> str | None:
    if found is None or isinstance(found, str):
        return found
    return json.dumps(found, ensure_ascii=False)


def _holds_in(predicate: Predicate, payload: str | None) -> bool:
    if not predicate.path:
        return compared(payload, predicate.op, predicate.values)
    found = member(payload, predicate.path)
    missing = found is ...
    return predicate.op is Op.NOT if missing else compared(found, predicate.op, predicate.values)


def member(payload: str | None, path: tuple[str, ...]) -> object:
    """Return what stands at a path of a payload; `...` = there is nothing, or it is no JSON."""
    if payload is None:
        return ...
    try:
        found: object = json.loads(payload)
    except (ValueError, RecursionError):
        return ...
    for name in path:
        if isinstance(found, dict) and name in found:
            found = found[name]
        elif isinstance(found, list) and name.isascii() and name.isdigit() and int(name) < len(found):
            found = found[int(name)]
        else:
            return ...
    return found


def _said(name: str) -> Callable[[Job], object]:
    return lambda job: None if job.context is None else getattr(job.context, name)


_FIELDS: Final[Mapping[str, Callable[[Job], object]]] = {
    "lane": lambda job: job.lane,
    "group": lambda job: job.group,
    "tenant": lambda job: job.live.tenant,
    "key": _said("key"),
    "mode": lambda job: job.mode.label,
    "attempt": lambda job: job.live.attempt,
    "send": lambda job: job.live.send,
    "recoveries": lambda job: job.live.recoveries,
    "sequence": _said("sequence"),
    "batch": lambda job: job.live.epoch,
    "node": lambda job: job.live.node,
    "reason": lambda job: job.live.reason,
    "receipt": lambda job: job.live.receipt,
    "error": lambda job: job.error,
    "fingerprint": lambda job: fingerprint_of(job.live.reason, job.error),
    "target": _said("target"),
    "pool": _said("pool"),
    "entity": _said("entity"),
    "version": _said("version"),
    "correlation": _said("correlation"),
}


def row_test(predicate: Predicate, name: str) -> str:
    """Return the predicate as a portable SQL condition on a row `w`; empty = the row does not tell.

    `name` is the parameter that stands for the values: a list, or the only one of an order.
    """
    column = ROW_COLUMNS.get(predicate.field)
    if column is None or predicate.op is Op.HAS:
        return ""
    match predicate.op:
        case Op.IS:
            return f"w.{column} = ANY(:{name})"
        case Op.NOT:
            return f"(w.{column} IS NULL OR NOT w.{column} = ANY(:{name}))"
        case _:
            return f"w.{column} {predicate.op.value} :{name}"


def as_time(value: Value) -> datetime | None:
    """Return the time that a text spells, with its offset; None = it spells none."""
    try:
        at = datetime.fromisoformat(value) if isinstance(value, str) else None
    except ValueError:
        return None
    return at if at is not None and at.tzinfo is not None else None
