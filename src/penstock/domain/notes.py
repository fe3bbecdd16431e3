"""What nodes say of themselves with their heartbeat: which lanes they serve, what keeps them from sending.

    {"lanes": ["*"], "sinks": {"billing": "cannot connect"}, "refused": {"orders": "there is no queue"},
     "limits": {"pool/web": "2026-01-01T00:00:00Z", "lane/orders": "slots"}, "queues": {"pool/web": 3},
     "crowded": ["bulk"], "calls": {"01K7…": "2026-01-01T00:00:00Z"},
     "waits": {"01K8…": "2026-01-01T00:00:00Z"}, "drains": 2, "standby": "", "stops": true, "gone": true,
     "sent": 1200, "failed": 3, "claimed": 40, "skew_us": 1500, "memory": 90000000, "loop_delay_us": 2100,
     "leads": {"term": 4, "since": "2026-01-01T00:00:00Z"},
     "recovered": {"at": "2026-01-01T00:00:00Z", "lanes": ["orders"], "fates": {"unknown": 3}}}

`sinks` are those that cannot be opened, `refused` lanes of which an open one takes nothing. `limits` says
when the next token of a limit is expected, null when that depends on others, `slots` when it is not tokens
that are missing; `queues` how many jobs the node has that wait for it. `crowded` are the lanes of which it
has as many jobs in hand as it takes. `calls` says since when a call for a job is under way, and `waits` since
when one waits for its limits. `drains` is there when it was told to claim nothing more, and counts the claims
it still has; `standby` when it must not claim since it does not have the lease, and says why if it cannot
even ask for that; `stops` when it is on its way out, and `gone`, too, with the last that it says; `sent`
and `failed` count jobs since the node started, `claimed` those it has in hand. `skew_us` is by how much the
store's clock is ahead of the node's; `memory` (bytes) and `loop_delay_us` (the longest of the last minute)
are of its process. `leads` is there while it does: under which term, and since when; `recovered` for a
while after it dealt with what others had left: when it last did, and of which lanes. A node that does not
say is taken to serve every lane and to know of no trouble; whatever else is wrong with a note is passed
over: it only serves to explain. A router serves none: it has a number to lease limits under, and sends no
lane's jobs.
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any, Final, NamedTuple

from penstock.domain.standing import NodeRow, holder_name

ALIVE: Final = timedelta(seconds=20)
ALL_LANES: Final = "*"
SLOTS: Final = "slots"
LONGEST_US: Final = 10**16  # some hundred years


class Recovery(NamedTuple):
    """What a node recovered lately: jobs by what had become of them, the last of their lanes first."""

    at: datetime
    fates: Mapping[str, int]
    lanes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Said:
    """One node's note."""

    lanes: frozenset[str] = frozenset({ALL_LANES})
    sinks: Mapping[str, str] = field(default_factory=dict)
    refused: Mapping[str, str] = field(default_factory=dict)
    limits: Mapping[str, datetime | None] = field(default_factory=dict)
    full: frozenset[str] = frozenset()
    queues: Mapping[str, int] = field(default_factory=dict)
    crowded: frozenset[str] = frozenset()
    calls: Mapping[str, datetime | None] = field(default_factory=dict)
    waits: Mapping[str, datetime | None] = field(default_factory=dict)
    drains: int | None = None
    standby: str | None = None
    stops: bool = False
    gone: bool = False
    sent: int | None = None
    failed: int = 0
    claimed: int | None = None
    skew: timedelta | None = None
    memory: int | None = None
    loop_delay: timedelta | None = None
    term: int | None = None
    led_since: datetime | None = None
    recovered: Recovery | None = None
    who: str | None = None

    @property
    def sends(self) -> bool:
        """Whether it is a node that sends jobs, of whatever lanes."""
        return bool(self.lanes)

    @property
    def fit(self) -> bool:
        """Whether it is a node that sends jobs, or would if it had the lease."""
        return self.sends and self.drains is None and not self.stops

    def serves(self, lane: str) -> bool:
        """Say whether the node is to send that lane's jobs."""
        return self.fit and self.standby is None and self.names(lane)

    def names(self, lane: str) -> bool:
        """Say whether the lane is one of the node's own, be it that it drains, stands by or stops."""
        return ALL_LANES in self.lanes or lane in self.lanes


def is_alive(node: NodeRow, now: datetime) -> bool:
    """Say whether a node was heard of just now, and did not say that it is gone."""
    return now - node.seen_at < ALIVE and not read(node.note).gone


def alive(nodes: Iterable[NodeRow], now: datetime) -> list[Said]:
    """Return what the nodes say that are alive."""
    return [
        replace(read(node.note), who=holder_name(node.id, node.name)) for node in nodes if is_alive(node, now)
    ]


def gist(note: str | None) -> object:
    """Return what a note says apart from times and counts: while that is the same nothing need be told."""
    said = read(note)
    busy = said.limits.keys(), said.full, said.crowded, said.calls.keys(), said.waits.keys()
    return said.lanes, said.sinks, said.refused, busy, said.drains, said.standby, said.stops, said.term


def read(note: str | None) -> Said:
    """Return what a note says, as far as it can be understood."""
    try:
        said = json.loads(note or "{}")
    except (ValueError, RecursionError):
        return Said()
    if not isinstance(said, dict):
        return Said()
    lanes, crowded = said.get("lanes"), said.get("crowded")
    limits, queues, leads = (_mapping(said, name) for name in ("limits", "queues", "leads"))
    return Said(
        lanes=frozenset(map(str, lanes)) if isinstance(lanes, list) else frozenset({ALL_LANES}),
        sinks={name: str(error) for name, error in _mapping(said, "sinks").items()},
        refused={name: str(error) for name, error in _mapping(said, "refused").items()},
        limits=_times(said, "limits"),
        full=frozenset(name for name, at in limits.items() if at == SLOTS),
        queues={name: jobs for name, jobs in queues.items() if isinstance(jobs, int)},
        crowded=frozenset(map(str, crowded)) if isinstance(crowded, list) else frozenset(),
        calls=_times(said, "calls"),
        waits=_times(said, "waits"),
        drains=_count(said, "drains"),
        standby=str(said["standby"]) if "standby" in said else None,
        stops=said.get("stops") is True,
        gone=said.get("gone") is True,
        sent=_count(said, "sent"),
        failed=_count(said, "failed") or 0,
        claimed=_count(said, "claimed"),
        skew=_length(said, "skew_us"),
        memory=_count(said, "memory"),
        loop_delay=_length(said, "loop_delay_us"),
        term=_count(leads, "term"),
        led_since=_time(leads.get("since")),
        recovered=_recovery(_mapping(said, "recovered")),
    )


def _mapping(said: Mapping[str, Any], name: str) -> dict[str, Any]:
    value = said.get(name)
    return value if isinstance(value, dict) else {}


def _count(said: Mapping[str, Any], name: str) -> int | None:
    value = said.get(name)
    return value if isinstance(value, int) and value >= 0 else None


def _recovery(said: Mapping[str, Any]) -> Recovery | None:
    at, lanes, counts = _time(said.get("at")), said.get("lanes"), _mapping(said, "fates")
    fates = {fate: jobs for fate in counts if (jobs := _count(counts, fate))}
    if at is None or not fates:
        return None
    return Recovery(at, fates, tuple(map(str, lanes)) if isinstance(lanes, list) else ())


def _length(said: Mapping[str, Any], name: str) -> timedelta | None:
    value = said.get(name)
    return timedelta(microseconds=value) if isinstance(value, int) and abs(value) < LONGEST_US else None


def _times(said: Mapping[str, Any], name: str) -> dict[str, datetime | None]:
    return {key: _time(at) for key, at in _mapping(said, name).items()}


def _time(text: object) -> datetime | None:
    try:
        at = datetime.fromisoformat(text) if isinstance(text, str) else None
    except ValueError:
        return None
    return at if at is not None and at.tzinfo is not None else None
