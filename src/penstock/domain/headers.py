"""The headers of a message: those of the event, Penstock's own, and what the job brings along.

Names and values come from callers' data, so none may end a line, and the job's own never stand in for one
that Penstock or the connection itself is answerable for.
"""

import json
import re
from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import quote

from penstock.domain.envelopes import Envelope, Unwritable
from penstock.domain.texts import stamp

EVENT_PREFIX: Final = "X-FlowCatalyst-"
OWN_PREFIX: Final = "X-Penstock-"

_TOKEN: Final = re.compile(r"[!#$%&'*+\-.^_`|~0-9A-Za-z]+")
_UNFIT: Final = re.compile(r"[\x00-\x08\x0a-\x1f\x7f]")
# What says where a message begins and ends, who it is for and how it is packed is the connection's.
_CONNECTION: Final = frozenset(
    {
        "accept-encoding",
        "connection",
        "content-encoding",
        "content-length",
        "expect",
        "host",
        "keep-alive",
        "te",
        "trailer",
        "transfer-encoding",
        "upgrade",
    }
)
_RESERVED: Final = ("proxy-", "sec-", "webhook-", OWN_PREFIX.lower())
_PLAIN: Final = "".join(chr(c) for c in range(0x20, 0x7F) if chr(c) != "%")
_PLAIN_TEXT: Final = re.compile(r"[!-$&-~](?:[ -$&-~]*[!-$&-~])?")


def check_prefix(prefix: str) -> str:
    """Return the prefix if header names may begin with it, or raise ValueError."""
    if _TOKEN.fullmatch(prefix) is None or prefix.lower().startswith(_RESERVED):
        raise ValueError(
            f"{prefix!r} is no prefix for headers: write letters, digits and -, like {EVENT_PREFIX}"
        )
    return prefix


def check_value(value: str) -> str:
    """Return the value if a header may hold it, or raise ValueError."""
    if _UNFIT.search(value):
        raise ValueError("holds a line break or another control character: remove it")
    try:
        value.encode()
    except UnicodeEncodeError:
        raise ValueError("holds a lone surrogate, which is no character: remove it") from None
    return value


def spelled(text: str) -> str:
    """Return any text as a header's value; `urllib.parse.unquote` gives it back.

    What is not plain ASCII is percent-encoded UTF-8, and so are `%` itself and blanks at either end, which
    readers of headers cut off.
    """
    if _PLAIN_TEXT.fullmatch(text):  # nearly always, and much faster
        return text
    body = text.strip(" ")
    head, _, tail = text.partition(body) if body else (text, "", "")
    return "%20" * len(head) + quote(body, safe=_PLAIN) + "%20" * len(tail)


def job_headers(text: str | None, *, prefix: str = EVENT_PREFIX) -> dict[str, str]:
    """Return the headers a job brings along, without those that are not its to set; raise Unwritable."""
    given = _object("headers", text)
    kept: dict[str, str] = {}
    reserved = (*_RESERVED, prefix.lower())
    for name, value in given.items():
        if _TOKEN.fullmatch(name) is None:
            raise Unwritable(f"headers: {name!a} is no header name: use letters, digits and -")
        if not isinstance(value, str):
            raise Unwritable(f"headers: {name} is no text: write it in quotes")
        try:
            check_value(value)
        except ValueError as error:
            raise Unwritable(f"headers: {name} {error}") from None
        if name.lower() not in _CONNECTION and not name.lower().startswith(reserved):
            kept[name] = value
    return kept


def message_headers(envelope: Envelope, *, prefix: str = EVENT_PREFIX) -> dict[str, str]:
    """Return all headers of a message but those that sign it; raise Unwritable."""
    event = _object("event", envelope.event)
    facts = {
        f"{prefix}Event-Id": event.get("id") or envelope.id,
        f"{prefix}Event-Type": event.get("type") or envelope.lane,
        f"{prefix}Dispatch-Job-Id": envelope.id,
        f"{prefix}Subscription-Id": event.get("subscription") or envelope.group,
        f"{prefix}Client-Id": envelope.tenant,
        f"{prefix}Timestamp": event.get("at") or stamp(envelope.created_at),
        f"{OWN_PREFIX}Job-Id": envelope.id,
        f"{OWN_PREFIX}Lane": envelope.lane,
        f"{OWN_PREFIX}Group": envelope.group,
        f"{OWN_PREFIX}Sequence": envelope.sequence,
        f"{OWN_PREFIX}Mode": envelope.mode,
        f"{OWN_PREFIX}Attempt": envelope.attempt,
        f"{OWN_PREFIX}Send": envelope.number,
        f"{OWN_PREFIX}Finish-By": stamp(envelope.finish_by),
        f"{OWN_PREFIX}Correlation": envelope.correlation,
    }
    own = {name: spelled(str(value)) for name, value in facts.items() if value is not None}
    return job_headers(envelope.headers, prefix=prefix) | own


def _object(field: str, text: str | None) -> Mapping[str, Any]:
    """Return what JSON text holds; a plain INSERT may have written anything there."""
    if text is None:
        return {}
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        raise Unwritable(f"{field}: is not JSON: edit the job") from None
    if not isinstance(found, dict):
        raise Unwritable(f"{field}: is no object: edit the job")
    return found
