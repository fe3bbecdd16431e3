"""What the view's trigger says when it refuses a job, in Penstock's own errors."""

import re
from typing import Final

from penstock.errors import (
    RIGHTS,
    InvalidJob,
    KeyConflict,
    PenstockError,
    SchemaMismatch,
    StoreError,
    UnknownLane,
)

_LANE: Final = re.compile(r'unknown lane(?: "(.*)")?(?:; did you mean (.*)\?)?')
_POOL: Final = re.compile(r"unknown pool.*")
_KEY: Final = re.compile(r'key "(.*)" already belongs to job ([0-9A-Z]{26})', re.DOTALL)
_VIEW: Final = re.compile(r"penstock[._]enqueue")
_FIELD: Final = re.compile(r"(?:(\w+): )?(.*)")


class KeyTaken(InvalidJob):
    """A key belongs to another job; SQLite cannot say which, so whoever wrote the jobs finds out."""


def refusal(error: BaseException) -> PenstockError | None:
    """Return what the trigger refused, None when the error is about something else."""
    root = _root(error)
    said = str(root)
    if _VIEW.search(said) and (_code(root) == "42P01" or said.startswith("no such table: ")):
        return SchemaMismatch(
            "the database of this connection has no tables of Penstock",
            "give one to the client's own database, or run penstock migrate there",
        )
    if _code(root) == "42501" and "penstock" in said:
        return StoreError(f"the database refuses this user: {said.splitlines()[0]}; {RIGHTS}")
    return _refusal(said.removeprefix("penstock: ")) if said.startswith("penstock: ") else None


def _refusal(said: str) -> PenstockError:
    if match := _LANE.match(said):
        return UnknownLane(match[1] or "", match[2].split(", ") if match[2] else ())
    if match := _KEY.match(said):
        return KeyConflict(match[1], match[2])
    if match := _POOL.match(said):
        return InvalidJob("pool", match[0])
    field, problem = _FIELD.findall(said)[0]
    if field == "key" and "already belongs" in problem:
        return KeyTaken(field, problem)
    return InvalidJob({"": "job", "message_group": "group"}.get(field, field), problem)


def _code(error: BaseException) -> str | None:
    """Return PostgreSQL's code of an error: psycopg2 has another name for it."""
    return getattr(error, "sqlstate", None) or getattr(error, "pgcode", None)


def _root(error: BaseException) -> BaseException:
    """Return the driver's own error: frameworks wrap it in one of theirs, with what was sent."""
    while error.__cause__ is not None:
        error = error.__cause__
    return error
