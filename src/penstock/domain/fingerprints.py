"""Errors that are the same but for their particulars: one fingerprint for all of them.

Ten thousand dead letters have a handful of causes. What differs from job to job (numbers, ids, addresses,
what stands in quotes) is taken out of the first line of an error; what is left tells the cause. A status is
one: what a server refuses for good and what it was too busy for are not the same.

Who may not see what targets answered has a coarser one, made of what is left of the error for such readers: a
hash of the words themselves would confirm whoever guesses them. Both find jobs for everybody who may ask.
"""

import re
from hashlib import blake2s
from typing import Final

from penstock.domain.masking import without_words

LONGEST: Final = 200
COARSE: Final = "k"  # no hexadecimal digit: nobody takes one kind for the other
_PARTICULARS: Final = re.compile(
    r"""
    (?P<status>\b(?:HTTP|status|code)\ \d{3}\b)
  | (?P<quoted>"[^"]*"|'[^']*'|`[^`]*`)
  | (?P<url>\b[a-z][a-z0-9+.-]*://\S+)
  | (?P<hex>\b0x[0-9a-f]+\b|\b[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b|\b(?=[a-z]*[0-9])[0-9a-z]{16,}\b)
  | (?P<number>\d+(?:[.,:]\d+)*)
    """,
    re.IGNORECASE | re.VERBOSE,
)
_SPACE: Final = re.compile(r"\s+")
_SIGNS: Final = {"quoted": "“…”", "url": "<url>", "hex": "<id>", "number": "N"}


def pattern_of(error: str | None) -> str:
    """Return an error without its particulars: `HTTP 503 from http://a/1` is `HTTP 503 from <url>`."""
    lines = [line for line in (error or "").splitlines() if line.strip()]
    first = _SPACE.sub(" ", lines[0][: 2 * LONGEST]).strip() if lines else ""
    return _PARTICULARS.sub(lambda found: _SIGNS.get(found.lastgroup or "", found[0]), first)[:LONGEST]


def fingerprint_of(reason: str | None, error: str | None) -> str:
    """Return twelve hexadecimal digits that jobs with the same reason and the same kind of error share."""
    said = f"{reason or ''}\n{pattern_of(error).lower()}"
    return blake2s(said.encode(errors="replace"), digest_size=6).hexdigest()


def coarse_fingerprint_of(reason: str | None, error: str | None) -> str:
    """Return what jobs share whose errors look the same without the words of others; it begins with `k`."""
    return COARSE + fingerprint_of(reason, without_words(error))


def is_coarse(fingerprint: object) -> bool:
    """Say whether a fingerprint tells nothing but what everybody sees of a job."""
    return str(fingerprint).startswith(COARSE)
