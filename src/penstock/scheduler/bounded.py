"""Who takes of the limits."""

from typing import Protocol, TypeVar

from penstock.ports.flow import Limit

J = TypeVar("J")
J_contra = TypeVar("J_contra", contravariant=True)


class Bounded(Protocol[J_contra]):
    """Who takes tokens and slots, and for what: a lane for its jobs (`Plan`), the router for its messages.

    `limits_of` returns the same objects for as long as a limit is the same.
    """

    @property
    def name(self) -> str:
        """What sharers of a limit are told apart by."""

    @property
    def weight(self) -> int:
        """How much of a shared limit it gets."""

    def limits_of(self, job: J_contra, /) -> tuple[Limit, ...]:
        """Return every limit that a job counts against."""
