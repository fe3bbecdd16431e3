"""What `[sinks.NAME]` says to those who read from a broker and keep its messages on a shelf."""

from dataclasses import dataclass
from datetime import timedelta
from typing import Final

from penstock.brokers.options import number, text, visibility
from penstock.ports.clock import Clock
from penstock.ports.source import Options, Supplies
from penstock.sources.shelf import Shelf
from penstock.sources.turns import Turns

PREFETCH: Final = 500
DEAD: Final = "/dead"


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """How a source reads its queues, `prefetch` messages of each at most."""

    name: str
    turns: Turns
    clock: Clock
    visibility: timedelta
    prefetch: int
    dead_queue: str | None

    def shelf(self) -> Shelf:
        """Return an empty shelf that hides messages for as long as we do."""
        return Shelf(self.clock, self.visibility)

    def dead(self, queue: str) -> str:
        """Return where a message of this queue goes that nobody can deliver."""
        return self.dead_queue or f"{queue}{DEAD}"


def reading(options: Options, supplies: Supplies) -> Reading:
    """Return what the options say."""
    return Reading(
        name=supplies.name,
        turns=Turns(supplies.queues, supplies.clock),
        clock=supplies.clock,
        visibility=visibility(options),
        prefetch=number(options, "prefetch") or PREFETCH,
        dead_queue=text(options, "dead_queue"),
    )
