"""What names may look like, and which known name an unknown one was probably meant to be.

*Names* (lanes, pools, sinks) are typed by people, appear in URLs, metrics and files, and keep to plain
ASCII. *Labels* (groups, tenants, idempotency keys) come from the caller's own data: any text that every
store keeps byte for byte, short enough for every store's index.
"""

import re
from collections.abc import Iterable
from difflib import get_close_matches
from typing import Final, Literal, TypeAlias

NameKind: TypeAlias = Literal["lane", "pool", "sink"]
LabelKind: TypeAlias = Literal["group", "tenant", "key"]

NAME_PATTERN: Final = r"[A-Za-z0-9][A-Za-z0-9_.-]{0,62}"
MAX_LABEL_BYTES: Final = 255

_NAME: Final = re.compile(NAME_PATTERN)
_SHOWN: Final = 80


class BadName(ValueError):
    """The value cannot be used as a name of this kind; the message says what can."""

    def __init__(self, kind: NameKind | LabelKind, value: object, advice: str) -> None:
        super().__init__(f"{shown(value)} is not a {kind}: {advice}")
        self.kind = kind
        self.value = value


def check_name(kind: NameKind, value: object) -> str:
    """Return the value if it may name a lane, pool or sink, or raise BadName."""
    if not isinstance(value, str):
        raise BadName(kind, value, "write it as text")
    if _NAME.fullmatch(value) is None:
        raise BadName(kind, value, "use 1 to 63 of A-Z a-z 0-9 _ . - and begin with a letter or digit")
    return value


def check_lane_name(value: object) -> str:
    """Return the value if it may name a lane, or raise BadName."""
    return check_name("lane", value)


def check_label(kind: LabelKind, value: object) -> str:
    """Return the value if it may be a group, tenant or key, or raise BadName."""
    if not isinstance(value, str):
        raise BadName(kind, value, "write it as text")
    if not value:
        raise BadName(kind, value, "leave it out instead of giving empty text")
    if "\0" in value:
        raise BadName(kind, value, "remove the NUL character, no database stores it in text")
    try:
        size = len(value.encode())
    except UnicodeEncodeError:
        raise BadName(kind, value, "remove the lone surrogate, it cannot be written as UTF-8") from None
    if size > MAX_LABEL_BYTES:
        raise BadName(
            kind, value, f"it has {size} bytes in UTF-8, use at most {MAX_LABEL_BYTES}, a hash for example"
        )
    return value


def near(name: str, known: Iterable[str]) -> list[str]:
    """Return up to three known names that look like this one, best first; capitals do not count."""
    spelled: dict[str, list[str]] = {}
    for candidate in sorted(set(known)):
        spelled.setdefault(candidate.lower(), []).append(candidate)
    found = get_close_matches(name.lower(), spelled)
    return [candidate for lower in found for candidate in spelled[lower]][:3]


def unknown(kind: str, name: str, known: Iterable[str]) -> str:
    """Return the sentence for a name nobody defined: `unknown pool "wbe"; did you mean web?`."""
    sentence = f'unknown {kind} "{name}"'
    matches = near(name, known)
    if not matches:
        listed = kind in ("lane", "pool")
        return f"{sentence}; penstock {kind}s list shows those there are" if listed else sentence
    return f"{sentence}; did you mean {', '.join(matches)}?"


def shown(value: object) -> str:
    """Return a value for an error message: no more than its beginning."""
    try:
        # ascii() keeps control characters and surrogates out of logs and terminals.
        text = ascii(value)
    except RecursionError:  # JSON just shallow enough to be read
        text = f"a {type(value).__name__} nested too deeply"
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"
