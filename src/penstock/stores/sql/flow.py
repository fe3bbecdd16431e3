"""The pacing role (`ports/flow.py`) of a store in a SQL database."""

from collections.abc import Collection, Sequence
from datetime import datetime, timedelta

from penstock.domain.breakers import Note
from penstock.domain.job import Claim
from penstock.ports.flow import Confirmed, Grant, Need, Pause, Scouted, Target
from penstock.ports.wakeups import Wakeups
from penstock.stores.sql import limits, pacing, pausing, targets
from penstock.stores.sql.database import Database, Tx


class FlowPart:
    """Pacing; `SqlStore` brings the database."""

    __slots__ = ()
    db: Database
    _looks: pacing.Looks

    def confirm(self, claim: Claim) -> Confirmed:
        """Look once more before sending."""
        return self.db.look(lambda tx: pacing.confirm(tx, self.db.dialect, claim))

    def scout(self) -> Scouted:
        """Look at all lanes at once."""
        return self._looks.scout(self.db)

    def permit(self, node: int, needs: Sequence[Need], *, ttl: timedelta) -> list[Grant]:
        """Settle what the node spent and lease what it may have."""
        dialect = self.db.dialect
        while needs:
            grants = self.db.relaxed(lambda tx: limits.permit(tx, dialect, node, needs, ttl))
            if grants is not None:
                return grants
            self.db.relaxed(lambda tx: limits.open_accounts(tx, needs))
        return []

    def targets(self) -> dict[str, Target]:
        """Return the targets whose breaker is not closed, that go slow or are paused."""
        return self.db.read(targets.targets)

    def mark_target(
        self, name: str, *, failed: int, ok: int, trip_after: int, open_for: timedelta, slow_for: timedelta
    ) -> Target:
        """Note how calls to a target went since the last note."""
        note = Note(failed, ok, trip_after, open_for, slow_for)
        return self.db.relaxed(lambda tx: targets.mark_target(tx, name, note))

    def pause_store(
        self, *, paused: bool, actor: str, reason: str, until: datetime | None = None
    ) -> Pause | None:
        """Stop every lane at once, or let them go."""
        return self._pause(pausing.STORE, "", paused=paused, actor=actor, reason=reason, until=until)

    def reset_target(self, name: str, *, actor: str, reason: str) -> bool:
        """Close a target's breaker and end its slow-down."""
        return self.db.write(lambda tx: targets.reset_target(tx, name, actor=actor, reason=reason))

    def pause_target(
        self, name: str, *, paused: bool, actor: str, reason: str, until: datetime | None = None
    ) -> Pause | None:
        """Stop sending to a target, or let it go."""
        return self._pause(pausing.TARGET, name, paused=paused, actor=actor, reason=reason, until=until)

    def _pause(
        self, scope: str, name: str, *, paused: bool, actor: str, reason: str, until: datetime | None
    ) -> Pause | None:
        def work(tx: Tx) -> Pause | None:
            wanted = Pause(actor, reason, tx.now, until) if paused else None
            return pausing.pause(tx, scope, name, wanted, actor=actor, reason=reason)

        return self.db.write(work)

    def wake(self, lanes: Collection[str]) -> None:
        """Tell nodes that these lanes have news."""
        self.db.wake(lanes)

    def wakeups(self) -> Wakeups | None:
        """Return a way to wait for news."""
        return self.db.wakeups()

    def store_pause(self) -> Pause | None:
        """Return the pause of the whole store that is in force now."""
        return self.db.read(pausing.store_pause)
