"""The settings in force during a run: what was stopped when, and which limits there were.

Fed with every change of a lane, a pool or the store's own pause as it is committed. Nodes look at settings
now and then and keep a plan while a claim is in the air: what was in force a moment ago may still be.
"""

from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final, NamedTuple

from penstock.domain.durations import parse_duration
from penstock.domain.lanes import Lane
from penstock.domain.pauses import Pause
from penstock.domain.pools import Pool
from penstock.domain.rates import Rate, default_burst, parse_rate
from penstock.domain.retry import RetrySchedule
from penstock.domain.targets import target_of
from penstock.testing.invariants.picture import Rules

HEEDED_WITHIN_S: Final = 2.0


class Allowed(NamedTuple):
    """What a limit allowed from that second on."""

    since: float
    rate: Rate | None
    burst: int
    slots: int | None


class Stopped(NamedTuple):
    """Something that was stopped at that second, until then on the store's clock (None = until let go)."""

    what: str
    since: float
    until: datetime | None

    def in_force(self, clock: datetime) -> bool:
        """Say whether it stops anything at this time of the store."""
        return self.until is None or clock < self.until


@dataclass(slots=True)
class Settings:
    """See the module."""

    lanes: dict[str, Lane] = field(default_factory=dict)
    pools: dict[str, Pool] = field(default_factory=dict)
    rules: dict[str, Rules] = field(default_factory=dict)
    retries: dict[str, list[RetrySchedule]] = field(default_factory=dict)
    limits: dict[str, list[Allowed]] = field(default_factory=dict)
    stops: dict[str, Stopped] = field(default_factory=dict)
    changed_at: float = 0.0

    def lane(self, lane: Lane, at: float) -> None:
        """Take in a lane."""
        self.changed_at = at
        self.lanes[lane.name] = lane
        schedule = RetrySchedule.from_text(lane["retry"])
        known = self.retries.setdefault(lane.name, [])
        if schedule not in known:
            known.append(schedule)
        self.rules[lane.name] = rules_of(lane)
        rate = parse_rate(lane["rate"]) if lane["rate"] else None
        burst = default_burst(rate) if rate else 1
        self._limit(f"lane/{lane.name}", Allowed(at, rate, burst, lane["max_in_flight"]))
        self._stop(f"enabled of lane/{lane.name}", None if lane["enabled"] else Stopped("disabled", at, None))
        paused = Stopped("paused", at, lane.paused_until) if lane.paused else None
        self._stop(f"lane/{lane.name}", paused)

    def name_of(self, number: int) -> str:
        """Return a lane's name."""
        return next(name for name, rules in self.rules.items() if rules.number == number)

    def pool(self, pool: Pool, at: float) -> None:
        """Take in a pool."""
        self.changed_at = at
        self.pools[pool.name] = pool
        rate = parse_rate(pool.rate) if pool.rate else None
        self._limit(f"pool/{pool.name}", Allowed(at, rate, pool.bucket or 1, pool.max_in_flight))
        self._stop(f"pool/{pool.name}", Stopped("paused", at, pool.paused_until) if pool.paused else None)

    def store_pause(self, pause: Pause | None, at: float) -> None:
        """Take in a pause of everything, or its end."""
        self.changed_at = at
        self._stop("store", None if pause is None else Stopped("paused", at, pause.until))

    def target_pause(self, name: str, pause: Pause | None, at: float) -> None:
        """Take in that somebody stopped a target, or lets it go."""
        self.changed_at = at
        self._stop(f"target/{name}", None if pause is None else Stopped("paused", at, pause.until))

    def stopped(self, lane: str, pool: str | None, *, clock: datetime, since: float) -> Stopped | None:
        """Return what has kept a lane's jobs from being sent since that second at least."""
        places = ["store", f"enabled of lane/{lane}", f"lane/{lane}", f"pool/{pool}"]
        found = (self.stops.get(place) for place in places)
        return next((s for s in found if s and s.since <= since and s.in_force(clock)), None)

    def limits_of(self, message: Any) -> tuple[str, ...]:  # noqa: ANN401 - an Envelope, or what looks like one
        """Return the limits that a message counts against: its lane's, and its pool's or one key of that."""
        lane = self.lanes[message.lane]
        name = message.pool if message.pool in self.pools else lane["pool"]
        if name not in self.pools:
            return (f"lane/{message.lane}",)
        match self.pools[name].key:
            case "tenant":
                key = message.tenant or ""
            case "group":
                key = f"{message.lane}/{message.ordered_group or ''}"
            case "target":
                key = target_of(message.target or lane["target"]) or ""
            case _:
                key = ""
        return f"lane/{message.lane}", f"pool/{name}/{key}" if key else f"pool/{name}"

    def allowed(self, limit: str, *, since: float, until: float) -> Allowed:
        """Return the most that a limit allowed at any time between these seconds."""
        scope, name, *_ = limit.split("/")
        history = self.limits[f"{scope}/{name}"]
        first = max((n for n, entry in enumerate(history) if entry.since <= since), default=0)
        found = [entry for entry in history[first:] if entry.since <= until] or history[:1]
        rates = [entry.rate for entry in found if entry.rate is not None]
        slots = [entry.slots for entry in found if entry.slots is not None]
        return Allowed(
            since,
            max(rates, key=per_second) if len(rates) == len(found) else None,
            max(entry.burst for entry in found),
            max(slots) if len(slots) == len(found) else None,
        )

    def _limit(self, name: str, allowed: Allowed) -> None:
        history = self.limits.setdefault(name, [])
        if not history or history[-1][1:] != allowed[1:]:
            history.append(allowed)

    def _stop(self, place: str, stop: Stopped | None) -> None:
        if stop is None:
            self.stops.pop(place, None)
            return
        before = self.stops.get(place)
        goes_on = before is not None and before.until in (None, stop.until)
        self.stops[place] = stop._replace(since=before.since) if before and goes_on else stop


def per_second(rate: Rate) -> float:
    """Return the rate as a number."""
    return rate.count / rate.per.total_seconds()


def rules_of(lane: Lane) -> Rules:
    """Return what of a lane's settings every call is judged by."""
    return Rules(
        lane.id,
        RetrySchedule.from_text(lane["retry"]),
        lane["hold_until"] == "sent",
        parse_duration(lane["key_ttl"]),
        parse_duration(lane["dead_retention"]),
        lane["max_recoveries"],
    )
