"""What jobs died of: dead letters whose errors differ only in their particulars."""

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any

from penstock.domain.fingerprints import coarse_fingerprint_of, fingerprint_of, pattern_of
from penstock.domain.job import Job


@dataclass(slots=True)
class Cause:
    """Dead letters of one lane with one cause."""

    fingerprint: str
    lane: str
    reason: str | None
    error: str
    jobs: int
    first: datetime | None
    last: datetime | None
    sample: str

    def as_object(self) -> dict[str, Any]:
        """Return it as JSON shows it."""
        return asdict(self)


def causes(jobs: Iterable[Job]) -> list[Cause]:
    """Return what the jobs died of, the most frequent first; they come the last ended first."""
    found: dict[tuple[str, str], Cause] = {}
    for job in jobs:
        reason, at = job.live.reason, job.finished_at
        mark = (coarse_fingerprint_of if job.hidden else fingerprint_of)(reason, job.error)
        cause = found.get((job.lane, mark))
        if cause is None:
            found[job.lane, mark] = Cause(mark, job.lane, reason, pattern_of(job.error), 1, at, at, job.id)
        else:
            cause.jobs += 1
            cause.first = at
    return sorted(found.values(), key=lambda cause: -cause.jobs)
