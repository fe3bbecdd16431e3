"""Who does the housekeeping.

One node at a time leads: it holds a database lease with a term number that only grows (domain/leases.py).
Dispatch never depends on it. A leader trusts its term for less than the store does, counted from when it
began to ask; each of its writes names the term, so what a leader that was paused writes after it wakes
changes nothing (`TermOver`). A term that is lost is not fought for: the node asks again with everybody else.
On the way out a leader resigns, so that the next one need not wait for the lease to run out.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from penstock.domain.leases import Term, trusted, trusted_until
from penstock.errors import StoreUnavailable
from penstock.ports.events import LeaderChanged
from penstock.scheduler.ground import Ground

ROLE: Final = "leader"
TTL: Final = timedelta(seconds=15)


@dataclass(slots=True)
class Leader:
    """This node's part in choosing one."""

    ground: Ground
    node: int = 0
    ttl: timedelta = TTL
    _term: Term | None = None
    _until: float = 0.0
    _since: float = 0.0

    @property
    def term(self) -> Term | None:
        """The term this node holds and may still trust."""
        return self._term if self.leads() else None

    def leads(self) -> bool:
        """Say whether this node leads, and knows it."""
        return self._term is not None and trusted(self.ground.monotonic(), self._until)

    def told(self, now: float, here: datetime) -> dict[str, object]:
        """Return what the node's note says of its term, at this time of ours and of the store."""
        term = self.term
        if term is None:
            return {}
        since = here - timedelta(seconds=now - self._since)
        return {"leads": {"term": term.number, "since": since.isoformat(timespec="seconds")}}

    async def tick(self) -> bool:
        """Prolong the term, or try to get one."""
        ground, store = self.ground, self.ground.store
        started, before = ground.monotonic(), self._term
        if before is not None:
            self._term = await ground.call(store.extend_term, ROLE, before, self.ttl)
        else:
            self._term = await ground.call(store.elect, ROLE, self.node, self.ttl)
        if self._term is not None:
            self._until = trusted_until(started, self.ttl)
        number = (self._term or before or Term(0, "", ground.clock.now())).number
        if (before is None) != (self._term is None):
            self._since = started
            ground.emit(LeaderChanged(node=self.node, term=number, leads=self._term is not None))
        return False

    async def resign(self) -> None:
        """Let the next one lead at once."""
        term, self._term = self._term, None
        if term is not None:
            try:
                await self.ground.call(self.ground.store.resign, ROLE, term)
            except StoreUnavailable:
                return  # it runs out by itself
            self.ground.emit(LeaderChanged(node=self.node, term=term.number, leads=False))
