"""A lane's plan lives as long as its settings: what it remembers of jobs must not."""

from penstock import Client
from penstock.domain.job import Claimed
from penstock.domain.lanes import lane
from penstock.domain.pools import pool
from penstock.scheduler.plans import MOST_KEYS, plan_of
from tests.api.conftest import memory_store


def test_the_keys_of_a_pool_are_forgotten_when_they_are_very_many() -> None:
    store = memory_store()
    store.put_pool(pool("web", rate="5/s", key="tenant"), actor="test")
    store.put_lane(lane("orders", pool="web"), actor="test")
    client = Client(store)
    found = client.get(client.enqueue("orders", {}).id)
    plan = plan_of(store.lanes()["orders"], store.pools(), None)
    for n in range(MOST_KEYS + 1):
        plan.limits_of(Claimed(found.live._replace(tenant=f"t{n}"), found.context))

    before = plan.limits_of(Claimed(found.live, found.context))
    assert plan.limits_of(Claimed(found.live, found.context)) is before
    plan.forget()
    assert len(plan._limits) == 0
    assert plan.limits_of(Claimed(found.live, found.context)) == before
