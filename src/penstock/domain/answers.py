"""What an HTTP answer means for a message.

| answer | means |
|---|---|
| 2xx | accepted |
| 2xx with `{"ack": false, "delaySeconds": n}` | not now |
| 429, 503 with Retry-After | not now |
| 408, 425, other 5xx | try again |
| everything else (410, other 4xx, 3xx) | never |
"""

import json
import re
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from typing import Final

from penstock.domain.outcomes import Accepted, Receipt, Rejected, Throttled, TryAgain
from penstock.domain.texts import shown

SHOWN: Final = 500
KEPT: Final = 200  # of the answer to a message that was taken: it is kept with every job
DEFAULT_WAIT: Final = timedelta(seconds=10)
LEAST_WAIT: Final = timedelta(seconds=1)  # "not now" costs no attempt, so "at once" could go on for ever
MOST_WAIT: Final = timedelta(days=1)
_SECONDS: Final = re.compile(r"[0-9]{1,9}")
_LATER: Final = frozenset({408, 425})


def receipt_of(status: int, *, body: bytes, retry_after: str | None, now: datetime) -> Receipt:
    """Return the receipt; `body` is the beginning of the answer's, `retry_after` the header's text."""
    if 200 <= status < 300:
        wait = _refused_for(body)
        return Accepted(_accepted(status, body)) if wait is None else Throttled(wait, _error(status, body))
    if status == 429 or (status == 503 and retry_after is not None):
        return Throttled(_wait(retry_after, now), _error(status, body))
    if status in _LATER or status >= 500:
        return TryAgain(_error(status, body))
    return Rejected(_error(status, body))


def _accepted(status: int, body: bytes) -> str:
    said = shown(body[: 4 * KEPT].decode(errors="replace"), KEPT)
    return f"{status} {said}" if said else str(status)


def _error(status: int, body: bytes) -> str:
    said = shown(body[: 4 * SHOWN].decode(errors="replace"), SHOWN)
    return f"HTTP {status}: {said}" if said else f"HTTP {status}"


def _refused_for(body: bytes) -> timedelta | None:
    """Return how long a receiver wants to be left alone; None = it took the message."""
    if b'"ack"' not in body:
        return None
    try:
        said = json.loads(body)
    except (ValueError, RecursionError):
        return None
    if not isinstance(said, dict) or said.get("ack") is not False:
        return None
    seconds = said.get("delaySeconds")
    if isinstance(seconds, bool) or not isinstance(seconds, int | float) or not seconds >= 0:
        return DEFAULT_WAIT
    return _bounded(timedelta(seconds=min(seconds, MOST_WAIT.total_seconds())))


def _wait(retry_after: str | None, now: datetime) -> timedelta:
    text = (retry_after or "").strip()
    if _SECONDS.fullmatch(text):
        return _bounded(timedelta(seconds=int(text)))
    try:
        at = parsedate_to_datetime(text)
    except (ValueError, OverflowError):
        return DEFAULT_WAIT
    return _bounded((at if at.tzinfo else at.replace(tzinfo=UTC)) - now)


def _bounded(wait: timedelta) -> timedelta:
    return min(max(wait, LEAST_WAIT), MOST_WAIT)
