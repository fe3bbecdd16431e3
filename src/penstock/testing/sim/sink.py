"""A simulated sink with executors behind it: it keeps its own log, and misbehaves as the plan says."""

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from enum import Enum, auto
from typing import Final, NamedTuple

from penstock.domain.outcomes import (
    Accepted,
    Duplicate,
    Outcome,
    Receipt,
    Rejected,
    Throttled,
    TryAgain,
)
from penstock.testing.invariants.facts import Delivery, Log
from penstock.testing.sim.faults import SinkFault
from penstock.testing.sim.world import World

SLOW_DOWN: Final = timedelta(milliseconds=700)
LATE_S: Final = 0.4


class Message(NamedTuple):
    """What goes over the wire, and the attempt it is, for executors that decide about retries."""

    job: str
    send: int
    epoch: int
    lane: str
    group: str | None
    sequence: int
    payload: str | None
    attempt: int
    max_attempts: int | None
    node: str
    target: str | None = None
    limits: tuple[str, ...] = ()
    rested: bool = True


class Spell(NamedTuple):
    """A time, in seconds since the start, during which a target (None = any) treats everything alike.

    Without a `fault` it cannot be reached at all.
    """

    target: str | None
    begins: float
    ends: float
    fault: SinkFault | None


class Fate(Enum):
    """What a probe may learn of a send."""

    NOT_STARTED = auto()
    RUNNING = auto()
    ENDED = auto()
    UNKNOWN = auto()


class Answers(NamedTuple):
    """One receipt per message, given after `delay`; None instead of receipts = the answer is lost."""

    receipts: list[Receipt] | None
    delay: float = 0.0


@dataclass(slots=True)
class SimSink:
    """See the module. `is_stale` tells whether a message's claim is over; `reported` lanes have executors.

    The sink remembers sends as brokers do: the same send twice is one piece of work.
    """

    world: World
    log: Log
    is_stale: Callable[[Message], bool]
    reported: frozenset[str] = frozenset()
    spells: Sequence[Spell] = ()
    inbox: deque[Message] = field(default_factory=deque)
    arrived: asyncio.Event = field(default_factory=asyncio.Event)
    calm: bool = False
    _work: dict[tuple[str, int], Fate] = field(default_factory=dict)
    _ended: dict[tuple[str, int], Outcome] = field(default_factory=dict)
    _taken_at: dict[tuple[str, int], float] = field(default_factory=dict)

    def take(self, batch: Sequence[Message]) -> Answers:
        """Receive a batch and answer it."""
        receipts: list[Receipt] = []
        lost, delay = False, 0.0
        for index, message in enumerate(batch):
            spell = self._spell(message.target)
            fault = self.world.sink_fault() if spell is None else spell.fault
            if fault is SinkFault.PARTIAL:
                receipts += [TryAgain("the batch broke off")] * (len(batch) - index)
                break
            receipts.append(self._receive(message, fault))
            lost |= fault is SinkFault.TIMEOUT_AFTER_ACCEPT
            if fault is SinkFault.HANG:
                delay = max(delay, self.world.plan.hang.high)
            if fault is SinkFault.LATE:
                delay = max(delay, LATE_S)
        return Answers(None if lost else receipts, delay)

    def away(self, target: str | None) -> bool:
        """Say whether a target cannot be reached now."""
        spell = self._spell(target)
        return spell is not None and spell.fault is None

    def _spell(self, target: str | None) -> Spell | None:
        now = self.world.loop.time()
        spells = () if self.calm else self.spells
        return next((s for s in spells if s.begins <= now < s.ends and s.target in (None, target)), None)

    def probe(self, sends: Sequence[tuple[str, int]]) -> list[Fate]:
        """Say what became of each send, as far as it is known here."""
        return [self._work.get(send, Fate.NOT_STARTED) for send in sends]

    def taken_at(self, job: str, send: int) -> float | None:
        """Return when a send was first taken, None = it was not."""
        return self._taken_at.get((job, send))

    def ended(self, send: tuple[str, int]) -> Outcome | None:
        """Return what an executor made of a send; None for a lane where taken is done."""
        return self._ended.get(send)

    def begin(self, message: Message) -> None:
        """Note that an executor works on the send."""
        self._work[message.job, message.send] = Fate.RUNNING

    def end(self, message: Message, outcome: Outcome) -> None:
        """Note what came of the send."""
        self._work[message.job, message.send] = Fate.ENDED
        self._ended[message.job, message.send] = outcome

    def forget(self) -> None:
        """The executors crashed: what they were working on is lost, and nobody can say how far it got."""
        for send, fate in self._work.items():
            if fate is Fate.RUNNING:
                self._work[send] = Fate.UNKNOWN

    def _receive(self, message: Message, fault: SinkFault | None) -> Receipt:
        receipt = _answer(fault)
        known = (message.job, message.send) in self._work
        taken = isinstance(receipt, Accepted | Duplicate)
        stale = self.is_stale(message)
        self.log.append(
            Delivery(
                *message[:7],
                self.world.loop.time(),
                message.node,
                stale=stale,
                taken=taken and not known,
                clock=self.world.store_clock.now(),
                minted=self.world.store_clock.forward(),
                limits=message.limits,
                rested=message.rested,
            )
        )
        self.world.record(f"sink got {message.job}:{message.send} epoch {message.epoch} {receipt}")
        if not taken or known:
            return Duplicate("again") if taken else receipt
        self._taken_at[message.job, message.send] = self.world.loop.time()
        if message.lane in self.reported:
            self._work[message.job, message.send] = Fate.UNKNOWN
            self.inbox.append(message)
            self.arrived.set()
        else:
            self._work[message.job, message.send] = Fate.ENDED
        return receipt


def _answer(fault: SinkFault | None) -> Receipt:
    match fault:
        case SinkFault.REFUSE:
            return Rejected("no")
        case SinkFault.ERROR:
            return TryAgain("down")
        case SinkFault.THROTTLE:
            return Throttled(SLOW_DOWN)
        case SinkFault.DUPLICATE:
            return Duplicate("before")
        case _:
            return Accepted("ok")
