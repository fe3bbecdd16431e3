"""What came of a job that was claimed, sent or reported, in the holder's words.

A sink answers per message with a `Receipt`; the lane's policy turns it into an `Outcome`; a store writes
the outcome (`domain/settlement.py` says how). Executors' reports and recovery's findings are outcomes too.
"""

from dataclasses import dataclass
from datetime import timedelta
from typing import assert_never

from penstock.domain.retry import RetrySchedule
from penstock.domain.states import Reason


@dataclass(frozen=True, slots=True)
class Accepted:
    """The sink has the message; `receipt` is its message id, workflow id or HTTP status."""

    receipt: str | None = None


@dataclass(frozen=True, slots=True)
class Duplicate:
    """The sink had this send already: success, and what is in flight is the same send."""

    receipt: str | None = None


@dataclass(frozen=True, slots=True)
class TryAgain:
    """The sink failed in a way that may pass."""

    error: str


@dataclass(frozen=True, slots=True)
class Rejected:
    """The sink will never take this message."""

    error: str
    reason: Reason = Reason.PERMANENT


@dataclass(frozen=True, slots=True)
class Throttled:
    """The sink asks to slow down; costs no attempt."""

    after: timedelta
    error: str | None = None


@dataclass(frozen=True, slots=True)
class Unknown:
    """It went out and the answer was lost: nobody knows whether the sink has it."""

    error: str


@dataclass(frozen=True, slots=True)
class Unsent:
    """Nothing of this message went out, which is neither its fault nor its target's; costs nothing."""

    error: str
    after: timedelta = timedelta(seconds=2)


Receipt = Accepted | Duplicate | TryAgain | Rejected | Throttled | Unknown | Unsent


@dataclass(frozen=True, slots=True)
class Succeeded:
    """Done."""

    result: str | None = None
    receipt: str | None = None


@dataclass(frozen=True, slots=True)
class Dispatched:
    """The sink took it and somebody will report within `ack`; `passes` lets the group go on meanwhile.

    `slot` is the pool, or key of a pool, that the job occupies until it is back (domain/limits.py).
    """

    ack: timedelta
    receipt: str | None = None
    passes: bool = False
    slot: str | None = None


@dataclass(frozen=True, slots=True)
class Running:
    """The executor works on it and will be heard of within `within`; `slot` as when it was dispatched.

    `alone`: only if nobody else may be at it: refused for a send that somebody began less than `within` ago.
    """

    within: timedelta
    slot: str | None = None
    alone: bool = False


@dataclass(frozen=True, slots=True)
class Failed:
    """This attempt failed; the next one comes after `delay`.

    `known=False`: no answer came, so the sink may have it. The next attempt repeats the number of the send:
    a broker that tells duplicates apart takes it once, and an executor's word on it still counts.
    """

    error: str | None
    delay: timedelta
    known: bool = True


@dataclass(frozen=True, slots=True)
class Dead:
    """This attempt failed and there will be no other."""

    reason: Reason
    error: str | None = None


@dataclass(frozen=True, slots=True)
class Deferred:
    """Not now; costs no attempt."""

    delay: timedelta
    error: str | None = None


@dataclass(frozen=True, slots=True)
class Returned:
    """Claimed but not sent; as if it had not been claimed, but for `after`: no sooner than that from now.

    A job that a limit or a breaker keeps is put back with `after`, so that it costs nothing while it waits.
    `mark` says what it waits for as that is set now (domain/pools.py): when it changes, the job is recalled.
    """

    why: str
    after: timedelta | None = None
    mark: str | None = None


@dataclass(frozen=True, slots=True)
class Expired:
    """Its time passed before it was sent."""

    why: str = "start_by has passed"


@dataclass(frozen=True, slots=True)
class Held:
    """Parked with its context missing, before it was sent."""

    reason: str


@dataclass(frozen=True, slots=True)
class Lapsed:
    """A timer ran out. `started=False`: a probe said it never started; `hold`: it must not be repeated.

    `node` is who had it, if that is not who says so. `error` is what came instead of an answer, if anything.
    """

    started: bool | None = None
    hold: bool = False
    node: int | None = None
    error: str | None = None


@dataclass(frozen=True, slots=True)
class LapsedTooOften:
    """A timer ran out once more than the lane allows."""

    reason: Reason


Outcome = (
    Succeeded
    | Dispatched
    | Running
    | Failed
    | Dead
    | Deferred
    | Returned
    | Expired
    | Held
    | Lapsed
    | LapsedTooOften
)


@dataclass(frozen=True, slots=True)
class Policy:
    """What of a lane's settings decides what a receipt means; `ack` None = sent is done."""

    retry: RetrySchedule
    ack: timedelta | None = None
    passes: bool = False


def failed(
    error: str | None,
    *,
    policy: Policy,
    attempt: int,
    max_attempts: int | None,
    random: float,
    known: bool = True,
) -> Outcome:
    """Return what a retryable failure means for a job that had `attempt` attempts before this one."""
    limit = max_attempts if max_attempts is not None else policy.retry.max_attempts
    if attempt + 1 >= limit:
        return Dead(Reason.EXHAUSTED, error)
    return Failed(error, policy.retry.delay_before(attempt + 2, random=random), known)


def outcome_of(
    receipt: Receipt, *, policy: Policy, attempt: int, max_attempts: int | None, random: float
) -> Outcome:
    """Return what a sink's answer means for a job of this lane."""
    match receipt:
        case Accepted(receipt=token) | Duplicate(receipt=token):
            if policy.ack is None:
                return Succeeded(receipt=token)
            return Dispatched(policy.ack, receipt=token, passes=policy.passes)
        case TryAgain(error=error) | Unknown(error=error):
            known = isinstance(receipt, TryAgain)
            return failed(
                error, policy=policy, attempt=attempt, max_attempts=max_attempts, random=random, known=known
            )
        case Rejected(error=error, reason=reason):
            return Dead(reason, error)
        case Throttled(after=after, error=error):
            return Deferred(after, error)
        case Unsent(error=error, after=after):
            return Returned(error, after * (1 + random / 10))
        case _:  # pragma: no cover
            assert_never(receipt)
