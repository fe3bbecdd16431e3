"""How long a connection may take: to say what it wants, to send its body, to read what it is told.

Whoever is slower is hung up on. The times are for each part as a whole, so a byte now and then wins nothing.
"""

import asyncio
from typing import Final, NamedTuple

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

HEAD: Final = "head"
BODY: Final = "body"


class Patience(NamedTuple):
    """Seconds for the head of a request, for its body, and for an answer that nobody reads on."""

    head: float = 10.0
    body: float = 60.0
    answer: float = 60.0


def patient(patience: Patience) -> type[H11Protocol]:
    """Return uvicorn's protocol, with these limits."""

    class Patient(H11Protocol):
        """HTTP/1.1 that waits only so long."""

        _waits_for: str | None = None
        _timer: asyncio.TimerHandle | None = None
        _unread: asyncio.TimerHandle | None = None

        def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
            super().connection_made(transport)
            self._wait_for(HEAD)

        def data_received(self, data: bytes) -> None:
            super().data_received(data)
            theirs = self.conn.their_state
            self._wait_for(HEAD if theirs is h11.IDLE else BODY if theirs is h11.SEND_BODY else None)

        def connection_lost(self, exc: Exception | None) -> None:
            self._wait_for(None)
            self.resume_writing()
            super().connection_lost(exc)

        def pause_writing(self) -> None:
            super().pause_writing()
            self._unread = self.loop.call_later(patience.answer, self.transport.abort)

        def resume_writing(self) -> None:
            super().resume_writing()
            if self._unread is not None:
                self._unread.cancel()
                self._unread = None

        def _wait_for(self, part: str | None) -> None:
            if part == self._waits_for:
                return
            if self._timer is not None:
                self._timer.cancel()
            self._waits_for, self._timer = part, None
            if part is not None:
                seconds = patience.head if part == HEAD else patience.body
                self._timer = self.loop.call_later(seconds, self.transport.abort)

    return Patient
