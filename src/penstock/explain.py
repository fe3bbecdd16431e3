"""`explain`: gathers what `domain/explaining.py` needs to know of a job, from a store and nothing else."""

import json
from collections.abc import Callable, Iterator
from datetime import datetime
from typing import Any, Final

from penstock.domain.explaining import explain as explained
from penstock.domain.filters import MAX_PAGE
from penstock.domain.gates import Explanation, Facts
from penstock.domain.job import AuditEntry
from penstock.domain.lanes import Lane
from penstock.domain.notes import alive
from penstock.domain.pools import Pool
from penstock.domain.standing import Standing
from penstock.domain.states import JobState
from penstock.domain.targets import pool_of, target_name
from penstock.ports.store import Store

PAGES: Final = 4
PAUSE: Final = frozenset({"paused_until", "pause_reason", "paused_by"})


def explain(store: Store, id: str) -> Explanation | None:  # noqa: A002
    """Return why a job is where it is; None = there is no such job.

    The facts are looked up one after the other, so a job that is just moving may be seen between two states.
    """
    asked = getattr(type(store), "explanation", None)  # a node explains for itself (stores/remote)
    if asked is not None:
        told: Explanation | None = asked(store, id)
        return told
    standing = store.standing(id)
    return None if standing is None else explain_standing(store, standing)


def explain_standing(
    store: Store, standing: Standing, stopped: Callable[[Lane | Pool], AuditEntry | None] | None = None
) -> Explanation:
    """Return why a job is where it is, to somebody who has looked how it stands.

    `stopped` tells who stopped a lane or pool, to somebody who knows without the audit.
    """
    stopped = stopped or (lambda of: who_stopped(store, of))
    job = standing.job
    lane = store.lanes().get(job.lane)
    if lane is None or job.state not in (JobState.PENDING, JobState.CLAIMED):
        return explained(Facts(standing=standing, lane=lane))
    target = target_name(job, lane)
    pools = store.pools()
    pool, own = pool_of(job, lane, pools), job.context.pool if job.context else None
    return explained(
        Facts(
            standing=standing,
            lane=lane,
            pool=pool,
            lost_pool=None if own in pools else own,
            store_pause=store.store_pause(),
            changed=stopped(lane) if lane.paused or not lane["enabled"] else None,
            pool_changed=stopped(pool) if pool is not None and pool.paused else None,
            target=store.targets().get(target) if target else None,
            nodes=alive(store.nodes(), standing.now),
        )
    )


def who_stopped(store: Store, of: Lane | Pool) -> AuditEntry | None:
    """Return who disabled or paused a lane or pool, as far back as a bounded look into the audit goes."""
    if isinstance(of, Lane) and not of["enabled"]:
        return next((entry for entry, _, now in _changes(store, of) if now.get("enabled") is False), None)
    until = of.paused_until
    for entry, was, now in _changes(store, of):
        if now.get("paused") is True:
            return entry
        if PAUSE.isdisjoint(now):
            continue
        # Of a row that says paused all the time: a new pause if the one before was over, else it goes on.
        before = was.get("paused_until") if "paused_until" in now else until
        until = datetime.fromisoformat(before) if isinstance(before, str) else before
        if until is not None and until <= entry.at:
            return entry
    return None


def _changes(store: Store, of: Lane | Pool) -> Iterator[tuple[AuditEntry, dict[str, Any], dict[str, Any]]]:
    """Yield the latest changes of a lane or pool, the last one first, with what was and what is since."""
    lane = of.name if isinstance(of, Lane) else None
    after = None
    for _ in range(PAGES):
        page = store.audit_log(lane=lane, limit=MAX_PAGE, after=after)
        for entry in page.entries:
            if not entry.action.startswith("pool." if lane is None else "lane."):
                continue
            was, now = json.loads(entry.before or "{}"), json.loads(entry.after or "{}")
            if entry.lane == lane and (lane is not None or now.get("name") == of.name):
                yield entry, was, now
        after = page.next
        if after is None:
            return
