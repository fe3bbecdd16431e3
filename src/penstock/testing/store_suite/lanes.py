"""Lanes are kept, versioned and read back as they were given."""

import pytest

from penstock.domain.lanes import SETTINGS
from penstock.domain.lanes import lane as lane_of
from penstock.domain.pools import pool as pool_of
from penstock.errors import VersionChanged
from penstock.ports.store import Store
from penstock.testing.store_suite.factories import LANE, put_lane


class LaneTests:
    """Lanes."""

    def test_a_lane_is_changed_only_as_its_caller_saw_it(self, store: Store) -> None:
        """Of two who edit the same version the second is told."""
        made = store.put_lane(lane_of("orders"), actor="a", expect=0)
        changed = store.put_lane(lane_of("orders", batch_size=7), actor="a", expect=made.version)
        for expect in (made.version, 0):
            with pytest.raises(VersionChanged, match=f"is at version {changed.version} now"):
                store.put_lane(lane_of("orders", batch_size=9), actor="b", expect=expect)
        with pytest.raises(VersionChanged, match='pool "web" is not there'):
            store.put_pool(pool_of("web"), actor="b", expect=1)
        assert store.lanes()["orders"]["batch_size"] == 7

    def test_a_new_lane_gets_a_number_and_version_one(self, store: Store) -> None:
        """What is stored is what comes back, from `put_lane` and from `lanes`."""
        lane = put_lane(store, batch_size=7, target="http://127.0.0.1:9000/hook")

        assert lane.id > 0
        assert lane.version == 1
        assert lane["batch_size"] == 7
        assert store.lanes() == {LANE: lane}

    def test_a_lane_has_every_setting(self, store: Store) -> None:
        """Settings nobody gave have their defaults, with their types."""
        put_lane(store)

        assert dict(store.lanes()[LANE].settings) == {name: s.default for name, s in SETTINGS.items()}

    def test_a_changed_lane_keeps_its_number_and_raises_its_version(self, store: Store) -> None:
        """Nodes look at versions to see what changed."""
        before = put_lane(store)
        after = put_lane(store, enabled=False)

        assert after.id == before.id
        assert after.version > before.version
        assert store.lanes()[LANE]["enabled"] is False

    def test_a_lane_put_again_unchanged_keeps_its_version(self, store: Store) -> None:
        """Applying the same file twice changes nothing."""
        before = put_lane(store, weight=3)

        assert put_lane(store, weight=3) == before
        assert store.lanes() == {LANE: before}

    def test_a_setting_can_be_taken_back(self, store: Store) -> None:
        """None is a value too."""
        store.put_pool(pool_of("web"), actor="b")
        put_lane(store, pool="web", rate="5/s")
        lane = put_lane(store)

        assert (lane["pool"], lane["rate"]) == (None, None)

    def test_lanes_have_numbers_of_their_own(self, store: Store) -> None:
        """No two lanes share a number."""
        numbers = {put_lane(store, f"lane-{i}").id for i in range(5)}

        assert len(numbers) == 5
        assert len(store.lanes()) == 5

    def test_why_a_lane_was_changed_is_kept(self, store: Store) -> None:
        """The reason is that of this change alone, and a change of nothing leaves what others said."""
        put_lane(store, "other")
        lane = lane_of("orders")
        store.put_lane(lane, actor="ann", reason="new")
        off = lane_of("orders", enabled=False)
        store.put_lane(off, actor="ben", reason="on fire")
        store.put_lane(off, actor="eve", reason="nothing changed")
        store.put_lane(lane, actor="cat")

        found = [(entry.actor, entry.reason) for entry in store.audit_log(lane="orders").entries]
        assert found == [("cat", None), ("ben", "on fire"), ("ann", "new")]
        assert [entry.reason for entry in store.audit_log(lane="other").entries] == [None]
