"""What each call of the port may do and must answer, judged by the picture of the store from before it.

`expect` is asked before the call and returns what to hold its result against. Rules that need the whole
picture are here: order and completeness of claims, fencing; keys and retention are in `keeping`.
"""

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, Final

from penstock.domain.job import Claim, Live
from penstock.domain.outcomes import Outcome, Running
from penstock.domain.states import JobState, Verb
from penstock.ports.flow import Confirmed
from penstock.ports.store import Ask, Done, Lapse, Report, Reported, Settled
from penstock.testing.invariants.facts import (
    BlockedGroupSent,
    OutOfOrder,
    StaleWrite,
    Stuck,
    TooEarly,
    TwoInFlight,
    Violation,
    WrongAnswer,
    WrongAttempts,
)
from penstock.testing.invariants.keeping import enqueue, retire
from penstock.testing.invariants.model import GroupKey, Head
from penstock.testing.invariants.moves import Change
from penstock.testing.invariants.picture import Changes, Picture, Verdict

_OUT: Final = (JobState.DISPATCHED, JobState.RUNNING)


def expect(picture: Picture, call: str, args: tuple[Any, ...], options: Mapping[str, Any]) -> Verdict | None:
    """Return what judges the call's result and changes; None for calls that may do as they like."""
    make = _EXPECTATIONS.get(call)
    return make(picture, *args, **options) if make is not None else None


def _claim(picture: Picture, ask: Ask) -> Verdict:
    ready = picture.model.ready_jobs(picture.lanes[ask.lane].number, picture.now + ask.ahead)

    def verdict(claim: Claim | None, changes: Changes) -> None:
        taken = {claimed.job.arrival for claimed in claim.jobs} if claim else set()
        if early := taken - ready:
            raise TooEarly(f"claimed before they are due, or not pending: {sorted(early)}", ask=ask)
        if len(taken) < min(ask.limit, len(ready)):
            raise Stuck("a claim passes over free jobs", taken=taken, ready=ready, ask=ask)
        _same(claim, changes, ask)

    return verdict


def _claim_groups(picture: Picture, ask: Ask) -> Verdict:
    lane, until = picture.lanes[ask.lane].number, picture.now + ask.ahead
    runs = {key: picture.model.ready_run(key, until, ask.run) for key in picture.model.groups(lane)}
    ready = {key: run for key, run in runs.items() if run}
    heads = {key: (picture.model.head(key), key in picture.model.paused) for key in runs}

    def verdict(claim: Claim | None, changes: Changes) -> None:
        taken: dict[GroupKey, list[int]] = {}
        for claimed in claim.jobs if claim else ():
            taken.setdefault((claimed.job.lane, claimed.job.grp or ""), []).append(claimed.job.arrival)
        for key, arrivals in taken.items():
            if ready.get(key, [])[: len(arrivals)] != arrivals:
                head, paused = heads[key]
                raise _out_of_turn(arrivals, head, paused=paused, until=until, ready=ready.get(key, []))
        if len(taken) < min(ask.limit, len(ready)):
            raise Stuck("a claim passes over free groups", taken=taken, ready=ready, ask=ask)
        _same(claim, changes, ask)

    return verdict


def _out_of_turn(
    arrivals: Sequence[int], head: Head, *, paused: bool, until: datetime, ready: Sequence[int]
) -> Violation:
    facts: dict[str, object] = {
        "taken": list(arrivals),
        "may_go": list(ready),
        "group": head.rows,
        "dead": head.dead,
    }
    first = head.rows[0] if head.rows else None
    if head.busy:
        return TwoInFlight("a group is claimed that another claim holds", **facts)
    if first is None or first.arrival not in arrivals:
        return OutOfOrder("the first job of its group is passed over", **facts)
    if paused or first.state != JobState.PENDING:
        return BlockedGroupSent("claimed from a paused or held group", **facts)
    if first.due_at > until:
        return TooEarly("the head of its group is not due", **facts)
    if not ready:
        return BlockedGroupSent("claimed behind a dead job", **facts)
    return OutOfOrder("not the first jobs of its group, in order", **facts)


def _same(claim: Claim | None, changes: Changes, ask: Ask) -> None:
    """Hold what a claim says of its jobs against what it moved."""
    told = {claimed.job.arrival: claimed.job for claimed in claim.jobs} if claim else {}
    done = {a: change.after.job for a, change in changes.items() if change.after is not None}
    if told != done:
        raise WrongAnswer("the claim's jobs are not those it moved", told=told, done=done)
    if claim is not None and (claim.node, claim.lease_until - claim.claimed_at) != (ask.node, ask.lease):
        raise WrongAnswer("the claim is not what was asked for", claim=claim, ask=ask)


def _settle(picture: Picture, claim: Claim, outcomes: Mapping[int, Outcome] | None = None) -> Verdict:
    held = picture.tables.claims.get(claim.epoch)
    ours = {job.arrival for job in held.open_jobs()} if held else set()
    named = set(outcomes) if outcomes is not None else {claimed.job.arrival for claimed in claim.jobs}

    def verdict(settled: Settled, changes: Changes) -> None:
        changes = {arrival: change for arrival, change in changes.items() if not change.only_slot}
        if stale := set(changes) - ours:
            raise StaleWrite(
                f"epoch {claim.epoch} settles what it does not hold", jobs=stale, changes=changes
            )
        _answered(settled, set(changes), named, outcomes or {})

    return verdict


def _resolve(picture: Picture, lapse: Lapse, outcomes: Mapping[int, Outcome]) -> Verdict:
    jobs = {arrival: picture.tables.jobs.get(arrival) for arrival in outcomes}
    ours = {a for a, job in jobs.items() if job and job.epoch == lapse.epoch and job.state in _OUT}

    def verdict(settled: Settled, changes: Changes) -> None:
        if stale := set(changes) - ours:
            raise StaleWrite(
                f"epoch {lapse.epoch} resolves what it does not hold", jobs=stale, changes=changes
            )
        _answered(settled, set(changes), set(outcomes), outcomes)
        for change in changes.values():
            _check_cap(picture, change)

    return verdict


def _check_cap(picture: Picture, change: Change) -> None:
    """An executor that fell silent once too often is not waited for again."""
    if change.before is None or change.after is None or change.after.state is not JobState.PENDING:
        return
    rules = next(rules for rules in picture.lanes.values() if rules.number == change.after.job.lane)
    lapsed = change.after.job.recoveries > change.before.job.recoveries
    if lapsed and change.before.job.recoveries >= rules.max_recoveries:
        raise change.broken(WrongAttempts, f"recovered more than {rules.max_recoveries} times")


def _answered(settled: Settled, done: set[int], named: set[int], outcomes: Mapping[int, Outcome]) -> None:
    # A timer that is restarted at the very moment it was set leaves the row as it was.
    done |= {a for a in settled.applied if isinstance(outcomes.get(a), Running)}
    if settled.applied != done or settled.refused != named - done:
        raise WrongAnswer("not what was written", settled=settled, done=done, named=named)


def _mark_sending(picture: Picture, epoch: int) -> Verdict:
    ours = epoch in picture.tables.claims

    def verdict(answer: bool, changes: Changes) -> None:  # noqa: FBT001
        if answer != ours or changes:
            raise StaleWrite(f"epoch {epoch} may send: {answer}", ours=ours)

    return verdict


def _renew(picture: Picture, epochs: Sequence[int], lease: timedelta) -> Verdict:
    ours = frozenset(epochs) & set(picture.tables.claims)

    def verdict(answer: frozenset[int], changes: Changes) -> None:
        held = {epoch: picture.tables.claims[epoch].lease_until for epoch in ours}
        if answer != ours or changes or any(until != picture.now + lease for until in held.values()):
            raise StaleWrite(
                "renewed what is not ours, or not all of it", answer=answer, ours=ours, held=held
            )

    return verdict


def _takeover(picture: Picture, node: int, lease: timedelta, limit: int, **_: object) -> Verdict:
    held = picture.tables.claims
    over = {epoch for epoch, claim in held.items() if claim.lease_until < picture.now}
    newest = max(held, default=0)
    open_ = {job.arrival: epoch for epoch in held for job in held[epoch].open_jobs()}

    def verdict(claims: Sequence[Claim], changes: Changes) -> None:
        if len(claims) < min(limit, len(over)):
            raise Stuck("claims are left whose lease ran out", over=over, claims=claims)
        if live := {a for a in changes if open_.get(a) not in over}:
            raise TwoInFlight("a claim is taken from a holder that may still trust it", jobs=live)
        for claim in claims:
            kept = picture.tables.claims.get(claim.epoch)
            fresh = claim.epoch > newest and claim.node == node and claim.lease_until == picture.now + lease
            if kept is None or not fresh:
                raise StaleWrite("a claim is taken over under an old epoch", claim=claim, newest=newest)

    return verdict


def _lapse(picture: Picture, node: int, lease: timedelta, limit: int, **_: object) -> Verdict:  # noqa: ARG001
    jobs = picture.tables.jobs.values()
    silent = {job.arrival for job in jobs if job.deadline is not None and job.deadline < picture.now}

    def verdict(lapse: Lapse | None, changes: Changes) -> None:
        found = {claimed.job.arrival for claimed in lapse.jobs} if lapse else set()
        if found != set(changes) or not found <= silent:
            raise WrongAnswer("not the jobs whose deadline passed", found=found, silent=silent)
        if len(found) < min(limit, len(silent)):
            raise Stuck("silent jobs are passed over", found=found, silent=silent)

    return verdict


def _confirm(picture: Picture, claim: Claim) -> Verdict:
    held = picture.tables.claims.get(claim.epoch)
    ours = {job.arrival for job in held.open_jobs()} if held else set()
    asked = {a: Verb(verb) for a, verb in picture.tables.requests.items() if a in ours}

    def verdict(answer: Confirmed, changes: Changes) -> None:
        if answer.asked != asked or answer.ours != (held is not None) or changes:
            raise WrongAnswer("not what operators asked for, or not whose it is", answer=answer, asked=asked)

    return verdict


def _report(picture: Picture, reports: Sequence[Report]) -> Verdict:
    rows = [_row(picture, word.id) for word in reports]
    current = [
        row is not None and _open_send(row) == word.send for row, word in zip(rows, reports, strict=True)
    ]

    def verdict(answers: Sequence[Reported], changes: Changes) -> None:
        for row, mine, word, answer in zip(rows, current, reports, answers, strict=True):
            moved = row is not None and row.arrival in changes
            if answer.applied and not mine:
                raise StaleWrite(f"a report on send {word.send} that is not the open one", row=row, word=word)
            if (moved and not answer.applied) or answer.applied == answer.late:
                raise WrongAnswer("not what the report did", row=row, word=word, answer=answer)

    return verdict


def _row(picture: Picture, id_: str) -> Live | None:
    spot = picture.model.spots.get(picture.model.arrivals.get(id_, 0))
    return spot.job if spot else None


def _open_send(row: Live) -> int | None:
    if row.state == JobState.CLAIMED:
        return row.current_send
    parked = (JobState.PENDING, JobState.HELD)
    return row.send if row.open and row.state in (*_OUT, *parked) else None


def _operate(picture: Picture, verb: Verb, ids: Sequence[str], **_: object) -> Verdict:
    arrivals = [picture.model.arrivals.get(id_, 0) for id_ in ids]

    def verdict(answers: Sequence[Done] | Done, changes: Changes) -> None:
        answers = [answers] if isinstance(answers, Done) else answers
        if others := set(changes) - set(arrivals):
            raise WrongAnswer(f"{verb} touches other jobs", others=others, changes=changes)
        for arrival, answer in zip(arrivals, answers, strict=True):
            spot = picture.model.spots.get(arrival)
            if answer.state is not (spot.state if spot else None):
                raise WrongAnswer(f"{verb} answers {answer}", spot=spot)

    return verdict


def _edit(picture: Picture, id: str, **_: object) -> Verdict:  # noqa: A002
    return _operate(picture, Verb.EDIT, [id])  # answered by one instead of a list of one


def _pause_group(picture: Picture, lane: str, group: str, *, paused: bool, **_: object) -> Verdict:
    key = (picture.lanes[lane].number, group)

    def verdict(_: None, changes: Changes) -> None:
        if (key in picture.model.paused) != paused or changes:
            raise WrongAnswer(f"group {group} is paused: {not paused}", changes=changes)

    return verdict


def _expire(picture: Picture, limit: int, **_: object) -> Verdict:
    rows = [job for job in picture.tables.jobs.values() if job.state == JobState.PENDING]
    late = {job.arrival for job in rows if job.start_by is not None and job.start_by < picture.now}

    def verdict(count: int, changes: Changes) -> None:
        if not set(changes) <= late:
            raise TooEarly("expired before start_by", late=late, changes=changes)
        if count != len(changes) or count < min(limit, len(late)):
            raise WrongAnswer("not what expired", count=count, late=late, changes=changes)

    return verdict


_EXPECTATIONS: Final[Mapping[str, Callable[..., Verdict]]] = {
    "claim": _claim,
    "claim_groups": _claim_groups,
    "settle": _settle,
    "resolve": _resolve,
    "mark_sending": _mark_sending,
    "renew": _renew,
    "takeover": _takeover,
    "lapse": _lapse,
    "confirm": _confirm,
    "report": _report,
    "operate": _operate,
    "edit": _edit,
    "pause_group": _pause_group,
    "expire": _expire,
    "retire": retire,
    "enqueue": enqueue,
}
