"""A lane's own words on failures, `retry_on` and `give_up_on`: which may pass, and which never will.

Words stand between commas. `404` is a status, `5xx` a class of them; anything else is part of the error's
text, in letters of any size. The status of an error is the number behind `HTTP`, or the one it begins with.
"""

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import Final

_STATUS: Final = re.compile(r"(?:^|\bhttp(?:/[0-9.]+)? )([1-5][0-9][0-9])\b", re.IGNORECASE)
_STATUS_WORD: Final = re.compile(r"[1-5](?:[0-9][0-9]|xx)")


@lru_cache(maxsize=1024)
def words_of(text: str | None) -> tuple[str, ...]:
    """Return the words of a setting."""
    return tuple(word.strip().lower() for word in (text or "").split(",") if word.strip())


def named(words: Sequence[str], error: str | None) -> bool:
    """Say whether one of the words is about this error."""
    if not words or error is None:
        return False
    text, found = error.lower(), _STATUS.search(error)
    status = found[1] if found else ""
    return any(
        word in (status, f"{status[:1]}xx") if _STATUS_WORD.fullmatch(word) else word in text
        for word in words
    )
