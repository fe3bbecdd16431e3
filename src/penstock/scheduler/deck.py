"""What all claims of a node share while they are in the air."""

import asyncio
from collections import Counter, defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field

from penstock.ports.store import Tick
from penstock.scheduler.air import Air
from penstock.scheduler.board import Board
from penstock.scheduler.breakers import Breakers
from penstock.scheduler.ground import Ground
from penstock.scheduler.holding import Holdings
from penstock.scheduler.limits import Limits
from penstock.scheduler.outages import Outages
from penstock.scheduler.outlets import Outlets
from penstock.scheduler.passes import together
from penstock.scheduler.pulse import Pulse
from penstock.scheduler.rescues import Rescues
from penstock.scheduler.strays import Strays
from penstock.scheduler.timing import StoreTime


@dataclass(slots=True)
class Deck:
    """The parts of one node.

    `stop` = claim no more, finish or give back what is claimed; `hurry` = begin nothing more, wait for
    nothing. `poke` says that a lane may have ready groups again, `look_again` calls the scout at once,
    `look_soon` within a second; a node on standby may not dispatch.
    """

    ground: Ground
    board: Board
    outlets: Outlets
    limits: Limits
    breakers: Breakers
    node: int = 0
    holdings: Holdings = field(default_factory=Holdings)
    air: Air = field(default_factory=Air)
    rescues: Rescues = field(default_factory=Rescues)
    time: StoreTime = field(default_factory=StoreTime)
    stop: asyncio.Event = field(default_factory=asyncio.Event)
    hurry: asyncio.Event = field(default_factory=asyncio.Event)
    poke: Callable[[str], None] = lambda _: None
    look_again: Callable[[], None] = lambda: None
    look_soon: Callable[[], None] = lambda: None
    may_dispatch: Callable[[], bool] = lambda: True
    returned: int = 0
    sent: int = 0
    failed: int = 0
    ticks: list[Tick] = field(default_factory=list)
    strays: dict[str, Strays] = field(default_factory=lambda: defaultdict(Strays))
    outages: Outages = field(init=False)
    pulse: Pulse = field(init=False)

    def __post_init__(self) -> None:
        self.outages, self.pulse = Outages(self.ground), Pulse(self.ground)

    @property
    def leaving(self) -> str | None:
        """Why nothing waits here any more: what cannot go now goes back; None = it may wait."""
        if self.stop.is_set():
            return "the node stops"
        return None if self.board.drain is None else "the node drains"

    def mixed(self, lane: str) -> bool:
        """Say whether jobs of the lane may well name pools of their own."""
        return bool(self.board.loose) or self.strays[lane].about(self.ground.monotonic())

    def count(self, answers: Counter[str]) -> None:
        """Count what calls were answered, by the word for it, since the node started."""
        taken = answers["accepted"] + answers["duplicate"]
        self.sent, self.failed = self.sent + taken, self.failed + answers.total() - taken

    async def write_ticks(self) -> bool | None:
        """Keep the figures of the passes since the last time, with one statement; None = there were none."""
        ticks, self.ticks = self.ticks, []
        if not ticks:
            return None
        await self.ground.call(self.ground.store.record_ticks, together(ticks))
        return False
