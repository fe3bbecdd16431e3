"""The rules and the dashboard that are shipped: checked by promtool, and run by a real Prometheus."""

import json
import re
import shutil
from collections.abc import AsyncIterator, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from penstock import Client
from tests.chaos.processes import PENSTOCK, Cluster, cluster, eventually, start
from tests.prometheus import RULES, TEMPLATES, Prometheus, promtool
from tests.servers import ServerUnavailableError, missing

HERE = Path(__file__).parent
PAGE = HERE.parents[1] / "docs" / "reference" / "metrics.md"
BOARD = json.loads((TEMPLATES / "grafana.json").read_text(encoding="utf-8"))
RECORDED = re.compile(r"^ +- record: (\S+)$", re.MULTILINE)
ALERT = re.compile(r"^ +- alert: (\S+)$", re.MULTILINE)
CONFIG = """
[pools.web]
max_in_flight = 5

[lanes.orders]
sink = "console"
pool = "web"

[lanes.broken]
sink = "http"
target = "http://127.0.0.1:9/nobody"
retry = ["0s"]
"""
# What only comes with other servers, or with trouble that this test does not make.
NOT_HERE = re.compile(
    r"recovered|fenced|leases_lost|store_errors|oldest_transaction|dead_rows|routed|stale|drain_seconds"
)


@pytest.fixture(autouse=True)
def _installed() -> None:
    try:
        Prometheus.check()
    except ServerUnavailableError as error:
        missing(str(error))


def test_promtool_likes_the_rules_and_each_alert_fires_when_it_should(tmp_path: Path) -> None:
    for file in (RULES, TEMPLATES / "prometheus.yml", HERE / "rules_test.yml"):
        shutil.copy(file, tmp_path)

    promtool("check", "config", "prometheus.yml", folder=tmp_path)
    promtool("test", "rules", "rules_test.yml", folder=tmp_path)


def test_every_alert_is_tested_says_what_to_do_and_is_on_the_page() -> None:
    alerts = ALERT.findall(RULES.read_text())
    tested, page = (HERE / "rules_test.yml").read_text(), PAGE.read_text()

    assert len(alerts) >= 14
    assert [alert for alert in alerts if alert not in tested or f"`{alert}`" not in page] == []
    assert RULES.read_text().count("fix:") == len(alerts)
    assert [name for name in RECORDED.findall(RULES.read_text()) if f"`{name}`" not in page] == []


@pytest.fixture
async def nodes(tmp_path: Path) -> AsyncIterator[Cluster]:
    store = f"sqlite:///{tmp_path}/penstock.db"
    async with cluster(tmp_path, store, CONFIG) as nodes:
        made = start("dev", tmp_path, *PENSTOCK, "dev", "--once", "--store", store)
        assert await made.ended() == 0, made.told
        yield nodes


async def test_a_real_prometheus_runs_the_rules_on_a_real_node(nodes: Cluster) -> None:
    environment = {"PENSTOCK_HTTP__ALLOW_NETWORKS": "127.0.0.0/8"}
    node = await nodes.start("node", environment=environment)
    with Prometheus.watching(node.url) as prometheus, Client(nodes.store) as client:
        await eventually("a first scrape", lambda: prometheus.query("penstock_store_up == 1"))
        client.enqueue_many([{"lane": "orders", "payload": n} for n in range(30)])
        client.enqueue("broken", {"n": 1})

        await eventually("sent jobs", lambda: prometheus.query("dispatch_workflow_started_total == 30"))
        await eventually("the alert", lambda: prometheus.query('ALERTS{alertname="PenstockDeadLetters"}'))
        for name in RECORDED.findall(RULES.read_text()):
            if not NOT_HERE.search(name):
                await eventually(name, partial(prometheus.query, name))
        rules = [rule for group in prometheus.ask("rules")["groups"] for rule in group["rules"]]
        assert [rule for rule in rules if rule["health"] != "ok"] == []
        for expression in expressions():
            if not NOT_HERE.search(expression):  # a rate is there from its second scrape on
                await eventually(expression, partial(prometheus.query, expression))
        (dead,) = (asked for asked in expressions() if "penstock_dead_total" in asked)
        (first,) = prometheus.query(f"max_over_time(({dead})[10m:1s])")
        assert float(first["value"][1]) == 1  # the first of its lane and reason is shown, too


def expressions() -> Iterator[str]:
    """What the panels of the dashboard ask, for all lanes."""
    for panel in BOARD["panels"]:
        for target in panel.get("targets", ()):
            yield target["expr"].replace("$lane", ".*")


def test_the_dashboard_asks_for_series_that_are_on_the_page() -> None:
    page = set(re.findall(r"`(penstock_\w+)`", PAGE.read_text()))
    asked = {name for text in expressions() for name in re.findall(r"penstock_\w+", text)}

    assert {re.sub(r"_bucket$", "", name) for name in asked} <= page


def test_the_dashboard_is_one_that_grafana_can_import() -> None:
    ids, taken = [panel["id"] for panel in BOARD["panels"]], dict[tuple[int, int], str]()

    assert len(ids) == len(set(ids)) >= 15
    assert BOARD["schemaVersion"] >= 36
    assert {variable["name"] for variable in BOARD["templating"]["list"]} == {"datasource", "lane"}
    for panel in BOARD["panels"]:
        assert {"type", "title", "gridPos"} <= set(panel)
        assert panel["type"] == "row" or all(refers(target) for target in panel["targets"])
        place = panel["gridPos"]
        assert place["x"] + place["w"] <= 24
        for x in range(place["x"], place["x"] + place["w"]):
            for y in range(place["y"], place["y"] + place["h"]):
                assert taken.setdefault((x, y), panel["title"]) == panel["title"]


def refers(target: dict[str, Any]) -> bool:
    return bool(target["expr"] and target["refId"] and target["datasource"]["uid"] == "${datasource}")
