"""What the jobs of one claim have taken of limits, and by which settings: those may change meanwhile.

A job gives back to the limits that it took from, whatever its lane's pool is by then.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Final, NamedTuple

from penstock.domain.job import Claimed
from penstock.ports.flow import Limit
from penstock.scheduler.deck import Deck
from penstock.scheduler.plans import Plan

LOOK_S: Final = 0.25


class _Kept(NamedTuple):
    """Jobs none of which went when they were last looked at, as long as that is worth remembering."""

    plan: Plan
    jobs: Sequence[Claimed]
    number: int
    until: float


class Taking:
    """The tokens and slots of one claim's jobs."""

    def __init__(self, deck: Deck, *, who: int) -> None:
        self._deck, self._limits, self._who = deck, deck.limits, who
        self._by: dict[int, Plan] = {}
        self._kept: _Kept | None = None

    def admit(self, plan: Plan, jobs: Sequence[Claimed]) -> tuple[list[Claimed], list[Claimed]]:
        """Return the jobs that may go now and those that must wait, as `Limits.admit`."""
        go, wait = self._limits.admit(plan, jobs, who=self._who)
        now = self._deck.ground.monotonic()
        for claimed in go:
            self._by[claimed.job.arrival] = plan
        self._kept = None if go else _Kept(plan, wait, len(wait), now + LOOK_S)
        self._deck.air.wait(self._who, wait, now)
        return go, wait

    def keep(self, plan: Plan, jobs: Sequence[Claimed], now: float) -> bool:
        """Say whether looking at each of these again would let none of them go: nothing is new to them."""
        kept = self._kept
        if kept is None or kept.plan is not plan or now > kept.until:
            return False
        if kept.jobs is not jobs or kept.number != len(jobs):
            return False
        return self._limits.shut(plan.name, self._who)

    def before(self, limit: Limit) -> int:
        """Return how many jobs of older claims of this node wait for a limit."""
        return self._limits.before(limit, self._who)

    def left(self, jobs: Iterable[Claimed]) -> list[Claimed]:
        """Return the jobs whose call came to no end that was told: a bug ended it."""
        return [claimed for claimed in jobs if claimed.job.arrival in self._by]

    def close(self, lane: str) -> None:
        """Note that none of these jobs waits any more."""
        self._limits.forget(lane, self._who)
        self._deck.air.wait(self._who, (), 0.0)

    def refund(self, jobs: Iterable[Claimed]) -> None:
        """Give back tokens and slots of jobs for which no call was made."""
        self._give(self._limits.refund, jobs)

    def release(self, jobs: Iterable[Claimed]) -> None:
        """Give back the slots of jobs that are no longer being sent."""
        self._give(self._limits.release, jobs)

    def hand_over(self, jobs: Iterable[Claimed]) -> None:
        """Give up the slots of jobs that are out."""
        self._give(self._limits.hand_over, jobs)

    def _give(self, give: Callable[[Plan, list[Claimed]], None], jobs: Iterable[Claimed]) -> None:
        found: dict[int, tuple[Plan, list[Claimed]]] = {}
        for claimed in jobs:
            plan = self._by.pop(claimed.job.arrival, None)
            if plan is not None:
                found.setdefault(id(plan), (plan, []))[1].append(claimed)
        for plan, those in found.values():
            give(plan, those)
