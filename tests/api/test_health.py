"""Live, ready, metrics."""

import asyncio

import httpx
import pytest
from prometheus_client import CollectorRegistry

from penstock import Client
from penstock.api.app import make_metrics_app
from penstock.api.callers import Callers
from penstock.api.server import serve_http
from penstock.cli.ask import PATIENCE_S, StoreAway, ask
from penstock.errors import StoreUnavailable
from penstock.observability.metrics import Metrics
from penstock.ports.clock import SystemClock
from penstock.ports.events import Called, StoreBack, StoreFailed
from penstock.ports.executor import ThreadExecutor
from penstock.stores.postgres import database
from tests.api.node import Http, served
from tests.faulty import Faulty


def test_a_node_is_alive_before_it_is_ready(sqlite_url: str) -> None:
    with Client(sqlite_url) as client, served(client) as http:
        assert http.get("/health/live").json() == {"alive": True, "loop_delay_ms": 0.0}
        starting = http.get("/health/ready")
        assert starting.status_code == 503
        assert starting.json() == {
            "ready": False,
            "reasons": [{"part": "node", "text": "the node is starting"}],
        }

        http.node.start()
        assert http.get("/health/ready").json() == {"ready": True, "reasons": []}


def test_a_node_is_ready_on_every_store(every: Http) -> None:
    assert every.get("/health/ready").status_code == 200


def test_a_part_that_cannot_reach_the_store_is_named(http: Http) -> None:
    for failures in (1, 2, 3):
        http.node.emit(StoreFailed(part="claim", error="connection refused", failures=failures))
    unready = http.get("/health/ready")
    assert unready.status_code == 503
    assert unready.json()["reasons"] == [
        {"part": "claim", "text": "the store failed 3 times in a row: connection refused"}
    ]

    http.node.emit(StoreBack(part="claim", after=2.0))
    assert http.get("/health/ready").status_code == 200


def test_a_store_that_is_gone_is_named_and_the_node_stays_alive(on_faulty: Http, faulty: Faulty) -> None:
    faulty.errors["check_schema"] = StoreUnavailable("check")

    assert on_faulty.get("/health/ready").json()["reasons"] == [
        {"part": "store", "text": "store unavailable during check"}
    ]
    assert on_faulty.get("/health/live").status_code == 200


def test_who_asks_a_node_without_its_store_is_told_that_the_node_is_there(
    on_faulty: Http, faulty: Faulty
) -> None:
    faulty.errors["check_schema"] = StoreUnavailable("look")

    with pytest.raises(StoreAway, match="answers, but it cannot reach its store: it is not ready"):
        ask(on_faulty.node.url, "/health/ready")
    assert database.PATIENCE_S < PATIENCE_S


def test_many_probes_ask_the_store_once(on_faulty: Http, faulty: Faulty) -> None:
    for _ in range(5):
        on_faulty.get("/health/ready")

    assert 1 <= faulty.calls.count("check_schema") <= 2


def test_checks_of_the_node_count(sqlite_url: str) -> None:
    checks = {"leases": lambda: "the last renewal was 25 s ago"}
    with Client(sqlite_url) as client, served(client, checks=checks) as http:
        http.node.start()

        assert http.get("/health/ready").json()["reasons"] == [
            {"part": "leases", "text": "the last renewal was 25 s ago"}
        ]


def test_metrics_are_for_prometheus(every: Http) -> None:
    every.post("/api/jobs", {"lane": "orders"})
    every.node.emit(Called(lane="orders", sink="http", jobs=2, outcomes={"accepted": 2}, took=0.1, lag=0.01))
    answer = every.get("/metrics")

    assert answer.headers["content-type"].startswith("text/plain")
    lines = answer.text.splitlines()
    assert 'penstock_jobs{lane="orders",state="pending"} 1.0' in lines
    assert 'penstock_dispatched_total{lane="orders",sink="http"} 2.0' in lines
    assert "penstock_store_up 1.0" in lines


def test_open_metrics_are_spoken_too(http: Http) -> None:
    answer = http.get("/metrics", headers={"Accept": "application/openmetrics-text; version=1.0.0"})

    assert answer.headers["content-type"].startswith("application/openmetrics-text")
    assert answer.text.rstrip().endswith("# EOF")


async def test_metrics_may_have_a_port_of_their_own(sqlite_url: str) -> None:
    with Client(sqlite_url) as client, ThreadExecutor(1) as executor:
        registry = CollectorRegistry()
        Metrics(registry, version="1")
        callers = Callers(client.store, executor=executor, clock=SystemClock(), login=False)
        app = make_metrics_app(client, executor=executor, metrics=registry, callers=callers)
        stop, address = asyncio.Event(), asyncio.get_running_loop().create_future()
        async with asyncio.TaskGroup() as group, httpx.AsyncClient() as http:
            group.create_task(serve_http(app, "127.0.0.1", 0, stop, listening=address.set_result))
            url = await address
            found = [await http.get(url + path) for path in ("/metrics", "/api/stats", "/")]
            stop.set()

    assert [answer.status_code for answer in found] == [200, 404, 404]
    assert "penstock_leader 0.0" in found[0].text
