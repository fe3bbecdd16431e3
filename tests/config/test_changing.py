"""Settings are changed, and others stay, whoever changes those at the same time."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from penstock.config.changing import ANY, LANE, POOL
from penstock.config.declared import Declared
from penstock.config.plan import apply
from penstock.domain.lanes import Lane, lane
from penstock.domain.pools import Pool
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


class Raced(MemoryStore):
    """A store where somebody disables the lane while a file is compared with it."""

    def pools(self) -> dict[str, Pool]:
        self.put_lane(lane("pay", enabled=False), actor="other")
        return super().pools()


def test_a_file_that_says_nothing_of_it_enables_no_lane_that_somebody_just_disabled() -> None:
    store = Raced(lambda: datetime.now(UTC), str)
    store.put_lane(lane("pay"), actor="test")

    apply(
        store,
        Declared(pools={}, lanes={"pay": lane("pay", batch_size=7)}, silent=frozenset({"pay"})),
        actor="file",
        file=Path("lanes.toml"),
    )

    assert (store.lanes()["pay"]["enabled"], store.lanes()["pay"]["batch_size"]) == (False, 7)
