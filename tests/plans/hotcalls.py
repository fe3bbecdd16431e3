"""The calls whose number of statements is a constant and whose cost per job knows no backlog."""

from collections.abc import Callable
from typing import NamedTuple

from penstock.domain.job import Claim
from penstock.ports.store import Store
from tests.plans.backlog import GROUPS, PLAIN, TENANT_GROUPS, TENANTS
from tests.plans.scenario import SOON, claimed, claimed_groups, grouped_jobs, mixed, needs, plain_jobs

Meter = Callable[[str, int, Callable[[], Claim | None]], Claim | None]


class Hot(NamedTuple):
    """What one claim-and-settle is called, and how it is claimed and settled."""

    name: str
    claim: Callable[[Store, int], Claim]
    mixed: bool = False


CYCLES = (
    Hot("plain", lambda store, batch: claimed(store, PLAIN, batch)),
    Hot("plain, mixed", lambda store, batch: claimed(store, PLAIN, batch), mixed=True),
    Hot("tenants", lambda store, batch: claimed(store, TENANTS, batch)),
    Hot("heads", lambda store, batch: claimed_groups(store, GROUPS, batch, run=1)),
    Hot("runs, mixed", lambda store, batch: claimed_groups(store, GROUPS, batch, run=3), mixed=True),
    Hot("heads of tenants", lambda store, batch: claimed_groups(store, TENANT_GROUPS, batch, run=1)),
)


def make_calls(store: Store, batch: int, meter: Meter) -> None:
    """Make each hot call once, through `meter(name, jobs, call)`, in lanes that have been at work before."""
    for hot in CYCLES * 2:
        store.settle(hot.claim(store, 10))
    meter("enqueue", 2 * batch, lambda: store.enqueue(plain_jobs(2 * batch)) and None)
    meter("enqueue grouped", batch, lambda: store.enqueue(grouped_jobs(batch)) and None)
    store.permit(1, needs(batch), ttl=SOON)
    meter("permit", batch, lambda: store.permit(1, needs(batch), ttl=SOON) and None)
    for hot in CYCLES:
        claim = meter(f"claim {hot.name}", batch, lambda hot=hot: hot.claim(store, batch))
        assert claim is not None
        outcomes = mixed(claim) if hot.mixed else None
        meter(f"settle {hot.name}", len(claim.jobs), lambda c=claim, o=outcomes: store.settle(c, o) and None)
