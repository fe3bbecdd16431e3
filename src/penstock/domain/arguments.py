"""What callers hand over beside jobs: ids, names, numbers and spans, refused in words when they are none."""

from collections.abc import Mapping
from datetime import timedelta
from typing import Final

from penstock.domain.intake import check_text
from penstock.domain.job import NewJob
from penstock.domain.names import BadName, check_label, near
from penstock.domain.payloads import SURROGATE
from penstock.domain.states import Verb
from penstock.domain.ulid import BadUlid
from penstock.domain.ulid import parse as parse_ulid
from penstock.errors import InvalidJob, InvalidQuery, InvalidSetting, NotFound

MAX_BATCH: Final = 10_000
EDITABLE: Final = ("payload", "headers", "target", "run_at")


def known_id(id: object, kind: str = "job") -> str:  # noqa: A002
    """Return an id as it is stored, or raise NotFound: what cannot be one is the id of nothing."""
    try:
        return parse_ulid(id)
    except BadUlid:
        raise NotFound(kind, str(id)) from None


def check_reason(text: object) -> str:
    """Return why somebody does something, or raise InvalidJob; blanks say nothing."""
    try:
        said = check_text(text)
    except (ValueError, TypeError) as error:
        raise InvalidJob("reason", str(error)) from None
    if not said.strip():
        raise InvalidJob("reason", "say why: it is kept in the audit")
    return said


def check_group(name: object) -> str:
    """Return the name of a group that somebody acts on, or raise InvalidQuery: no store keeps another."""
    try:
        return check_text(name)
    except (ValueError, TypeError) as error:
        raise InvalidQuery("group", str(error)) from None


def check_key(key: object) -> str:
    """Return the key that makes asking twice safe, or raise InvalidQuery."""
    try:
        return check_label("key", key)
    except BadName as error:
        raise InvalidQuery("key", str(error)) from None


def check_actor(name: object) -> str:
    """Return who the audit names, or raise InvalidSetting."""
    try:
        return check_text(name)
    except (ValueError, TypeError) as error:
        raise InvalidSetting("actor", str(error)) from None


def check_several(jobs: object) -> None:
    """Raise InvalidJob for one job where several are wanted: its fields would be taken for jobs."""
    if isinstance(jobs, Mapping | NewJob | str | bytes):
        kind = type(jobs).__name__
        raise InvalidJob("jobs", f"is one {kind}: give a list of jobs, or use enqueue() for one")


def check_batch(size: object) -> int:
    """Return how many jobs are written at a time, or raise InvalidJob."""
    if isinstance(size, bool) or not isinstance(size, int) or not 1 <= size <= MAX_BATCH:
        raise InvalidJob(
            "batch", f"{size!r} is no size of a batch: give a whole number from 1 to {MAX_BATCH}"
        )
    return size


def check_timeout(timeout: object) -> timedelta | None:
    """Return how long to wait, which may be given in seconds, or raise InvalidQuery."""
    if timeout is None or isinstance(timeout, timedelta):
        return timeout
    try:
        if isinstance(timeout, int | float) and not isinstance(timeout, bool):
            return timedelta(seconds=timeout)
    except (OverflowError, ValueError):
        pass
    raise InvalidQuery("timeout", f"{timeout!r} is no stretch of time: give seconds, a timedelta, or None")


def check_verb(verb: object) -> Verb:
    """Return the verb, which may be given by its name, or raise InvalidJob; an edit needs to say more."""
    verbs = [each for each in Verb if each is not Verb.EDIT]
    if verb == Verb.EDIT:
        raise InvalidJob("verb", "an edit says what to change: use edit()")
    if verb not in verbs:
        close = near(str(verb), verbs)
        hint = f"did you mean {close[0]}?" if close else f"known are {', '.join(verbs)}"
        raise InvalidJob("verb", f"there is no {verb!r}; {hint}")
    return Verb(str(verb))


def check_edit(content: Mapping[str, object]) -> None:
    """Raise InvalidJob unless these are what of a job can be edited."""
    for name in content:
        if name not in EDITABLE:
            raise InvalidJob(name, f"cannot be edited; what can is {', '.join(EDITABLE)}")


def check_filter(name: str, value: object) -> str:
    """Return a text to look for, or raise InvalidQuery: one that no store keeps finds nothing anywhere."""
    if not isinstance(value, str):
        raise InvalidQuery(name, f"{value!r} is no text: write one")
    if "\0" in value:
        raise InvalidQuery(name, "holds a NUL character, which no database stores in text: remove it")
    if not value.isascii():
        try:
            value.encode()
        except UnicodeEncodeError:
            raise InvalidQuery(name, SURROGATE) from None
    return value
