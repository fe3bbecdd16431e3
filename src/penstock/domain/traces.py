"""Trace context that travels with a job: `traceparent` (W3C Trace Context), among its headers."""

import json
import re
from typing import Final

HEADER: Final = "traceparent"
_FORM: Final = re.compile(r"(?!ff)[0-9a-f]{2}-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}")


def well_formed(text: str | None) -> str | None:
    """Return the text if it is a trace context, else None: a wrong one is dropped, as the standard says."""
    return text if text is not None and _FORM.fullmatch(text) else None


def traceparent_of(headers: str | None) -> str | None:
    """Return the trace context among a job's headers, JSON text that anybody may have written."""
    if headers is None or HEADER not in headers.lower():
        return None
    for name, value in _members(headers).items():
        if name.lower() == HEADER and isinstance(value, str):
            return well_formed(value)
    return None


def with_traceparent(headers: str | None, traceparent: str) -> str:
    """Return the headers with this trace context; text that is no object stays for the sink to refuse."""
    if headers is None:
        return f'{{"{HEADER}":"{traceparent}"}}'
    members = _members(headers)
    if not members and headers.strip() != "{}":
        return headers
    kept = {name: value for name, value in members.items() if name.lower() != HEADER}
    return json.dumps({**kept, HEADER: traceparent}, ensure_ascii=False, separators=(",", ":"))


def _members(headers: str) -> dict[str, object]:
    try:
        found = json.loads(headers)
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}
