"""Keys that nodes share: what they are called, and how a new one is made from random bytes."""

from base64 import b64encode, urlsafe_b64encode
from collections.abc import Callable
from typing import Final

WEBHOOK: Final = "webhook"  # signs what is delivered
TOKEN: Final = "token"  # noqa: S105 - the name of a key, not a key: it signs pointers to jobs
NAMES: Final = (WEBHOOK, TOKEN)
# The kid of the key that the first migration makes: of two that make it at once one comes too late.
FIRST: Final = "1"
BYTES: Final = 32


def new_secret(name: str, entropy: Callable[[int], bytes]) -> str:
    """Return a new key, spelt as its users want it: Standard Webhooks' `whsec_…`, or URL-safe text."""
    drawn = entropy(BYTES)
    if name == WEBHOOK:
        return f"whsec_{b64encode(drawn).decode()}"
    return urlsafe_b64encode(drawn).rstrip(b"=").decode()
