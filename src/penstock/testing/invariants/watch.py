"""A store that is watched: after every call the picture is brought up to date and held against the promises.

    watch = Watch(store, clock=world.store_clock.now, time=world.loop.time, fail=world.fail)
    store = watch.store            # for everybody
    watch.check_whole()            # now and then, and at the end

A violation goes to `fail`: the caller of the store is a node under test and must not be able to swallow it.
One that is `blind` keeps the picture and judges nothing: to learn what `afterwards` finds without it.
"""

import sqlite3
from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from functools import partial, wraps
from typing import TYPE_CHECKING, Any, Final, cast

from penstock.domain.states import IN_FLIGHT, JobState
from penstock.stores.sql.store import SqlStore
from penstock.testing.invariants.calls import expect
from penstock.testing.invariants.facts import (
    NotInOnePlace,
    RequestIgnored,
    StaleWrite,
    Stuck,
    TwoInFlight,
    WrongCounters,
)
from penstock.testing.invariants.model import GroupKey, Model
from penstock.testing.invariants.moves import Change, Limits, check_change
from penstock.testing.invariants.picture import Call, Picture
from penstock.testing.invariants.settings import Settings
from penstock.testing.invariants.sqlite import Group, Tables, Touched, begin

if TYPE_CHECKING:
    from penstock.ports.store import Store

_READS: Final = frozenset(
    {
        "audit_log", "beat", "check_schema", "close", "counts", "depth", "draining", "find", "group", "lanes",
        "leader", "list_groups", "list_jobs", "nodes", "now", "payload_versions", "pools", "scout",
        "standing", "store_pause", "targets", "timeline", "wakeups",
    }
)  # fmt: skip


class Watch:
    """See the module."""

    def __init__(
        self,
        store: SqlStore,
        *,
        clock: Callable[[], datetime],
        time: Callable[[], float],
        fail: Callable[[Exception], None],
        blind: bool = False,
    ) -> None:
        self.model = Model()
        self.tables = Tables(_connection(store))
        self.settings = Settings()
        self.store = cast("Store", Tap(store, self.around))
        self.listeners: list[Callable[[Call], None]] = [self._change_settings]
        self._clock = clock
        self._time = time
        self._fail = fail
        self._blind = blind
        self._epoch = 0
        for lane in store.lanes().values():
            self.settings.lane(lane, time())
        for pool in store.pools().values():
            self.settings.pool(pool, time())
        begin(self.tables.connection)

    def check_whole(self) -> None:
        """Hold every row of the picture against the tables, and every group against its jobs."""
        if self._blind:
            return
        self._take_in("", self._clock())
        for arrival in self.tables.facts:
            if self.tables.spot(arrival) != self.model.spots.get(arrival):
                raise NotInOnePlace(f"job {arrival} moved unseen", spot=self.tables.spot(arrival))
        for key in {*self.tables.groups, *self.model.groups()}:
            self._check_group(key)
        self._check_counters({rules.number for rules in self.settings.rules.values()})

    def around(self, call: str, method: Callable[..., Any], args: tuple[Any, ...], options: Any) -> Any:  # noqa: ANN401
        """Make a call that stands for one of the store's, and judge it as that."""
        now = self._clock()
        picture = Picture(self.model, self.tables, self.settings.rules, now)
        verdict = None if self._blind else expect(picture, call, args, options)
        try:
            result = method(*args, **options)
        finally:
            changes = self._judged(lambda: self._take_in(call, now)) or {}
        if verdict is not None:
            self._judged(lambda: verdict(result, changes))
        told = Call(call, args, options, result, changes, now, self._time())
        for listener in self.listeners:
            self._judged(partial(listener, told))
        return result

    def _change_settings(self, call: Call) -> None:
        match call.name:
            case "put_lane" | "pause_lane":
                self.settings.lane(call.result, call.at)
            case "put_pool" | "pause_pool":
                self.settings.pool(call.result, call.at)
            case "pause_store":
                self.settings.store_pause(call.result, call.at)
            case "pause_target":
                self.settings.target_pause(call.args[0], call.result, call.at)
            case _:
                pass

    def _judged(self, judge: Callable[[], Any]) -> Any:  # noqa: ANN401
        try:
            return judge()
        except Exception as error:  # noqa: BLE001 - a mistake of ours must not look like the store's
            self._fail(error)
            return None

    def _take_in(self, call: str, now: datetime) -> dict[int, Change]:
        """Bring the picture up to date; return what changed, by job."""
        touched = self.tables.look()
        if not touched.anything:
            return {}
        for key in touched.groups:
            group = self.tables.groups.get(key)
            (self.model.paused.add if group and group.paused else self.model.paused.discard)(key)
        self.model.freed |= touched.freed
        for arrival in touched.new:
            fact = self.tables.facts[arrival]
            self.model.facts[arrival] = fact
            self.model.arrivals[fact.id] = arrival
        if self._blind:
            self._follow(touched)
            return {}
        changes = self._changes(call, touched, now)
        self._check_epochs(call, changes)
        for key in sorted({*touched.groups, *_groups_of(changes)}):
            self._check_group(key)
        self._check_counters(touched.lanes)
        return {arrival: change for arrival, change in changes.items() if change.before != change.after}

    def _follow(self, touched: Touched) -> None:
        for arrival in sorted(touched.jobs):
            places = self.tables.places(arrival)
            spot = next(iter(places.values()), None)
            if spot is not None or arrival in self.model.spots:
                self.model.put(arrival, spot, at=self._time())

    def _changes(self, call: str, touched: Touched, now: datetime) -> dict[int, Change]:
        changes = {}
        for arrival in sorted({*touched.jobs, *touched.attempts, *touched.audit}):
            before, after = self.model.spots.get(arrival), self.tables.spot(arrival)
            if before is None and after is None:
                continue
            if before != after:
                self.model.put(arrival, after, at=self._time())
            changes[arrival] = change = Change(
                call=call,
                now=now,
                before=before,
                after=after,
                attempts=touched.attempts.get(arrival, ()),
                audit=touched.audit.get(arrival, ()),
                limits=self._limits(arrival),
            )
            check_change(change)
            self._check_request(change, arrival)
        return changes

    def _limits(self, arrival: int) -> Limits:
        spot = self.model.spots.get(arrival)
        if spot is None:
            return Limits(1, timedelta(0), 1)
        job = spot.job
        known = self.settings.retries[self.settings.name_of(job.lane)]
        attempts = [retry.attempts_for(job.max_attempts) for retry in known]
        delay = min(retry.delay_before(job.attempt + 1, random=0) for retry in known)
        return Limits(max(attempts), delay, min(attempts))

    def _check_request(self, change: Change, arrival: int) -> None:
        before, after = change.before, change.after
        if before is None or after is None or arrival not in self.tables.requests:
            return
        if before.state in IN_FLIGHT and after.state is JobState.PENDING:
            raise change.broken(RequestIgnored, f"{self.tables.requests[arrival]} was asked for")

    def _check_epochs(self, call: str, changes: Mapping[int, Change]) -> None:
        """A new lease of a job has a number that nothing had before."""
        newest = self._epoch
        for change in changes.values():
            if change.after is None or change.before is None or change.after.job.epoch is None:
                continue
            if change.after.job.epoch == change.before.job.epoch:
                continue
            if change.after.job.epoch <= self._epoch and call in (
                "claim",
                "claim_groups",
                "takeover",
                "lapse",
            ):
                raise change.broken(StaleWrite, f"epochs begin after {self._epoch}")
            newest = max(newest, change.after.job.epoch)
        self._epoch = newest

    def _check_group(self, key: GroupKey) -> None:
        group, model = self.tables.groups.get(key), self.model
        members = model.members(key)
        claimed = {spot.job.epoch for spot in members if spot.state is JobState.CLAIMED}
        flying = [spot.job for spot in members if spot.state in IN_FLIGHT and spot.job.holds]
        passes = self.settings.rules[self.settings.name_of(key[0])].passes
        if len(claimed) > 1 or (len(flying) > 1 and not passes):
            raise TwoInFlight(f"of group {key[1]}", jobs=flying, epochs=claimed)
        if claimed != ({group.claim} - {None} if group else set()):
            raise Stuck(f"group {key[1]} and the claim that holds it do not agree", row=group, claims=claimed)
        if group is None:
            head = model.head(key)
            if head.rows or head.dead is not None:
                raise Stuck(f"group {key[1]} has jobs and no row", jobs=members)
            return
        self._check_row(key, group)

    def _check_row(self, key: GroupKey, group: Group) -> None:
        head = self.model.head(key)
        dead = None if group.dead_arrival is None else (group.dead_seq, group.dead_arrival)
        if dead != head.dead:
            raise Stuck(f"group {key[1]} does not know its earliest dead job", row=group, dead=head.dead)
        gate = self.model.gate(key)
        if not head.rows and group.claim is None and head.dead is None and not group.paused:
            raise Stuck(f"an empty row of group {key[1]} is left behind", row=group)
        free = group.claim is None and gate.due_at is not None and not gate.blocked
        if free and (group.next_at is None or group.next_at > (gate.due_at or group.next_at)):
            raise Stuck(f"no claim will find group {key[1]} in time", row=group, due=gate.due_at)

    def _check_counters(self, lanes: set[int]) -> None:
        for lane in lanes:
            for state in JobState:
                kept, true = self.tables.counts.get((lane, state), 0), self.model.tally[lane, state]
                if kept != true:
                    raise WrongCounters(f"{kept} {state.label} in lane {lane}, there are {true}")


class Tap:
    """A store whose writes go through a function."""

    def __init__(self, store: SqlStore, around: Callable[..., Any]) -> None:
        self._store = store
        self._around = around

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401
        method = getattr(self._store, name)
        if name in _READS:
            return method
        around = self._around

        @wraps(method)
        def call(*args: Any, **options: Any) -> Any:  # noqa: ANN401
            return around(name, method, args, options)

        setattr(self, name, call)
        return call


def _connection(store: SqlStore) -> sqlite3.Connection:
    tx: Any = store.db.read(lambda tx: tx)  # one in memory reads on its only connection
    connection: sqlite3.Connection = tx.connection
    return connection


def _groups_of(changes: Mapping[int, Change]) -> set[GroupKey]:
    spots = [spot for change in changes.values() for spot in (change.before, change.after) if spot]
    return {(spot.job.lane, spot.job.grp) for spot in spots if spot.job.grp is not None}
