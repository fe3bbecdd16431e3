"""A lane's settings as the engine uses them: read once per version, not once per job."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import cache
from typing import Final

from penstock.domain.durations import parse_duration
from penstock.domain.failures import words_of
from penstock.domain.job import Claimed, Live
from penstock.domain.lanes import Lane
from penstock.domain.ordering import Mode
from penstock.domain.outcomes import Policy
from penstock.domain.pools import Pool, mark
from penstock.domain.rates import Rate, allowance, default_burst, parse_rate
from penstock.domain.retry import RetrySchedule
from penstock.domain.sense import within
from penstock.domain.targets import GROUPS, target_of
from penstock.domain.times import shifted
from penstock.ports.flow import Limit
from penstock.ports.sink import Envelope, Sink

RUN: Final = 10
MOST_KEYS: Final = 10_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """One version of a lane, with the sink it goes to."""

    lane: Lane
    name: str
    sink: str
    batch: int
    run: int
    lease: timedelta
    timeout: timedelta
    poll: timedelta
    ahead: timedelta
    most_ahead: int
    jitter: timedelta
    heartbeat: timedelta
    skip_after: timedelta | None
    policy: Policy
    hold: bool
    weight: int
    max_in_flight: int
    max_recoveries: int
    recoveries_per_pass: int
    retry_on: tuple[str, ...]
    give_up_on: tuple[str, ...]
    limits: tuple[Limit, ...]
    group_limits: tuple[Limit, ...]
    shared: tuple[Limit, ...]
    format: str
    reported: bool
    pools: dict[str, Pool]
    pool: str | None
    target: str | None
    queue: str | None
    _limits: dict[tuple[bool, str, str], tuple[Limit, ...]] = field(default_factory=dict)

    def limits_of(self, claimed: Claimed) -> tuple[Limit, ...]:
        """Return every limit a job counts against: its lane's, and its pool's (or one key of it).

        A job whose own pool was deleted since is one of its lane's pool, like those that name none.
        """
        own, pool = self.group_limits if claimed.job.mode else self.limits, self._pool_of(claimed)
        if pool is None:
            return own
        where = (claimed.job.mode > 0, pool.name, key_of(pool, self, claimed) if pool.key else "")
        if where not in self._limits:
            self._limits[where] = (*own, *pool_limit(pool, where[2]))
        return self._limits[where]

    def mark_of(self, claimed: Claimed) -> str | None:
        """Return what the row of a job is to say that its pool puts back."""
        pool = self._pool_of(claimed)
        return None if pool is None else mark(pool, of_lane=pool.name == self.pool)

    def _pool_of(self, claimed: Claimed) -> Pool | None:
        named = claimed.context.pool if claimed.context else None
        return self.pools.get((named if named in self.pools else self.pool) or "")

    def forget(self) -> None:
        """Make room where a pool has had very many keys; not while somebody compares limits by identity."""
        if len(self._limits) > MOST_KEYS:
            self._limits.clear()

    def strays(self, claimed: Claimed) -> bool:
        """Say whether a job counts against another pool than its lane's."""
        named = claimed.context.pool if claimed.context else None
        return named is not None and named != self.pool and named in self.pools

    def slot_of(self, claimed: Claimed) -> str | None:
        """Return what the job's row is to say about the pool it occupies while it is out."""
        limit = next((limit for limit in self.limits_of(claimed) if limit.scope == "pool"), None)
        if limit is None or limit.max_in_flight is None:
            return None
        return f"{limit.name}/{limit.key}" if limit.key else limit.name

    def envelope(self, claimed: Claimed) -> Envelope:
        """Return the message a job becomes."""
        job, said = claimed
        if said is None:
            raise LookupError(f"job {job.arrival} has no context")  # such a job is held, never sent
        return Envelope(
            id=said.id,
            number=job.current_send,
            lane=self.name,
            attempt=job.attempt + 1,
            payload=said.payload,
            target=said.target or self.target,
            group=job.grp if job.grp is not None else said.message_group,
            sequence=said.sequence,
            tenant=job.tenant,
            key=said.key,
            pool=said.pool or self.pool,
            headers=said.headers,
            event=said.event,
            entity=said.entity,
            version=said.version,
            correlation=said.correlation,
            queue=self.queue,
            format=self.format,
            run_at=said.run_at,
            finish_by=said.finish_by,
            created_at=said.created_at,
            mode=Mode(job.mode).label,
            batch=job.epoch,
            timeout=self.timeout,
        )

    def aim(self, claimed: Claimed) -> str | None:
        """Return the target a job goes to, by the name that breakers know it by."""
        said = claimed.context.target if claimed.context else None
        return target_of(said or self.target)

    def missed(self, job: Live, now: datetime) -> str | None:
        """Say why a job is no longer to be sent at this time, None = it is."""
        if job.start_by is not None and now > job.start_by:
            return "start_by has passed"
        if self.skip_after is not None and not job.attempt and now > shifted(job.due_since, self.skip_after):
            return f"later than misfire = {self.lane['misfire']} allows"
        return None


def plan_of(lane: Lane, pools: dict[str, Pool], sink: Sink | None) -> Plan:
    """Read a lane's settings; what it does not say, its sink's kind says.

    Without a sink nothing can be sent, but what was sent can be dealt with as the lane says.
    """
    limits, shared = lane_limits(lane), shared_limit(pools.get(lane["pool"] or ""))
    reported = (lane["complete_on"] or (sink.complete_on if sink else "")) == "reported"
    passes = lane["hold_until"] == "sent" and sink is not None and sink.keeps_order
    ahead = parse_duration(lane["lookahead"])
    return Plan(
        lane=lane,
        name=lane.name,
        sink=lane["sink"],
        batch=lane["batch_size"],
        run=RUN if passes else 1,
        lease=within("lease", parse_duration(lane["lease"])),
        timeout=within("timeout", parse_duration(lane["timeout"])),
        poll=within("poll_interval", parse_duration(lane["poll_interval"])),
        ahead=ahead,
        most_ahead=most_ahead(lane["batch_size"], (*limits, *shared), ahead),
        jitter=parse_duration(lane["jitter"]),
        heartbeat=parse_duration(lane["heartbeat"]),
        skip_after=lane.skip_after,
        policy=Policy(
            RetrySchedule.from_text(lane["retry"]),
            ack=parse_duration(lane["ack_timeout"]) if reported else None,
            passes=passes and reported,
        ),
        hold=lane["on_unknown"] == "hold",
        weight=lane["weight"],
        max_in_flight=lane["max_in_flight"],
        max_recoveries=lane["max_recoveries"],
        recoveries_per_pass=lane["max_recoveries_per_pass"],
        retry_on=words_of(lane["retry_on"]),
        give_up_on=words_of(lane["give_up_on"]),
        limits=limits,
        group_limits=(*limits, *groups_limit(lane)),
        shared=shared,
        format=lane["format"] or (sink.format if sink else ""),
        reported=reported,
        pools=pools,
        pool=lane["pool"],
        target=lane["target"],
        queue=lane["queue"],
    )


def lane_limits(lane: Lane) -> tuple[Limit, ...]:
    """Return the limits of the lane itself."""
    rate = _rate(lane["rate"])
    burst = default_burst(rate) if rate else 1
    return (Limit("lane", lane.name, "", rate, burst, lane["max_in_flight"]),)


def most_ahead(batch: int, limits: Sequence[Limit], window: timedelta) -> int:
    """Return how many jobs are worth holding before they are due: what the rates let go within the window."""
    allowed = [allowance(limit.rate, limit.burst, window=window) for limit in limits if limit.rate]
    return min([batch, *allowed])


def groups_limit(lane: Lane) -> tuple[Limit, ...]:
    """Return the limit on groups in flight: one job of each is, so it is a limit on ordered jobs."""
    return (Limit("lane", lane.name, GROUPS, None, 1, lane["max_groups"]),) if lane["max_groups"] else ()


def shared_limit(pool: Pool | None) -> tuple[Limit, ...]:
    """Return the limit of a lane's pool if it is one for all; with a key each job has its own."""
    return pool_limit(pool, "") if pool is not None and pool.key is None else ()


def pool_limit(pool: Pool, key: str) -> tuple[Limit, ...]:
    """Return the limit of one key of a pool; none when the pool limits nothing."""
    if pool.rate is None and pool.max_in_flight is None:
        return ()
    rate = _rate(pool.rate)
    burst = pool.burst or (default_burst(rate) if rate else 1)
    return (Limit("pool", pool.name, key, rate, burst, pool.max_in_flight),)


def key_of(pool: Pool, plan: Plan, claimed: Claimed) -> str:
    """Return what of a job its pool's limit goes by."""
    match pool.key:
        case "tenant":
            return claimed.job.tenant or ""
        case "group":
            return f"{plan.name}/{claimed.job.grp or ''}"
        case "target":
            said = claimed.context.target if claimed.context else None
            return target_of(said or plan.target) or ""
        case _:
            return ""


@cache
def _rate(text: str | None) -> Rate | None:
    return parse_rate(text) if text else None
