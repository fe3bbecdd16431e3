"""What the suite stands on: the other end of a sink, as a test sees it."""

from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import NamedTuple, Protocol

from penstock.ports.sink import Envelope, Sink


class Arrived(NamedTuple):
    """One message as it came out at the other end."""

    id: str
    body: bytes | None = None


class SinkBed(Protocol):
    """The other end of one sink. `largest` is how many bytes of payload it must take.

    A bed that cannot do something (spoil a message, stall, break down) returns None or False and the cases
    that need it are skipped.
    """

    largest: int

    async def open(self) -> Sink:
        """Return a sink that is connected to this bed; the suite closes it."""

    def address(self, envelope: Envelope) -> Envelope:
        """Return the envelope with what makes it arrive here: a target, a queue."""

    def body(self, envelope: Envelope) -> bytes | None:
        """Return the bytes that must arrive for it; None = this kind does not hand bodies on."""

    async def arrived(self, number: int) -> Sequence[Arrived]:
        """Return what arrived, in order, as soon as it is so many messages."""

    def spoil(self, envelope: Envelope) -> Envelope | None:
        """Return an envelope that can never be delivered, however often it is tried."""

    def stall(self) -> AbstractContextManager[None] | None:
        """Return a time in which messages arrive but are not answered."""

    async def break_down(self) -> bool:
        """Stop receiving for good; False = that cannot happen to this kind."""
