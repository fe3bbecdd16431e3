"""Dead jobs by what killed them: ten thousand have a handful of causes."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime

from penstock.domain.fingerprints import fingerprint_of, pattern_of
from penstock.domain.job import Job


@dataclass(slots=True)
class Cause:
    """One kind of error in one lane, with how many jobs of those looked at have it."""

    fingerprint: str
    lane: str
    reason: str | None
    pattern: str
    sample: Job
    count: int = 0
    first: datetime | None = None
    last: datetime | None = None
    jobs: list[str] = field(default_factory=list)

    @property
    def filter(self) -> str:
        """The line that finds them."""
        return f"lane:{self.lane} state:dead fingerprint:{self.fingerprint}"


def grouped(jobs: Iterable[Job]) -> list[Cause]:
    """Return the causes of death, the most common one first."""
    causes: dict[tuple[str, str], Cause] = {}
    for job in jobs:
        reason = job.live.reason
        mark = fingerprint_of(reason, job.error)
        cause = causes.get((job.lane, mark))
        if cause is None:
            said = pattern_of(job.error) or reason or "no error was said"
            cause = causes[job.lane, mark] = Cause(mark, job.lane, reason, said, job)
        cause.count += 1
        if job.finished_at is not None:
            cause.first = min(cause.first or job.finished_at, job.finished_at)
            cause.last = max(cause.last or job.finished_at, job.finished_at)
    return sorted(causes.values(), key=lambda cause: (-cause.count, cause.lane, cause.fingerprint))
