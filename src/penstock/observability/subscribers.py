"""Events to several subscribers at once; one that fails is told about and does not hurt the others."""

import logging
from typing import Final

from penstock.ports.events import Emit, Event

_LOG: Final = logging.getLogger("penstock.events")


def emit_to(*subscribers: Emit) -> Emit:
    """Return an `Emit` that hands each event to every subscriber, in order, and never fails."""

    def emit(event: Event) -> None:
        for subscriber in subscribers:
            try:
                subscriber(event)
            except Exception:  # noqa: BLE001 - see below
                # The engine must go on: what a subscriber cannot take is a bug of ours, worth a trace.
                _LOG.exception("a subscriber failed on %s", type(event).__name__)

    return emit
