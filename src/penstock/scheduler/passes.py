"""What a pass came to: a row for whoever asks later where the time went."""

from collections.abc import Mapping

from penstock.domain.job import Claim
from penstock.ports.store import Tick
from penstock.scheduler.settling import Settling


def tick_of(claim: Claim, phases: Mapping[str, float], settling: Settling) -> Tick:
    """Return the figures of a claim that is at its end: jobs, and how long each phase took in all."""
    took = {**phases, "settle": settling.took}
    return Tick(
        node=claim.node,
        lane=claim.lane,
        claimed=len(claim.jobs),
        settled=settling.applied,
        phases={name: round(seconds, 6) for name, seconds in took.items()},
    )
