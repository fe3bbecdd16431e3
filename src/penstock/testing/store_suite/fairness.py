"""Tenants share what a claim takes; none starves."""

from collections import Counter

from penstock.domain.job import Claim
from penstock.domain.outcomes import Returned
from penstock.ports.store import Store
from penstock.testing.store_suite.factories import (
    HOUR,
    claim,
    claim_groups,
    enqueue,
    ids,
    job,
    ordered,
    put_lane,
    settle,
    some,
)

MANY = 150


def _tenants(batch: Claim | None) -> Counter[str | None]:
    return Counter(claimed.job.tenant for claimed in some(batch).jobs)


class FairnessTests:
    """Fairness."""

    def test_each_tenant_gets_its_share(self, store: Store) -> None:
        """A tenant with a long, old queue does not push out the others; no tenant counts as one."""
        put_lane(store)
        old = store.now() - HOUR
        enqueue(store, *(job(tenant="big", run_at=old) for _ in range(20)))
        enqueue(store, *(job(tenant="small") for _ in range(5)), *(job() for _ in range(5)))

        assert _tenants(claim(store, limit=9)) == {"big": 3, "small": 3, None: 3}

    def test_what_a_tenant_leaves_goes_to_the_oldest(self, store: Store) -> None:
        """The limit is used up as long as there are jobs."""
        put_lane(store)
        now = store.now()
        enqueue(store, job(tenant="a"))
        enqueue(store, *(job(tenant="b", run_at=now - HOUR) for _ in range(8)))
        enqueue(store, *(job(tenant="c", run_at=now - 2 * HOUR) for _ in range(8)))

        assert _tenants(claim(store, limit=10)) == {"a": 1, "b": 3, "c": 6}

    def test_one_tenant_alone_gets_everything(self, store: Store) -> None:
        """Shares are among those who have something to do."""
        put_lane(store)
        enqueue(store, job(tenant="idle", run_at=store.now() + HOUR))
        enqueue(store, *(job(tenant="busy") for _ in range(5)))

        assert _tenants(claim(store, limit=4)) == {"busy": 4}

    def test_a_share_is_the_tenants_oldest(self, store: Store) -> None:
        """Within a tenant it is by due time and arrival; the claim is in that order over all."""
        put_lane(store)
        now = store.now()
        [a1, a2, _, b1, b2] = enqueue(
            store,
            job(tenant="a", run_at=now - 5 * HOUR),
            job(tenant="a", run_at=now - 4 * HOUR),
            job(tenant="a", run_at=now - 3 * HOUR),
            job(tenant="b", run_at=now - 2 * HOUR),
            job(tenant="b", run_at=now - 1 * HOUR),
        )

        assert ids(claim(store, limit=4)) == [a1, a2, b1, b2]

    def test_more_tenants_than_places_all_get_their_turn(self, store: Store) -> None:
        """Whoever goes first, repeated claims reach everybody before anybody is through."""
        put_lane(store)
        old = store.now() - HOUR
        tenants = [None, "a", "b", "c", "d"]
        enqueue(store, *(job(tenant=t, run_at=old if t == "a" else None) for t in tenants for _ in range(40)))
        reached: set[str | None] = set()
        for _ in range(40):
            batch = _tenants(claim(store, limit=2))
            assert set(batch.values()) == {1}
            reached |= set(batch)

        assert reached == set(tenants)

    def test_jobs_that_come_back_do_not_keep_the_others_out(self, store: Store) -> None:
        """A tenant whose oldest jobs return again and again does not win every time."""
        put_lane(store)
        old = store.now() - HOUR
        enqueue(store, *(job(tenant=t, run_at=old if t < "c" else None) for t in "abcde"))
        reached: set[str | None] = set()
        for _ in range(60):
            batch = some(claim(store, limit=2))
            reached |= set(_tenants(batch))
            settle(store, batch, Returned("no token"))

        assert reached == set("abcde")

    def test_groups_are_shared_by_the_tenant_of_their_head(self, store: Store) -> None:
        """A tenant with many ready groups does not push out the others."""
        put_lane(store)
        old = store.now() - HOUR
        enqueue(store, *(ordered(f"big-{i}", tenant="big", run_at=old) for i in range(20)))
        enqueue(store, *(ordered(f"small-{i}", tenant="small") for i in range(5)))

        assert _tenants(claim_groups(store, limit=6)) == {"big": 3, "small": 3}

    def test_groups_left_over_go_by_due_time_then_name(self, store: Store) -> None:
        """Among equals the order is the same on every store."""
        put_lane(store)
        at = store.now() - HOUR
        [b, a, older] = enqueue(
            store, ordered("b", run_at=at), ordered("a", run_at=at), ordered("z", run_at=at - HOUR)
        )

        assert set(ids(claim_groups(store, limit=2))) == {older, a}
        assert ids(claim_groups(store, limit=2)) == [b]

    def test_more_tenants_with_groups_than_places_all_get_their_turn(self, store: Store) -> None:
        """As for jobs that keep no order."""
        put_lane(store)
        old = store.now() - HOUR
        for tenant in "abcde":
            at = old if tenant == "a" else None
            enqueue(store, *(ordered(f"{tenant}-{i}", tenant=tenant, run_at=at) for i in range(40)))
        reached: set[str | None] = set()
        for _ in range(40):
            reached |= set(_tenants(claim_groups(store, limit=2)))

        assert reached == set("abcde")

    def test_tenants_whose_jobs_are_all_later_hide_nobody(self, store: Store) -> None:
        """However many they are, and wherever they stand: a due job goes."""
        put_lane(store)
        later = store.now() + HOUR
        enqueue(store, *(job(tenant=f"t{i:03}", run_at=later) for i in range(MANY)))
        [due] = enqueue(store, job(tenant="z"))
        assert ids(claim(store, limit=2)) == [due]

        enqueue(store, *(ordered(f"g{i}", tenant=f"t{i:03}", run_at=later) for i in range(MANY)))
        [head] = enqueue(store, ordered("z", tenant="z"))
        assert ids(claim_groups(store, limit=2)) == [head]

    def test_behind_tenants_whose_jobs_are_all_later_everybody_has_a_turn(self, store: Store) -> None:
        """A tenant with more than a claim takes does not have every one."""
        put_lane(store)
        now = store.now()
        enqueue(store, *(job(tenant=f"t{i:03}", run_at=now + HOUR) for i in range(MANY)))
        enqueue(store, *(job(tenant="a", run_at=now - HOUR) for _ in range(20)), job(tenant="z"))
        reached: set[str | None] = set()
        for _ in range(8):
            reached |= set(_tenants(claim(store, limit=2)))

        assert reached == {"a", "z"}

    def test_turns_of_many_tenants_are_equal(self, store: Store) -> None:
        """Where a claim has room for some jobs of each, nobody is served twice as often as others."""
        put_lane(store)
        tenants = [f"t{i:03}" for i in range(100)]
        enqueue(store, *(job(tenant=tenant) for _ in range(10) for tenant in tenants))
        got: Counter[str | None] = Counter(dict.fromkeys(tenants, 0))
        for _ in range(5):
            got += _tenants(claim(store, limit=128))

        assert max(got.values()) - min(got.values()) <= 2
