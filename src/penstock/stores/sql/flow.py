"""The pacing role (`ports/flow.py`) of a store in a SQL database."""

from penstock.domain.job import Claim
from penstock.ports.flow import Confirmed, Scouted
from penstock.stores.sql import pacing
from penstock.stores.sql.database import Database


class FlowPart:
    """Pacing; `SqlStore` brings the database."""

    __slots__ = ()
    db: Database

    def confirm(self, claim: Claim) -> Confirmed:
        """Look once more before sending."""
        return self.db.look(lambda tx: pacing.confirm(tx, self.db.dialect, claim))

    def scout(self) -> Scouted:
        """Look at all lanes at once."""
        return self.db.look(lambda tx: pacing.scout(tx, self.db.dialect))
