"""The page of metrics lists every series there is, and no other."""

import re
from datetime import UTC, datetime
from pathlib import Path

from prometheus_client import CollectorRegistry

from penstock.observability.deliveries import Deliveries
from penstock.observability.depths import Depths
from penstock.observability.metrics import Metrics
from penstock.ports.flow import Scouted
from penstock.ports.vitals import PoolUse, Vitals

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "metrics.md"
ROW = re.compile(r"^\| `(penstock_\w+)` \| ([^|]*)\|", re.MULTILINE)
VITALS = Vitals(0.0, {"web": PoolUse()}, 0.0, 0)
SUFFIX = {"counter": "_total", "info": "_info"}


def test_every_series_is_on_its_page_with_its_labels() -> None:
    now = datetime(2026, 11, 15, tzinfo=UTC)
    registry = CollectorRegistry()
    metrics, deliveries = Metrics(registry, version="1"), Deliveries(registry)
    registry.register(
        Depths(dict, lambda: Scouted(now, {}), lambda: VITALS, now=lambda: now, monotonic=lambda: 0.0),
    )
    there = {family.name + SUFFIX.get(family.type, "") for family in registry.collect()}
    listed = {name: re.findall(r"`(\w+)`", labels) for name, labels in ROW.findall(PAGE.read_text())}

    assert set(listed) == there
    for metric in [*vars(metrics).values(), *vars(deliveries).values()]:
        labels = getattr(metric, "_labelnames", None)
        if labels:
            name = metric._name + SUFFIX.get(metric._type, "")
            assert tuple(listed[name]) == tuple(labels), name
