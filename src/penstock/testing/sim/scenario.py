"""What a run begins with, and how a family draws it piece by piece."""

import json
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from enum import Enum
from typing import Any, Final, NamedTuple

from penstock.domain.job import NewJob
from penstock.domain.lanes import Lane
from penstock.domain.lanes import lane as lane_of
from penstock.domain.pools import Pool
from penstock.domain.pools import pool as pool_of
from penstock.domain.ulid import new as new_ulid
from penstock.testing.sim.actors import LateOffer, Meddling, Offer
from penstock.testing.sim.dispatcher import Terms, terms_of
from penstock.testing.sim.faults import CallFault, Disaster, FaultPlan, SinkFault, Span
from penstock.testing.sim.sink import Spell
from penstock.testing.sim.tuning import Tuning
from penstock.testing.sim.world import START

LANE: Final = "orders"
_DEFAULTS: Final[Mapping[str, Any]] = {
    "lease": "2s",
    "poll_interval": "500ms",
    "timeout": "800ms",
    "lookahead": "0s",
    "retry": '["0s","400ms","900ms"]',
    "ack_timeout": "2s",
    "heartbeat": "1s",
    "batch_size": 4,
    "complete_on": "sent",
    "key_ttl": "4s",
}
_TEXTS: Final = ("", "Éa", "Ab", "\u2028", "😀", '"\\', "\n\t", "null")


class Stop(NamedTuple):
    """A node is asked to stop at that second, maybe again a while later, and started anew after it left."""

    at: float
    node: str
    again_after: float | None
    back_after: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario:
    """What a run begins with: offers by producer, steps of the store's clock, faults a family insists on.

    `spared` are faults that it does without; `options` are those of the engine's nodes. A node serves all
    lanes, or those that `served` says.
    """

    lanes: Sequence[Lane]
    terms: Mapping[str, Terms]
    producers: Sequence[Sequence[Offer]]
    late: Sequence[LateOffer] = ()
    nodes: int = 2
    duration: float = 6.0
    meddling: Meddling | None = None
    housekeeping: timedelta | None = None
    steps: Sequence[tuple[float, timedelta]] = ()
    sends: Mapping[SinkFault, float] = field(default_factory=dict)
    calls: Mapping[CallFault, float] = field(default_factory=dict)
    disasters: Mapping[Disaster, float] = field(default_factory=dict)
    spared: Sequence[Enum] = ()
    pools: Sequence[Pool] = ()
    tuning: Tuning | None = None
    stops: Sequence[Stop] = ()
    spells: Sequence[Spell] = ()
    options: Mapping[str, Any] = field(default_factory=dict)
    served: Mapping[str, Sequence[str]] = field(default_factory=dict)

    def lanes_of(self, node: str) -> tuple[str, ...]:
        """Return the lanes that a node serves."""
        return tuple(self.served.get(node, (lane.name for lane in self.lanes)))


Family = Callable[[random.Random], Scenario]


class Sketch:
    """Draws a scenario piece by piece."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self._lanes: dict[str, Lane] = {}
        self._pools: list[Pool] = []
        self._terms: dict[str, Terms] = {}
        self._number = 0

    def lane(
        self, name: str = LANE, *, ordered: bool = True, loose: bool = True, **settings: object
    ) -> "Sketch":
        """Add a lane."""
        made = lane_of(name, **{**_DEFAULTS, **settings})
        self._lanes[name] = made
        self._terms[name] = terms_of(made, ordered=ordered, loose=loose, doubt=self.rng.random() < 0.5)
        return self

    def pool(self, name: str, **settings: object) -> "Sketch":
        """Add a pool."""
        self._pools.append(pool_of(name, **settings))
        return self

    def job(self, lane: str = LANE, **fields: Any) -> NewJob:  # noqa: ANN401
        """Return a job whose payload no other job has."""
        self._number += 1
        payload = json.dumps({"n": self._number, "text": self.rng.choice(_TEXTS)}, ensure_ascii=False)
        return NewJob(lane=lane, **{"payload": payload, **fields})

    def offers(self, jobs: Sequence[NewJob], *, within: float = 4.0, together: int = 3) -> list[Offer]:
        """Return the jobs as offers in this order, a few at a time, spread over that many seconds."""
        found, rest = [], list(jobs)
        while rest:
            size = self.rng.randint(1, together)
            found.append((rest[:size], self.rng.random() * within))
            rest = rest[size:]
        times = sorted(at for _, at in found)
        return [Offer(at, jobs) for (jobs, _), at in zip(found, times, strict=True)]

    def ordered(self, lane: str = LANE) -> bool:
        """Say whether the lane's groups are claimed."""
        return self._terms[lane].ordered

    def id(self) -> str:
        """Return an id that a producer might choose."""
        return new_ulid(int(START.timestamp() * 1000), self.rng.randbytes(10))

    def later(self, seconds: float) -> datetime:
        """Return a time that many seconds after the start."""
        return START + timedelta(seconds=seconds)

    def scenario(self, *producers: Sequence[Offer], **settings: Any) -> Scenario:  # noqa: ANN401
        """Return the whole."""
        return Scenario(
            lanes=list(self._lanes.values()),
            pools=self._pools,
            terms=self._terms,
            producers=producers,
            **settings,
        )


def draw_plan(rng: random.Random, scenario: Scenario) -> FaultPlan:
    """Return a member of the swarm whose troubles are as short and as many as these scenarios need."""
    plan = FaultPlan.draw(rng)
    fitted = replace(
        plan,
        calls={kind: 2 * chance for kind, chance in plan.calls.items()} | dict(scenario.calls),
        sends={**plan.sends, **scenario.sends},
        disasters={kind: 10 * rate for kind, rate in plan.disasters.items()} | dict(scenario.disasters),
        pause=Span(0.5, 6),
        restart=Span(0.1, 4),
        hang=Span(0.3, 3),
        locked=Span(0.05, 1),
        outage=Span(0.2, 3),
        step=Span(-2, 20),
    )
    return fitted.without(*scenario.spared)
