"""The part of a store that paces dispatch: what is due where, who may send how much, what is stopped.

A part of `Store` (ports/store.py), with the same rules: set-based, synchronous, times are the store's.
"""

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime, timedelta
from typing import NamedTuple, Protocol

from penstock.domain.breakers import Target
from penstock.domain.job import Claim
from penstock.domain.limits import Grant, Limit, Need
from penstock.domain.pauses import Pause
from penstock.domain.states import Verb
from penstock.ports.wakeups import Wakeups

__all__ = ["Confirmed", "Flow", "Grant", "Limit", "Need", "Pause", "Scouted", "Target", "Work"]


class Work(NamedTuple):
    """When a lane next has something to do: its earliest unordered job, its earliest ready group.

    A group that somebody woke since the last claim counts as ready now: it may be too early, never too late.
    None = nothing of that kind.
    """

    jobs_at: datetime | None
    groups_at: datetime | None


class Scouted(NamedTuple):
    """What one look at all lanes found; lanes with nothing to do are missing."""

    now: datetime
    work: Mapping[str, Work]


class Confirmed(NamedTuple):
    """What a holder must know just before it sends.

    `ours` is False when the claim was taken over, or is settled. `stopped` says why the lane may not send at
    all now (it was paused or disabled, its pool or the whole store was paused), by whom and why; None = it
    may. `asked` are requests of operators by arrival: those jobs are not to be sent.
    """

    now: datetime
    ours: bool
    stopped: str | None
    asked: Mapping[int, Verb]


class Flow(Protocol):
    """Pacing."""

    def confirm(self, claim: Claim) -> Confirmed:
        """Look once more before sending: is the claim still ours, may its lane send, what was asked for."""

    def scout(self) -> Scouted:
        """Look at all lanes at once; a thousand idle ones cost one statement."""

    def permit(self, node: int, needs: Sequence[Need], *, ttl: timedelta) -> list[Grant]:
        """Settle what the node spent and lease what it may have, one grant per need, in order.

        Over any window of length t at most rate·t + burst tokens are granted and spent, over all nodes; slots
        on lease and jobs that are out never exceed `max_in_flight` together. A lease that is not renewed
        within its ttl is void, and its room returns.
        """

    def targets(self) -> dict[str, Target]:
        """Return the targets whose breaker is not closed, that go slow or are paused; no others."""

    def mark_target(
        self, name: str, *, failed: int, ok: int, trip_after: int, open_for: timedelta, slow_for: timedelta
    ) -> Target:
        """Note how calls to a target went since the last note.

        Any success closes its breaker; `trip_after` failures in a row open it for `open_for`; `slow_for` is
        how long it asked to be left alone (0 = it did not ask). The answer tells nothing of a pause.
        """

    def reset_target(self, name: str, *, actor: str, reason: str) -> bool:
        """Close a target's breaker and end its slow-down, whatever its calls were like; audited.

        Return whether there was anything to close; a pause stays.
        """

    def pause_target(
        self, name: str, *, paused: bool, actor: str, reason: str, until: datetime | None = None
    ) -> Pause | None:
        """Stop sending to a target, or let it go; audited. Return the pause in force.

        Its jobs wait where they are and lose no attempt. Raise InvalidQuery when too many are paused.
        """

    def pause_store(
        self, *, paused: bool, actor: str, reason: str, until: datetime | None = None
    ) -> Pause | None:
        """Stop every lane at once, or let them go, as `pause_lane` does one; return the pause in force."""

    def wake(self, lanes: Collection[str]) -> None:
        """Tell nodes that these lanes have news, after it is committed; an empty one = somewhere.

        It may be forgotten: it shortens a wait, nothing depends on it.
        """

    def wakeups(self) -> Wakeups | None:
        """Return a way to wait for news; None = there is none, look now and then."""

    def store_pause(self) -> Pause | None:
        """Return the pause of the whole store that is in force now."""
