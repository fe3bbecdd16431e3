"""How long a claim or a leader may be trusted, and by whom.

**Two clocks.** The store decides when a lease ends, by its own clock: `lapsed`. The holder never reads that
clock. It counts from the moment it *began* to ask, on its own monotonic clock, and stops a margin earlier:
`trusted_until`. The store granted the lease later than that moment, so however slow the reply was, the
holder stops before anyone else may begin.

    holder    |ask ............. reply |      sending      | stop (trusted_until)
    store             | granted ------------------------------------ | lapsed: others may claim
              started                                      <- margin ->

**Paused nodes.** A node that is stopped by its machine between looking at the clock and writing cannot
notice. It is *fenced*: each claim has a new epoch, each leader a new term, and every write names the one it
belongs to, so what a paused node writes after it wakes matches nothing. What it *sends* after it wakes cannot
be called back: the margin makes that rare, and the message carries job id and send number for its receiver.

**Terms.** A term is a number that the database issues, one higher for each new leader, in the statement
that takes the lease. Nodes cannot agree on such a number themselves: clocks differ, and a node's own
counter starts again with the process. Renewing and resigning name number and holder, so an old leader never
prolongs its successor's term. When a leader fails, the term lapses and the next candidate gets the next
number; while there is none, housekeeping waits and dispatch goes on. Correctness never depends on there
being one leader.

**Renewal.** Three times per lease: one renewal may fail and the next still arrives while the holder trusts
itself.
"""

from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Final

_ZERO: Final = timedelta(0)


class BadLease(ValueError):
    """These durations do not make a lease; the message shows what to change."""

    def __init__(self, advice: str) -> None:
        super().__init__(f"not a lease: {advice}")


@dataclass(frozen=True, slots=True)
class Term:
    """The right to lead, as the store has it: the holder leads until then, unless it renews.

    `role` is what the term is about; the store that issues it says so.
    """

    number: int
    holder: str
    until: datetime
    role: str = ""


def default_margin(lease: timedelta) -> timedelta:
    """Return how long before the store a holder stops, unless told otherwise."""
    return lease / 6


def renew_every(lease: timedelta) -> timedelta:
    """Return how often a holder renews: at least three times per lease."""
    _check_lease(lease)
    return lease // 3


def trusted_until(started: float, lease: timedelta, *, margin: timedelta | None = None) -> float:
    """Return the monotonic second at which the holder stops.

    `started` is the monotonic clock just before the claim or renewal was asked for, not when the reply came.
    """
    _check_lease(lease)
    margin = default_margin(lease) if margin is None else margin
    if not _ZERO < margin < lease:
        raise BadLease(
            f"a margin of {margin} is not between 0 and the lease of {lease}, choose a smaller one"
        )
    return started + (lease - margin).total_seconds()


def trusted(now: float, until: float, *, needs: timedelta = _ZERO) -> bool:
    """Return whether the holder may still begin what takes `needs`; the times are monotonic seconds."""
    return now + needs.total_seconds() < until


def lapsed(until: datetime, *, now: datetime) -> bool:
    """Return whether the store may give the lease to another; both times are the store's."""
    return now >= until


def next_term(current: Term | None, candidate: str, *, now: datetime, lease: timedelta) -> Term | None:
    """Return the term the store issues to a candidate, None while another node's has not lapsed.

    A holder that asks again gets a new number: it lost track of its term, and what it began is fenced.
    """
    _check_lease(lease)
    if current is None:
        return Term(1, candidate, now + lease)
    if current.holder != candidate and not lapsed(current.until, now=now):
        return None
    return Term(current.number + 1, candidate, now + lease)


def renewed(current: Term | None, mine: Term, *, now: datetime, lease: timedelta) -> Term | None:
    """Return the prolonged term, None when it is no longer mine.

    One that has lapsed may be renewed as long as nobody else has led since. The new end counts from now even
    when that is earlier: after the store's clock was set back nobody should have to wait for the old end.
    """
    _check_lease(lease)
    return replace(mine, until=now + lease) if _same(current, mine) else None


def resigned(current: Term | None, mine: Term, *, now: datetime) -> Term | None:
    """Return the term ended now, so that the next candidate need not wait; None when it is no longer mine."""
    return replace(mine, until=min(mine.until, now)) if _same(current, mine) else None


def holds(current: Term | None, mine: Term, *, now: datetime) -> bool:
    """Return whether a leader's write may take effect: its term is the present one, and not over."""
    return current is not None and _same(current, mine) and not lapsed(current.until, now=now)


def _same(current: Term | None, mine: Term) -> bool:
    return current is not None and (current.number, current.holder) == (mine.number, mine.holder)


def _check_lease(lease: timedelta) -> None:
    if lease < timedelta(milliseconds=1):
        raise BadLease(f"{lease} is too short, the defaults are 30s for a claim and 15s for the leader")
