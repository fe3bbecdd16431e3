"""How long lanes have been behind; without a metrics library, for whoever only wants to look."""

from penstock.ports.flow import Scouted


def oldest_due(scouted: Scouted) -> dict[str, float]:
    """Return how many seconds the earliest thing each lane could do has been due; 0 = nothing is due."""
    waited = {}
    for lane, work in scouted.work.items():
        at = min((at for at in work if at is not None), default=None)
        waited[lane] = 0.0 if at is None else max(0.0, (scouted.now - at).total_seconds())
    return waited
