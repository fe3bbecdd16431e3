"""Messages as the router reads them: pointers to jobs (domain/bodies.py writes them)."""

import json
from typing import Any, Final, NamedTuple

HTTP: Final = "HTTP"
LONGEST_BODY: Final = 256 * 1024
LONGEST: Final = 8 * 1024


class BadMessage(ValueError):
    """Nobody can deliver this; the text says what is wrong with it."""


class Pointer(NamedTuple):
    """Where to ask for what. `pool` is the message's poolCode, `target` its mediationTarget."""

    id: str
    send: int
    pool: str
    token: str
    target: str
    group: str | None

    @property
    def dedup(self) -> str:
        """The name of its send."""
        return f"{self.id}:{self.send}"


def read_pointer(body: str) -> Pointer:
    """Return the pointer that a message is, or raise BadMessage."""
    if len(body) > LONGEST_BODY:
        raise BadMessage("it is longer than any pointer")
    try:
        said = json.loads(body)
    except (ValueError, RecursionError):
        raise BadMessage("it is not JSON") from None
    if not isinstance(said, dict):
        raise BadMessage("it is no object")
    if said.get("mediationType", HTTP) != HTTP:
        raise BadMessage("its mediationType is not HTTP, which is all there is")
    group = said.get("messageGroupId")
    return Pointer(
        id=_text(said, "id"),
        send=_send(said),
        pool=_text(said, "poolCode", required=False),
        token=_text(said, "authToken", required=False),
        target=_text(said, "mediationTarget"),
        group=None if group is None else _text(said, "messageGroupId"),
    )


def _text(said: dict[str, Any], name: str, *, required: bool = True) -> str:
    found = said.get(name)
    if found is None and not required:
        return ""
    if not isinstance(found, str) or (required and not found):
        raise BadMessage(f"its {name} is no text")
    if len(found) > LONGEST or not found.isprintable():
        raise BadMessage(f"its {name} is too long, or holds what cannot be printed")
    return found


def _send(said: dict[str, Any]) -> int:
    found = said.get("send", 0)
    if isinstance(found, bool) or not isinstance(found, int) or not 0 <= found < 2**31:
        raise BadMessage("its send is no number")
    return found
