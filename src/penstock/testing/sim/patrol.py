"""What has to happen in time: during a run, when a node leaves, and once the faults have stopped."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Final

from penstock.domain.durations import parse_duration
from penstock.domain.job import Live
from penstock.domain.lanes import Lane
from penstock.domain.pools import marks
from penstock.domain.states import JobState
from penstock.testing.invariants.conduct import Conduct
from penstock.testing.invariants.facts import Late, Leaderless, NotGraceful, TooMany, Wedged
from penstock.testing.invariants.model import Model
from penstock.testing.invariants.settings import Settings, per_second
from penstock.testing.invariants.sqlite import Held
from penstock.testing.invariants.watch import Watch
from penstock.testing.sim.node import NodeEnv
from penstock.testing.sim.world import World

SLACK: Final = timedelta(seconds=6)
EVERY_S: Final = 0.5
LIMITED_S: Final = 5.0
RUN: Final = 10
RECOVERY_S: Final = 35.0
RETURN_S: Final = 1.0
LEADER_S: Final = 7.5  # a term of 2 s, and the longest rest of 5 s after calls that failed
LEAVE_S: Final = 1.0
OVERDRAWN_S: Final = 1.5
BUSY_S: Final = 3.0
RECALL_S: Final = 2.5  # a round each second, and a rest after one that failed


@dataclass(slots=True)
class Patrol:
    """Looks at the whole now and then; `calm_since` is when the faults stopped, None = they have not."""

    world: World
    watch: Watch
    conduct: Conduct
    calm_since: float | None = None
    over_since: dict[str, float] = field(default_factory=dict)

    @property
    def settings(self) -> Settings:
        """The settings in force."""
        return self.watch.settings

    @property
    def model(self) -> Model:
        """The picture of the store."""
        return self.watch.model

    def round(self) -> None:
        """Check what has to hold at any time, and what has to hold in quiet times."""
        for held in list(self.watch.tables.claims.values()):
            self._check_returned(held)
        if self.calm_since is not None:
            self.check_nothing_waits()
            for held in list(self.watch.tables.claims.values()):
                self._check_moving(held)
            self._check_leader()
            self._check_books()
            self._check_recalled()

    # -- claims
    def _check_returned(self, held: Held) -> None:
        """A lane that is stopped gives back within a second what it is not sending."""
        legs = self.conduct.leg * 12
        name, now = self.settings.name_of(held.lane), self.world.loop.time()
        since = now - RETURN_S - legs
        lane, env = self.settings.lanes[name], self._env(held.node)
        stop = self.settings.stopped(name, lane["pool"], clock=self.world.store_clock.now(), since=since)
        claimed_at = self.conduct.claimed_at.get(held.epoch, now)
        # What befell the node after the claim may be that it never heard of it.
        if stop is None or env is None or env.troubled_until >= min(since - RETURN_S, claimed_at):
            return
        if claimed_at > since or held.epoch in self.conduct.taken_over:
            return
        if self.world.store_clock.set_at > since - RETURN_S:
            return
        kept = [job for job in held.open_jobs() if not self.conduct.calling(self._id(job))]
        if kept and not any(self.conduct.calling(self._id(job)) for job in held.open_jobs()):
            raise Wedged(f"lane {name} is {stop.what}, and {env.id} keeps a claim", stop=stop, jobs=kept)

    def _check_moving(self, held: Held) -> None:
        """A claim is held no longer than its work takes."""
        name = self.settings.name_of(held.lane)
        lane, now = self.settings.lanes[name], self.world.loop.time()
        run = RUN if lane["hold_until"] == "sent" else 1
        each = LIMITED_S + parse_duration(lane["timeout"]).total_seconds() + 6 * self.conduct.leg
        ahead = sum(parse_duration(lane[setting]).total_seconds() for setting in ("lookahead", "jitter"))
        longest = RECOVERY_S if held.epoch in self.conduct.taken_over else ahead + run * each + BUSY_S
        since = max(self.conduct.claimed_at.get(held.epoch, 0.0), self.quiet_since)
        if now - since > longest:
            raise Wedged(f"claim {held.epoch} is held for {now - since:.1f} s", held=held, longest=longest)

    # -- jobs
    def check_nothing_waits(self) -> None:
        """Once faults have stopped, what is free has been free only since just now."""
        now, clock = self.world.loop.time(), self.world.store_clock.now()
        for name, rules in self.settings.rules.items():
            lane = self.settings.lanes[name]
            if self.settings.stopped(name, lane["pool"], clock=clock, since=now):
                continue
            longest = parse_duration(lane["lease"]) + 2 * parse_duration(lane["poll_interval"]) + SLACK
            jobs = list(self.model.ready_jobs(rules.number, clock - longest))
            for key in self.model.groups(rules.number):
                jobs += self.model.ready_run(key, clock - longest, 1)
            for arrival in jobs:
                spot = self.model.spots[arrival]
                patience = longest.total_seconds() + self._queue(spot.job, lane)
                if now - self._free_since(spot.job) > patience:
                    raise Late(f"free for longer than {patience:.1f} s: lease, 2 polls, its limits", job=spot)

    def _check_books(self) -> None:
        """A slot counts once, for its node or for a job that is out; what is too many is not used again."""
        now, settings = self.world.loop.time(), self.settings
        longest = max(parse_duration(lane["timeout"]).total_seconds() for lane in settings.lanes.values())
        longest += OVERDRAWN_S + 12 * self.conduct.leg
        up = [number for number in self.conduct.nodes if self._env(number) is not None]
        taken = dict(self.watch.tables.slots_taken(up, self.world.store_clock.now()))
        most = {limit: settings.allowed(limit, since=now, until=now).slots for limit in taken}
        over = [limit for limit, slots in most.items() if slots is not None and taken[limit] > slots]
        self.over_since = {limit: self.over_since.get(limit, now) for limit in over}
        for limit, began in self.over_since.items():
            since = max(began, self.quiet_since)
            if now - since > longest:
                raise TooMany(
                    f"{taken[limit]} slots of {limit} are taken since {since:.1f}", most=most[limit]
                )

    def _check_recalled(self) -> None:
        """Nobody waits for long for a pool that is set otherwise, or is not his lane's any more."""
        now, settings = self.world.loop.time(), self.settings
        since = max((self.calm_since or 0.0) + LEADER_S, settings.changed_at)
        right = {
            settings.rules[name].number: marks(lane["pool"], settings.pools)
            for name, lane in settings.lanes.items()
        }
        for arrival, spot in self.model.spots.items():
            job = spot.job
            if job.state != JobState.PENDING or job.reason is None or job.reason in right[job.lane]:
                continue
            if now - max(since, self.model.changed_at[arrival]) > RECALL_S + 12 * self.conduct.leg:
                raise Late("waits for a pool that is set otherwise", job=spot, right=right[job.lane])

    def _queue(self, job: Live, lane: Lane) -> float:
        """Return how long a job may have to wait for its limits, by who shares them and at what weight.

        A token may have to be fetched for each call: where the store is slow, that takes longer than minting.
        """
        longest = 0.0
        for limit, sharers, weight in self._limits(job, lane):
            allowed = self.settings.allowed(limit, since=self.quiet_since, until=self.world.loop.time())
            if allowed.rate is not None:
                longest += sharers * (1 / (per_second(allowed.rate) * weight) + self.conduct.leg)
            if allowed.slots is not None:
                longest += sharers / allowed.slots * self._occupies(lane)
        return longest

    def _limits(self, job: Live, lane: Lane) -> Iterator[tuple[str, int, float]]:
        """Yield each limit of a job, how many jobs count against it, and the lane's share of it.

        Those that went while this one waited count too: they were before it.
        """
        since, spots = self._free_since(job), self.model.spots.items()
        live = [s.job for at, s in spots if s.finished_at is None or self.model.changed_at[at] >= since]
        yield f"lane/{lane.name}", sum(other.lane == job.lane for other in live), 1.0
        pool = self.settings.pools.get(lane["pool"] or "")
        if pool is None:
            return
        sharing = [other for other in self.settings.lanes.values() if other["pool"] == pool.name]
        names = {self.settings.rules[other.name].number for other in sharing}
        same = [other for other in live if other.lane in names and self._same_key(pool.key, job, other)]
        yield f"pool/{pool.name}", len(same), lane["weight"] / sum(other["weight"] for other in sharing)

    def _same_key(self, key: str | None, job: Live, other: Live) -> bool:
        match key:
            case "tenant":
                return job.tenant == other.tenant
            case "group":
                return (job.lane, job.grp) == (other.lane, other.grp)
            case _:
                return True

    def _occupies(self, lane: Lane) -> float:
        """Return how long a job takes a slot at most."""
        called = parse_duration(lane["timeout"]).total_seconds() + 1
        if lane["complete_on"] != "reported":
            return called
        lapses: int = lane["max_recoveries"] + 2
        return called + lapses * parse_duration(lane["ack_timeout"]).total_seconds()

    @property
    def quiet_since(self) -> float:
        """Since when there have been no faults, and no changes of settings."""
        return max(self.calm_since or 0.0, self.settings.changed_at)

    def _free_since(self, job: Live) -> float:
        marks = [self.quiet_since, self.model.changed_at[job.arrival]]
        if job.grp is not None:
            marks.append(self.model.changed_at[job.lane, job.grp])
        return max(marks)

    # -- nodes
    def check_left(self, env: NodeEnv, *, grace: timedelta) -> None:
        """A node that nothing befell leaves within its grace, and leaves nothing behind."""
        if env.faults or env.asked_at is None:
            return
        node, slack = self.conduct.number(env.id), LEAVE_S + 12 * self.conduct.leg
        if left := [held for held in self.watch.tables.claims.values() if held.node == node]:
            raise NotGraceful(f"{env.id} has left, and jobs are claimed by it", claims=left)
        if leases := self.watch.tables.leases(node, self.world.store_clock.now()):
            raise NotGraceful(f"{env.id} has left, others wait for what it holds of limits", leases=leases)
        latest = env.asked_at + grace.total_seconds()
        latest = min(latest, env.hurried_at if env.hurried_at is not None else latest)
        if self.world.loop.time() > latest + slack:
            raise NotGraceful(f"{env.id} left {self.world.loop.time() - latest:.2f} s after its grace")

    def _check_leader(self) -> None:
        now = self.world.loop.time()
        ends = self.conduct.term_until
        late = self.calm_since is not None and now > self.calm_since + LEADER_S + 6 * self.conduct.leg
        if late and (ends is None or ends < self.world.store_clock.now()):
            raise Leaderless("nobody leads", until=ends, now=self.world.store_clock.now())

    def _env(self, number: int) -> NodeEnv | None:
        name = self.conduct.nodes.get(number, "")
        env = self.world.find(name)
        return env if env is not None and not self.world.loop.is_dead(env.id) else None

    def _id(self, job: Live) -> str:
        return self.model.facts[job.arrival].id
