"""`explain`: gathers what `domain/explaining.py` needs to know of a job, from a store and nothing else."""

import json
from typing import Final

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


def explain_standing(store: Store, standing: Standing) -> Explanation:
    """Return why a job is where it is, to somebody who has looked how it stands."""
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
            changed=_changed(store, lane) if lane.paused or not lane["enabled"] else None,
            pool_changed=_changed(store, pool) if pool is not None and pool.paused else None,
            target=store.targets().get(target) if target else None,
            nodes=alive(store.nodes(), standing.now),
        )
    )


def _changed(store: Store, of: Lane | Pool) -> AuditEntry | None:
    """Return who disabled or paused a lane or pool, as far back as a bounded look into the audit goes."""
    lane = of.name if isinstance(of, Lane) else None
    setting, value = ("paused", True) if lane is None or of.settings["enabled"] else ("enabled", False)
    after = None
    for _ in range(PAGES):
        page = store.audit_log(lane=lane, limit=MAX_PAGE, after=after)
        for entry in page.entries:
            if not entry.action.startswith("pool." if lane is None else "lane."):
                continue
            now = json.loads(entry.after or "{}")
            if (
                now.get(setting) is value
                and lane in (None, entry.lane)
                and (lane or now.get("name") == of.name)
            ):
                return entry
        after = page.next
        if after is None:
            break
    return None
