"""A job without what it carries: for those who may see that it is there, and not what is in it."""

import json
import re
from collections.abc import Mapping
from typing import Final

from penstock.domain.job import Job

# An error of ours that quotes what the target answered begins like this (domain/answers.py).
_ANSWER: Final = re.compile(r"(HTTP \d{3}): .*", re.DOTALL)
MASK: Final = "***"
_HASH: Final = "sha256:"
_CREDENTIAL: Final = re.compile(
    r"authorization|cookie|token|secret|passw|credential|api[_-]?key|signature", re.IGNORECASE
)


def without_credentials(headers: str | None) -> str | None:
    """Return a job's headers with the values masked whose names say that they open something."""
    if headers is None or not _CREDENTIAL.search(headers):
        return headers
    try:
        found = json.loads(headers)
    except (ValueError, RecursionError):
        return json.dumps(MASK)
    if not isinstance(found, Mapping):
        return headers
    return json.dumps({n: MASK if _CREDENTIAL.search(n) else v for n, v in found.items()}, ensure_ascii=False)


def masked_in(headers: Mapping[str, object]) -> str | None:
    """Return the header of these whose value is a mask: somebody sends back what he was shown."""
    return next((name for name, value in headers.items() if value == MASK), None)


def without_hashes(noted: str | None) -> str | None:
    """Return what the audit notes of an edit without hashes of what is sent: short ones can be guessed."""
    if noted is None or _HASH not in noted:
        return noted
    said = json.loads(noted)
    return json.dumps({n: MASK if isinstance(v, str) and v.startswith(_HASH) else v for n, v in said.items()})


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
