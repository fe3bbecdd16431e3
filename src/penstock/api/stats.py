"""The figures of the dashboard and of `penstock top`: lanes, rates, lag, and the last jobs.

Everything comes from counters, indexes and this process's memory, so a look costs the same whatever the store
holds: a few short reads, at most once a second however many look. No litestar here: the command line reads
these figures without a server.

Of more than 200 lanes those with something to do are listed; sums are over all of them.
"""

from collections.abc import Callable, Collection, Mapping
from datetime import UTC, datetime
from threading import Lock
from typing import Any, Final, NamedTuple

from penstock.client import Client
from penstock.domain.filters import Order, Span
from penstock.domain.groups import GroupRow
from penstock.domain.job import Job
from penstock.domain.lanes import Lane
from penstock.domain.masking import without_answer, without_words
from penstock.domain.notes import is_alive, read
from penstock.domain.states import LIVE, TERMINAL, JobState
from penstock.errors import PenstockError
from penstock.observability.dues import next_due, oldest_due
from penstock.observability.health import Health
from penstock.observability.live import Live, Pace
from penstock.observability.logs import redacted
from penstock.wire import encode

FRESH_S: Final = 1.0
LAST: Final = 8
MOST_LANES: Final = 200
DUE_CAP: Final = 20
DUE_LANES: Final = 20
STATES: Final = tuple(state.label for state in JobState)
MOST_NODES: Final = 50
IDLE: Final = Pace(0.0, 0.0, None, None, 0)


class Look(NamedTuple):
    """What one look found of all lanes, with what this process knows of each one's pace."""

    now: datetime
    lanes: Mapping[str, Lane]
    counts: Mapping[str, Mapping[str, int]]
    waited: Mapping[str, float]
    paces: Mapping[str, Pace]
    next_at: Mapping[str, datetime] = {}

    def figures(self, name: str, due: dict[str, Any] | None = None) -> dict[str, Any]:
        """Return the figures of one lane; without `due` nobody counted how many of its jobs are."""
        waited = self.waited.get(name, 0.0)
        return (
            _lane(self.lanes[name], self.counts.get(name, {}), self.paces.get(name, IDLE))
            | {"stopped": _stopped(self.lanes[name], self.now), "oldest_due_s": round(waited, 3)}
            | {"next_at": self.next_at.get(name)}
            | (due or {"due": None if waited else 0, "due_capped": False})
        )


class Stats:
    """What a running node knows, as JSON; kept for a second."""

    def __init__(
        self, client: Client, *, live: Live, health: Health, version: str, monotonic: Callable[[], float]
    ) -> None:
        self._client, self._live, self._health, self._version = client, live, health, version
        self._monotonic = monotonic
        self._lock = Lock()
        self._kept = ""
        self._look: Look | None = None
        self._until = monotonic()

    def __call__(self) -> str:
        """Return the figures, at most a second old; a store that does not answer is one of them."""
        with self._lock:
            if not self._kept or self._monotonic() >= self._until:
                self._kept = encode(self._figures())
                self._until = self._monotonic() + FRESH_S
            return self._kept

    def lane(self, name: str) -> dict[str, Any] | None:
        """Return the figures of one lane as of the last look, listed or not; None = it was not there."""
        look = self._look
        return None if look is None or name not in look.lanes else look.figures(name)

    def forget(self) -> None:
        """Ask anew the next time."""
        with self._lock:
            self._kept = ""

    def _figures(self) -> dict[str, Any]:
        live = self._live
        try:
            self._look = look_at(self._client, live.paces())
            store: Mapping[str, Any] = store_figures(self._client, self._look)
            error = None
        except PenstockError as failed:
            self._look, store, error = None, NOTHING, str(failed)
        return {
            "version": self._version,
            "node": {
                "id": live.node,
                "name": live.name,
                "store": redacted(live.store),
                "leads": live.leads,
                "term": live.term,
                "uptime_s": round(live.uptime, 1),
                "loop_delay_ms": round(live.loop_delay() * 1000, 1),
            },
            "reasons": [reason._asdict() for reason in self._health.reasons()],
            "troubles": [
                trouble._asdict() | {"text": redacted(without_answer(trouble.text))}
                for trouble in live.troubles()
            ],
            "error": error,
            **store,
        }


def look_at(client: Client, paces: Mapping[str, Pace]) -> Look:
    """Look at all lanes: three short reads."""
    scouted = client.store.scout()
    lanes, behind = client.store.lanes(), oldest_due(scouted)
    return Look(scouted.now, lanes, counted(client), behind, paces, next_due(scouted))


def store_figures(client: Client, look: Look) -> dict[str, Any]:
    """Return what the store says now, of lanes what a look found."""
    listed = most_at_work(look.lanes, look.counts)
    behind = [name for name in listed if look.waited.get(name)]
    due = {name: _due(client, name, look.counts.get(name, {}), look.now) for name in behind[:DUE_LANES]}
    return {
        "now": look.now,
        "lanes": [look.figures(name, due.get(name)) for name in listed],
        "more_lanes": len(look.lanes) - len(listed),
        "totals": _totals(look, due),
        "paused": _paused(client),
        "leader": client.store.leader(),
        "nodes": _nodes(client, look.now),
        "blocked": [_blocked(group) for group in client.store.list_groups(blocked=True, limit=LAST).groups],
        "jobs": [_job(job) for job in client.list(state=LIVE, limit=LAST).jobs],
        "ended": [_job(job) for job in client.list(state=TERMINAL, limit=LAST).jobs],
    }


def counted(client: Client) -> dict[str, dict[str, int]]:
    """Return how many jobs are in each state, by lane."""
    found: dict[str, dict[str, int]] = {}
    for (lane, state), number in client.counts().items():
        # Deltas are folded by and by: for a moment a counter may be below nothing.
        found.setdefault(lane, {})[state.label] = max(0, number)
    return found


def most_at_work(lanes: Collection[str], counts: Mapping[str, Mapping[str, int]]) -> list[str]:
    """Return as many lanes as are listed, by name: those with dead letters are, then those with jobs."""
    ranked = sorted(lanes, key=lambda name: (_rank(counts.get(name, {})), name))
    return sorted(ranked[:MOST_LANES])


def _rank(counts: Mapping[str, int]) -> int:
    if counts.get(JobState.DEAD.label):
        return 0
    return 1 if any(counts.get(state.label) for state in LIVE) else 2


def _totals(look: Look, due: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """Return what all lanes have together, those that are not listed too."""
    behind = [name for name in look.lanes if look.waited.get(name)]
    counts = [look.counts[name] for name in look.lanes if name in look.counts]
    paces = [look.paces[name] for name in look.lanes if name in look.paces]
    return {
        "lanes": len(look.lanes),
        **{state: sum(each.get(state, 0) for each in counts) for state in STATES},
        "behind": len(behind),
        "due": sum(each["due"] for each in due.values()),
        "due_capped": len(due) < len(behind) or any(each["due_capped"] for each in due.values()),
        "oldest_due_s": round(max((look.waited[name] for name in behind), default=0.0), 3),
        "sent_per_s": round(sum(pace.sent_per_s for pace in paces), 1),
        "failed_per_s": round(sum(pace.failed_per_s for pace in paces), 1),
        "lag_p50_ms": _ms(max((pace.lag_p50 for pace in paces if pace.lag_p50 is not None), default=None)),
        "lag_p99_ms": _ms(max((pace.lag_p99 for pace in paces if pace.lag_p99 is not None), default=None)),
    }


def _due(client: Client, lane: str, counts: Mapping[str, int], now: datetime) -> dict[str, Any]:
    """Return how many jobs of a lane are due: all that are pending, unless some are of the future.

    Then they are counted, up to a cap: a count of all would be a scan.
    """
    pending = JobState.PENDING
    if not client.list(lane=lane, state=pending, order=Order.DUE, run=Span(since=now), limit=1).jobs:
        return {"due": counts.get(pending.label, 0), "due_capped": False}
    found = client.list(lane=lane, state=pending, order=Order.DUE, run=Span(until=now), limit=DUE_CAP).jobs
    return {"due": len(found), "due_capped": len(found) == DUE_CAP}


def _lane(lane: Lane, counts: Mapping[str, int], pace: Pace) -> dict[str, Any]:
    return {
        "lane": lane.name,
        "sink": lane["sink"],
        **{state: counts.get(state, 0) for state in STATES},
        "sent_per_s": round(pace.sent_per_s, 1),
        "failed_per_s": round(pace.failed_per_s, 1),
        "lag_p50_ms": _ms(pace.lag_p50),
        "lag_p99_ms": _ms(pace.lag_p99),
    }


def _stopped(lane: Lane, now: datetime) -> str | None:
    if not lane["enabled"]:
        return "disabled"
    if not lane.stopped(now):
        return None
    return f"paused by {lane.paused_by}: {lane.pause_reason}{_until(lane.paused_until)}"


def _ms(seconds: float | None) -> float | None:
    return None if seconds is None else round(seconds * 1000, 1)


def _paused(client: Client) -> str | None:
    pause = client.store.store_pause()
    if pause is None:
        return None
    return f"everything is paused by {pause.actor}: {pause.reason}{_until(pause.until)}"


def _until(at: datetime | None) -> str:
    return "" if at is None else f", until {at:%Y-%m-%d %H:%M:%S} UTC"


def _nodes(client: Client, now: datetime) -> list[dict[str, Any]]:
    alive = [node for node in client.store.nodes() if is_alive(node, now)]
    return [
        {
            "id": node.id,
            "name": node.name,
            "version": node.version,
            "seen_at": node.seen_at,
            "sent": said.sent,
            "failed": said.failed,
        }
        for node in alive[:MOST_NODES]
        for said in [read(node.note)]
        if said.sends
    ]


def _blocked(group: GroupRow) -> dict[str, Any]:
    return {
        "lane": group.lane,
        "group": group.group,
        "blocker": group.blocker,
        "since": group.since,
        "behind": group.behind,
    }


def _job(job: Job) -> dict[str, Any]:
    return {
        "id": job.id,
        "lane": job.lane,
        "group": job.group,
        "state": job.state.label,
        "reason": job.live.reason,
        "error": None if job.error is None else redacted(without_words(job.error) or ""),
        "attempt": job.live.attempt,
        "at": job.finished_at or job.live.due_at,
    }


_NOWHERE: Final = Look(datetime(1970, 1, 1, tzinfo=UTC), {}, {}, {}, {})
NOTHING: Final[Mapping[str, Any]] = {
    "now": None, "lanes": [], "more_lanes": 0, "totals": _totals(_NOWHERE, {}),
    "paused": None, "leader": None, "nodes": [], "blocked": [], "jobs": [], "ended": [],
}  # fmt: skip
