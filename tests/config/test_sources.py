"""Where settings come from, as far as the audit tells."""

from datetime import UTC, datetime
from pathlib import Path

import pytest

from penstock.config import sources
from penstock.config.declared import Declared
from penstock.config.plan import apply
from penstock.config.sources import lane_sources, take_changes
from penstock.domain.job import AuditEntry
from penstock.domain.lanes import SETTINGS, lane
from penstock.domain.ulid import Ulids
from penstock.stores.memory import MemoryStore


@pytest.mark.parametrize(("pages", "rate"), [(2, "unknown"), (3, "lanes.toml")])
def test_of_what_was_changed_too_long_ago_nothing_is_said(
    monkeypatch: pytest.MonkeyPatch, pages: int, rate: str
) -> None:
    monkeypatch.setattr(sources, "PAGE", 2)
    monkeypatch.setattr(sources, "PAGES", pages)
    store = MemoryStore(clock=lambda: datetime(2026, 3, 1, tzinfo=UTC), ids=Ulids(lambda: 0, bytes))
    wanted = Declared(pools={}, lanes={"pay": lane("pay", rate="5/s")}, silent=frozenset())
    apply(store, wanted, actor="cli:ann", file=Path("lanes.toml"))
    for weight in (2, 3, 4, 5):
        store.put_lane(lane("pay", rate="5/s", weight=weight), actor="cli:bob")

    found = lane_sources(store, store.lanes()["pay"])

    assert found["rate"]["source"] == rate
    assert (found["weight"]["source"], found["weight"]["actor"]) == ("database", "cli:bob")
    assert found["jitter"]["source"] == "default"


def test_what_was_done_to_another_lane_of_the_name_is_not_told() -> None:
    store = MemoryStore(clock=lambda: datetime(2026, 3, 1, tzinfo=UTC), ids=Ulids(lambda: 0, bytes))
    store.put_lane(lane("pay", weight=3), actor="cli:ann")
    store.put_lane(lane("pay", weight=3, rate="5/s"), actor="cli:ann")
    store.delete_lane("pay", actor="cli:ann")
    store.put_lane(lane("pay", rate="5/s"), actor="cli:bob")
    found = dict[str, AuditEntry]()

    assert take_changes(store.audit_log().entries, "pay", SETTINGS, kind="lane", found=found)
    assert {name: entry.actor for name, entry in found.items()} == {"rate": "cli:bob"}
    assert lane_sources(store, store.lanes()["pay"])["rate"]["actor"] == "cli:bob"
