"""The words of events as people read them: what a sink answered, and what came of a job."""

from collections.abc import Mapping
from typing import Final

# What a sink took is sent, whether or not it had it before.
SENT: Final = frozenset({"accepted", "duplicate"})
# Nothing went out: neither a call that failed nor one that did not.
NO_CALL: Final = frozenset({"notcalled", "unsent"})
_SPELLED: Final[Mapping[str, str]] = {
    "tryagain": "retry",
    "notcalled": "not_called",
    "lapsedtoooften": "lapsed_too_often",
}


def spelled(word: str) -> str:
    """Return an outcome's word as metrics and logs write it."""
    return _SPELLED.get(word, word)
