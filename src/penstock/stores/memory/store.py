"""The port: one lock, one clock, and the functions of this package."""

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from threading import RLock

from penstock import __version__
from penstock.domain.edits import Changed, Edit, Version
from penstock.domain.filters import JobQuery, Page
from penstock.domain.job import Audit, AuditPage, Claim, Enqueued, Job, NewJob
from penstock.domain.lanes import Lane
from penstock.domain.leases import Term, holds, lapsed, next_term, renewed, resigned
from penstock.domain.outcomes import Outcome
from penstock.domain.pauses import check_until
from penstock.domain.pools import Pool
from penstock.domain.standing import NodeRow
from penstock.domain.states import JobState, Verb
from penstock.errors import NotFound, PenstockError, TermOver
from penstock.ports.store import Ask, Done, GroupState, Lapse, Report, Reported, Settled, Tick, Timeline
from penstock.stores.memory import (
    applying,
    claiming,
    editing,
    intake,
    lanes,
    listing,
    operating,
    reading,
    retiring,
)
from penstock.stores.memory.access import AccessPart
from penstock.stores.memory.flow import FlowPart
from penstock.stores.memory.insight import InsightPart
from penstock.stores.memory.operations import OperationsPart
from penstock.stores.memory.queue import QueuePart
from penstock.stores.memory.secrets import SecretsPart
from penstock.stores.memory.tables import Tables
from penstock.stores.memory.vitals import VitalsPart


class MemoryStore(FlowPart, InsightPart, OperationsPart, QueuePart, SecretsPart, AccessPart, VitalsPart):
    """Jobs in this process's memory; gone when it ends.

    `clock` gives the store's time, `ids` the ids of jobs that come without one, `entropy` random bytes.
    """

    def __init__(
        self,
        clock: Callable[[], datetime],
        ids: Callable[[], str],
        entropy: Callable[[int], bytes] = os.urandom,
    ) -> None:
        self._clock = clock
        self._ids = ids
        self._entropy = entropy
        self._tables = Tables()
        self._lock = RLock()

    # -- schema and clock

    def migrate(self) -> list[str]:
        """Make the keys that nodes share; there are no tables to change."""
        self.make_secrets()
        return []

    def check_schema(self) -> None:
        """There are no tables to be of another version."""

    def now(self) -> datetime:
        """Return the clock's reading."""
        return self._clock()

    def close(self) -> None:
        """There is nothing to give up."""

    # -- lanes and pools

    def put_lane(
        self, lane: Lane, *, actor: str, expect: int | None = None, reason: str | None = None
    ) -> Lane:
        """Create the lane or change its settings."""
        with self._lock:
            return lanes.put_lane(self._tables, lane, lanes.Change(actor, self.now(), reason), expect)

    def lanes(self) -> dict[str, Lane]:
        """Return every lane by name."""
        with self._lock:
            return dict(self._tables.lanes)

    def pause_lane(
        self, name: str, *, paused: bool, actor: str, reason: str, until: datetime | None = None
    ) -> Lane:
        """Stop a lane or let it go."""
        with self._lock:
            change = lanes.Change(actor, self.now(), reason)
            return lanes.pause_lane(self._tables, name, change, paused=paused, until=until)

    def delete_lane(self, name: str, *, actor: str, reason: str | None = None) -> None:
        """Delete a lane that nothing is left to be done of."""
        with self._lock:
            lanes.delete_lane(self._tables, name, lanes.Change(actor, self.now(), reason))

    def put_pool(self, pool: Pool, *, actor: str, expect: int | None = None) -> Pool:
        """Create the pool or change its settings."""
        with self._lock:
            return lanes.put_pool(self._tables, pool, lanes.Change(actor, self.now()), expect)

    def pools(self) -> dict[str, Pool]:
        """Return every pool by name."""
        with self._lock:
            return dict(self._tables.pools)

    def pause_pool(
        self, name: str, *, paused: bool, actor: str, reason: str, until: datetime | None = None
    ) -> Pool:
        """Stop a pool or let it go."""
        with self._lock:
            change = lanes.Change(actor, self.now(), reason)
            return lanes.pause_pool(self._tables, name, change, paused=paused, until=until)

    def delete_pool(self, name: str, *, actor: str, reason: str | None = None) -> None:
        """Delete a pool that no lane names."""
        with self._lock:
            lanes.delete_pool(self._tables, name, lanes.Change(actor, self.now(), reason))

    # -- the way in

    def enqueue(self, jobs: Sequence[NewJob]) -> list[Enqueued | PenstockError]:
        """Write the jobs; one answer each, in order."""
        with self._lock:
            now = self.now()
            return [intake.enqueue(self._tables, job, now=now, ids=self._ids) for job in jobs]

    # -- dispatch

    def claim(self, ask: Ask) -> Claim | None:
        """Lease due jobs that keep no order."""
        with self._lock:
            return claiming.claim_jobs(self._tables, ask, self.now())

    def claim_groups(self, ask: Ask) -> Claim | None:
        """Lease the first jobs of free groups."""
        with self._lock:
            return claiming.claim_groups(self._tables, ask, self.now())

    def mark_sending(self, epoch: int) -> bool:
        """Note that a send is about to happen."""
        with self._lock:
            lease = self._tables.claims.get(epoch)
            if lease is None:
                return False
            lease.sending = True
            return True

    def renew(self, epochs: Sequence[int], lease: timedelta) -> frozenset[int]:
        """Prolong claims; return those still ours."""
        with self._lock:
            ours = frozenset(epoch for epoch in epochs if epoch in self._tables.claims)
            for epoch in ours:
                self._tables.claims[epoch].lease_until = self.now() + lease
            return ours

    def settle(self, claim: Claim, outcomes: Mapping[int, Outcome] | None = None) -> Settled:
        """Write what came of the claim's jobs; None = all succeeded."""
        with self._lock:
            return applying.settle(self._tables, claim, outcomes, self.now())

    # -- recovery

    def takeover(self, node: int, lease: timedelta, limit: int, *, under: Term | None = None) -> list[Claim]:
        """Take over claims whose lease has run out."""
        with self._lock:
            self._fence(under)
            now = self.now()
            over = [held for held in self._tables.claims.values() if held.lease_until < now]
            over.sort(key=lambda held: (held.lease_until, held.epoch))
            return [
                claiming.take_over(self._tables, held, node=node, until=now + lease) for held in over[:limit]
            ]

    def lapse(
        self,
        node: int,  # noqa: ARG002
        lease: timedelta,
        limit: int,
        *,
        under: Term | None = None,
    ) -> Lapse | None:
        """Lease dispatched and running jobs whose deadline has passed."""
        with self._lock:
            self._fence(under)
            return applying.lapse(self._tables, lease, limit, self.now())

    def resolve(self, lapse: Lapse, outcomes: Mapping[int, Outcome]) -> Settled:
        """Write what the probe found."""
        with self._lock:
            return applying.resolve(self._tables, lapse, outcomes, self.now())

    # -- executors and operators

    def report(self, reports: Sequence[Report]) -> list[Reported]:
        """Apply what executors say, one after the other."""
        with self._lock:
            return [applying.report(self._tables, word, self.now()) for word in reports]

    def operate(
        self, verb: Verb, ids: Sequence[str], *, actor: str, reason: str, force: bool = False
    ) -> list[Done]:
        """Carry out an operator's verb on each job, one after the other."""
        with self._lock:
            return operating.operate(
                self._tables, verb, ids, actor=actor, reason=reason, force=force, now=self.now()
            )

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
        with self._lock:
            order = operating.Order(Verb.EDIT, actor, reason, self.now(), frozenset(), force=force)
            return editing.edit(self._tables, id, wanted, order, replay=replay)

    def pause_group(
        self, lane: str, group: str, *, paused: bool, actor: str, reason: str, until: datetime | None = None
    ) -> None:
        """Stop or let go one ordered group."""
        with self._lock:
            known = lanes.known_lane(self._tables, lane)
            check_until(until if paused else None, self.now())
            self._tables.pause_ends.pop((known.id, group), None)
            if paused:
                self._tables.paused.add((known.id, group))
                if until is not None:
                    self._tables.pause_ends[known.id, group] = until
            else:
                self._tables.paused.discard((known.id, group))
            action = "pause_group" if paused else "resume_group"
            self._tables.audit.append(Audit(self.now(), None, known.id, actor, action, None, group, reason))

    # -- reading

    def find(self, ids: Sequence[str]) -> dict[str, Job]:
        """Return the jobs of these ids."""
        with self._lock:
            found = {job_id: reading.find(self._tables, job_id) for job_id in ids}
            return {job_id: job for job_id, job in found.items() if job is not None}

    def list_jobs(self, query: JobQuery) -> Page:
        """Return one page of a list of jobs."""
        with self._lock:
            return listing.list_jobs(self._tables, query, self.now())

    def timeline(self, id: str) -> Timeline:  # noqa: A002
        """Return the recorded attempts and moves of one job."""
        with self._lock:
            return reading.timeline(self._tables, id)

    def payload_versions(self, id: str) -> list[Version]:  # noqa: A002
        """Return what a job was to send at any time."""
        with self._lock:
            return editing.payload_versions(self._tables, id)

    def audit_log(
        self, *, lane: str | None = None, people: bool = False, limit: int = 50, after: str | None = None
    ) -> AuditPage:
        """Return audit rows, newest first."""
        with self._lock:
            return listing.audit_log(self._tables, lane, limit, after, people=people)

    def group(self, lane: str, group: str) -> GroupState | None:
        """Return one group as the next claim would see it."""
        with self._lock:
            return reading.group(self._tables, lane, group)

    def counts(self) -> dict[tuple[str, JobState], int]:
        """Return jobs per lane and state."""
        with self._lock:
            return reading.counts(self._tables)

    def depth(self, lane: str) -> int:
        """Return how many jobs of a lane are not ended."""
        with self._lock:
            return reading.depth(self._tables, lanes.known_lane(self._tables, lane).id)

    # -- housekeeping

    def expire(self, limit: int, *, under: Term | None = None) -> int:
        """End pending jobs whose `start_by` has passed."""
        with self._lock:
            self._fence(under)
            for (lane, group), until in list(self._tables.pause_ends.items()):
                name = self._tables.lane_names[lane]
                if until <= self.now() and name in self._tables.lanes:
                    self.pause_group(name, group, paused=False, actor="leader", reason="its time is over")
            return applying.expire(self._tables, limit, self.now())

    def recall(self, limit: int, *, under: Term | None = None) -> dict[str, int]:
        """Let jobs come now that need not wait any more for the pool that put them back."""
        with self._lock:
            self._fence(under)
            return applying.recall(self._tables, limit, self.now())

    def fold_counts(self, *, under: Term | None = None) -> int:
        """There are no deltas: counts are counted when asked for."""
        with self._lock:
            self._fence(under)
        return 0

    def retire(self, *, slice_rows: int, under: Term | None = None) -> int:
        """Drop finished jobs older than their retention, and dead ones older than their lane's."""
        with self._lock:
            self._fence(under)
            return retiring.retire(self._tables, slice_rows, self.now())

    def record_ticks(self, ticks: Sequence[Tick]) -> None:
        """Keep the figures of passes, the last thousand of them."""
        with self._lock:
            self._tables.ticks.extend(ticks)

    # -- nodes and the leader

    def register_node(self, name: str, again: int | None = None) -> int:
        """Return a number nobody had before, or the one that the node had `again`."""
        with self._lock:
            node, now = again or len(self._tables.nodes) + 1, self.now()
            self._tables.nodes[node] = NodeRow(node, name, __version__, now, now)
            return node

    def beat(self, node: int, note: str | None = None) -> None:
        """Note that the node is alive, and what it says of itself."""
        with self._lock:
            if node not in self._tables.nodes:
                raise NotFound("node", str(node))
            row = self._tables.nodes[node]
            self._tables.nodes[node] = row._replace(
                seen_at=self.now(), note=row.note if note is None else note
            )

    def elect(self, role: str, node: int, ttl: timedelta) -> Term | None:
        """Become holder of a role nobody else holds."""
        with self._lock:
            current = self._tables.terms.get(role)
            return self._keep(role, next_term(current, str(node), now=self.now(), lease=ttl))

    def extend_term(self, role: str, term: Term, ttl: timedelta) -> Term | None:
        """Prolong exactly this term while it lasts."""
        with self._lock:
            now, current = self.now(), self._tables.terms.get(role)
            if current is None or lapsed(current.until, now=now):
                return None
            return self._keep(role, renewed(current, term, now=now, lease=ttl))

    def resign(self, role: str, term: Term) -> bool:
        """End exactly this term now."""
        with self._lock:
            current = self._tables.terms.get(role)
            return self._keep(role, resigned(current, term, now=self.now())) is not None

    def _keep(self, role: str, term: Term | None) -> Term | None:
        if term is not None:
            self._tables.terms[role] = term = replace(term, role=role)
        return term

    def _fence(self, term: Term | None) -> None:
        """Go on only under this term, if one is named."""
        if term is not None and not holds(self._tables.terms.get(term.role), term, now=self.now()):
            raise TermOver(term.number)
