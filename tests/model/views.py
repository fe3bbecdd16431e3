"""A store as the model sees it: arrivals, epochs and times under names that all stores share.

Public ids are chosen by the test, so they are the same everywhere. Arrivals, epochs and the clock are each
store's own: arrivals are shown as ids, epochs as the number of the call that made them, times as whole hours
from the start. Every time in the model is hours away from now or now itself, so nothing depends on how long
a call takes.
"""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any, TypeVar

from penstock.domain.filters import JobQuery
from penstock.domain.job import Claim, Enqueued, Job, Live
from penstock.domain.ordering import sequence_of
from penstock.domain.outcomes import Outcome
from penstock.domain.states import TERMINAL, JobState
from penstock.errors import PenstockError
from penstock.ports.store import Lapse, Settled, Store

T = TypeVar("T")
HOUR = timedelta(hours=1)
Facts = dict[str, Any]


@dataclass
class View:
    """One store, and what its own numbers are called."""

    name: str
    store: Store
    start: datetime
    ids: dict[int, str] = field(default_factory=dict)
    epochs: dict[int, str] = field(default_factory=dict)

    # -- what the model says in the store's words

    def by_arrival(self, outcomes: Mapping[str, Outcome]) -> dict[int, Outcome]:
        missing = [id_ for id_ in outcomes if id_ not in self.ids.values()]
        if missing:
            self.jobs(missing)
        arrivals = {id_: arrival for arrival, id_ in self.ids.items()}
        return {arrivals[id_]: outcome for id_, outcome in outcomes.items()}

    # -- what the store says in the model's words

    def hours(self, at: datetime | None) -> int | None:
        return None if at is None else round((at - self.start) / HOUR)

    def id_of(self, arrival: int | None) -> str | None:
        return None if arrival is None else self.ids.get(arrival, f"arrival {arrival}")

    def name_of(self, epoch: int | None) -> str | None:
        return None if epoch is None else self.epochs.get(epoch, f"epoch {epoch}")

    def row(self, row: Live) -> Facts:
        """What of a row is the same in every store; a finished one keeps less."""
        state = JobState(row.state)
        facts: Facts = {
            "state": state.label,
            "reason": row.reason,
            "attempt": row.attempt,
            "max_attempts": row.max_attempts,
            "send": row.send,
            "recoveries": row.recoveries,
            "deferrals": row.deferrals,
            "revision": row.revision,
            "sequence": sequence_of(row.ord) if row.grp is not None else None,
            "group": row.grp,
            "tenant": row.tenant,
            "epoch": self.name_of(row.epoch),
            "node": row.node,
            "due": self.hours(row.due_at),
            "start_by": self.hours(row.start_by),
            "claimed": row.claimed_at is not None,
            "dispatched": row.sent_at is not None,
            "started": row.started_at is not None,
            "receipt": row.receipt,
        }
        if state not in TERMINAL:
            facts |= {"open": bool(row.open), "holds": bool(row.holds), "deadline": self.hours(row.deadline)}
        if state is not JobState.SUCCEEDED:
            facts["sent"] = row.ord < 0
        return facts

    def job(self, job: Job) -> Facts:
        context = job.context
        assert context is not None, f"{job.id} has lost its context"
        return self.row(job.live) | {
            "lane": job.lane,
            "mode": job.mode.label,
            "error": job.error,
            "result": job.result,
            "request": job.request,
            "finished": job.finished_at is not None,
            "run_at": self.hours(context.run_at),
            "said": (context.id, context.message_group, context.sequence, context.payload, context.key),
        }

    def claim(self, claim: Claim | None, name: str) -> Any:  # noqa: ANN401
        """What was claimed: jobs of no group in order, those of each group in their order."""
        if claim is None:
            return None
        self.epochs[claim.epoch] = name
        runs: dict[str | None, list[tuple[str, Facts]]] = {}
        for claimed in claim.jobs:
            row, context = claimed
            assert context is not None or row.arrival in claim.settled, "claimed without its context"
            if context is not None:
                self.ids[row.arrival] = context.id
            runs.setdefault(row.grp, []).append((self.ids[row.arrival], self.row(row)))
        return {
            "lane": claim.lane,
            "node": claim.node,
            "until": self.hours(claim.lease_until),
            "groups": bool(claim.groups),
            "sending": bool(claim.sending),
            "takeovers": claim.takeovers,
            "settled": {self.id_of(arrival) for arrival in claim.settled},
            "jobs": runs,
        }

    def lapse(self, lapse: Lapse | None, name: str) -> Any:  # noqa: ANN401
        if lapse is None:
            return None
        self.epochs[lapse.epoch] = name
        return [(self.id_of(row.job.arrival), self.row(row.job)) for row in lapse.jobs]

    def settled(self, settled: Settled) -> Any:  # noqa: ANN401
        return {kind: {self.id_of(a) for a in getattr(settled, kind)} for kind in ("applied", "refused")}

    def answers(self, answers: Iterable[Enqueued | PenstockError]) -> list[Any]:
        return [a if isinstance(a, Enqueued) else (type(a).__name__, str(a)) for a in answers]

    # -- what anybody can look at

    def jobs(self, ids: Sequence[str]) -> Facts:
        found = self.store.find(ids)
        self.ids |= {job.live.arrival: id_ for id_, job in found.items()}
        return {id_: self.job(found[id_]) for id_ in ids if id_ in found}

    def pages(self, query: JobQuery) -> list[str]:
        """The ids of a whole list, page by page."""
        ids: list[str] = []
        while True:
            page = self.store.list_jobs(query)
            ids += [job.id for job in page.jobs]
            if page.next is None:
                return ids
            query = replace(query, after=page.next)

    def versions(self, id_: str) -> list[Any]:
        return [version._replace(at=None) for version in self.store.payload_versions(id_)]  # type: ignore[arg-type]

    def counts(self) -> Facts:
        return {f"{lane} {state.label}": n for (lane, state), n in self.store.counts().items() if n}

    def group(self, lane: str, group: str) -> Facts | None:
        state = self.store.group(lane, group)
        if state is None:
            return None
        return {
            "next_at": self.hours(state.next_at),
            "claim": self.name_of(state.claim),
            "blocked": state.blocked,
            "paused": state.paused,
            "dead": self.id_of(state.dead_arrival),
        }

    def group_row(self, lane: str, group: str) -> list[Any]:
        """The group as operators see it; times that every store has of its own are only known or not."""
        page = self.store.list_groups(lane=lane, group=group)
        assert page.next is None
        return [(*row[:5], row.since is not None, row.behind, self.hours(row.next_at)) for row in page.groups]

    def groups(self, *, blocked: bool) -> list[Any]:
        """The names of a whole list, two at a time."""
        found: list[Any] = []
        after = None
        while True:
            page = self.store.list_groups(blocked=blocked, limit=2, after=after)
            found += [(row.lane, row.group, row.state) for row in page.groups]
            after = page.next
            if after is None:
                return found

    def standing(self, id_: str) -> Any:  # noqa: ANN401
        """Why the job is where it is."""
        found = self.store.standing(id_)
        if found is None:
            return None
        ahead = found.ahead
        if ahead is not None:  # each store has a clock of its own
            ahead = ahead._replace(due_at=None, since=None)  # type: ignore[arg-type]
        return {
            "ahead": ahead,
            "before": found.before,
            "paused": (found.group_paused, found.group_pause is not None),
            "last": found.last and (found.last.actor, found.last.action, found.last.reason),
            "tried": found.tried and (found.tried.outcome, found.tried.error),
            "lease": self.hours(found.lease_until),
            "holder": found.holder,
            "request": (found.request, found.asked_by, found.asked_at is not None),
        }

    def timeline(self, id_: str) -> Facts:
        """Everything on record, but for the times themselves."""
        line = self.store.timeline(id_)
        return {
            "attempts": [
                (a.attempt, a.send, self.name_of(a.epoch), a.node, a.outcome, a.error, self.hours(a.due_at))
                for a in line.attempts
            ],
            "audit": [
                (a.actor, a.action, _timeless(a.before), _timeless(a.after), a.reason) for a in line.audit
            ],
        }


def _timeless(value: str | None) -> str | None:
    """An edit says when the job was due and will be."""
    return None if value is None else re.sub(r'"run_at": "[^"]*"', '"run_at"', value)


class DisagreementError(AssertionError):
    """Two stores answer differently."""


def agreed(views: Sequence[View], what: str, look: Callable[[View], T]) -> T:
    """Return what all stores say of something; the first one is the oracle."""
    oracle, *others = views
    expected = look(oracle)
    for view in others:
        actual = look(view)
        if actual != expected:
            raise DisagreementError(f"{what}\n{_difference(oracle.name, expected, view.name, actual)}")
    return expected


def _difference(one: str, expected: object, other: str, actual: object) -> str:
    if isinstance(expected, dict) and isinstance(actual, dict):
        keys = [key for key in {**expected, **actual} if expected.get(key) != actual.get(key)]
        return "\n".join(
            f"[{key}] " + _difference(one, expected.get(key), other, actual.get(key)) for key in keys
        )
    return f"{one}: {expected!r}\n  {other}: {actual!r}"
