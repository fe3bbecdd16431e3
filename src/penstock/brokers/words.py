"""What a driver says of an error, in words that help whoever reads them."""

import os
import ssl
from typing import Final

from penstock.domain.texts import shown

_MOST: Final = 300
_DEPTH: Final = 5


def said(error: object) -> str:
    """Return the system's own words for what went wrong, or the beginning of the driver's if it has none.

    Drivers wrap what the system said into sentences for themselves: "Error 111 connecting to … Connect call
    failed" is "Connection refused".
    """
    inner = error
    for _ in range(_DEPTH):
        if isinstance(inner, OSError) and not isinstance(inner, ssl.SSLError) and inner.errno:
            # Errors of looking up names have numbers below zero, and words of their own.
            return os.strerror(inner.errno) if inner.errno > 0 else shown(str(inner.strerror), _MOST)
        inner = getattr(inner, "os_error", None) or getattr(inner, "__cause__", None)
    return shown(str(getattr(error, "strerror", None) or error) or type(error).__name__, _MOST)
