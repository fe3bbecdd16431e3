"""When a job probably goes: an estimate that can be kept, or none.

No estimate means that somebody has to do something, that it depends on others, or that the job does not go.
"""

from datetime import datetime
from typing import Final

from penstock.domain.durations import parse_duration
from penstock.domain.gates import Explanation, Facts, Gate, stamp
from penstock.domain.rates import parse_rate
from penstock.domain.states import JobState
from penstock.domain.times import shifted

_UNSENT: Final = frozenset({JobState.PENDING, JobState.CLAIMED})


def after_opening(facts: Facts, until: datetime | None) -> datetime | None:
    """Return when a job probably goes whose gate opens at that time: its own time and its turn count too."""
    standing, lane = facts.standing, facts.lane
    if until is None or lane is None or standing.ahead is not None or standing.group_paused:
        return None
    turn, pool = standing.turn, facts.pool
    if lane["rate"] is None and (pool is None or pool.rate is None):
        many = turn is not None and turn >= lane["max_in_flight"]
        return None if many else max(until, standing.job.live.due_at)
    return in_turn(facts, max(until, standing.job.live.due_at), 0)


def in_turn(facts: Facts, token: datetime, queue: int) -> datetime | None:
    """Return when it is the job's turn at its lane's rate, if the next token comes then.

    So many with nodes go before it, and those of its lane that do. Who shares a pool with it nobody counts.
    """
    lane, pool, turn = facts.lane, facts.pool, facts.standing.turn
    if lane is None or lane["rate"] is None or turn is None or (pool is not None and pool.rate is not None):
        return None
    rate = parse_rate(lane["rate"])
    return token + rate.per * (turn + queue) / rate.count


def spread(facts: Facts) -> datetime:
    """Return by when a job is tried for the first time: at its time, or some of its lane's jitter later."""
    due, lane = facts.standing.job.live.due_at, facts.lane
    return due if lane is None else shifted(due, parse_duration(lane["jitter"]))


def spread_at_most(facts: Facts) -> datetime:
    """Return the last moment that jitter may choose, or the job's own time if it may expire before that."""
    live, last = facts.standing.job.live, spread(facts)
    return (
        last
        if all(last <= end for end in (live.start_by, _latest(facts)) if end is not None)
        else live.due_at
    )


def late(facts: Facts) -> datetime | None:
    """Return since when a job is too late for what its lane's `misfire` allows; None = it is not."""
    latest = _latest(facts)
    return latest if latest is not None and latest < facts.now else None


def kept(facts: Facts, found: Explanation) -> Explanation:
    """Return the explanation with an estimate only if the job then goes; else with what becomes of it."""
    if found.state not in _UNSENT or found.gate is Gate.FINAL:
        return found
    eta, start_by, latest = found.eta, facts.standing.job.live.start_by, _latest(facts)
    again = "" if facts.standing.tried is None else " again"
    if start_by is not None:
        if eta is not None and start_by < eta:
            text = f"{found.text}; it expires before that, at {stamp(start_by)}"
            return found._replace(eta=None, text=text)
        if found.state is JobState.PENDING and facts.now <= start_by:
            found = found._replace(
                text=f"{found.text}; it expires if it has not gone{again} by {stamp(start_by)}"
            )
    opens = found.until if eta is None else eta
    if latest is None or facts.lane is None:
        return found
    if latest < facts.now and found.gate is Gate.DUE and opens is None:  # it says so itself
        return found
    allows = f"misfire = {facts.lane['misfire']} allows"
    if latest < facts.now or (opens is not None and latest < opens):
        return found._replace(eta=None, text=f"{found.text}; it expires then: that is later than {allows}")
    if found.state is JobState.PENDING and eta is None:
        return found._replace(text=f"{found.text}; it expires after {stamp(latest)}, as late as {allows}")
    return found


def last_moment(facts: Facts) -> datetime | None:
    """Return the end of the time in which a job may go, None = it may go at any time."""
    ends = [end for end in (facts.standing.job.live.start_by, _latest(facts)) if end is not None]
    return min(ends, default=None)


def _latest(facts: Facts) -> datetime | None:
    """Return the last moment that the lane's `misfire` allows the first send of a job at."""
    live, after = facts.standing.job.live, None if facts.lane is None else facts.lane.skip_after
    return None if after is None or live.attempt else shifted(live.due_since, after)
