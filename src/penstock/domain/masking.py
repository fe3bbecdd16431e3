"""A job without what it carries: for those who may see that it is there, and not what is in it."""

import re
from typing import Final

from penstock.domain.job import Job

# An error of ours that quotes what the target answered begins like this (domain/answers.py).
_ANSWER: Final = re.compile(r"(HTTP \d{3}): .*", re.DOTALL)


def without_content(job: Job) -> Job:
    """Return the job without payload, headers, result, and without what its target answered."""
    said = job.context
    return job._replace(
        context=said and said._replace(payload=None, headers=None),
        result=None,
        error=without_answer(job.error),
        hidden=True,
    )


def without_answer(error: str | None) -> str | None:
    """Return an error without the words of the target that it quotes."""
    return error and _ANSWER.sub(r"\1", error)
