"""What may go wrong in a simulated world, as data.

A `FaultPlan` is drawn from a seed (`FaultPlan.draw`): about half of the menu is switched on, each fault with
its own intensity, so that one seed suffers from pauses alone and the next from everything at once ("swarm").
Or it is exact: this fault at the k-th call, or a crash at the k-th step; `call_sweep` and `step_sweep` yield
one such plan for every place a small scenario has. The plan holds no state; what it needs to roll dice is
handed in.
"""

import random
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from enum import Enum
from math import exp, log
from typing import Final, NamedTuple, TypeVar

Kind = TypeVar("Kind", bound=Enum)


class Port(Enum):
    """What a node talks to: faults of a store are errors, those of a sink are answers."""

    STORE = "store"
    NETWORK = "network"


class CallFault(Enum):
    """What may happen to one call of a node to the store, or (crashes and pauses only) to the network."""

    ERROR_BEFORE = "error before effect"
    ERROR_AFTER = "error after commit"
    TIMEOUT_BEFORE = "timeout before effect"
    TIMEOUT_AFTER = "timeout after commit"
    LATE_COMMIT = "error, commit comes later"
    LOCKED = "locked"
    CRASH_BEFORE = "crash before effect"
    CRASH_AFTER = "crash after commit"
    PAUSE_BEFORE = "pause before effect"
    PAUSE_AFTER = "pause after commit"


ERRORS: Final = (CallFault.ERROR_BEFORE, CallFault.ERROR_AFTER)
CRASHES: Final = (CallFault.CRASH_BEFORE, CallFault.CRASH_AFTER)
PAUSES: Final = (CallFault.PAUSE_BEFORE, CallFault.PAUSE_AFTER)
NODE_FAULTS: Final = frozenset(CRASHES + PAUSES)


class SinkFault(Enum):
    """How a simulated sink may treat a message or, for PARTIAL, a batch; it asks `World.sink_fault`."""

    REFUSE = "refused, will never be accepted"
    ERROR = "failed, may be tried again"
    THROTTLE = "too many, try later"
    TIMEOUT_AFTER_ACCEPT = "accepted, answer lost"
    DUPLICATE = "was here before"
    PARTIAL = "some of the batch"
    HANG = "no answer for long"
    LATE = "answers after a while"


TROUBLES: Final = tuple(kind for kind in SinkFault if kind is not SinkFault.LATE)


class Disaster(Enum):
    """What may happen to a node, the store or a clock at any moment."""

    CRASH = "crash"
    STORM = "restart storm"
    PAUSE = "pause"
    BUSY = "busy loop"
    CUT = "node cut off the store"
    OUTAGE = "store down"
    FULL = "store full"
    READ_ONLY = "store read-only"
    NODE_CLOCK_STEP = "node clock step"
    STORE_CLOCK_STEP = "store clock step"
    STORE_CLOCK_DRIFT = "store clock drift"


WRITES_FAIL: Final = (Disaster.FULL, Disaster.READ_ONLY)


class Span(NamedTuple):
    """A range of durations, in seconds."""

    low: float
    high: float

    def draw(self, rng: random.Random) -> timedelta:
        """Return a duration in the range; of a positive range each magnitude is equally likely."""
        return timedelta(seconds=self.seconds(rng))

    def seconds(self, rng: random.Random) -> float:
        """Return the same as a number of seconds, in whole microseconds."""
        return round(rng.uniform(*self) if self.low <= 0 else _log_uniform(rng, *self), 6)


NOTHING: Final = Span(0, 0)
LATENCY: Final = Span(0.0002, 0.005)
SLOW: Final = Span(0.001, 0.5)
PAUSE: Final = Span(0.1, 60)
RESTART: Final = Span(0.1, 30)
HANG: Final = Span(1, 30)
LOCK_WAIT: Final = Span(0.05, 5)
OUTAGE: Final = Span(0.5, 20)
SKEW: Final = Span(-600, 600)
CLOCK_STEP: Final = Span(-3600, 3600)


@dataclass(frozen=True, slots=True, kw_only=True)
class FaultPlan:
    """The chances of each fault, how long each lasts, and the faults that are certain.

    `calls`: chance per store call. `sends`: chance per question of a sink. `disasters`: how many per virtual
    second. `exact`: what happens at the k-th call (from 1) of a port. `crash_at_step`: the node that is about
    to take the k-th step of all nodes crashes instead. Crashed nodes come back after `restart`, if not None.
    """

    calls: Mapping[CallFault, float] = field(default_factory=dict)
    sends: Mapping[SinkFault, float] = field(default_factory=dict)
    disasters: Mapping[Disaster, float] = field(default_factory=dict)
    exact: Mapping[tuple[Port, int], CallFault] = field(default_factory=dict)
    crash_at_step: int | None = None
    latency: Span = LATENCY
    pause: Span = PAUSE
    restart: Span | None = RESTART
    hang: Span = HANG
    locked: Span = LOCK_WAIT
    outage: Span = OUTAGE
    skew: Span = NOTHING
    step: Span = CLOCK_STEP
    drift: float = 0.01

    @classmethod
    def draw(cls, rng: random.Random) -> "FaultPlan":
        """Return one member of the swarm."""
        often = [disaster for disaster in Disaster if disaster not in WRITES_FAIL]
        plan = cls(
            calls=_swarm(CallFault, rng, low=0.0005, high=0.05),
            sends=_swarm(TROUBLES, rng, low=0.002, high=0.1),
            disasters=_swarm(often, rng, low=1 / 900, high=1 / 20),
            latency=rng.choice((NOTHING, LATENCY, SLOW)),
            skew=rng.choice((NOTHING, SKEW)),
        )
        # Drawn last, and less often: so most seeds are what they were before these were on the menu.
        refusals = _swarm(WRITES_FAIL, rng, low=1 / 90, high=1 / 20, chance=0.25)
        late = _swarm([SinkFault.LATE], rng, low=0.1, high=0.8, chance=0.25)
        return replace(plan, disasters={**plan.disasters, **refusals}, sends={**plan.sends, **late})

    def call_fault(self, port: Port, number: int, rng: random.Random) -> CallFault | None:
        """Return what happens to that call, if anything."""
        exact = self.exact.get((port, number))
        if exact is not None:
            return exact
        fault = _pick(self.calls, rng)
        return fault if port is Port.STORE or fault in NODE_FAULTS else None

    def sink_fault(self, rng: random.Random) -> SinkFault | None:
        """Return how a sink treats what it was just sent, None for well."""
        return _pick(self.sends, rng)

    def next_disaster(self, rng: random.Random) -> tuple[timedelta, Disaster] | None:
        """Return what strikes next and how long until then, None for nothing ever."""
        total = sum(self.disasters.values())
        if not total:
            return None
        wait = timedelta(seconds=rng.expovariate(total))
        return wait, rng.choices(list(self.disasters), list(self.disasters.values()))[0]

    def without(self, *kinds: Enum) -> "FaultPlan":
        """Return the plan less these kinds: to shrink a failure, or because a promise excludes them."""
        return replace(
            self,
            calls={kind: chance for kind, chance in self.calls.items() if kind not in kinds},
            sends={kind: chance for kind, chance in self.sends.items() if kind not in kinds},
            disasters={kind: rate for kind, rate in self.disasters.items() if kind not in kinds},
            exact={place: kind for place, kind in self.exact.items() if kind not in kinds},
        )

    def __str__(self) -> str:
        """Return the faults in words, for the report of a failed run."""
        chances = [*_words(self.calls), *_words(self.sends), *_words(self.disasters)]
        exact = [f"{kind.value} at {port.value} call {k}" for (port, k), kind in self.exact.items()]
        crash = [] if self.crash_at_step is None else [f"crash at step {self.crash_at_step}"]
        return ", ".join(chances + exact + crash) or "no faults"


NO_FAULTS: Final = FaultPlan()


def call_sweep(
    calls: int,
    kinds: Sequence[CallFault] = CRASHES,
    *,
    port: Port = Port.STORE,
    base: FaultPlan = NO_FAULTS,
) -> Iterator[FaultPlan]:
    """Yield, for a scenario that makes so many calls, the plans that strike each of them in each way."""
    for number in range(1, calls + 1):
        for kind in kinds:
            yield replace(base, exact={**base.exact, (port, number): kind})


def step_sweep(steps: int, *, stride: int = 1, base: FaultPlan = NO_FAULTS) -> Iterator[FaultPlan]:
    """Yield, for a scenario that takes so many steps, the plans that crash a node at each of them."""
    for number in range(1, steps + 1, stride):
        yield replace(base, crash_at_step=number)


def _swarm(
    kinds: Iterable[Kind], rng: random.Random, *, low: float, high: float, chance: float = 0.5
) -> dict[Kind, float]:
    return {kind: _log_uniform(rng, low, high) for kind in kinds if rng.random() < chance}


def _log_uniform(rng: random.Random, low: float, high: float) -> float:
    return exp(rng.uniform(log(low), log(high)))


def _pick(chances: Mapping[Kind, float], rng: random.Random) -> Kind | None:
    """Return one of the kinds by its chance, None for the rest; no chances, no roll of the dice."""
    if not chances:
        return None
    roll = rng.random()
    for kind, chance in chances.items():
        if roll < chance:
            return kind
        roll -= chance
    return None


def _words(chances: Mapping[Kind, float]) -> Iterator[str]:
    for kind, chance in chances.items():
        yield f"{kind.value} {chance:.4f}"
