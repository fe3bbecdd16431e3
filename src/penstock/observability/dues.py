"""How long lanes have been behind; without a metrics library, for whoever only wants to look."""

from datetime import datetime

from penstock.ports.flow import Scouted


def next_due(scouted: Scouted) -> dict[str, datetime]:
    """Return when each lane next has something to do; lanes with nothing to do are missing."""
    found = {
        lane: min((at for at in work if at is not None), default=None) for lane, work in scouted.work.items()
    }
    return {lane: at for lane, at in found.items() if at is not None}


def oldest_due(scouted: Scouted) -> dict[str, float]:
    """Return how many seconds the earliest thing each lane could do has been due; 0 = nothing is due."""
    waited = {}
    for lane, work in scouted.work.items():
        at = min((at for at in work if at is not None), default=None)
        waited[lane] = 0.0 if at is None else max(0.0, (scouted.now - at).total_seconds())
    return waited
