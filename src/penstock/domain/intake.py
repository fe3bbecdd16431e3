"""What an enqueue object may hold: checked field by field, before anything is written.

Every refusal is an `InvalidJob` that names the field and says what to write instead. The common case is kept
short on purpose: this runs for every job of a bulk load.
"""

import json
from collections import Counter
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any, Final, TypedDict

from penstock.domain.job import Context, NewJob
from penstock.domain.masking import masked_in
from penstock.domain.names import check_label, check_lane_name, check_name, near, shown
from penstock.domain.ordering import DEFAULT_SEQUENCE, MAX_SEQUENCE, Mode
from penstock.domain.payloads import SURROGATE, Json, checked, dumped
from penstock.domain.retry import MAX_ATTEMPTS
from penstock.domain.times import check_time
from penstock.domain.ulid import parse as parse_ulid
from penstock.errors import InvalidJob

MAX_TEXT_BYTES: Final = 2048
MAX_HEADERS_BYTES: Final = 16 * 1024

Time = datetime | str
Given = Mapping[str, Any] | NewJob

_MODES: Final = {mode.label: mode for mode in Mode}
_EVENT: Final = ("id", "type", "at", "subscription")
_OBJECT: Final = (dict, Mapping)  # in this order: the first is the cheaper look
_NOTHING: Final[list[object]] = list(NewJob(lane=""))
_NOTHING_MORE: Final = tuple(_NOTHING[2:])
_SHORT: Final = {"lane", "payload"}
_TIME: Final = "write a time like 2026-11-15T10:00:00Z, or give a datetime with a time zone"


class Fields(TypedDict, total=False):
    """What an enqueue object may say besides its lane and payload; None is the same as leaving it out."""

    group: str | None
    sequence: int | None
    mode: Mode | str | None
    run_at: Time | None
    start_by: Time | None
    finish_by: Time | None
    key: str | None
    tenant: str | None
    target: str | None
    headers: Mapping[str, str] | None
    pool: str | None
    max_attempts: int | None
    id: str | None
    entity: str | None
    version: str | int | None
    event: Mapping[str, str] | None
    correlation: str | None


class Content(TypedDict, total=False):
    """What of a job's message an edit may change; None takes it away."""

    payload: object
    headers: Mapping[str, str] | None
    target: str | None


def new_job(given: Given) -> NewJob:
    """Return the job an enqueue object describes, or raise InvalidJob naming the field and the fix.

    In a `NewJob` payload, headers and event are text already, which is checked and kept as it is.
    """
    if type(given) is dict and given.keys() == _SHORT:
        return _short_object(given["lane"], given["payload"])
    if isinstance(given, NewJob):
        if given[2:] == _NOTHING_MORE:
            return _short(given)
        given = _spelled_out(given)
    elif not isinstance(given, _OBJECT):
        raise InvalidJob("job", f'is a {type(given).__name__}: write an object, like {{"lane": "orders"}}')
    values = _NOTHING.copy()
    for name, value in given.items():
        if value is not None:
            try:
                place, check = _PLACES[name]
                values[place] = check(value)
            except KeyError:
                raise _no_such_field(name) from None
            except (ValueError, TypeError) as error:
                raise InvalidJob(name, str(error)) from None
        elif name not in _PLACES:
            raise _no_such_field(name)
    job: NewJob = tuple.__new__(NewJob, values)
    if not job.lane:
        raise _no_lane()
    if job.run_at is not None:
        _check_deadlines(job, job.run_at)
    return job


def json_problem(said: Context) -> str | None:
    """Return what is wrong with the JSON of a job that plain SQL wrote; None = nothing, or it was checked.

    Whoever comes through a client was refused; a job that is here already must not go out.
    """
    if said.unchecked:
        for name, text in (("payload", said.payload), ("headers", said.headers), ("event", said.event)):
            try:
                checked("null" if text is None else text)
            except ValueError as error:
                return f"{name}: {error}; edit the job, or enqueue another one"
    return None


def _short(job: NewJob) -> NewJob:
    """Check a job that is a lane and a payload, as most of a bulk load are."""
    field = "lane"
    try:
        _lane(job.lane)
        if job.payload is not None:
            field = "payload"
            checked(job.payload)
    except ValueError as error:
        raise InvalidJob(field, str(error)) from None
    return job


def _short_object(lane: object, payload: object) -> NewJob:
    """Return the job of an object that is a lane and a payload, as most of a bulk load are."""
    if lane is None:
        raise _no_lane()
    field = "lane"
    try:
        name = _known_lane_name(lane) if type(lane) is str else _lane(lane)
        field = "payload"
        text = dumped(payload) if type(payload) is dict else None if payload is None else _payload(payload)
    except (ValueError, TypeError) as error:
        raise InvalidJob(field, str(error)) from None
    return tuple.__new__(NewJob, (name, text) + _NOTHING_MORE)  # noqa: RUF005 - the faster way, once per job


def _no_lane() -> InvalidJob:
    return InvalidJob("lane", "name the lane the job belongs to")


def _spelled_out(job: NewJob) -> dict[str, Any]:
    given: dict[str, Any] = dict(zip(NewJob._fields, job, strict=True))
    for name in ("payload", "headers", "event"):
        if given[name] is not None:
            try:
                given[name] = Json(given[name])
            except ValueError as error:
                raise InvalidJob(name, str(error)) from None
    return given


def _no_such_field(name: object) -> InvalidJob:
    close = near(str(name), _CHECKS)
    hint = f"did you mean {' or '.join(close)}?" if close else f"known are {', '.join(_CHECKS)}"
    return InvalidJob(str(name), f"there is no such field; {hint}")


def _check_deadlines(job: NewJob, run_at: datetime) -> None:
    if job.start_by is not None and job.start_by < run_at:
        raise InvalidJob("start_by", "is before run_at: the job could never start, set it later")
    if job.finish_by is not None and job.finish_by < run_at:
        raise InvalidJob("finish_by", "is before run_at: the job could never end in time, set it later")


_known_lane_name: Final = lru_cache(maxsize=1024)(check_lane_name)


def _lane(value: object) -> str:
    # Only text can be looked up; anything else is refused by the check itself.
    return _known_lane_name(value) if type(value) is str else _exact(check_lane_name(value))


def _exact(text: str) -> str:
    """Return text that is of no other class: drivers write an enumeration's name as readily as its value."""
    return text if type(text) is str else str.__str__(text)


def _payload(value: object) -> str:
    return str(checked(value)) if isinstance(value, Json) else dumped(value)


def _group(value: object) -> str:
    return _exact(check_label("group", value))


def _tenant(value: object) -> str:
    return _exact(check_label("tenant", value))


def _key(value: object) -> str:
    return _exact(check_label("key", value))


def _pool(value: object) -> str:
    return _exact(check_name("pool", value))


def _sequence(value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= MAX_SEQUENCE:
        raise ValueError(f"write a whole number from 0 to {MAX_SEQUENCE}; {DEFAULT_SEQUENCE} is the default")
    return int(value)


def _attempts(value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= MAX_ATTEMPTS:
        raise ValueError(f"write a whole number from 1 to {MAX_ATTEMPTS}")
    return int(value)


def _mode(value: object) -> Mode:
    if isinstance(value, Mode):
        return value
    if not isinstance(value, str) or value not in _MODES:
        raise ValueError(f"{shown(value)} is none of {', '.join(_MODES)}")
    return _MODES[value]


def _time(value: object) -> datetime:
    at = _parsed(value) if isinstance(value, str) else value
    if not isinstance(at, datetime):
        raise TypeError(_TIME)
    if at.utcoffset() is None:
        raise ValueError("has no time zone: add an offset, like 2026-11-15T10:00:00+01:00, or tzinfo=UTC")
    utc = check_time(at)
    return utc if type(utc) is datetime else datetime.combine(utc.date(), utc.time(), UTC)


def _parsed(text: str) -> datetime:
    try:
        return datetime.fromisoformat(text)
    except ValueError:
        raise ValueError(f"{shown(text)} is not a time: {_TIME}") from None


def check_text(value: object) -> str:
    """Return a short text that every store keeps, or raise ValueError or TypeError."""
    if not isinstance(value, str) or not value:
        raise TypeError("write a text that is not empty")
    if "\0" in value:
        raise ValueError("holds a NUL character, which no database stores in text: remove it")
    try:
        size = len(value.encode())
    except UnicodeEncodeError:
        raise ValueError(SURROGATE) from None
    if size > MAX_TEXT_BYTES:
        raise ValueError(f"has {size} bytes: use at most {MAX_TEXT_BYTES}")
    return _exact(value)


def _version(value: object) -> str:
    if isinstance(value, bool | float):
        raise TypeError("write a text or a whole number")
    return str(value) if isinstance(value, int) else check_text(value)


def _headers(value: object) -> str:
    text, headers = _object(value)
    if not isinstance(headers, Mapping) or not all(
        isinstance(v, str) for pair in headers.items() for v in pair
    ):
        raise TypeError('write an object of texts, like {"X-Trace": "abc"}')
    lower = [name.lower() for name in headers]
    if len(set(lower)) < len(lower):
        [(twice, _)] = Counter(lower).most_common(1)
        raise ValueError(f"{twice} stands twice: capitals make no difference, name each header once")
    for header, content in headers.items():
        if not header or any(not "!" <= c <= "~" or c == ":" for c in header):
            raise ValueError(f"{header!r} is no header name: use letters, digits and -")
        if any(c in "\r\n\0" for c in content):
            raise ValueError(f"{header} holds a line break or NUL: remove it")
    if masked := masked_in(headers):
        raise ValueError(f"{masked} is a mask, which stands for what is not shown: write its value")
    if len(text.encode()) > MAX_HEADERS_BYTES:
        raise ValueError(f"are longer than {MAX_HEADERS_BYTES} bytes together: send less, or use the payload")
    return text


def _event(value: object) -> str:
    text, event = _object(value)
    if not isinstance(event, Mapping) or not set(event) <= set(_EVENT):
        raise TypeError(f"write an object with {', '.join(_EVENT)}")
    for name, content in event.items():
        try:
            check_text(content)
        except (ValueError, TypeError) as error:
            raise ValueError(f"{name} {error}") from None
    return text


def _object(value: object) -> tuple[str, object]:
    """Return JSON text and what it holds: written here, or checked and kept."""
    if isinstance(value, Json):
        return str(checked(value)), json.loads(value)
    return dumped(value), value


_CHECKS: Final[Mapping[str, Callable[[object], object]]] = {
    "lane": _lane,
    "payload": _payload,
    "group": _group,
    "sequence": _sequence,
    "mode": _mode,
    "run_at": _time,
    "start_by": _time,
    "finish_by": _time,
    "key": _key,
    "tenant": _tenant,
    "target": check_text,
    "headers": _headers,
    "pool": _pool,
    "max_attempts": _attempts,
    "id": parse_ulid,
    "entity": check_text,
    "version": _version,
    "event": _event,
    "correlation": check_text,
}
_PLACES: Final = {name: (place, _CHECKS[name]) for place, name in enumerate(NewJob._fields)}
