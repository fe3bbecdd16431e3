"""Editing a job: what changes, what is kept, what is refused.

What the caller said is never rewritten: an edit adds a version, and the job's row names the one that counts.
A job that is being sent, or is out, cannot be edited; one that ended is edited and goes again.
"""

import json
from dataclasses import dataclass
from datetime import datetime
from hashlib import sha256
from types import EllipsisType
from typing import NamedTuple

from penstock.domain.job import Context, Live
from penstock.domain.settlement import moved
from penstock.domain.states import Effect, JobState, Move, Verb, answer, does_nothing

Changed = str | None | EllipsisType


class Version(NamedTuple):
    """What a job was to send at one time; revision 0 is what the caller said, and nobody edited it."""

    revision: int
    at: datetime
    actor: str | None
    payload: str | None
    headers: str | None
    target: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Edit:
    """What is to change: `...` is left as it is, None takes a value away; `run_at` None = as it is."""

    payload: Changed = ...
    headers: Changed = ...
    target: Changed = ...
    run_at: datetime | None = None

    @property
    def content(self) -> dict[str, str | None]:
        """What of the message changes, by the name of the field."""
        given = {"payload": self.payload, "headers": self.headers, "target": self.target}
        return {name: value for name, value in given.items() if not isinstance(value, EllipsisType)}


def move_of(state: JobState) -> Move | None:
    """Return the move that comes with an edit: an ended job goes again."""
    return answer(Verb.EDIT, state).move


def refusal(state: JobState, edit: Edit, context: Context | None, *, replay: bool) -> str | None:
    """Return why a job in this state is not edited; None = it is."""
    if answer(Verb.EDIT, state).effect is not Effect.NOW:
        return does_nothing(Verb.EDIT, state)
    if not edit.content and edit.run_at is None:
        return "there is nothing to change"
    if edit.content and context is None:
        return "what the caller said is missing, there is nothing to edit"
    if move_of(state) is Move.REPLAY and not replay:
        return f"a job that is {state.label} goes again when it is edited: ask for a replay"
    return None


def edited(row: Live, edit: Edit, *, now: datetime) -> Live:
    """Return the row after an edit that is not refused.

    A send whose fate is open is given up when the message changes: its number repeated, a broker could take
    the new message for the old one.
    """
    move = move_of(JobState(row.state))
    after = row if move is None else moved(row, Verb.EDIT, move, now=now)
    if edit.content:
        after = after._replace(revision=row.revision + 1, open=False)
    if edit.run_at is None:
        return after
    waits = after.state == JobState.PENDING  # until then, and no longer for what had put it back
    return after._replace(due_at=edit.run_at, since=None, reason=None if waits else after.reason)


def version(row: Live, context: Context, edit: Edit, *, at: datetime, actor: str) -> Version:
    """Return the version that an edit of the message makes of what the job sends now."""
    now = {"payload": context.payload, "headers": context.headers, "target": context.target}
    return Version(row.revision + 1, at, actor, **now | edit.content)


def facts(row: Live, context: Context | None, edit: Edit) -> str:
    """Return what an audit row says of the job before or after the edit: hashes, no payload."""
    said: dict[str, object] = {"state": JobState(row.state).label, "revision": row.revision}
    values = {} if context is None else context._asdict()
    for name in edit.content:
        value = values.get(name)
        said[name] = value if name == "target" or value is None else _hash(value)
    if edit.run_at is not None:
        said["run_at"] = row.due_at.isoformat()
    return json.dumps(said)


def _hash(text: str) -> str:
    return f"sha256:{sha256(text.encode()).hexdigest()}"
