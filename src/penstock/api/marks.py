"""The id of a request: in its answer, on the page of an error, and in the line of the log about it."""

import os
import re
from collections.abc import Callable, Iterable
from typing import Any, Final

from litestar.types import HTTPScope

HEADER: Final = b"x-request-id"
BYTES: Final = 8
_KEY: Final = "penstock.request"
_SANE: Final = re.compile(
    rb"[A-Za-z0-9._-]{1,64}"
)  # of a proxy, say; whatever else is in it stays out of logs


def mark(scope: HTTPScope, entropy: Callable[[int], bytes] = os.urandom) -> str:
    """Note the id of a request, that which it came with or a new one, and return it."""
    found = _sent(scope["headers"]) or entropy(BYTES).hex()
    scope[_KEY] = found  # type: ignore[typeddict-unknown-key]
    return found


def mark_of(connection: Any) -> str:  # noqa: ANN401 - a request, or whatever else has a scope
    """Return the id of a request."""
    return str(connection.scope.get(_KEY, ""))


def _sent(headers: Iterable[tuple[bytes, bytes]]) -> str | None:
    given = [value for name, value in headers if name.lower() == HEADER]
    return given[0].decode() if len(given) == 1 and _SANE.fullmatch(given[0]) else None
