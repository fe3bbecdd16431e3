"""The last look at a job before it is sent: what becomes of one that is not to go, or not now."""

from datetime import timedelta
from typing import Final

from penstock.domain.intake import json_problem
from penstock.domain.job import Claimed
from penstock.domain.outcomes import Dead, Expired, Held, Outcome, Returned
from penstock.domain.states import Reason
from penstock.ports.flow import Confirmed
from penstock.scheduler.deck import Deck
from penstock.scheduler.plans import Plan

POOL_PAUSE: Final = timedelta(seconds=2)
SETTLED_WITHIN: Final = timedelta(seconds=10)


def instead(plan: Plan, claimed: Claimed, confirmed: Confirmed) -> Outcome | None:
    """Return what a job gets that must not be sent any more; None = nothing is against it."""
    job, said = claimed
    if said is None:
        return Held("context_missing")
    if job.arrival in confirmed.asked:
        return Returned(f"{confirmed.asked[job.arrival]} was asked for")
    if (why := plan.missed(job, confirmed.now)) is not None:
        return Expired(why)
    if (problem := json_problem(said)) is not None:
        return Dead(Reason.PERMANENT, problem)
    return None


def kept_back(
    deck: Deck, plan: Plan, claimed: Claimed, confirmed: Confirmed, *, target: str | None
) -> Returned | None:
    """Return a job whose own pool is paused (`confirm` knows of the lane's alone) or whose target rests."""
    name = claimed.context.pool if claimed.context else None
    pool = deck.board.pools.get(name) if name is not None and name != plan.pool else None
    if pool is not None and pool.stopped(confirmed.now):
        return Returned(f'pool "{name}" is paused', POOL_PAUSE * (1 + deck.ground.rng.random() / 10))
    wait = deck.breakers.wait(target, confirmed.now)
    if wait is None:
        return None
    wait *= 1 + deck.ground.rng.random() / 10
    deck.breakers.keep(target, claimed, confirmed.now + wait + SETTLED_WITHIN)
    return Returned(f"{target} is left alone", wait)
