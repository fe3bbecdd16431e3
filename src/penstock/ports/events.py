"""What happens in a node, as plain values: logs, metrics and tests subscribe, the engine only emits.

An event is cheap and carries facts, never payloads. Emitting must not fail and must not block.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import NamedTuple


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """Something that happened."""


class Move(NamedTuple):
    """What became of one job of a batch: `to` is "claimed" or its outcome, `refused` that it was not ours."""

    job: str
    group: str | None
    node: int | None
    epoch: int | None
    attempt: int
    to: str
    why: str | None = None
    refused: bool = False
    traceparent: str | None = None


Moves = Callable[[], Iterable[Move]]  # asked by who tells of every job: a batch is told without


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeStarted(Event):
    """A node begins to serve."""

    node: int
    name: str
    store: str


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeStopped(Event):
    """A node has ended; `returned` jobs were given back unsent while it ran."""

    node: int
    returned: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Claimed(Event):
    """A pass leased jobs of a lane."""

    lane: str
    epoch: int
    jobs: int
    groups: bool
    took: float
    each: Moves = field(default=tuple, repr=False, compare=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Called(Event):
    """A sink was called and answered, or not; `lag` is the delay after due, `error` the first one it gave.

    `target` is whom the call went to, as breakers know it; None = several, or one that is no URL.
    """

    lane: str
    sink: str
    jobs: int
    outcomes: Mapping[str, int]
    took: float
    lag: float
    error: str | None = None
    target: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SettledBatch(Event):
    """Outcomes were written; `refused` were no longer ours."""

    lane: str
    epoch: int
    applied: int
    refused: int
    outcomes: Mapping[str, int]
    took: float
    each: Moves = field(default=tuple, repr=False, compare=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class JobDied(Event):
    """A job became a dead letter; `traceparent` is the trace it was enqueued in."""

    lane: str
    job: str
    reason: str
    error: str | None
    traceparent: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ReturnedJobs(Event):
    """Claimed jobs went back unsent."""

    lane: str
    jobs: int
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Recovered(Event):
    """What a dead node or a silent executor left was dealt with; `fates` counts what became of it."""

    lane: str
    fates: Mapping[str, int]
    each: Moves = field(default=tuple, repr=False, compare=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaderChanged(Event):
    """This node began or ceased to lead."""

    node: int
    term: int
    leads: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreFailed(Event):
    """A call of the store failed; the `failures`-th in a row of this part of the node."""

    part: str
    error: str
    failures: int


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreBack(Event):
    """The store answers again after so many seconds."""

    part: str
    after: float


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreGivenUp(Event):
    """A part no longer makes the call that the store failed: somebody else does it, or nobody has to."""

    part: str


@dataclass(frozen=True, slots=True, kw_only=True)
class LaneFailed(Event):
    """A bug: one lane's pass raised; the lane backs off, the others go on."""

    lane: str
    error: str
    trace: str
    pause: timedelta


@dataclass(frozen=True, slots=True, kw_only=True)
class SinkFailed(Event):
    """A sink could not be opened, and its lanes wait; or it is open and took nothing of this lane."""

    sink: str
    error: str
    pause: timedelta
    lane: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class LaneChanged(Event):
    """A lane's settings or pause changed; the new version is in force."""

    lane: str
    version: int
    stopped: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Halted(Event):
    """Somebody paused the whole store, or told this `node` to drain; `by` None = it goes on."""

    node: int | None
    by: str | None = None
    reason: str = ""
    until: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TargetChanged(Event):
    """A target's breaker changed, or it asked to be left alone for a while."""

    target: str
    state: str
    failures: int
    wait: timedelta | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Housekept(Event):
    """The leader's round: what it did, and how long each part took, in seconds."""

    did: Mapping[str, int]
    phases: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Recalled(Event):
    """The leader let jobs come that a pool had put back which is set otherwise by now."""

    lane: str
    jobs: int


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaseLost(Event):
    """A claim of this node was taken over, or could not be renewed in time: what was not sent is not sent."""

    lane: str
    epoch: int
    jobs: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Processed(Event):
    """The processing endpoint delivered a send, or put it off; `outcome` is the outcome's name."""

    lane: str
    job: str
    outcome: str
    took: float
    error: str | None = None
    traceparent: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Routed(Event):
    """The router is done with a message for now: `ack`, `nack`, `lost` (no longer ours) or `buried`.

    `why` says what was wrong, if something was.
    """

    source: str
    pool: str
    fate: str
    took: float
    why: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceFailed(Event):
    """A source could not be opened, read, or told what became of a message; the others go on."""

    source: str
    error: str
    pause: timedelta


Emit = Callable[[Event], None]


def ignore(event: Event) -> None:
    """Take no notice."""
