"""The life of a job as one executable table.

Everything that changes a job's state is a `Move` with one `Rule`: the states it may leave, the state it
leads to and what it counts. Stores derive their guards from `RULES`, operators' verbs are `VERBS`, and
docs/reference/states.md is generated from both. A job that is not where a rule expects it is left alone
and reported, never forced.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import IntEnum, StrEnum
from types import MappingProxyType
from typing import Final

from penstock.errors import IllegalTransition


class JobState(IntEnum):
    """Where a job stands. The number is what the database stores."""

    PENDING = 1
    CLAIMED = 2
    DISPATCHED = 3
    RUNNING = 4
    HELD = 5
    WAITING = 6
    SUCCEEDED = 10
    SKIPPED = 11
    CANCELLED = 12
    EXPIRED = 13
    DEAD = 14

    @property
    def label(self) -> str:
        """The name users see."""
        return self.name.lower()

    def __str__(self) -> str:
        return self.label

    def __format__(self, spec: str) -> str:
        return format(self.label, spec)


class Reason(StrEnum):
    """Why a job is dead."""

    EXHAUSTED = "exhausted"
    PERMANENT = "permanent"
    TOO_LARGE = "too_large"
    STOPPED = "stopped"
    NOT_RUNNABLE = "not_runnable"
    CHILD_FAILED = "child_failed"
    POISON = "poison"
    UNREPORTED = "unreported"


class Move(StrEnum):
    """What can happen to a job."""

    RELEASE = "release"
    CLAIM = "claim"
    RETURN = "return"
    SENT = "sent"
    DEFER = "defer"
    RETRY = "retry"
    FAIL = "fail"
    START = "start"
    SUCCEED = "succeed"
    LAPSE = "lapse"
    LAPSE_HOLD = "lapse_hold"
    LAPSE_DEAD = "lapse_dead"
    EXPIRE = "expire"
    CANCEL = "cancel"
    SKIP = "skip"
    HOLD = "hold"
    UNHOLD = "unhold"
    HURRY = "hurry"
    REPLAY = "replay"
    SETTLE_SUCCEEDED = "settle_succeeded"
    SETTLE_DEAD = "settle_dead"


class Count(StrEnum):
    """What a move adds one to."""

    EPOCH = "epoch"
    ATTEMPT = "attempt"
    DEFERRALS = "deferrals"
    RECOVERIES = "recoveries"
    RESET = "attempt = recoveries = 0"


@dataclass(frozen=True, slots=True)
class Rule:
    """One move: the states it may leave and the one it leads to.

    `while_open` are states it may also leave as long as the outcome belongs to the job's current send and
    the fate of that send is still open: a report that arrives after recovery put the job back.
    """

    leaves: frozenset[JobState]
    to: JobState
    counts: frozenset[Count] = frozenset()
    while_open: frozenset[JobState] = frozenset()


class Verb(StrEnum):
    """What an operator can ask for."""

    CANCEL = "cancel"
    SKIP = "skip"
    HOLD = "hold"
    RELEASE = "release"
    RETRY = "retry"
    SETTLE_SUCCEEDED = "settle_succeeded"
    SETTLE_DEAD = "settle_dead"
    EDIT = "edit"


class Effect(StrEnum):
    """What a verb does in a state: move the job now, leave a request for its holder, or nothing."""

    NOW = "now"
    REQUESTED = "requested"
    REFUSED = "refused"


@dataclass(frozen=True, slots=True)
class Answer:
    """A verb's effect in one state; `move` is None for edits in place and for refusals."""

    effect: Effect
    move: Move | None = None


S = JobState
_IN_FLIGHT = frozenset({S.CLAIMED, S.DISPATCHED, S.RUNNING})
_PARKED = frozenset({S.PENDING, S.HELD})


def _rule(*leaves: JobState, to: JobState, counts: tuple[Count, ...] = (), late: bool = False) -> Rule:
    return Rule(frozenset(leaves), to, frozenset(counts), _PARKED if late else frozenset())


RULES: Final[Mapping[Move, Rule]] = MappingProxyType(
    {
        Move.RELEASE: _rule(S.WAITING, to=S.PENDING),
        Move.CLAIM: _rule(S.PENDING, to=S.CLAIMED, counts=(Count.EPOCH,)),
        Move.RETURN: _rule(S.CLAIMED, to=S.PENDING),
        Move.SENT: _rule(S.CLAIMED, to=S.DISPATCHED),
        Move.DEFER: _rule(*_IN_FLIGHT, to=S.PENDING, counts=(Count.DEFERRALS,)),
        Move.RETRY: _rule(*_IN_FLIGHT, to=S.PENDING, counts=(Count.ATTEMPT,), late=True),
        Move.FAIL: _rule(*_IN_FLIGHT, to=S.DEAD, counts=(Count.ATTEMPT,), late=True),
        Move.START: Rule(_IN_FLIGHT, S.RUNNING, frozenset(), frozenset({S.PENDING})),
        Move.SUCCEED: _rule(*_IN_FLIGHT, to=S.SUCCEEDED, counts=(Count.ATTEMPT,), late=True),
        Move.LAPSE: _rule(*_IN_FLIGHT, to=S.PENDING, counts=(Count.RECOVERIES,)),
        Move.LAPSE_HOLD: _rule(*_IN_FLIGHT, to=S.HELD, counts=(Count.RECOVERIES,)),
        Move.LAPSE_DEAD: _rule(*_IN_FLIGHT, to=S.DEAD, counts=(Count.RECOVERIES,)),
        Move.EXPIRE: _rule(S.PENDING, S.CLAIMED, to=S.EXPIRED),
        Move.CANCEL: _rule(S.WAITING, S.PENDING, S.HELD, S.DEAD, *_IN_FLIGHT, to=S.CANCELLED),
        Move.SKIP: _rule(S.WAITING, S.PENDING, S.HELD, S.DEAD, to=S.SKIPPED),
        Move.HOLD: _rule(S.WAITING, S.PENDING, S.CLAIMED, to=S.HELD),
        Move.UNHOLD: _rule(S.HELD, to=S.PENDING),
        Move.HURRY: _rule(S.PENDING, to=S.PENDING),
        Move.REPLAY: _rule(S.DEAD, S.EXPIRED, S.CANCELLED, to=S.PENDING, counts=(Count.RESET,)),
        Move.SETTLE_SUCCEEDED: _rule(S.DISPATCHED, S.RUNNING, S.HELD, S.DEAD, to=S.SUCCEEDED),
        Move.SETTLE_DEAD: _rule(S.DISPATCHED, S.RUNNING, S.HELD, to=S.DEAD),
    }
)

TERMINAL: Final = frozenset({S.SUCCEEDED, S.SKIPPED, S.CANCELLED, S.EXPIRED, S.DEAD})
IN_FLIGHT: Final = _IN_FLIGHT
LIVE: Final = frozenset(S) - TERMINAL


def _now(move: Move | None) -> Answer:
    return Answer(Effect.NOW, move)


_REQUEST: Final = Answer(Effect.REQUESTED)
_REFUSE: Final = Answer(Effect.REFUSED)

# Why a hold that is asked for later is refused: released, the job would be sent.
CANCEL_STANDS: Final = "somebody asked to cancel it, and that stands"

# What is not listed is refused: the job is finished, or the holder must end it first.
VERBS: Final[Mapping[Verb, Mapping[JobState, Answer]]] = MappingProxyType(
    {
        Verb.CANCEL: {
            S.WAITING: _now(Move.CANCEL),
            S.PENDING: _now(Move.CANCEL),
            S.CLAIMED: _REQUEST,
            S.DISPATCHED: _REQUEST,
            S.RUNNING: _REQUEST,
            S.HELD: _now(Move.CANCEL),
            S.DEAD: _now(Move.CANCEL),
        },
        Verb.SKIP: {
            S.WAITING: _now(Move.SKIP),
            S.PENDING: _now(Move.SKIP),
            S.HELD: _now(Move.SKIP),
            S.DEAD: _now(Move.SKIP),
        },
        Verb.HOLD: {S.WAITING: _now(Move.HOLD), S.PENDING: _now(Move.HOLD), S.CLAIMED: _REQUEST},
        Verb.RELEASE: {S.HELD: _now(Move.UNHOLD)},
        Verb.RETRY: {
            S.PENDING: _now(Move.HURRY),
            S.HELD: _now(Move.UNHOLD),
            S.DEAD: _now(Move.REPLAY),
            S.EXPIRED: _now(Move.REPLAY),
            S.CANCELLED: _now(Move.REPLAY),
        },
        Verb.SETTLE_SUCCEEDED: {
            S.DISPATCHED: _now(Move.SETTLE_SUCCEEDED),
            S.RUNNING: _now(Move.SETTLE_SUCCEEDED),
            S.HELD: _now(Move.SETTLE_SUCCEEDED),
            S.DEAD: _now(Move.SETTLE_SUCCEEDED),
        },
        Verb.SETTLE_DEAD: {
            S.DISPATCHED: _now(Move.SETTLE_DEAD),
            S.RUNNING: _now(Move.SETTLE_DEAD),
            S.HELD: _now(Move.SETTLE_DEAD),
        },
        Verb.EDIT: {
            S.WAITING: _now(None),
            S.PENDING: _now(None),
            S.HELD: _now(None),
            S.DEAD: _now(Move.REPLAY),
            S.EXPIRED: _now(Move.REPLAY),
            S.CANCELLED: _now(Move.REPLAY),
        },
    }
)


def allowed(state: JobState, move: Move, *, send_open: bool = False) -> bool:
    """Say whether a job in this state may make this move."""
    rule = RULES[move]
    return state in rule.leaves or (send_open and state in rule.while_open)


def after(state: JobState, move: Move, *, send_open: bool = False) -> JobState:
    """Return the state after the move, or raise IllegalTransition."""
    if not allowed(state, move, send_open=send_open):
        raise IllegalTransition(state.label, move)
    return RULES[move].to


def answer(verb: Verb, state: JobState, *, force: bool = False) -> Answer:
    """Return what an operator's verb does to a job in this state; `force` cancels what is already out."""
    if force and verb is Verb.CANCEL and state in (S.DISPATCHED, S.RUNNING):
        return _now(Move.CANCEL)
    return VERBS[verb].get(state, _REFUSE)


def does_nothing(verb: Verb, state: JobState) -> str:
    """Return that a verb is refused in a state, and what helps."""
    first = "; hold it first" if state is S.CLAIMED and verb in (Verb.EDIT, Verb.SKIP) else ""
    return f"{verb.replace('_', ' ')} does nothing to a job that is {state.label}{first}"


def overtaken(gone: int) -> str:
    """Return why an ended job of a group does not go again, and what sends it all the same."""
    who = "1 job" if gone == 1 else f"{gone} jobs"
    return f"{who} behind it in its group went already; to send it all the same: --out-of-order"
