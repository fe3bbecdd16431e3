"""What nodes do all day, once each, with batches of a given size: the calls whose cost must not grow."""

from collections.abc import Iterator
from datetime import timedelta
from itertools import cycle
from typing import Final

from penstock.domain.job import Claim, NewJob
from penstock.domain.ordering import Mode
from penstock.domain.outcomes import (
    Dead,
    Deferred,
    Dispatched,
    Expired,
    Failed,
    Held,
    Lapsed,
    LapsedTooOften,
    Outcome,
    Returned,
    Running,
    Succeeded,
)
from penstock.domain.rates import Rate
from penstock.domain.states import Reason
from penstock.ports.flow import Limit, Need
from penstock.ports.store import Ask, Report, Store
from tests.plans.backlog import GROUPS, PAYLOAD, PLAIN, TENANT_GROUPS, TENANTS

SOON: Final = timedelta(minutes=5)
RATE: Final = Rate(100, timedelta(seconds=1))
EVERY_OUTCOME: Final[tuple[Outcome, ...]] = (
    Succeeded(), Dispatched(SOON), Running(SOON), Failed("boom", SOON), Dead(Reason.PERMANENT, "boom"),
    Deferred(SOON), Returned("no token", SOON), Expired(), Held("no context"), Lapsed(),
    Lapsed(started=False), Lapsed(hold=True), LapsedTooOften(Reason.PERMANENT),
)  # fmt: skip


def mixed(claim: Claim) -> dict[int, Outcome]:
    """Return outcomes of every kind for the claim's jobs."""
    kinds = cycle(EVERY_OUTCOME)
    return {claimed.job.arrival: next(kinds) for claimed in claim.jobs}


def claimed(store: Store, lane: str, batch: int) -> Claim:
    """Return a claim of unordered jobs, full."""
    claim = store.claim(Ask(lane=lane, node=1, limit=batch))
    assert claim is not None
    assert len(claim.jobs) == batch
    return claim


def claimed_groups(store: Store, lane: str, batch: int, run: int) -> Claim:
    """Return a claim of so many groups."""
    claim = store.claim_groups(Ask(lane=lane, node=1, limit=batch, run=run))
    assert claim is not None
    assert len({job.job.grp for job in claim.jobs}) == batch
    return claim


def ids(claim: Claim) -> list[str]:
    """Return the public ids of a claim's jobs."""
    return [claimed.context.id for claimed in claim.jobs if claimed.context is not None]


def plain_jobs(batch: int) -> list[NewJob]:
    """Return enqueue objects without order."""
    return [NewJob(lane=PLAIN, payload=PAYLOAD) for _ in range(batch)]


def grouped_jobs(batch: int) -> list[NewJob]:
    """Return enqueue objects of many groups."""
    groups = [f"group-{i:08d}" for i in range(batch)]
    return [NewJob(lane=GROUPS, group=group, mode=Mode.BLOCK_ON_ERROR, payload=PAYLOAD) for group in groups]


def needs(batch: int) -> list[Need]:
    """Return what a node asks of a lane and of so many keys of a pool."""
    lane = Limit("lane", PLAIN, rate=RATE, burst=100, max_in_flight=100)
    keys = [Limit("pool", "web", str(key), RATE, 10, 10) for key in range(batch)]
    return [Need(limit, tokens=5, spent=2, slots=5, busy=1) for limit in (lane, *keys)]


def day(store: Store, batch: int) -> Iterator[tuple[str, int]]:
    """Make every call of a pass; yield the name of each and how many jobs it was about."""
    store.enqueue(plain_jobs(batch))
    yield "enqueue", batch
    store.enqueue(grouped_jobs(batch))
    yield "enqueue grouped", batch
    store.enqueue([job._replace(id=f"chosen-{number}") for number, job in enumerate(plain_jobs(batch))])
    yield "enqueue by id", batch
    store.scout()
    yield "scout", 0
    for _ in range(2):  # the first makes the accounts
        store.permit(1, needs(batch), ttl=SOON)
        yield "permit", batch
    yield from _unordered(store, batch)
    yield from _ordered(store, batch)
    yield from _recovery(store, batch)
    store.fold_counts()
    yield "fold", batch


def _unordered(store: Store, batch: int) -> Iterator[tuple[str, int]]:
    claim = claimed(store, PLAIN, batch)
    yield "claim", batch
    store.confirm(claim)
    store.mark_sending(claim.epoch)
    store.renew([claim.epoch], SOON)
    yield "hold a claim", batch
    store.settle(claim)
    yield "settle", batch
    claim = claimed(store, PLAIN, batch)
    outcomes = mixed(claim)
    store.settle(claim, outcomes)
    yield "settle mixed", batch
    words = [Report(id=id_, send=1, outcome=Succeeded()) for id_ in ids(claim)]
    store.report(words)
    yield "report", batch
    store.find(ids(claim))
    yield "find", batch
    for _ in range(2):  # the second goes on where the first one stopped
        store.settle(claimed(store, TENANTS, batch))
        yield "claim fair", batch


def _ordered(store: Store, batch: int) -> Iterator[tuple[str, int]]:
    store.settle(claimed_groups(store, GROUPS, batch, run=1))
    yield "heads", batch
    claim = claimed_groups(store, GROUPS, batch, run=10)
    yield "runs", len(claim.jobs)
    store.settle(claim, mixed(claim))
    yield "settle mixed runs", len(claim.jobs)
    for _ in range(2):
        store.settle(claimed_groups(store, TENANT_GROUPS, batch, run=1))
        yield "heads fair", batch


def _recovery(store: Store, batch: int) -> Iterator[tuple[str, int]]:
    lapse = store.lapse(1, SOON, batch)
    assert lapse is not None
    assert len(lapse.jobs) == batch
    store.resolve(lapse, {claimed.job.arrival: Lapsed() for claimed in lapse.jobs})
    yield "lapse", batch
    assert store.expire(batch) == batch
    yield "expire", batch
    claim = store.claim_groups(Ask(lane=GROUPS, node=1, limit=batch, run=1, lease=timedelta(seconds=-1)))
    assert claim is not None
    [taken] = store.takeover(2, SOON, 10)
    assert len(taken.jobs) == len(claim.jobs)
    yield "takeover", len(claim.jobs)
