"""One job, one transaction: whether that was a move of the machine, counted and recorded as it must be.

A `Change` is what a transaction did to one job. Its timeline rows say which moves it claims to be (at most
two: an outcome, and an operator's request honoured with it); without rows it is one of the silent moves of
the happy path. Everything else follows from the moves, and is compared with the row: state, counters, send
number, place in the group, back-off. Written from the design's tables, not from `domain.settlement`, which
it judges.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from types import MappingProxyType
from typing import Final, NamedTuple

from penstock.domain.job import Attempt, Audit, Live
from penstock.domain.ordering import Mode, sequence_of
from penstock.domain.settlement import NODE_ACTOR
from penstock.domain.states import (
    IN_FLIGHT,
    RULES,
    TERMINAL,
    Count,
    JobState,
    Move,
    Reason,
    Verb,
    allowed,
    answer,
)
from penstock.testing.invariants.facts import (
    IllegalPath,
    MissingFromTimeline,
    StaleWrite,
    TerminalChanged,
    UnexplainedSend,
    Violation,
    WrongAttempts,
)


class Spot(NamedTuple):
    """Where a job is: its row (a claimed one says so), and when it ended."""

    job: Live
    finished_at: datetime | None = None

    @property
    def state(self) -> JobState:
        """The job's state."""
        return JobState(self.job.state)


class Limits(NamedTuple):
    """How often a job may be tried, and the least delay before its next attempt.

    `fewest` is the lowest number of attempts that was in force of late: a lane may be changed meanwhile.
    """

    attempts: int
    delay: timedelta
    fewest: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """What one transaction did to one job; the store call that made it is `call`."""

    call: str
    now: datetime
    before: Spot | None
    after: Spot | None
    attempts: Sequence[Attempt]
    audit: Sequence[Audit]
    limits: Limits

    @property
    def only_slot(self) -> bool:
        """Whether a job that is out was only told which slot it takes: its executor spoke first."""
        if self.before is None or self.after is None or self.before.state not in _OUT:
            return False
        old, new = self.before.job, self.after.job
        return old.slot is None and old._replace(slot=new.slot) == new

    def broken(self, kind: type[Violation], what: str, **facts: object) -> Violation:
        """Return the violation with everything there is to know."""
        return kind(
            what,
            **facts,
            call=self.call,
            before=self.before,
            after=self.after,
            attempts=list(self.attempts),
            audit=list(self.audit),
            now=self.now,
        )


M = Move
_OUT: Final = frozenset({JobState.DISPATCHED, JobState.RUNNING})
_SILENT: Final[Mapping[str, frozenset[Move]]] = MappingProxyType(
    {
        "claim": frozenset({M.CLAIM}),
        "claim_groups": frozenset({M.CLAIM}),
        "settle": frozenset({M.SENT, M.START, M.SUCCEED}),
        "resolve": frozenset({M.START, M.SUCCEED}),
        "report": frozenset({M.SENT, M.START, M.SUCCEED}),
    }
)
_LANDING: Final = frozenset({"settle", "resolve", "report"})
_OUTCOMES: Final = MappingProxyType(
    {
        "failed": M.RETRY,
        "unanswered": M.RETRY,
        "deferred": M.DEFER,
        "lapsed": M.LAPSE,
        "not_started": M.LAPSE,
    }
)
_SENT: Final = frozenset(
    {M.RETRY, M.FAIL, M.DEFER, M.SUCCEED, M.SENT, M.START, M.LAPSE, M.LAPSE_HOLD, M.LAPSE_DEAD}
)
_OPENS: Final = frozenset({M.SENT, M.START, M.LAPSE, M.LAPSE_HOLD})
_FIXED: Final = ("arrival", "lane", "keep", "mode", "grp", "tenant", "max_attempts")


def check_change(change: Change) -> None:
    """Raise a Violation unless the change is one that the design allows."""
    before, after = change.before, change.after
    if after is None:
        _check_dropped(change)
    elif before is None:
        _check_new(change, after)
    elif before != after and change.only_slot and change.call == "settle":
        _check_untouched(change, after)
    elif before != after:
        _check_fixed(change, before.job, after.job)
        if change.call in ("takeover", "lapse"):
            _check_leased_again(change, before, after)
        elif change.call == "edit":
            _check_edited(change, before, after)
        else:
            _check_moved(change, before, after)
    else:
        _check_untouched(change, after)


def _check_dropped(change: Change) -> None:
    if change.call != "retire" or change.before is None or change.before.state not in TERMINAL:
        raise change.broken(TerminalChanged, "a job is gone that retention may not drop")


def _check_new(change: Change, after: Spot) -> None:
    row = after.job
    fresh = row.attempt == row.send == row.recoveries == row.deferrals == 0 and not row.open and row.ord >= 0
    if change.call != "enqueue" or after.state is not JobState.PENDING or not fresh:
        raise change.broken(IllegalPath, "a job begins otherwise than pending and untouched")


def _check_fixed(change: Change, before: Live, after: Live) -> None:
    for name in _FIXED:
        if getattr(before, name) != getattr(after, name):
            raise change.broken(IllegalPath, f"{name} never changes")
    if sequence_of(before.ord) != sequence_of(after.ord):
        raise change.broken(IllegalPath, "the sequence never changes")


def _check_untouched(change: Change, spot: Spot) -> None:
    if change.attempts:
        raise change.broken(MissingFromTimeline, "an attempt is on record that changed nothing")
    for note in change.audit:
        if states_of(note) != (spot.state, spot.state):
            raise change.broken(MissingFromTimeline, "the audit names a move that did not happen")


def _check_leased_again(change: Change, before: Spot, after: Spot) -> None:
    """A takeover or a lapse raises the epoch and changes nothing else of a job."""
    old, new = before.job, after.job
    same = old._replace(epoch=new.epoch, node=new.node, deadline=new.deadline) == new
    if not same or change.attempts or change.audit or before.state not in IN_FLIGHT:
        raise change.broken(IllegalPath, f"{change.call} does more than lease the job again")
    if new.epoch is None or (old.epoch is not None and new.epoch <= old.epoch):
        raise change.broken(StaleWrite, "the old holder is not fenced: the epoch did not rise")


def states_of(note: Audit) -> tuple[JobState, JobState] | None:
    """Return the states an audit row tells of; an edit's row says more than the state."""
    told = [note.before, note.after]
    if note.action == Verb.EDIT:
        told = [None if text is None else json.loads(text)["state"] for text in told]
    before, after = told
    return None if before is None or after is None else (JobState[before.upper()], JobState[after.upper()])


def _check_edited(change: Change, before: Spot, after: Spot) -> None:
    """An edit changes when a job goes and what it sends; one that had ended goes again, and nothing else."""
    if before.state in TERMINAL:
        _check_by_operator(change)
    told = [states_of(note) for note in change.audit]
    if told != [(before.state, after.state)] or change.attempts:
        raise change.broken(MissingFromTimeline, "an edit is one audit row that says so")
    old, new = before.job, after.job
    again = after.state is JobState.PENDING and before.state in RULES[M.REPLAY].leaves
    if before.state is not after.state and not again:
        raise change.broken(IllegalPath, f"an edit of a job that is {before.state.label}")
    revised = new.revision == old.revision + 1
    if new.revision != old.revision and not revised:
        raise change.broken(IllegalPath, "an edit adds one revision")
    kept = ("send", "deferrals", *(() if again else ("attempt", "recoveries", "ord", "holds", "reason")))
    if any(getattr(old, name) != getattr(new, name) for name in kept):
        raise change.broken(IllegalPath, "an edit changes more than it may")
    if new.open != (old.open and not revised and not again):
        raise change.broken(UnexplainedSend, "a new message under a number that may be out", revised=revised)


def _check_moved(change: Change, before: Spot, after: Spot) -> None:
    if before.state in TERMINAL:
        _check_by_operator(change)
    moves = _moves(change, before, after)
    state = before.state
    for move in moves:
        if not allowed(state, move, send_open=before.job.open):
            raise change.broken(IllegalPath, f"a job that is {state.label} cannot {move}")
        state = RULES[move].to
    if state is not after.state:
        raise change.broken(IllegalPath, f"{' then '.join(moves)} leads to {state.label}")
    if after.job.slot is not None and after.state not in _OUT:
        raise change.broken(IllegalPath, "a job that is not out takes a slot")
    _check_counts(change, before.job, after.job, moves)
    _check_send(change, before.job, after.job, moves)
    _check_place(change, before.job, after.job, moves)
    _check_since(change, before.job, after.job, moves)
    _check_tries(change, after, moves)
    _check_rows(change, before.job, after.job)


def _check_by_operator(change: Change) -> None:
    if change.call not in ("operate", "edit") or not any(note.actor != NODE_ACTOR for note in change.audit):
        raise change.broken(TerminalChanged, "a job that had ended changed without an operator's word")


def _moves(change: Change, before: Spot, after: Spot) -> list[Move]:
    """Return the moves that the timeline rows tell of, or the silent one that explains the row."""
    notes = [note for note in change.audit if note.action != "late" and note.before != note.after]
    hurry = Move.HURRY if change.call == "recall" else Verb.RETRY
    hurried = [note for note in change.audit if note.action == hurry and note.before == note.after]
    if len(change.attempts) > 1 or len(notes) > 1:
        raise change.broken(MissingFromTimeline, "one move, several rows")
    moves = [_outcome(change, row, before, after, noted=bool(notes)) for row in change.attempts]
    moves += [_noted(change, note, before) for note in notes or hurried]
    if moves:
        return moves
    silent = [m for m in _SILENT.get(change.call, ()) if RULES[m].to is after.state]
    if not silent:
        raise change.broken(
            MissingFromTimeline, f"{before.state.label} to {after.state.label} without a word in the timeline"
        )
    return silent


def _outcome(change: Change, row: Attempt, before: Spot, after: Spot, *, noted: bool) -> Move:
    if change.call not in _LANDING:
        raise change.broken(MissingFromTimeline, f"{change.call} writes no attempts")
    if row.outcome in _OUTCOMES:
        move = _OUTCOMES[row.outcome]
        parked = move is M.LAPSE and after.state is JobState.HELD and not noted
        return M.LAPSE_HOLD if parked else move
    if row.outcome not in set(Reason):
        raise change.broken(MissingFromTimeline, f"an attempt cannot end as {row.outcome!r}")
    return M.LAPSE_DEAD if after.job.recoveries > before.job.recoveries else M.FAIL


def _noted(change: Change, note: Audit, before: Spot) -> Move:
    expected = JobState.PENDING.label if change.attempts else before.state.label
    if note.before != expected:
        raise change.broken(MissingFromTimeline, f"the audit says it was {note.before}, it was {expected}")
    if change.after is not None and note.after != change.after.state.label:
        raise change.broken(MissingFromTimeline, f"the audit says it is {note.after}")
    if change.call != "operate":
        return Move(note.action)
    move = answer(Verb(note.action), before.state, force=True).move
    if move is None:
        raise change.broken(IllegalPath, f"{note.action} does not move a job that is {before.state.label}")
    return move


def _check_counts(change: Change, before: Live, after: Live, moves: Sequence[Move]) -> None:
    counts = {count for move in moves for count in RULES[move].counts}
    expected = before
    if Count.RESET in counts:
        expected = expected._replace(attempt=0, recoveries=0)
    expected = expected._replace(
        attempt=expected.attempt + (Count.ATTEMPT in counts),
        recoveries=expected.recoveries + (Count.RECOVERIES in counts),
        deferrals=expected.deferrals + (Count.DEFERRALS in counts),
    )
    for name in ("attempt", "recoveries", "deferrals"):
        if getattr(expected, name) != getattr(after, name):
            raise change.broken(IllegalPath, f"{name} after {' then '.join(moves)}", expected=expected)


def _check_send(change: Change, before: Live, after: Live, moves: Sequence[Move]) -> None:
    """A number is used up when its send is on record, used again while nobody knows, and never lower."""
    unsent = [row for row in change.attempts if row.outcome == "not_started"]
    sent = not unsent and any(move in _SENT for move in moves)
    number = before.current_send if sent else before.send
    if after.send != number:
        raise change.broken(UnexplainedSend, f"the send number must be {number}", moves=moves)
    if after.state in TERMINAL:
        return
    if sent:
        unanswered = any(row.outcome == "unanswered" for row in change.attempts)
        open_ = unanswered or any(move in _OPENS for move in moves)
    elif unsent and before.state != JobState.CLAIMED:
        open_ = False
    else:
        open_ = before.open and M.REPLAY not in moves
    if after.open != open_:
        fate = "open" if open_ else "known"
        raise change.broken(UnexplainedSend, f"the fate of send {number} must be {fate}", moves=moves)


def _check_place(change: Change, before: Live, after: Live, moves: Sequence[Move]) -> None:
    """A job that was sent keeps its group to its end; only a replay makes it as unsent.

    Of one that succeeded it is known anyway, so its history need not say so.
    """
    if not Mode(before.mode).ordered or after.state == JobState.SUCCEEDED:
        return
    unsent = any(row.outcome == "not_started" for row in change.attempts)
    keeps = before.ord < 0 or (not unsent and any(move in _SENT for move in moves))
    if (after.ord < 0) != (keeps and M.REPLAY not in moves):
        raise change.broken(IllegalPath, "its place in the group is wrong: sent jobs go before unsent ones")


def _check_since(change: Change, before: Live, after: Live, moves: Sequence[Move]) -> None:
    """A job that did not go is as late as before when it comes again: `misfire` counts from that."""
    unsent = M.RETURN in moves or any(row.outcome == "not_started" for row in change.attempts)
    if unsent and after.state not in TERMINAL and after.due_since != before.due_since:
        raise change.broken(IllegalPath, "it did not go, and is not late any more", since=before.due_since)


def _check_tries(change: Change, after: Spot, moves: Sequence[Move]) -> None:
    row, limits = after.job, change.limits
    over = row.attempt > limits.attempts or (row.attempt == limits.attempts and after.state not in TERMINAL)
    if over and M.RETRY in moves:
        raise change.broken(WrongAttempts, f"{row.attempt} of {limits.attempts} attempts and not dead")
    if after.state is JobState.PENDING and moves == [M.RETRY] and row.due_at < change.now + limits.delay:
        raise change.broken(WrongAttempts, f"the next try is due before the back-off of {limits.delay}")
    fewest = limits.attempts if limits.fewest is None else limits.fewest
    if row.reason == Reason.EXHAUSTED and M.FAIL in moves and row.attempt < fewest:
        raise change.broken(WrongAttempts, f"exhausted after {row.attempt} of {fewest} attempts")


_LAPSES: Final = frozenset({"lapsed", "not_started"})


def _check_rows(change: Change, before: Live, after: Live) -> None:
    for row in change.attempts:
        told = (row.arrival, row.attempt, row.send, row.epoch, row.node)
        # A claim that was taken over lapsed with the node that had it, not with the one that found it.
        node = row.node if row.outcome in _LAPSES and before.state == JobState.CLAIMED else before.node
        true = (after.arrival, after.attempt, before.current_send, before.epoch, node)
        if told != true or row.ended_at != change.now:
            raise change.broken(MissingFromTimeline, "the attempt's row is about something else", true=true)
        if after.state == JobState.PENDING and row.due_at != after.due_at:
            raise change.broken(MissingFromTimeline, "the attempt's row names another time for the next try")
