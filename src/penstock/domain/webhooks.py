"""Standard Webhooks signatures: HMAC-SHA256 over `id.timestamp.body`, one for each key that is live.

Several keys sign while receivers change over; one that matches is enough for a receiver.
"""

import base64
import binascii
import hashlib
import hmac
from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from typing import Final

ID, TIMESTAMP, SIGNATURE = "webhook-id", "webhook-timestamp", "webhook-signature"
TOLERANCE: Final = timedelta(minutes=5)
SHORTEST, LONGEST = 24, 64
_PREFIX: Final = "whsec_"
_VERSION: Final = "v1"


class BadSecret(ValueError):
    """This is no webhook secret; the text never holds it."""


def secret_bytes(secret: str) -> bytes:
    """Return the key a secret like `whsec_…` spells, or raise BadSecret."""
    text = secret.strip().removeprefix(_PREFIX)
    try:
        key = base64.b64decode(text + "=" * (-len(text) % 4), validate=True)
    except (binascii.Error, ValueError):
        key = b""
    if not SHORTEST <= len(key) <= LONGEST:
        raise BadSecret("a webhook secret is whsec_ and 24 to 64 bytes in base64")
    return key


def signed(secrets: Iterable[str], *, id: str, at: datetime, body: bytes) -> dict[str, str]:  # noqa: A002
    """Return the three headers that sign a body, one signature per secret; without secrets no signature."""
    timestamp = str(int(at.timestamp()))
    headers = {ID: id, TIMESTAMP: timestamp}
    signatures = [_signature(secret, id=id, timestamp=timestamp, body=body) for secret in secrets]
    return {**headers, SIGNATURE: " ".join(signatures)} if signatures else headers


def problem(secrets: Iterable[str], headers: Mapping[str, str], body: bytes, *, now: datetime) -> str | None:
    """Return what is wrong with a signed message, None = it is genuine and fresh.

    `headers` are looked up in lower case.
    """
    missing = [name for name in (ID, TIMESTAMP, SIGNATURE) if not headers.get(name)]
    if missing:
        return f"no {missing[0]}"
    timestamp = headers[TIMESTAMP]
    if not (timestamp.isascii() and timestamp.isdigit() and len(timestamp) < 12):
        return f"{TIMESTAMP} is no number of seconds"
    if abs(now.timestamp() - int(timestamp)) > TOLERANCE.total_seconds():
        return f"{TIMESTAMP} is more than {int(TOLERANCE.total_seconds()) // 60} minutes off"
    expected = [_signature(secret, id=headers[ID], timestamp=timestamp, body=body) for secret in secrets]
    given = headers[SIGNATURE].split()
    if not any(hmac.compare_digest(ours.encode(), theirs.encode()) for ours in expected for theirs in given):
        return "no signature matches"
    return None


def _signature(secret: str, *, id: str, timestamp: str, body: bytes) -> str:  # noqa: A002
    content = b"%s.%s.%s" % (id.encode(), timestamp.encode(), body)
    digest = hmac.new(secret_bytes(secret), content, hashlib.sha256).digest()
    return f"{_VERSION},{base64.b64encode(digest).decode()}"
