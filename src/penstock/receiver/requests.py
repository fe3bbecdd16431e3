"""What arrived: one request as a value, and how it is written in a log."""

import asyncio
import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any, Final, Self
from urllib.parse import unquote

from penstock.domain.texts import stamp

_OWN: Final = "x-penstock-"
SAID_BY: Final = ("job-id", "send", "attempt", "lane", "group", "sequence", "mode")


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What a request is answered with, after how long, and not before somebody opens the gate."""

    status: int = 200
    body: bytes = b""
    headers: Mapping[str, str] = field(default_factory=dict)
    delay: timedelta = timedelta(0)
    gate: asyncio.Event | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """One request; what Penstock's headers did not say is None. `headers` are in lower case.

    `signature` is `ok`, what is wrong with it, or None when there is no secret to check it with. `repeat` is
    `retry` when every earlier request of the job was turned down, `duplicate` when one was not, else None;
    `same_send` says whether its send number came before. `after` is the sequence of a later job of the same
    group that came first.
    """

    at: datetime
    method: str
    path: str
    headers: Mapping[str, str]
    body: bytes
    id: str | None = None
    send: int | None = None
    attempt: int | None = None
    lane: str | None = None
    group: str | None = None
    sequence: int | None = None
    mode: str | None = None
    signature: str | None = None
    repeat: str | None = None
    same_send: bool = False
    after: int | None = None
    answer: Answer = field(default_factory=Answer)

    @classmethod
    def read(cls, *, at: datetime, method: str, path: str, headers: Mapping[str, str], body: bytes) -> Self:
        """Return the request with what its headers say of the job."""
        said = {name: headers.get(_OWN + name) for name in SAID_BY}
        group = said["group"]
        return cls(
            at=at,
            method=method,
            path=path,
            headers=headers,
            body=body,
            id=said["job-id"],
            send=_number(said["send"]),
            attempt=_number(said["attempt"]),
            lane=said["lane"],
            group=None if group is None else unquote(group),
            sequence=_number(said["sequence"]),
            mode=said["mode"],
        )

    def with_(self, **facts: Any) -> Self:  # noqa: ANN401 - the fields above
        """Return the request with more known about it."""
        return replace(self, **facts)

    @property
    def bad_signature(self) -> bool:
        """Whether it was checked and is not genuine."""
        return self.signature not in {None, "ok"}

    def facts(self) -> dict[str, Any]:
        """Return what a log keeps: no body, no headers, but what tells one body from another."""
        return {
            "time": stamp(self.at),
            "id": self.id,
            "send": self.send,
            "attempt": self.attempt,
            "lane": self.lane,
            "group": self.group,
            "sequence": self.sequence,
            "mode": self.mode,
            "path": self.path,
            "bytes": len(self.body),
            "sha256": hashlib.sha256(self.body).hexdigest(),
            "signature": self.signature,
            "repeat": self.repeat,
            "same_send": self.same_send,
            "after": self.after,
            "answer": self.answer.status,
        }


def _number(text: str | None) -> int | None:
    return int(text) if text is not None and text.isascii() and text.isdigit() and len(text) < 19 else None
