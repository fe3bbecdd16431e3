"""How a store does, in figures."""

from datetime import timedelta

from penstock.domain.limits import Limit, Need
from penstock.domain.rates import Rate
from penstock.domain.vitals import MOST_KEYS
from penstock.ports.store import Ask, Store
from penstock.testing.store_suite.factories import LANE, ZERO, enqueue, job, put_lane
from penstock.testing.store_suite.limits import TTL, out
from penstock.testing.store_suite.pools import put_pool


class VitalsTests:
    """Few figures, whatever there is."""

    def test_a_quiet_store_has_nothing_to_tell(self, store: Store) -> None:
        """No claim is overdue, no pool is there."""
        vitals = store.vitals()

        assert vitals.lapsed_s == 0
        assert vitals.pools == {}

    def test_a_claim_whose_lease_ran_out_is_seen_until_it_is_taken_over(self, store: Store) -> None:
        """However it came to be left."""
        put_lane(store)
        enqueue(store, job())
        assert store.claim(Ask(lane=LANE, node=1, lease=-timedelta(minutes=1))) is not None
        assert store.vitals().lapsed_s >= 59

        store.takeover(2, timedelta(minutes=1), 10)
        assert store.vitals().lapsed_s == 0

    def test_slots_that_are_held_or_out_fill_a_pool(self, store: Store) -> None:
        """Half of them on lease, a quarter out."""
        put_lane(store)
        put_pool(store, "web", max_in_flight=4)
        assert store.vitals().pools["web"].saturation == 0

        store.permit(1, [Need(Limit("pool", "web", max_in_flight=4), slots=2)], ttl=TTL)
        out(store, 1)

        use = store.vitals().pools["web"]
        assert (use.saturation, use.in_flight, use.keys) == (0.75, 3, 0)

    def test_a_lease_that_ran_out_takes_no_room(self, store: Store) -> None:
        """Its node is gone."""
        put_pool(store, "web", max_in_flight=4)
        store.permit(1, [Need(Limit("pool", "web", max_in_flight=4), slots=2)], ttl=ZERO)

        assert store.vitals().pools["web"].saturation == 0

    def test_an_empty_bucket_is_a_full_pool_and_the_fullest_key_counts(self, store: Store) -> None:
        """One tenant at its limit is what somebody wants to know."""
        put_pool(store, "web", rate="1/h", burst=4, key="tenant")
        rate = Rate(1, timedelta(hours=1))
        for tenant, tokens in (("acme", 1), ("zeta", 4)):
            limit = Limit("pool", "web", tenant, rate=rate, burst=4)
            store.permit(1, [Need(limit, tokens=tokens)], ttl=TTL)

        use = store.vitals().pools["web"]
        assert (use.keys, use.fullest, use.at_limit) == (2, "zeta", 1)
        assert use.saturation > 0.99
        assert [each.key for each in use.crowded] == ["zeta", "acme"]

    def test_a_pool_with_very_many_keys_does_not_hide_others(self, store: Store) -> None:
        """Nor those whose names begin with its own."""
        put_pool(store, "web", max_in_flight=2, key="tenant")
        needs = [Need(Limit("pool", "web", f"{n:04}", max_in_flight=2), slots=1) for n in range(MOST_KEYS)]
        store.permit(1, needs, ttl=TTL)
        for name in ("web-2", "web.a", "zoo"):
            put_pool(store, name, max_in_flight=4)
            store.permit(1, [Need(Limit("pool", name, max_in_flight=4), slots=3)], ttl=TTL)

        pools = store.vitals().pools
        assert pools["web"].saturation == 0.5
        assert [pools[name].saturation for name in ("web-2", "web.a", "zoo")] == [0.75] * 3
