"""A `Store` made of a `Database`, a dialect's `HotPath` and the shared statements."""

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import TypeVar

from penstock.domain.edits import Changed, Edit, Version
from penstock.domain.filters import JobQuery, Page
from penstock.domain.job import Audit, Claim, Enqueued, Job, NewJob
from penstock.domain.lanes import Lane
from penstock.domain.leases import Term
from penstock.domain.names import near
from penstock.domain.outcomes import Outcome, Succeeded
from penstock.domain.pools import Pool
from penstock.domain.states import Effect, JobState, Verb
from penstock.errors import NotFound, PenstockError, UnknownLane
from penstock.ports.store import Ask, Done, GroupState, Lapse, Report, Reported, Settled, Tick, Timeline
from penstock.stores.sql import (
    editing,
    enqueue,
    forgetting,
    housekeeping,
    lanes,
    listing,
    migrate,
    nodes,
    pools,
    reading,
    recalling,
    reports,
    settle,
    timelines,
    verbs,
)
from penstock.stores.sql.access import AccessPart
from penstock.stores.sql.database import Database, Tx
from penstock.stores.sql.flow import FlowPart
from penstock.stores.sql.frozen import Snapshot
from penstock.stores.sql.hotpath import HotPath, LaneRow
from penstock.stores.sql.insight import InsightPart
from penstock.stores.sql.operations import OperationsPart
from penstock.stores.sql.pacing import Looks
from penstock.stores.sql.queue import QueuePart
from penstock.stores.sql.secrets import SecretsPart
from penstock.stores.sql.vitals import VitalsPart

T = TypeVar("T")
MARK_SENDING = "UPDATE penstock.claims SET sending = true WHERE id = :epoch"
RENEW = """
    UPDATE penstock.claims SET lease_until = :until WHERE id = ANY(:epochs) RETURNING id"""


@dataclass(slots=True)
class SqlStore(FlowPart, InsightPart, OperationsPart, QueuePart, SecretsPart, AccessPart, VitalsPart):
    """Jobs in a SQL database."""

    db: Database
    hot: HotPath
    ids: Callable[[], str]
    migrations: str
    entropy: Callable[[int], bytes] = os.urandom
    _lanes: dict[str, LaneRow] = field(default_factory=dict)
    _looks: Looks = field(default_factory=Looks)

    # -- schema and clock
    def migrate(self) -> list[str]:
        """Bring the tables up to date, and make the keys that nodes share."""
        applied = migrate.migrate(self.db, self.migrations)
        self.make_secrets()
        return applied

    def check_schema(self) -> None:
        """Refuse tables this version does not know."""
        migrate.check_schema(self.db, self.migrations)

    def now(self) -> datetime:
        """Return the database's time."""
        return self.db.read(lambda tx: tx.now)

    @contextmanager
    def frozen(self) -> Iterator["SqlStore"]:
        """Return the store as it is now, to look at."""
        with self.db.frozen() as tx:
            yield replace(self, db=Snapshot(tx, self.db.dialect))

    def close(self) -> None:
        """Close every connection."""
        self.db.close()

    # -- lanes and pools
    def put_lane(
        self, lane: Lane, *, actor: str, expect: int | None = None, reason: str | None = None
    ) -> Lane:
        """Create or change a lane."""
        put = self.db.write(lambda tx: lanes.put_lane(tx, lane, actor, expect, reason))
        self._lanes = {}
        return put

    def lanes(self) -> dict[str, Lane]:
        """Return every lane by name."""
        found = self.db.read(lanes.load_lanes)
        self._lanes = {
            name: LaneRow(lane.id, name, lane.mode, lane.keep, lane["keep_payload"])
            for name, lane in found.items()
        }
        return found

    def pause_lane(
        self, name: str, *, paused: bool, actor: str, reason: str, until: datetime | None = None
    ) -> Lane:
        """Stop a lane or let it go."""
        pause = lanes.Pause(paused, until, reason, actor)
        return self.db.write(lambda tx: lanes.pause_lane(tx, name, pause))

    def delete_lane(self, name: str, *, actor: str, reason: str | None = None) -> None:
        """Delete a lane that nothing is left to be done of."""
        self.db.write(lambda tx: lanes.delete_lane(tx, name, actor, reason))
        self._lanes.pop(name, None)

    def put_pool(self, pool: Pool, *, actor: str, expect: int | None = None) -> Pool:
        """Create or change a pool."""
        return self.db.write(lambda tx: pools.put_pool(tx, pool, actor, expect))

    def pools(self) -> dict[str, Pool]:
        """Return every pool by name."""
        return self.db.read(pools.load_pools)

    def pause_pool(
        self, name: str, *, paused: bool, actor: str, reason: str, until: datetime | None = None
    ) -> Pool:
        """Stop a pool or let it go."""
        pause = lanes.Pause(paused, until, reason, actor)
        return self.db.write(lambda tx: pools.pause_pool(tx, name, pause))

    def delete_pool(self, name: str, *, actor: str, reason: str | None = None) -> None:
        """Delete a pool that no lane names."""
        self.db.write(lambda tx: pools.delete_pool(tx, name, actor, reason))

    def _forgets(self) -> bool:
        """Say whether there is a lane that does not keep payloads, as of the last look."""
        if not self._lanes:
            self.lanes()
        return any(not lane.keep_payload for lane in self._lanes.values())

    def _known(self, name: str) -> LaneRow | None:
        if name not in self._lanes:
            self.lanes()
        return self._lanes.get(name)

    def _lane(self, name: str) -> LaneRow:
        lane = self._known(name)
        if lane is None:
            raise UnknownLane(name, near(name, self._lanes))
        return lane

    # -- the way in
    def enqueue(self, jobs: Sequence[NewJob]) -> list[Enqueued | PenstockError]:
        """Write the jobs."""
        return self.db.write(lambda tx: enqueue.enqueue(tx, self.hot, jobs, self.ids)) if jobs else []

    # -- dispatch
    def claim(self, ask: Ask) -> Claim | None:
        """Lease due jobs that keep no order."""
        lane = self._known(ask.lane)
        return self.hot.claim(self.db, ask, lane) if lane is not None else None

    def claim_groups(self, ask: Ask) -> Claim | None:
        """Lease heads or runs of groups."""
        lane = self._known(ask.lane)
        return self.hot.claim_groups(self.db, ask, lane) if lane is not None else None

    def mark_sending(self, epoch: int) -> bool:
        """Note that a send is about to happen."""
        return self.db.write(lambda tx: tx.execute(MARK_SENDING, epoch=epoch)) > 0

    def renew(self, epochs: Sequence[int], lease: timedelta) -> frozenset[int]:
        """Prolong claims."""
        return self.db.relaxed(
            lambda tx: frozenset(row[0] for row in tx.fetch(RENEW, until=tx.now + lease, epochs=list(epochs)))
        )

    def settle(self, claim: Claim, outcomes: Mapping[int, Outcome] | None = None) -> Settled:
        """Write what came of the claim's jobs."""
        lane = self._known(claim.lane)
        keep = lane is None or lane.keep_payload
        if outcomes is None and lane is not None:
            jobs = [claimed.job for claimed in claim.jobs]
            forget = None if keep else lambda tx: forgetting.forget(tx, self.hot, jobs)
            if self.hot.settle_succeeded(self.db, claim, lane.id, then=forget):
                return Settled(frozenset(job.arrival for job in jobs), frozenset())

        def work(tx: Tx) -> Settled:
            settled = settle.settle(tx, self.hot, claim, outcomes)
            if not keep:
                forgetting.forget(tx, self.hot, forgetting.succeeded(claim.jobs, outcomes, settled))
            return settled

        settled = self.db.write(work)
        late = settle.overtaken(outcomes, settled)
        if late:
            self.db.write(lambda tx: settle.occupy(tx, claim.epoch, late))
        return settled

    # -- recovery
    def takeover(self, node: int, lease: timedelta, limit: int, *, under: Term | None = None) -> list[Claim]:
        """Take over claims whose lease has run out."""
        return self._fenced(under, lambda tx: reports.takeover(tx, self.hot, node, lease, limit))

    def lapse(
        self,
        node: int,  # noqa: ARG002
        lease: timedelta,
        limit: int,
        *,
        under: Term | None = None,
    ) -> Lapse | None:
        """Lease jobs whose executor fell silent."""
        return self._fenced(under, lambda tx: reports.lapse(tx, self.hot, lease, limit))

    def resolve(self, lapse: Lapse, outcomes: Mapping[int, Outcome]) -> Settled:
        """Write what the probe found."""

        def work(tx: Tx) -> Settled:
            settled = reports.resolve(tx, self.hot, lapse, outcomes)
            forgetting.forget(tx, self.hot, forgetting.succeeded(lapse.jobs, outcomes, settled))
            return settled

        return self.db.write(work)

    # -- executors and operators
    def report(self, reports_: Sequence[Report]) -> list[Reported]:
        """Apply what executors say."""
        forgets = self._forgets()

        def work(tx: Tx) -> list[Reported]:
            answers = reports.report(tx, self.hot, reports_)
            if forgets:
                pairs = zip(reports_, answers, strict=True)
                done = [word.id for word, a in pairs if a.applied and isinstance(word.outcome, Succeeded)]
                forgetting.forget_ids(tx, self.hot, done)
            return answers

        return self.db.write(work)

    def operate(
        self, verb: Verb, ids: Sequence[str], *, actor: str, reason: str, force: bool = False
    ) -> list[Done]:
        """Carry out an operator's verb."""

        def work(tx: Tx) -> list[Done]:
            order = verbs.Order(verb=verb, actor=actor, reason=reason, force=force, now=tx.now)
            answers = verbs.operate(tx, self.hot, ids, order)
            ended = Done(Effect.NOW, JobState.SUCCEEDED)
            pairs = zip(ids, answers, strict=True)
            forgetting.forget_ids(tx, self.hot, [id_ for id_, done in pairs if done == ended])
            return answers

        return self.db.write(work)

    def edit(
        self,
        id: str,  # noqa: A002
        *,
        actor: str,
        reason: str,
        payload: Changed = ...,
        headers: Changed = ...,
        target: Changed = ...,
        run_at: datetime | None = None,
        replay: bool = False,
        force: bool = False,
    ) -> Done:
        """Change what a job sends or when it is due."""
        wanted = Edit(payload=payload, headers=headers, target=target, run_at=run_at)

        def work(tx: Tx) -> Done:
            order = verbs.Order(verb=Verb.EDIT, actor=actor, reason=reason, force=force, now=tx.now)
            return editing.edit(tx, self.hot, id, wanted, order, replay=replay)

        return self.db.write(work)

    def pause_group(
        self, lane: str, group: str, *, paused: bool, actor: str, reason: str, until: datetime | None = None
    ) -> None:
        """Stop or let go one group."""
        lane_id = self._lane(lane).id
        action = "pause_group" if paused else "resume_group"
        self.db.write(
            lambda tx: verbs.pause_group(
                tx,
                self.hot,
                lane=lane_id,
                group=group,
                until=until if paused else None,
                paused=paused,
                note=Audit(tx.now, None, lane_id, actor, action, None, group, reason),
            )
        )

    # -- reading
    def find(self, ids: Sequence[str]) -> dict[str, Job]:
        """Return the jobs of these ids."""
        return self.db.snapshot(lambda tx: reading.find(tx, self.hot, ids))

    def list_jobs(self, query: JobQuery) -> Page:
        """Return one page of a list of jobs."""
        return self.db.snapshot(lambda tx: listing.list_jobs(tx, self.hot, query))

    def timeline(self, id: str) -> Timeline:  # noqa: A002
        """Return what is on record about one job."""
        return self.db.look(lambda tx: timelines.timeline(tx, id))

    def payload_versions(self, id: str) -> list[Version]:  # noqa: A002
        """Return what a job was to send at any time."""
        return self.db.look(lambda tx: editing.payload_versions(tx, id))

    def group(self, lane: str, group: str) -> GroupState | None:
        """Return one group as the next claim would see it."""
        return self.db.read(lambda tx: reading.group(tx, lane, group))

    def counts(self) -> dict[tuple[str, JobState], int]:
        """Return jobs per lane and state."""
        return self.db.read(reading.counts)

    def depth(self, lane: str) -> int:
        """Return how many jobs of a lane are not ended."""
        number = self._lane(lane).id
        return self.db.read(lambda tx: reading.depth(tx, number))

    # -- housekeeping
    def expire(self, limit: int, *, under: Term | None = None) -> int:
        """End pending jobs whose `start_by` has passed, and pauses of groups."""

        def work(tx: Tx) -> int:
            verbs.resume_over(tx, self.hot)
            return reports.expire(tx, self.hot, limit)

        return self._fenced(under, work)

    def recall(self, limit: int, *, under: Term | None = None) -> dict[str, int]:
        """Let jobs come now that need not wait any more for the pool that put them back."""
        return self._fenced(under, lambda tx: recalling.recall(tx, self.hot, limit))

    def fold_counts(self, *, under: Term | None = None) -> int:
        """Fold counter deltas."""
        return self.hot.fold_counts(self.db, nodes.fence_of(under))

    def retire(self, *, slice_rows: int, under: Term | None = None) -> int:
        """Drop what retention no longer keeps."""
        dropped = self.hot.retire(self.db, slice_rows, nodes.fence_of(under))
        for _ in range(housekeeping.SWEEPS):
            if self._fenced(under, lambda tx: housekeeping.sweep(tx, self.hot, slice_rows)) * 2 < slice_rows:
                break
        return dropped + self._fenced(
            under, lambda tx: housekeeping.drop_dead(tx, self.hot, slice_rows - dropped)
        )

    def _fenced(self, under: Term | None, work: Callable[[Tx], T]) -> T:
        """Do a leader's work in one transaction with the look at its term."""
        fence = nodes.fence_of(under)

        def fenced(tx: Tx) -> T:
            fence(tx)
            return work(tx)

        return self.db.write(fenced)

    def record_ticks(self, ticks: Sequence[Tick]) -> None:
        """Keep the figures of passes."""
        self.db.relaxed(lambda tx: nodes.record_ticks(tx, ticks))

    # -- nodes and the leader
    def register_node(self, name: str, again: int | None = None) -> int:
        """Return a number nobody had before, or the one that the node had `again`."""
        return self.db.write(lambda tx: nodes.register_node(tx, name, again))

    def beat(self, node: int, note: str | None = None) -> None:
        """Note that the node is alive, and what it says of itself."""
        if not self.db.relaxed(lambda tx: nodes.beat(tx, node, note)):
            raise NotFound("node", str(node))

    def elect(self, role: str, node: int, ttl: timedelta) -> Term | None:
        """Become holder of a role."""
        return self.db.write(lambda tx: nodes.elect(tx, role, node, ttl))

    def extend_term(self, role: str, term: Term, ttl: timedelta) -> Term | None:
        """Prolong exactly this term."""
        return self.db.write(lambda tx: nodes.extend_term(tx, role, term, ttl))

    def resign(self, role: str, term: Term) -> bool:
        """End exactly this term now."""
        return self.db.write(lambda tx: nodes.resign(tx, role, term))
