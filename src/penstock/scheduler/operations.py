"""The leader works off bulk operations: a page or a slice of each in turn, each one transaction."""

from dataclasses import dataclass
from datetime import timedelta
from typing import Final

from penstock.domain.leases import Term
from penstock.domain.operations import OPEN, OperationState
from penstock.errors import PenstockError, StoreUnavailable, TermOver
from penstock.scheduler.ground import Ground

EVERY: Final = timedelta(seconds=1)


@dataclass(frozen=True, slots=True)
class Operating:
    """One leader's work on operations."""

    ground: Ground

    async def tick(self, term: Term | None) -> bool:
        """Take every open operation one step further; say whether one can go on at once."""
        store, busy = self.ground.store, False
        for operation in await self.ground.call(store.open_operations):
            collecting = operation.state == OperationState.COLLECTING
            step = store.collect_operation if collecting else store.work_operation
            try:
                after = await self.ground.call(step, operation.id, under=term)
            except (StoreUnavailable, TermOver):
                raise
            except Exception as error:  # noqa: BLE001 - one that cannot go on must not keep others from it
                problem = str(error) if isinstance(error, PenstockError) else f"a bug in Penstock: {error!r}"
                after = await self.ground.call(store.fail_operation, operation.id, problem, under=term)
            # What its rate holds up is as it was, and is looked at again after a while.
            busy = busy or (after != operation and after.state in OPEN)
        return busy
