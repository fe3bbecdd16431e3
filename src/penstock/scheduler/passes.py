"""What passes came to: rows for whoever asks later where the time went, one per lane and moment."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import replace

from penstock.domain.job import Claim
from penstock.ports.store import Tick


def tick_of(claim: Claim, *, settled: int, phases: Mapping[str, float]) -> Tick:
    """Return the figures of a claim that is at its end: jobs, and how long each phase took in all."""
    return Tick(
        node=claim.node,
        lane=claim.lane,
        claimed=len(claim.jobs),
        settled=settled,
        phases=phases,
    )


def together(ticks: Iterable[Tick]) -> list[Tick]:
    """Return one for each lane: there may be hundreds a second, and they are kept for a week."""
    by_lane: dict[str | None, list[Tick]] = {}
    for tick in ticks:
        by_lane.setdefault(tick.lane, []).append(tick)
    return [_sum(some) for some in by_lane.values()]


def _sum(ticks: list[Tick]) -> Tick:
    phases: Counter[str] = Counter()
    for tick in ticks:
        phases.update(tick.phases)
    return replace(
        ticks[0],
        claimed=sum(tick.claimed for tick in ticks),
        settled=sum(tick.settled for tick in ticks),
        phases={name: round(seconds, 6) for name, seconds in phases.items()},
    )
