"""What a sink's answer means for a job: the lane's own words first, then its schedule."""

from datetime import timedelta

from penstock.domain.failures import named
from penstock.domain.job import Claimed
from penstock.domain.outcomes import (
    Dead,
    Dispatched,
    Lapsed,
    Outcome,
    Receipt,
    Rejected,
    Throttled,
    TryAgain,
    failed,
    outcome_of,
)
from penstock.domain.states import Reason
from penstock.scheduler.plans import Plan


def verdict(plan: Plan, claimed: Claimed, receipt: Receipt, *, random: float) -> Outcome:
    """Return what the answer means; `retry_on` and `give_up_on` may turn one kind of failure into another."""
    match receipt:
        case Rejected(error=error) if named(plan.retry_on, error):
            receipt = TryAgain(error)
        case TryAgain(error=str(error)) | Throttled(error=str(error)) if named(plan.give_up_on, error):
            receipt = Rejected(error)
        case _:
            pass
    job = claimed.job
    outcome = outcome_of(
        receipt, policy=plan.policy, attempt=job.attempt, max_attempts=job.max_attempts, random=random
    )
    if isinstance(outcome, Dispatched) and (slot := plan.slot_of(claimed)) is not None:
        return Dispatched(outcome.ack, outcome.receipt, passes=outcome.passes, slot=slot)
    return outcome


def unanswered(plan: Plan, claimed: Claimed, error: str, *, random: float) -> Outcome:
    """Return what it means that nobody knows: work that must not repeat is held, other work is sent again."""
    if plan.hold:
        return Lapsed(hold=True, error=error)
    if named(plan.give_up_on, error):
        return Dead(Reason.PERMANENT, error)
    job = claimed.job
    return failed(
        error,
        policy=plan.policy,
        attempt=job.attempt,
        max_attempts=job.max_attempts,
        random=random,
        known=False,
    )


def needs(plan: Plan) -> timedelta:
    """Return how much of a lease must be left to begin a call: all of it if it is that long."""
    return min(plan.timeout, plan.lease / 3)
