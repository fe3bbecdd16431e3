"""What the view's trigger says when it refuses a job, in Penstock's own errors."""

import re
from typing import Final

from penstock.errors import InvalidJob, KeyConflict, PenstockError, UnknownLane

_SAID: Final = re.compile(r"penstock: ([^\n]+)")
_LANE: Final = re.compile(r'unknown lane(?: "(.*)")?')
_KEY: Final = re.compile(r'key "(.*)" already belongs to job ([0-9A-Z]{26})')
_FIELD: Final = re.compile(r"(\w+): (.+)")


class KeyTaken(InvalidJob):
    """A key belongs to another job; SQLite cannot say which."""


def refusal(error: BaseException) -> PenstockError | None:
    """Return what the trigger refused, None when the error is about something else."""
    match = _SAID.match(str(_root(error)))
    return None if match is None else _refusal(match[1])


def _refusal(said: str) -> PenstockError:
    if match := _LANE.match(said):
        return UnknownLane(match[1] or "")
    if match := _KEY.match(said):
        return KeyConflict(match[1], match[2])
    if said.startswith("unknown pool"):
        return InvalidJob("pool", said)
    match = _FIELD.match(said)
    field, problem = match.groups() if match else ("job", said)
    if field == "key" and "already belongs" in problem:
        return KeyTaken(field, problem)
    return InvalidJob("group" if field == "message_group" else field, problem)


def _root(error: BaseException) -> BaseException:
    """Return the driver's own error: frameworks wrap it in one of theirs, with what was sent."""
    while error.__cause__ is not None:
        error = error.__cause__
    return error
