"""Settings are changed, and others stay, whoever changes those at the same time."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime

import pytest

from penstock.config.changing import ANY, LANE, POOL
from penstock.domain.lanes import Lane, lane
from penstock.errors import VersionChanged
from penstock.ports.store import Store
from penstock.stores.memory import MemoryStore


def test_who_comes_second_leaves_what_the_first_changed() -> None:
    store, raced = MemoryStore(lambda: datetime.now(UTC), str), list[Lane]()
    store.put_lane(lane("pay"), actor="test")

    def looked(store: Store) -> Mapping[str, Lane]:
        found = store.lanes()
        if not raced:
            raced.append(store.put_lane(lane("pay", enabled=False), actor="other"))
        return found

    now, made = replace(LANE, all=looked).change(store, "pay", {"batch_size": 7}, actor="test")

    assert (now["enabled"], now["batch_size"], made) == (False, 7, False)


def test_what_was_expected_has_to_be_there() -> None:
    store = MemoryStore(lambda: datetime.now(UTC), str)
    with pytest.raises(VersionChanged, match="is not there"):
        POOL.change(store, "web", {}, actor="test", expect=ANY)
    web, made = POOL.change(store, "web", {"rate": "5/s"}, actor="test", expect=0)
    assert made
    with pytest.raises(VersionChanged):
        POOL.change(store, "web", {}, actor="test", expect=0)
    with pytest.raises(VersionChanged):
        POOL.change(store, "web", {}, actor="test", expect=web.version + 1)
    assert POOL.change(store, "web", {"burst": 3}, actor="test", expect=ANY)[0].settings["rate"] == "5/s"
