"""What an executor may say of a send, and what it means for the job."""

from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Final

from penstock.domain.durations import BadDuration, parse_duration
from penstock.domain.failures import named, words_of
from penstock.domain.job import Live
from penstock.domain.lanes import Lane
from penstock.domain.outcomes import Dead, Deferred, Failed, Outcome, Policy, Running, Succeeded, failed
from penstock.domain.payloads import BadPayload, Json, checked, dumped
from penstock.domain.retry import LONGEST_DELAY, RetrySchedule
from penstock.domain.states import Reason
from penstock.errors import InvalidJob

WORDS: Final = ("started", "heartbeat", "succeeded", "failed", "deferred")
MISSED_BEATS: Final = 3
MAX_SEND: Final = (1 << 31) - 1
MAX_RESULT_BYTES: Final = 64 * 1024
MAX_ERROR_CHARACTERS: Final = 16 * 1024
_TOO_LONG: Final = f"must be between 0 and {LONGEST_DELAY.days} days"


@dataclass(frozen=True, slots=True, kw_only=True)
class Word:
    """An executor's word on one send: one of WORDS and what goes with it.

    `after` is the delay it asks for; a failure that is not `retryable` is the last one.
    """

    outcome: str
    error: str | None = None
    retryable: bool = True
    result: object = None
    after: timedelta | None = None


def check_send(send: object) -> int:
    """Return the number of a send, or raise InvalidJob: one that cannot be would only look late."""
    if isinstance(send, bool) or not isinstance(send, int) or not 1 <= send <= MAX_SEND:
        raise InvalidJob("send", f"{send!r} is no number of a send: give the one that came with the message")
    return send


def delay(after: object) -> timedelta | None:
    """Return the delay that a timedelta, seconds or a duration like 30s are, or raise InvalidJob."""
    if after is None or isinstance(after, timedelta):
        return after
    try:
        if isinstance(after, int | float) and not isinstance(after, bool):
            return timedelta(seconds=after)
        if isinstance(after, str):
            return parse_duration(after)
    except OverflowError:
        raise InvalidJob("after", _TOO_LONG) from None
    except (BadDuration, ValueError) as error:
        raise InvalidJob("after", f"{error}: write seconds, or a duration like 30s") from None
    raise InvalidJob("after", f"{after!r} is no stretch of time: give timedelta(minutes=5), 300 or 5m")


def checked_word(word: Word) -> Word:
    """Return the word as it is kept, its error as plain text and its result as JSON, or raise InvalidJob."""
    if word.error is not None and not isinstance(word.error, str):
        raise InvalidJob("error", f"is a {type(word.error).__name__}: give text, like str(error)")
    if word.after is not None and not timedelta(0) <= word.after <= LONGEST_DELAY:
        raise InvalidJob("after", _TOO_LONG)
    if word.outcome not in WORDS:
        raise InvalidJob("outcome", f"{word.outcome!r} is none of {', '.join(WORDS)}")
    error = None if word.error is None else _plain(word.error)
    return replace(word, error=error, result=_result(word.result) if word.outcome == "succeeded" else None)


def meaning(word: Word, *, job: Live, lane: Lane, random: float) -> Outcome:
    """Return the outcome that an executor's word is for a job of this lane, or raise InvalidJob."""
    word = checked_word(word)
    match word.outcome:
        case "started":
            return Running(parse_duration(lane["run_timeout"]))
        case "heartbeat":
            return Running(parse_duration(lane["heartbeat"]) * MISSED_BEATS)
        case "succeeded":
            return Succeeded(result=None if word.result is None else str(word.result))
        case "failed":
            return _failed(word.error, word, job=job, lane=lane, random=random)
        case _:
            return Deferred(word.after or timedelta(0), word.error)


def _failed(error: str | None, word: Word, *, job: Live, lane: Lane, random: float) -> Outcome:
    words = words_of(lane["give_up_on" if word.retryable else "retry_on"])
    if word.retryable == named(words, error):  # the lane's own words may turn the executor's around
        return Dead(Reason.PERMANENT, error)
    policy = Policy(RetrySchedule.from_text(lane["retry"]))
    outcome = failed(error, policy=policy, attempt=job.attempt, max_attempts=job.max_attempts, random=random)
    # The executor may name the delay; whether there is another attempt is for the lane to say.
    return Failed(error, word.after) if word.after is not None and isinstance(outcome, Failed) else outcome


def _result(value: object) -> Json | None:
    if value is None:
        return None
    try:
        text = checked(value) if isinstance(value, Json) else dumped(value)
    except BadPayload as error:
        raise InvalidJob("result", str(error)) from None
    if len(text.encode()) > MAX_RESULT_BYTES:
        raise InvalidJob(
            "result", f"is larger than {MAX_RESULT_BYTES} bytes: keep it elsewhere, report where"
        )
    return Json(text)


def _plain(text: str) -> str:
    """Return text that every store keeps: an ugly error must not keep its report from being heard."""
    return text[:MAX_ERROR_CHARACTERS].replace("\0", "\ufffd").encode(errors="replace").decode()
