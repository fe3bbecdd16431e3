"""What is shown of things that hold secrets: jobs without what they carry, addresses without passwords."""

import json
import re
from collections.abc import Mapping
from typing import Final

from penstock.domain.job import Job

# What an error is, where its words may be somebody else's: a target's, an executor's, an exception's.
_KIND: Final = re.compile(
    r"HTTP \d{3}\b|[A-Z][A-Za-z]{2,60}(?:Error|Exception|Timeout)\b(?=:|$)"
    r"|target: (?:there is none|is not a (?:URL|web address)|holds a user name|refused address)"
)
# What we say ourselves of a call that got no answer: a place, which is no secret, and the system's words.
_UNANSWERED: Final = re.compile(
    r"no answer within [0-9.]{1,9} s"
    r"|no (?:connection to|answer from) \S{1,300}(?: in time|: [A-Za-z '/()-]{1,60})?"
    r"|\S{1,300} cannot be found: [A-Za-z '/()-]{1,60}"
    r"|the (?:node|router) stopped while it was (?:being sent|at work)"
)
_QUOTED: Final = re.compile(r"(HTTP \d{3}): .*", re.DOTALL)  # domain/answers.py
_ANSWER: Final = re.compile(r"(\d{3})(?: .*)?", re.DOTALL)  # domain/answers.py
MASK: Final = "***"
_HASH: Final = "sha256:"
_CREDENTIAL: Final = re.compile(
    r"authorization|cookie|token|secret|passw|credential|api[_-]?key|signature", re.IGNORECASE
)
# A password may hold any character, those too that should have been written with %: it ends at the last @.
# Slashes may be missing, and even the scheme: what is no address is shown as well, in the error about it.
_IN_ADDRESS: Final = re.compile(r"((?<=://)[^:]*|\w[\w+.-]*:/+[^:]*|^[^:/\s=]*(?=:(?!//))):(.*)@", re.DOTALL)
_AS_OPTION: Final = re.compile(r"(?i)((?:^|[?&\s])(?:ssl)?pass(?:word|wd)?\s*=)[^&]*")
MISSPELLED: Final = (
    "its password has a character that means something else in an address: write @ as %40, / as %2F,"
    " % as %25, a blank as %20"
)


def without_password(address: str) -> str:
    """Return an address as it may be shown; where it is not clear how a password ends, rather too little."""
    return _AS_OPTION.sub(rf"\1{MASK}", _IN_ADDRESS.sub(rf"\1:{MASK}@", address))


def password_in(address: str) -> str | None:
    """Return the password that stands before the host, as it is written there."""
    found = _IN_ADDRESS.search(address)
    return None if found is None else found[2]


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
    return next((name for name, value in headers.items() if value == MASK and _CREDENTIAL.search(name)), None)


def without_hashes(noted: str | None) -> str | None:
    """Return what the audit notes of an edit without hashes of what is sent: short ones can be guessed."""
    if noted is None or _HASH not in noted:
        return noted
    said = json.loads(noted)
    return json.dumps({n: MASK if isinstance(v, str) and v.startswith(_HASH) else v for n, v in said.items()})


def without_content(job: Job) -> Job:
    """Return the job without payload, headers, result, and without what others said of it."""
    said, answer = job.context, _ANSWER.fullmatch(job.live.receipt or "")
    return job._replace(
        live=job.live._replace(receipt=answer[1] if answer else job.live.receipt),
        context=said and said._replace(payload=None, headers=None),
        result=None,
        error=without_words(job.error),
        hidden=True,
    )


def is_answer(receipt: str) -> bool:
    """Say whether a receipt is what a target answered, of which `without_content` leaves the status."""
    return _ANSWER.fullmatch(receipt) is not None


def without_words(error: str | None) -> str | None:
    """Return what kind of error it is, without words that may hold what the job carries.

    Targets, executors and exceptions of functions say what they like, a card that was declined for example.
    """
    if not error or _UNANSWERED.fullmatch(error):
        return error
    kind = _KIND.match(error)
    return kind[0] if kind else MASK


def without_answer(text: str) -> str:
    """Return words of ours without what they quote of a target's answer."""
    return _QUOTED.sub(r"\1", text)
