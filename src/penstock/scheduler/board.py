"""What is in force now: lanes, pools, pauses, breakers; looked up every second, so no restart is needed."""

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Final

from penstock.domain.durations import parse_duration
from penstock.domain.lanes import Lane
from penstock.domain.notes import alive
from penstock.domain.pools import Pool
from penstock.domain.sense import within
from penstock.errors import StoreUnavailable
from penstock.ports.events import Halted, LaneChanged
from penstock.ports.flow import Pause, Target
from penstock.ports.sink import Sink
from penstock.ports.store import Store
from penstock.scheduler.ground import Ground
from penstock.scheduler.plans import Plan, plan_of

COUNT_NODES_EVERY_S: Final = 5.0
OLD_S: Final = 2.0
LOOKS: Final = 3
USUAL_POLL: Final = timedelta(seconds=1)
LONGEST_LEASE: Final = timedelta(seconds=15)


@dataclass(slots=True)
class Board:
    """The settings as of the last look; `drain`: this node was told to claim nothing more.

    `loose` pools are those of no lane, only jobs can name them.
    `nodes` send, this one among them; `heirs` are others that could, on standby or not.
    After a look that failed, or that is old since this node slept, it is `blind`: nobody knows what was
    changed meanwhile. A store that is far away is no reason: what looks usually take is allowed for.
    """

    ground: Ground
    served: tuple[str, ...] = ("*",)
    changed: Callable[[str], None] | None = None
    lanes: dict[str, Lane] = field(default_factory=dict)
    pools: dict[str, Pool] = field(default_factory=dict)
    loose: frozenset[str] = frozenset()
    targets: dict[str, Target] = field(default_factory=dict)
    pause: Pause | None = None
    node: int = 0
    drain: Pause | None = None
    nodes: int = 1
    heirs: int = 0
    poll: timedelta = timedelta(seconds=1)
    shortest_lease: timedelta = timedelta(seconds=15)
    ahead: dict[str, timedelta] = field(default_factory=dict)
    _plans: dict[str, tuple[object, Plan]] = field(default_factory=dict)
    _said_stopped: set[str] = field(default_factory=set)
    _counted_at: float = float("-inf")
    _looked_at: float = float("-inf")
    _took: deque[float] = field(default_factory=lambda: deque(maxlen=LOOKS))
    _failed: bool = False

    async def refresh(self) -> bool:
        """Look at everything, and say whether to look again at once: what was seen may be old by now."""
        ground, store = self.ground, self.ground.store
        started = ground.monotonic()
        try:
            lanes, pools, targets, pause, drain = await ground.call(_look, store, self.node)
        except StoreUnavailable:
            self._failed = True
            raise
        before, stopped_before = self.lanes, self._stopped_pools()
        self._looked_at, self._failed = started, False
        self._took.append(ground.monotonic() - started)
        self.lanes = {name: lane for name, lane in lanes.items() if self.serves(name)}
        self._tell_halts(pause, drain)
        self.pools, self.targets, self.pause, self.drain = pools, targets, pause, drain
        self.loose = frozenset(pools) - {lane["pool"] for lane in lanes.values()}
        self._said_stopped.clear()
        self._read_times()
        self._tell_changes(before, everything=stopped_before != self._stopped_pools())
        for name in self._plans.keys() - self.lanes.keys():
            del self._plans[name]
        for _, plan in self._plans.values():
            plan.forget()
        if ground.monotonic() - self._counted_at >= COUNT_NODES_EVERY_S:
            self._counted_at = ground.monotonic()
            self.nodes, self.heirs = await ground.call(count_nodes, store, self.node)
        return self.blind

    @property
    def blind(self) -> bool:
        """Whether the settings are not known as they are now."""
        # The least of some: one may have been slept through.
        usual = min(self._took) if len(self._took) == LOOKS else 0.0
        # A look is as old as it took; it is in force until the next one has ended, with a rest in between.
        return self._failed or self.ground.monotonic() - self._looked_at > OLD_S + LOOKS * usual

    def _stopped_pools(self) -> object:
        return self.blind, self.pause, self.drain, [name for name, pool in self.pools.items() if pool.paused]

    def _tell_halts(self, pause: Pause | None, drain: Pause | None) -> None:
        """Tell what stops all that this node does, and when it goes on: its log would just fall silent."""
        for node, before, now in ((None, self.pause, pause), (self.node, self.drain, drain)):
            if not self.node or before == now:  # a router and an endpoint send nothing of a lane
                continue
            by, reason, until = (now.actor, now.reason, now.until) if now else (None, "", None)
            self.ground.emit(Halted(node=node, by=by, reason=reason, until=until))

    def _tell_changes(self, before: dict[str, Lane], *, everything: bool) -> None:
        """Have lanes looked at whose settings or pause changed: what they hold may have to go back.

        Whoever sends nothing of a lane has no say in when its settings are in force.
        """
        if self.changed is None:
            return
        for name, lane in self.lanes.items():
            if name in before and _edition(before[name]) != _edition(lane):
                stopped = lane.stopped(self.ground.clock.now()) or not lane["enabled"]
                self.ground.emit(LaneChanged(lane=name, version=lane.version, stopped=stopped))
                self.changed(name)
            elif everything:
                self.changed(name)

    def _read_times(self) -> None:
        leases = (within("lease", parse_duration(lane["lease"])) for lane in self.lanes.values())
        self.shortest_lease = min(leases, default=LONGEST_LEASE)
        self.ahead = {name: parse_duration(lane["lookahead"]) for name, lane in self.lanes.items()}
        polls = (parse_duration(lane["poll_interval"]) for lane in self.lanes.values())
        self.poll = within("poll_interval", min(polls, default=USUAL_POLL))

    def serves(self, lane: str) -> bool:
        """Say whether this node is to dispatch the lane."""
        return "*" in self.served or lane in self.served

    def plan(self, lane: Lane, sink: Sink) -> Plan:
        """Return the lane's plan, made anew when the lane, a pool or the sink changed."""
        key = (_edition(lane), tuple(map(_edition, self.pools.values())), id(sink))
        known = self._plans.get(lane.name)
        if known is None or known[0] != key:
            known = self._plans[lane.name] = (key, plan_of(lane, self.pools, sink))
        return known[1]

    def note_stopped(self, lane: str) -> None:
        """Learn from a `confirm` what the next look will show: until then nothing of the lane is claimed."""
        self._said_stopped.add(lane)

    def stopped(self, lane: Lane, now: datetime) -> bool:
        """Say whether nothing of the lane may be claimed; `confirm` has the last word before a send."""
        pool = self.pools.get(lane["pool"]) if lane["pool"] else None
        return (
            lane.name in self._said_stopped
            or not lane["enabled"]
            or lane.stopped(now)
            or (pool is not None and pool.stopped(now))
            or (self.pause is not None and not self.pause.over(now))
        )


def _edition(row: Lane | Pool) -> tuple[int, int]:
    """Return what changes with every change; one that was deleted and made anew counts from 1 again."""
    return row.id, row.version


def _look(
    store: Store, node: int
) -> tuple[dict[str, Lane], dict[str, Pool], dict[str, Target], Pause | None, Pause | None]:
    """Look at all settings with one trip to the store's thread: half of them would be worth nothing."""
    drain = store.draining(node) if node else None
    return store.lanes(), store.pools(), store.targets(), store.store_pause(), drain


def count_nodes(store: Store, node: int) -> tuple[int, int]:
    """Return how many nodes send now, which share the limits, and how many others could."""
    rows, now = store.nodes(), store.now()
    at_work = [said for said in alive(rows, now) if said.fit and said.standby is None]
    others = [said for said in alive((row for row in rows if row.id != node), now) if said.fit]
    return max(1, len(at_work)), len(others)
