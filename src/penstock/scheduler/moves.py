"""What a batch did to each of its jobs, for a log that tells of every one; worked out only if it is asked."""

from collections.abc import Collection, Mapping, Sequence
from typing import Final

from penstock.domain.job import Claimed
from penstock.domain.outcomes import Outcome
from penstock.domain.traces import traceparent_of
from penstock.ports.events import Move, Moves

CLAIMED: Final = "claimed"
_WHY: Final = ("error", "why", "reason")


def moves(
    jobs: Sequence[Claimed], outcomes: Mapping[int, Outcome] | None = None, *, refused: Collection[int] = ()
) -> Moves:
    """Return what tells of jobs that were claimed, or of those that have an outcome."""

    def each() -> list[Move]:
        if outcomes is None:
            return [_move(claimed, CLAIMED) for claimed in jobs]
        ended = [(claimed, outcomes.get(claimed.job.arrival)) for claimed in jobs]
        return [
            _move(
                claimed,
                type(outcome).__name__.lower(),
                why=_why(outcome),
                refused=claimed.job.arrival in refused,
            )
            for claimed, outcome in ended
            if outcome is not None
        ]

    return each


def _move(claimed: Claimed, to: str, *, why: str | None = None, refused: bool = False) -> Move:
    job, said = claimed
    return Move(
        job=said.id if said else str(job.arrival),
        group=job.grp if job.grp is not None or said is None else said.message_group,
        node=job.node,
        epoch=job.epoch,
        attempt=job.attempt + 1,
        to=to,
        why=why,
        refused=refused,
        traceparent=traceparent_of(said.headers) if said else None,
    )


def _why(outcome: Outcome) -> str | None:
    found = (getattr(outcome, name, None) for name in _WHY)
    return next((str(text) for text in found if text), None)
