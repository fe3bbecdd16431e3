"""Figures per lane: what waits, what is out, what ended within a day, and how long jobs take.

States come from counters. What ended within a day is counted up to a cap, lane by lane and by an index: a
busy lane says "500 and more". So is what is due, where other jobs of the lane are of the future. Lanes in
which nothing ever ended are not looked at.
"""

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any, Final

from penstock.client import Client
from penstock.domain.filters import MAX_PAGE, Order, Span
from penstock.domain.job import Job
from penstock.domain.states import JobState
from penstock.observability.dues import oldest_due

MOST_LANES: Final = 200
DAY: Final = timedelta(days=1)
STATES: Final = ("pending", "claimed", "dispatched", "running", "held", "dead")
FAILED: Final = (JobState.DEAD, JobState.EXPIRED)


def lane_stats(client: Client) -> dict[str, Any]:
    """Return the figures of every lane, the first 200 by name."""
    scouted, counts = client.store.scout(), client.counts()
    waited = oldest_due(scouted)
    by_lane: dict[str, dict[str, int]] = {}
    for (lane, state), n in counts.items():
        by_lane.setdefault(lane, {})[state.label] = max(0, n)
    names = sorted(client.store.lanes())
    return {
        "now": scouted.now,
        "lanes": [
            _lane(client, name, by_lane.get(name, {}), waited.get(name, 0.0), scouted.now)
            for name in names[:MOST_LANES]
        ],
        "more_lanes": max(0, len(names) - MOST_LANES),
    }


def _lane(
    client: Client, name: str, counts: Mapping[str, int], waited: float, now: datetime
) -> dict[str, Any]:
    since = Span(since=now - DAY)
    ended: list[Job] = []
    if counts.get("succeeded"):
        ended = client.list(lane=name, state=JobState.SUCCEEDED, finished=since, limit=MAX_PAGE).jobs
    failed = 0
    if counts.get("dead") or counts.get("expired"):
        failed = len(client.list(lane=name, state=FAILED, finished=since, limit=MAX_PAGE).jobs)
    took = [_took(job) for job in ended]
    return {
        "lane": name,
        **{state: counts.get(state, 0) for state in STATES},
        **(_due(client, name, counts, now) if waited else {"due": 0, "due_capped": False}),
        "succeeded_24h": len(ended),
        "failed_24h": failed,
        "capped": len(ended) == MAX_PAGE or failed == MAX_PAGE,
        "oldest_due_s": round(waited, 3),
        "avg_duration_ms": round(sum(took) / len(took), 3) if took else None,
    }


def _due(client: Client, lane: str, counts: Mapping[str, int], now: datetime) -> dict[str, Any]:
    """Return how many jobs are due: all that are pending, unless some are of the future."""
    pending = JobState.PENDING
    later = client.list(lane=lane, state=pending, order=Order.DUE, run=Span(since=now), limit=1).jobs
    if not later:
        return {"due": counts.get(pending.label, 0), "due_capped": False}
    due = client.list(lane=lane, state=pending, order=Order.DUE, run=Span(until=now), limit=MAX_PAGE).jobs
    return {"due": len(due), "due_capped": len(due) == MAX_PAGE}


def _took(job: Job) -> float:
    live, ended = job.live, job.finished_at
    began = live.started_at or live.sent_at or live.claimed_at
    return 0.0 if ended is None or began is None else max(0.0, (ended - began) / timedelta(milliseconds=1))
