"""The part of a store that keeps bulk operations (domain/operations.py) and carries them out.

A part of `Store` (ports/store.py). The leader works them off: each call is one transaction in which jobs move
and the operation's row says so, so that nothing is done twice and nothing is left out.
"""

from typing import Protocol

from penstock.domain.leases import Term
from penstock.domain.operations import NewOperation, Operation, OperationPage, OperationState

__all__ = ["NewOperation", "Operation", "OperationPage", "OperationState", "Operations"]


class Operations(Protocol):
    """Bulk operations."""

    def start_operation(self, new: NewOperation) -> Operation:
        """Begin an operation; audited. The same key again returns the one that is there.

        Raise InvalidQuery when its filter is wrong, InUse when too many are open, of all or of its tenant.
        """

    def operation(self, id: str) -> Operation | None:  # noqa: A002
        """Return one operation; None = there is none of that id."""

    def operations(self, *, limit: int = 50, after: str | None = None) -> OperationPage:
        """Return operations, newest first. Raise InvalidCursor."""

    def open_operations(self) -> list[Operation]:
        """Return those that are not ended, oldest first."""

    def stop_operation(self, id: str, *, actor: str, reason: str) -> Operation:  # noqa: A002
        """Stop an operation where it is; audited. One that has ended stays as it is. Raise NotFound."""

    def collect_operation(self, id: str, *, under: Term | None = None) -> Operation:  # noqa: A002
        """Note the next jobs that an operation is about; raise NotFound."""

    def work_operation(self, id: str, *, under: Term | None = None) -> Operation:  # noqa: A002
        """Carry out the next slice, unless its time has not come; raise NotFound."""

    def fail_operation(self, id: str, problem: str, *, under: Term | None = None) -> Operation:  # noqa: A002
        """End an operation that cannot go on; audited. Raise NotFound."""
