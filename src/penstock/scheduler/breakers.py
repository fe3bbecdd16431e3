"""Circuit breakers and slow-downs per target (scheme, host and port), shared by all nodes through the store.

Calls that fail in a way that may pass count against their target; enough of them in a row open its breaker,
and its jobs stay pending until it closes. After that one call at a time is let through: the first success
closes the breaker. A target that asks to be left alone (429, Retry-After) is left alone for that long,
one that an operator paused until he lets it go. When that is over sooner than jobs were told that were given
back meanwhile, they go at once.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Final, NamedTuple

from penstock.domain.job import Claimed
from penstock.domain.outcomes import Accepted, Duplicate, Rejected, Throttled, TryAgain, Unknown
from penstock.domain.settlement import NODE_ACTOR
from penstock.domain.states import JobState, Verb
from penstock.errors import StoreUnavailable
from penstock.ports.events import TargetChanged
from penstock.ports.flow import Target
from penstock.ports.store import Store
from penstock.scheduler.board import Board
from penstock.scheduler.ground import Ground

TRIP_AFTER: Final = 20
OPEN_FOR: Final = timedelta(seconds=30)
CALLED: Final = (Accepted, Duplicate, Rejected, Throttled, TryAgain, Unknown)
NOT_LONG: Final = timedelta(seconds=1)
QUITE_LONG: Final = timedelta(seconds=5)
MOST_FAILING: Final = 10_000
MOST_KEPT: Final = 500  # of one target; where more wait, some are always about to come again


@dataclass(slots=True)
class Tally:
    """How calls to one target went since the store was last told."""

    failed: int = 0
    ok: int = 0
    slow: timedelta = timedelta(0)


class Kept(NamedTuple):
    """A job that was given back since its target is left alone: which attempt, and when it comes again."""

    attempt: int
    until: datetime


@dataclass(slots=True)
class Breakers:
    """What this node knows of targets."""

    ground: Ground
    board: Board
    trip_after: int = TRIP_AFTER
    open_for: timedelta = OPEN_FOR
    _tallies: dict[str, Tally] = field(default_factory=dict)
    _trials: dict[str, datetime] = field(default_factory=dict)  # when the one call was let through
    _kept: dict[str, dict[str, Kept]] = field(default_factory=dict)
    _failing: dict[str, None] = field(default_factory=dict)  # of which this node told failures

    def wait(self, target: str | None, now: datetime) -> timedelta | None:
        """Return how long a job for this target has to wait, None = it may go.

        While one call is tried the others wait the longer the longer it takes: thousands may be due.
        """
        known = self.board.targets.get(target) if target else None
        if known is None or target is None:
            return None
        if (rest := known.rest(now)) is not None:
            return rest
        if known.state != "closed":
            begun = self._trials.get(target)
            if begun is not None:
                return min(max(now - begun, NOT_LONG), QUITE_LONG)
            self._trials[target] = now
        return None

    def keep(self, target: str | None, claimed: Claimed, until: datetime) -> None:
        """Remember a job that waits for its target until then, if that may be let go before."""
        known = self.board.targets.get(target or "")
        if target is None or known is None or claimed.context is None:
            return
        kept = self._kept.setdefault(target, {})
        kept[claimed.context.id] = Kept(claimed.job.attempt, until)
        while len(kept) > MOST_KEPT:
            del kept[next(iter(kept))]

    def not_tried(self, target: str | None) -> None:
        """Learn that the call which `wait` let through was not made: the next one may be."""
        self._trials.pop(target or "", None)

    def note(self, target: str | None, answer: object, *, asleep: bool = False) -> None:
        """Count how a call to a target went.

        A silence that this node slept through says nothing of the target; nor does a call that was not made.
        """
        if target is None:
            return
        self.not_tried(target)
        if not isinstance(answer, CALLED) or (asleep and isinstance(answer, TryAgain | Unknown)):
            return
        tally = self._tallies.setdefault(target, Tally())
        match answer:
            case Throttled(after=after):
                tally.slow = max(tally.slow, after)
            case Accepted() | Duplicate() | Rejected():
                tally.ok, tally.failed = tally.ok + 1, 0
            case _:
                tally.failed, tally.ok = tally.failed + 1, 0

    async def tell(self) -> bool | None:
        """Tell the store what is worth knowing: failures, slow-downs, their end; None = nothing."""
        told = await self._let_go()
        for target, tally in list(self._tallies.items()):
            del self._tallies[target]
            bad = target in self._failing or target in self.board.targets
            if not tally.failed and not tally.slow and not bad:
                continue
            before = self.board.targets.get(target)
            try:
                known = await self._mark(target, tally)
            except StoreUnavailable:
                self._tell_again(target, tally)
                raise
            told = False
            self._failing.pop(target, None)
            if known.failures:  # the next success has to be told, or it is no longer in a row
                self._failing[target] = None
            while len(self._failing) > MOST_FAILING:
                del self._failing[next(iter(self._failing))]
            self._changed(target, before, known, tally.slow)
        return told

    async def _mark(self, target: str, tally: Tally) -> Target:
        return await self.ground.call(
            self.ground.store.mark_target,
            target,
            failed=tally.failed,
            ok=tally.ok,
            trip_after=self.trip_after,
            open_for=self.open_for,
            slow_for=tally.slow,
        )

    def _tell_again(self, target: str, tally: Tally) -> None:
        """Keep what may be told twice; failures may be on record, and more will come if that is how it is."""
        newer = self._tallies.setdefault(target, Tally())
        newer.slow = max(newer.slow, tally.slow)
        newer.ok += 0 if newer.failed else tally.ok
        if tally.failed:
            self._failing[target] = None

    async def _let_go(self) -> bool | None:
        """Have jobs go whose target is left alone no longer."""
        told: bool | None = None
        for target in list(self._kept):
            known = self.board.targets.get(target)
            if known is None or (known.state, known.slow_until, known.pause) == ("trial", None, None):
                kept = self._kept.pop(target)
                try:
                    await self.ground.call(_hurry, self.ground.store, target, kept)
                except StoreUnavailable:  # they wait for nothing: the next time will do
                    self._kept[target] = kept | self._kept.get(target, {})
                    raise
                told = False
        return told

    def _changed(self, target: str, before: Target | None, known: Target, slow: timedelta) -> None:
        known = known._replace(pause=before.pause if before else None)
        if known.troubled:
            self.board.targets[target] = known
        else:
            self.board.targets.pop(target, None)
        was = before.state if before else "closed"
        slows = known.slow_until is not None and (before is None or before.slow_until is None)
        if was != known.state or slows:
            wait = slow if slows else self.open_for if known.state == "open" else None
            self.ground.emit(
                TargetChanged(target=target, state=known.state, failures=known.failures, wait=wait)
            )


def _hurry(store: Store, target: str, kept: Mapping[str, Kept]) -> None:
    """Have jobs go now that still wait as they were told to; others were tried, held or edited meanwhile.

    Those that come soon come by themselves: not all at once, and without a word in the audit.
    """
    soon = store.now() + QUITE_LONG
    waiting = [
        id_
        for id_, job in store.find(list(kept)).items()
        if job.state is JobState.PENDING
        and job.live.attempt == kept[id_].attempt
        and soon < job.live.due_at <= kept[id_].until
    ]
    if waiting:
        store.operate(Verb.RETRY, waiting, actor=NODE_ACTOR, reason=f"{target} goes on")
