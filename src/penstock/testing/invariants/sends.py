"""What reached the sink, held against what the store has on record: bytes, causes, numbers, order, time."""

from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Final

from penstock.domain.states import TERMINAL, JobState, Verb
from penstock.testing.invariants.facts import (
    Ledger,
    Log,
    OutOfOrder,
    TooEarly,
    TwoInFlight,
    Undelivered,
    UnexplainedSend,
    WrongBytes,
)
from penstock.testing.invariants.witness import Witness

_UNKNOWN: Final = frozenset({"lapsed", "unanswered"})
_AGAIN: Final = _UNKNOWN | {"not_started"}
_LETS_GO: Final = frozenset({Verb.RELEASE, Verb.RETRY})


def check_taken(witness: Witness) -> None:
    """What is done was taken by the sink, unless an operator says that it is done."""
    if witness.job.state is not JobState.SUCCEEDED or witness.by_hand:
        return
    if not any(delivery.taken for delivery in witness.deliveries):
        raise Undelivered("done, and nothing of it was taken", witness=witness)


def check_bytes(witness: Witness) -> None:
    """What is stored and delivered is what was accepted, or what an operator made of it."""
    context, said = witness.job.context, witness.said.payload
    if said not in witness.versions or (not witness.edited and witness.versions != {said}):
        raise WrongBytes("stored otherwise than accepted", said=said, stored=witness.versions)
    for delivery in witness.deliveries:
        if delivery.payload not in witness.versions:
            raise WrongBytes("delivered otherwise than accepted", delivery=delivery, said=witness.versions)
    last = witness.deliveries[-1] if witness.deliveries else None
    if last is None or last.stale or witness.by_hand or witness.job.state is not JobState.SUCCEEDED:
        return
    if context is not None and last.payload != context.payload:
        raise WrongBytes("an older version was delivered", delivery=last, newest=context.payload)


def check_causes(witness: Witness) -> None:
    """No send but the first without a cause on record."""
    rows, sends = witness.timeline.attempts, witness.deliveries
    epochs = Counter(delivery.epoch for delivery in sends)
    if twice := [epoch for epoch, count in epochs.items() if count > 1]:
        raise UnexplainedSend(f"sent twice under epoch {twice}", witness=witness)
    if len(sends) > 1 + len(rows) + len(witness.replays):
        raise UnexplainedSend(f"{len(sends)} sends, {len(rows)} tries on record", witness=witness)
    again = Counter(row.send for row in rows if row.outcome in _AGAIN)
    let_go = [n for n in witness.timeline.audit if n.before == JobState.HELD.label and n.action in _LETS_GO]
    for number, count in Counter(delivery.send for delivery in sends).items():
        if count > 1 + again[number]:
            raise UnexplainedSend(f"number {number} was sent {count} times", witness=witness)
        if witness.lane["on_unknown"] == "hold" and count > 1 + len(let_go):
            raise UnexplainedSend(f"number {number} was sent again, which must not repeat", witness=witness)


def check_numbers(witness: Witness) -> None:
    """A new number is used only when the fate of the one before it is known; numbers never go back."""
    known = {row.send for row in witness.timeline.attempts if row.outcome not in _UNKNOWN}
    for number in {delivery.send for delivery in witness.deliveries}:
        if number > witness.job.live.send + 1:
            raise UnexplainedSend(f"number {number} is not on record", witness=witness)
        given_up = witness.replays or witness.edited
        if number > 1 and number - 1 not in known and not given_up:
            raise UnexplainedSend(f"number {number} before the fate of the last was known", witness=witness)
    numbers = [delivery.send for delivery in witness.deliveries if not delivery.stale]
    if numbers != sorted(numbers):
        raise UnexplainedSend(f"send numbers go back: {numbers}", witness=witness)


def check_not_early(witness: Witness, *, slack: timedelta) -> None:
    """Nothing goes before its time, unless an operator hurries it; clocks may be off by `slack`."""
    run_at, first = witness.said.run_at, next(iter(witness.deliveries), None)
    if run_at is None or first is None or first.clock is None:
        return
    hurried = witness.edited or any(note.action == Verb.RETRY for note in witness.timeline.audit)
    if first.clock + slack < run_at and not hurried:
        raise TooEarly(f"sent {run_at - first.clock} before its time", witness=witness)


def check_order(ledger: Ledger, log: Log, witnesses: Mapping[str, Witness]) -> None:
    """Groups keep order: by place on the first send, and without anything between a job's sends."""
    groups: dict[tuple[str, str], list[Witness]] = {}
    for witness in witnesses.values():
        if witness.job.live.grp is not None:
            groups.setdefault((witness.job.lane, witness.job.live.grp), []).append(witness)
    first, stale = _first_sends(log)
    valid, _ = _first_sends(log, stale=False)
    answered = {job_id: number for number, job_id in enumerate(ledger.accepted)}
    for members in groups.values():
        members.sort(key=lambda witness: witness.place)
        for index, later in enumerate(members):
            at = valid.get(later.job.id)
            for earlier in members[:index] if at is not None else ():
                if answered[earlier.job.id] >= ledger.asked_after[later.job.id] or earlier.replays:
                    continue
                sent = first.get(earlier.job.id)
                overtaken = earlier.job.state not in TERMINAL if sent is None else sent > (at or 0)
                if overtaken and earlier.job.id not in stale:
                    raise OutOfOrder("a job was sent before the one before it", earlier=earlier, later=later)
        if members[0].lane["hold_until"] == "done":
            _check_alone(log, members)


def _first_sends(log: Log, *, stale: bool = True) -> tuple[dict[str, int], set[str]]:
    """Return when each job was first sent, and the jobs of which that was a zombie's doing."""
    first: dict[str, int] = {}
    zombies = set()
    for number, delivery in enumerate(log.deliveries):
        if delivery.job not in first and (stale or not delivery.stale):
            first[delivery.job] = number
            if delivery.stale:
                zombies.add(delivery.job)
    return first, zombies


def _unsent(witness: Witness) -> bool:
    return any(row.outcome == "not_started" for row in witness.timeline.attempts)


def _check_alone(log: Log, members: Sequence[Witness]) -> None:
    """A job that was sent keeps its group to its end: nothing else is sent until it is sent no more.

    One that was replayed, or that a probe took for not started, is as unsent.
    """
    by_id = {witness.job.id: witness for witness in members if not witness.replays and not _unsent(witness)}
    over: set[str] = set()
    last: str | None = None
    for delivery in log.deliveries:
        if delivery.job not in by_id or delivery.stale:
            continue
        if delivery.job in over:
            raise TwoInFlight(
                "another job was sent between two sends of this one", job=by_id[delivery.job], other=last
            )
        if last is not None and last != delivery.job:
            over.add(last)
        last = delivery.job
