"""Why a job is not moving: the one gate that holds it, in the order in which the engine comes to them.

`explain` is a pure function of facts that anybody may gather. It answers with a sentence that a person can
act on; with who set the gate, since when, and when it opens by itself; and with an estimate of when the job
goes, where there is one that can be kept (domain/estimates.py).
"""

from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from shlex import quote
from typing import Final

from penstock.domain.estimates import after_opening, in_turn, kept, last_moment, late, spread, spread_at_most
from penstock.domain.gates import Explanation, Facts, Gate, because, once_sent, stamp, until_then, why
from penstock.domain.lanes import Lane
from penstock.domain.notes import Said
from penstock.domain.pools import Pool
from penstock.domain.standing import OUTCOME_UNKNOWN, Neighbour, stuck_since
from penstock.domain.states import IN_FLIGHT, TERMINAL, JobState, Verb
from penstock.domain.targets import groups_limit

S = JobState
SETTLES: Final = frozenset({Verb.SETTLE_SUCCEEDED.value, Verb.SETTLE_DEAD.value})
A_WHILE: Final = timedelta(seconds=5)
AS_LIMITS_ALLOW: Final = ", or as soon as the limits of its pool let it"


def explain(facts: Facts) -> Explanation:
    """Return the first gate that is closed; a job that none holds goes with the next pass."""
    found = next(filter(None, (gate(facts) for gate in _GATES)), None) or _free(facts)
    if facts.lost_pool is not None:
        instead = "no pool's limits" if facts.pool is None else f'those of pool "{facts.pool.name}"'
        gone = f'its own pool "{facts.lost_pool}" was deleted: beside its lane\'s {instead} count'
        found = found._replace(text=f"{found.text}; {gone}")
    return kept(facts, found)


def _final(facts: Facts) -> Explanation | None:
    job, last = facts.standing.job, facts.standing.last
    if job.state not in TERMINAL:
        return None
    since, by = job.finished_at, None
    when = "" if since is None else f" at {stamp(since)}"
    if last is not None and last.action in SETTLES and job.state in (S.DEAD, S.SUCCEEDED):
        by, text = last.actor, f"was marked as {job.state.label}{when} by {last.actor}{because(last.reason)}"
        text += ": retry, skip or cancel it" if job.state is S.DEAD else ""
    elif job.state is S.DEAD:
        text = f"is dead{why(job.live.reason, job.error)}: retry, skip or cancel it"
    elif job.state in (S.CANCELLED, S.SKIPPED):
        by = None if last is None else last.actor
        who = "" if last is None else f" by {last.actor}{because(last.reason)}"
        text = f"was {job.state.label}{when}{who}"
    else:
        expired = job.state is S.EXPIRED and last is not None
        ended = f"{job.state.label}{when}" if when else f"has {job.state.label}"
        text = ended + (because(last.reason) + once_sent(facts.standing.tried) if expired and last else "")
    return Explanation(job.state, Gate.FINAL, text, since=since, by=by)


def _held(facts: Facts) -> Explanation | None:
    job, last, tried = facts.standing.job, facts.standing.last, facts.standing.tried
    if job.state is not S.HELD:
        return None
    since, by = stuck_since(job.live, job.finished_at, last, tried), None if last is None else last.actor
    match job.live.reason:
        case "context_missing":
            text = "is held because what it should send is missing: cancel it, and enqueue it again"
        case reason if reason == OUTCOME_UNKNOWN:
            instead, by = why(None, tried.error) if tried else "", None
            text = (
                f"is held because nobody knows what became of send {job.live.send}{instead}:"
                " settle it if it was done, release it to send it again"
            )
        case _:
            who = "" if last is None else f" by {last.actor}{because(last.reason)}"
            text = f"is held{who}: release, skip or cancel it"
    if (end := last_moment(facts)) is not None:
        text += f"; released after {stamp(end)} it expires"
    return Explanation(job.state, Gate.HELD, text, since=since, by=by)


def _parent(facts: Facts) -> Explanation | None:
    job = facts.standing.job
    if job.state is not S.WAITING:
        return None
    return Explanation(job.state, Gate.PARENT, "waits until its parent step lets it go")


def _lease(facts: Facts) -> Explanation | None:
    """A job in flight: with a node, or with its executor."""
    standing = facts.standing
    job, live, holder = standing.job, standing.job.live, standing.holder
    if job.state not in IN_FLIGHT:
        return None
    who = f"{standing.asked_by} asked to {standing.request} it{because(standing.asked_why)}"
    asked = f"; {who}" if standing.request else ""
    if job.state is S.CLAIMED:
        found = _claimed(facts)
        return found._replace(text=found.text + asked)
    out = job.state is S.DISPATCHED
    since = live.sent_at if out else live.started_at
    what = f"was sent as number {live.send}; its executor" if out else "is at work; its executor"
    until = live.deadline
    limit = "" if until is None else f" by {stamp(until)}"
    word = "must report" if out else "must be heard of"
    over = until is not None and until <= facts.now
    text = f"{what} {word}{limit}{': it did not, recovery asks what became of it' if over else ''}"
    return Explanation(job.state, Gate.LEASE, text + asked, since, until, holder)


def _claimed(facts: Facts) -> Explanation:
    """With a node, which sends it at its time and as soon as its limits let it."""
    standing, live, now = facts.standing, facts.standing.job.live, facts.now
    until, holder = standing.lease_until, standing.holder
    found = Explanation(standing.job.state, Gate.LEASE, "", live.claimed_at, until, holder)
    if until is not None and until <= now:
        text = f"was claimed by {holder}, whose lease ran out at {stamp(until)}: recovery takes it over"
        return found._replace(text=text)
    has = f"is claimed by {holder}{until_then(until)}"
    at, last = _moment(facts), spread_at_most(facts)
    said = facts.holder or Said()
    if standing.job.id in said.calls:
        since = max(filter(None, (said.calls[standing.job.id], live.claimed_at, live.due_at)))
        return found._replace(text=f"is being sent by {holder} since {stamp(since)}", since=since)
    if standing.request is not None:
        return found._replace(text=f"{has}, which lets it go unsent {at}, unless its call has begun")
    shut = _breaker(facts)
    if live.due_at > now:
        word, back = (
            ("sends it", _tried(facts))
            if facts.put_back is None
            else ("tries it again", because(facts.put_back))
        )
        text = f"{has}, which {word} {at}{back}{'' if shut is None else f'; {shut.text}'}"
        limited = facts.put_back is not None and facts.put_back.startswith("limit of ")
        return found._replace(text=text, eta=None if limited else last if shut is None else shut.eta)
    waits = _limits(facts)
    if waits is None and standing.job.id in said.waits:
        *_, name = facts.limits
        waits = _closed(facts, name, [])
    waits = waits or shut
    if waits is not None:
        return found._replace(text=f"{has}, but {waits.text}", eta=waits.eta)
    text = f"{has}, which sends it {at}{'' if facts.pool is None else AS_LIMITS_ALLOW}"
    return found._replace(text=text, eta=last if last > now and facts.pool is None else None)


def _moment(facts: Facts) -> str:
    """Return when a node sends a job that it has."""
    due, last, now = facts.standing.job.live.due_at, spread(facts), facts.now
    if last <= now:
        return "now"
    if last == due:
        return f"at {stamp(due)}"
    return f"between {stamp(due)} and {stamp(last)} (jitter)" if due > now else f"by {stamp(last)} (jitter)"


def _tried(facts: Facts) -> str:
    """Return what came of the attempt before, if the job waits for that reason."""
    tried, due = facts.standing.tried, facts.standing.job.live.due_at
    return why(tried.outcome, tried.error) if tried is not None and tried.due_at == due else ""


def _missed(facts: Facts) -> Explanation | None:
    live = facts.standing.job.live
    if live.start_by is None or facts.now <= live.start_by:
        return None
    text = f"had to go by {stamp(live.start_by)} and did not: housekeeping ends it as expired"
    return Explanation(facts.standing.job.state, Gate.DUE, text, since=live.start_by)


def _store(facts: Facts) -> Explanation | None:
    pause = facts.store_pause
    if pause is None or pause.over(facts.now):
        return None
    text = f"the whole store is paused by {pause.actor}{because(pause.reason)}{until_then(pause.until)}"
    found = _shut(facts, Gate.STORE, f"{text}: penstock resume-all lets it go", by=pause.actor)
    return _opening(facts, found._replace(since=pause.at), pause.until)


def _lane(facts: Facts) -> Explanation | None:
    lane, changed = facts.lane, facts.changed
    since = None if changed is None else changed.at
    if lane is None:
        return _shut(facts, Gate.LANE, f'lane "{facts.standing.job.lane}" was deleted: cancel the job')
    if not lane["enabled"]:
        by = None if changed is None else changed.actor
        who = "" if by is None else f" by {by}"
        text = f'lane "{lane.name}" is disabled{who}: penstock lanes set {lane.name} enabled=true lets it go'
        return _shut(facts, Gate.LANE, text, by=by)._replace(since=since)
    if lane.stopped(facts.now):
        return _stopped(facts, Gate.LANE, lane, since)
    if facts.pool is not None and facts.pool.stopped(facts.now):
        paused = facts.pool_changed
        return _stopped(facts, Gate.POOL, facts.pool, None if paused is None else paused.at)
    return None


def _stopped(facts: Facts, gate: Gate, row: Lane | Pool, since: datetime | None) -> Explanation:
    until, by = row.paused_until, row.paused_by
    text = f'{gate} "{row.name}" is paused by {by}{because(row.pause_reason)}{until_then(until)}'
    resume = f"penstock {gate}s resume {row.name} lets it go"
    found = _shut(facts, gate, f"{text}: {resume}", by=by)._replace(since=since)
    return _opening(facts, found, until)


def _group(facts: Facts) -> Explanation | None:
    standing = facts.standing
    job, ahead, pause = standing.job, standing.ahead, standing.group_pause
    if standing.group_paused:
        by = None if pause is None else pause.actor
        who = "" if pause is None else f" by {pause.actor}{because(pause.reason)}"
        resume = f"penstock groups resume {job.lane} {quote(str(job.live.grp))} lets it go"
        until = standing.group_until
        text = f'group "{job.live.grp}" is paused{who}{until_then(until)}: {resume}'
        return Explanation(job.state, Gate.GROUP, text, None if pause is None else pause.at, until, by=by)
    if ahead is None:
        return None
    until = ahead.due_at if ahead.state is S.PENDING and ahead.due_at > facts.now else None
    which = f"job {ahead.id}" if ahead.id else "a job of another tenant"
    text = f"waits for {which} of group {job.live.grp}, {_ahead(ahead, until)}"
    since = ahead.since or (job.context.created_at if job.context else None)
    return Explanation(job.state, Gate.GROUP, text, since, until, job=ahead.id or None)


def _ahead(ahead: Neighbour, until: datetime | None) -> str:
    whose = "" if ahead.id else "ask an operator to "  # who may not see it can do nothing about it
    match ahead.state:
        case S.DEAD:
            return f"which is dead{why(ahead.reason, ahead.error)}: {whose}retry, skip or cancel it"
        case S.HELD:
            settle = "settle it if it was done, else " if ahead.reason == OUTCOME_UNKNOWN else ""
            return f"which is held{why(ahead.reason, ahead.error)}: {whose}{settle}release, skip or cancel it"
        case S.PENDING if until is not None:
            return f"which is before it and due at {stamp(until)}{why(None, ahead.error)}"
        case S.PENDING:
            return "which goes before it"
        case _:
            return f"which is {ahead.state.label}"


def _due(facts: Facts) -> Explanation | None:
    """Not yet its time; where a limit or a breaker made it so, that is the gate."""
    job, tried = facts.standing.job, facts.standing.tried
    due = job.live.due_at
    if due <= facts.now:
        return None
    reason, gate = facts.put_back, Gate.DUE
    if reason is not None:
        gate = Gate.SINK if reason.startswith("sink ") else Gate.DUE
        text = f"was put back until {stamp(due)}{because(reason)}"
        for name, limit in facts.limits.items():
            if reason == f"limit of {name}":
                if not facts.serving:  # nobody tries it again then
                    return None
                text = f"{_shut_limit(facts, name)}: it is tried again at {stamp(due)}"
                return Explanation(job.state, limit, text, until=due)
        if facts.target is not None and facts.target.name in reason and (shut := _breaker(facts)):
            return shut
    elif tried is not None and tried.due_at == due:
        shut = _breaker(facts)
        text = f"waits for its next attempt at {stamp(due)}{_tried(facts)}"
        text = text if shut is None else f"{text}; {shut.text}"
    else:
        text = f"is due at {stamp(due)}"
    return _opening(facts, Explanation(job.state, gate, text), due)


def _breaker(facts: Facts) -> Explanation | None:
    target, job = facts.target, facts.standing.job
    if target is None:
        return None
    until, pause = None, target.pause
    if pause is not None and not pause.over(facts.now):
        who = f"{target.name} is paused by {pause.actor}{because(pause.reason)}{until_then(pause.until)}"
        text = f"{who}: penstock targets resume {target.name} lets it go"
        found = _shut(facts, Gate.BREAKER, text, by=pause.actor)._replace(since=pause.at)
        return _opening(facts, found, pause.until)
    if target.slow_until is not None and target.slow_until > facts.now:
        until = target.slow_until
        text = f"{target.name} asked to be left alone until {stamp(until)}"
    elif target.state == "open" and target.until is not None and target.until > facts.now:
        until = target.until
        text = f"{target.name} is left alone until {stamp(until)}: {target.failures} calls in a row failed"
    elif target.state == "closed":
        return None
    else:
        text = f"{target.name} is tried with one call at a time after {target.failures} failed in a row"
    return _opening(facts, Explanation(job.state, Gate.BREAKER, text, since=target.opened_at), until)


def _limits(facts: Facts) -> Explanation | None:
    """A limit that a node of the lane waits for, or that made one give the job back."""
    serving, lane = facts.serving, facts.standing.job.lane
    for name in facts.limits:
        waits = [said for said in serving if name in said.limits]
        gave_back = bool(serving) and facts.put_back == f"limit of {name}"
        if waits or gave_back:
            return _closed(facts, name, waits)
    if facts.standing.job.state is S.PENDING and serving and all(lane in said.crowded for said in serving):
        batch = f"batch_size = {facts.lane['batch_size']}" if facts.lane else "batch_size"
        text = f'every node of lane "{lane}" has twice its batch in hand ({batch}) and claims no more for now'
        return Explanation(facts.standing.job.state, Gate.LANE, text)
    return None


def _closed(facts: Facts, name: str, waits: Sequence[Said]) -> Explanation:
    """A limit that is reached, as nodes say; when its next token and the job's turn come, if known."""
    full = bool(waits) and all(name in said.full for said in waits)  # one may have taken all the slots
    tokens = [at for said in waits if (at := said.limits[name]) is not None and at > facts.now]
    until, queue = (
        None if full else min(tokens, default=None),
        sum(said.queues.get(name, 0) for said in waits),
    )
    when, eta, job = "", None, facts.standing.job
    if until is not None:
        when = f"; the next token comes at {stamp(until)}"
        alone = until if queue <= 1 else None
        eta = alone if job.state is S.CLAIMED else in_turn(facts, until, queue)
    row = facts.lane if name.startswith("lane/") else facts.pool
    paced = row is not None and row.settings["rate"] is not None
    token = until is not None or (bool(waits) and not full and paced)
    text = f"{_shut_limit(facts, name, full=full, token=token)}{when}"
    return Explanation(job.state, facts.limits[name], text, until=until, eta=eta)


def _sink(facts: Facts) -> Explanation | None:
    lane, serving = facts.lane, facts.serving
    if lane is None or not serving:
        return None
    sink = lane["sink"]
    closed = [said.sinks[sink] for said in serving if sink in said.sinks]
    refused = [said.refused[lane.name] for said in serving if lane.name in said.refused]
    if len(closed) + len(refused) < len(serving):
        return None
    trouble = f"cannot be opened: {closed[0]}" if closed else f"takes nothing: {refused[0]}"
    text = f'sink "{sink}" {trouble}; nodes try again by themselves'
    return Explanation(facts.standing.job.state, Gate.SINK, text)


def _served(facts: Facts) -> Explanation | None:
    name = facts.standing.job.lane
    if facts.serving:
        return None
    stopping = [f"{said.who} stops" for said in facts.nodes if said.stops and said.names(name)]
    rest = [said for said in facts.nodes if not said.stops]
    drained = [said.who for said in rest if said.drains is not None and said.names(name) and said.who]
    idle = [said.standby for said in rest if said.standby is not None and said.names(name)]
    if idle and not drained:
        trouble = why(None, next(filter(None, idle), None))
        text = f'every node of lane "{name}" stands by: none has the lease to send{trouble}; one will take it'
        return Explanation(facts.standing.job.state, Gate.LANE, text)
    others = any(said.sends for said in rest)
    lanes = f" --lanes {name}" if others and not drained else ""
    told = [f"{', '.join(drained)} was told to drain"] if drained else []
    why_not = because("; ".join([*told, *stopping]))
    back = ", or let it go on: penstock nodes resume" if drained else ""
    text = f'no running node serves lane "{name}"{why_not}: start penstock serve{lanes}{back}'
    return Explanation(facts.standing.job.state, Gate.LANE, text)


def _free(facts: Facts) -> Explanation:
    job, since = facts.standing.job, late(facts)
    if since is not None and facts.lane is not None:
        text = f"comes later than misfire = {facts.lane['misfire']} allows: it expires with the next pass"
        return Explanation(job.state, Gate.DUE, text, since=since)
    if not job.live.mode and facts.standing.turn is None and facts.now - job.live.due_at > A_WHILE:
        # No pass takes that long: others go before it, and how many nobody can say.
        text = "nothing holds it but its turn: others of its lane go before it"
        return Explanation(job.state, Gate.DUE, text, since=job.live.due_at)
    text = "nothing holds it: it goes with the next pass"
    return Explanation(job.state, Gate.DUE, text, since=job.live.due_at, eta=facts.now)


_GATES: Final[tuple[Callable[[Facts], Explanation | None], ...]] = (
    _final, _held, _parent, _lease, _missed, _store, _lane, _group, _due, _breaker, _sink, _limits, _served,
)  # fmt: skip


def _shut(facts: Facts, gate: Gate, text: str, *, by: str | None = None) -> Explanation:
    return Explanation(facts.standing.job.state, gate, text, by=by)


def _opening(facts: Facts, found: Explanation, until: datetime | None) -> Explanation:
    """A gate that opens at that time; then the job may still have to wait for its own."""
    return found._replace(until=until, eta=after_opening(facts, until))


def _shut_limit(facts: Facts, name: str, *, full: bool = False, token: bool = False) -> str:
    """Say which limit is reached, and by which of its settings, as far as that is known."""
    scope, _, rest = name.partition("/")
    lane, row = facts.lane, facts.lane if scope == "lane" else facts.pool
    if lane is not None and name == groups_limit(lane).id:
        rest, settings = lane.name, ["max_groups"]
    else:
        settings = ["max_in_flight"] if full else ["rate"] if token else ["rate", "max_in_flight"]
    values = {} if row is None else {key: row.settings[key] for key in settings}
    by = ", ".join(f"{key} = {value}" for key, value in values.items() if value is not None)
    return f'the limit of {scope} "{rest}" lets no more jobs go for now{because(by)}'
