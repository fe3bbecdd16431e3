"""What a change of a lane or pool is bound to: the ETags that its caller saw, anything, or nothing at all.

An ETag is `"VERSION-ID-DIGEST"`. Its digest is of all that was shown and is for looks (`If-None-Match`); a
change goes by version and id: a pause that ended meanwhile is no change by anybody, and a lane that was
deleted and made anew under its name is another one, whatever its version. `"VERSION"` alone is of any
that has it.
"""

import re
from collections.abc import Callable
from typing import Any, Final

from litestar import Request

from penstock.api.problems import Problem
from penstock.domain.lanes import Lane
from penstock.domain.pools import Pool
from penstock.errors import VersionChanged

Condition = Callable[[str, str, Lane | Pool | None], None]
HINT: Final = 'send the ETag that GET returned, in quotes and as it is, or the version alone, like "3"'
_TAG: Final = r'(?:W/)?"[\x21\x23-\x7e\x80-\xff]*"'
_LIST: Final = re.compile(rf"[ \t,]*{_TAG}(?:[ \t]*,[ \t,]*{_TAG})*[ \t,]*")
_OURS: Final = re.compile(r'"([1-9][0-9]{0,17})(?:-([0-9]{1,18})-[0-9a-f]{18})?"')


def mark_of_named(named: Lane | Pool) -> str:
    """Return what the ETag of a lane or pool begins with."""
    return f"{named.version}-{named.id}"


def condition_of(request: Request[Any, Any, Any]) -> Condition | None:
    """Return what raises VersionChanged where a change may not be made; None = it may, whatever is there."""
    if request.headers.get("if-none-match") == "*":
        return _nothing
    if "if-match" not in request.headers:
        return None
    match = ",".join(request.headers.getall("if-match"))
    if match.strip() == "*":
        return _anything
    if not _seen(match):
        raise Problem(412, "version-changed", f"If-Match {match!r} names no version", hint=HINT)
    return bound_to(match)


def bound_to(match: str) -> Condition:
    """Return what raises VersionChanged unless what is there has one of these ETags."""
    seen = _seen(match)

    def seen_before(kind: str, name: str, named: Lane | Pool | None) -> None:
        if named is None or not seen & {(str(named.version), None), (str(named.version), str(named.id))}:
            raise VersionChanged(kind, name, 0 if named is None else named.version)

    return seen_before


def _seen(match: str) -> set[tuple[str, str | None]]:
    """Return the versions and ids that these ETags name; that of another kind names none."""
    tags = re.findall(_TAG, match) if _LIST.fullmatch(match) else []
    return {(found[1], found[2]) for tag in tags if (found := _OURS.fullmatch(tag))}


def _nothing(kind: str, name: str, named: Lane | Pool | None) -> None:
    if named is not None:
        raise VersionChanged(kind, name, named.version)


def _anything(kind: str, name: str, named: Lane | Pool | None) -> None:
    if named is None:
        raise VersionChanged(kind, name, 0)
