"""The tries of a job with what came back: a status, the head of an answer, or why there was none."""

import re
from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from penstock.domain.job import Attempt, Job
from penstock.domain.masking import without_words
from penstock.domain.states import JobState

_ANSWER: Final = re.compile(r"(?:HTTP )?(\d{3})\b(?::? (.*))?", re.DOTALL)  # domain/answers.py
OUT: Final = frozenset({JobState.DISPATCHED, JobState.RUNNING, JobState.SUCCEEDED})
WELL: Final = range(200, 300)


class Answer(NamedTuple):
    """What came back: `status` of an HTTP answer, None = there was none, or none of HTTP; `text` its head."""

    status: int | None
    text: str

    @property
    def well(self) -> bool:
        """Whether the status says that it was taken."""
        return self.status in WELL


def answer_of(text: str | None) -> Answer | None:
    """Return the answer that an error or a receipt tells of; None = it tells nothing."""
    if not text:
        return None
    found = _ANSWER.fullmatch(text)
    return Answer(None, text) if found is None else Answer(int(found[1]), found[2] or "")


def tries(job: Job, attempts: Sequence[Attempt], *, hidden: bool) -> list[dict[str, Any]]:
    """Return each try that is on record, oldest first, and the one that is out or that succeeded."""
    found = [
        {
            "number": each.attempt,
            "outcome": each.outcome,
            "answer": answer_of(without_words(each.error) if hidden else each.error),
            "at": each.ended_at,
            "next": each.due_at,
            "node": each.node,
        }
        for each in sorted(attempts, key=lambda each: each.ended_at)
    ]
    if job.state in OUT and job.live.claimed_at is not None:
        ended = job.state is JobState.SUCCEEDED  # and counted already
        found.append(
            {
                "number": job.live.attempt + (not ended),
                "outcome": job.state.label,
                "answer": answer_of(job.live.receipt),
                "at": job.finished_at or job.live.started_at or job.live.sent_at,
                "next": None,
                "node": job.live.node,
            }
        )
    return found
