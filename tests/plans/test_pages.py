"""What a page of the dashboard asks of a store with 200,000 jobs: few calls, few statements, few rows."""

import math
from collections import Counter
from collections.abc import Callable
from contextlib import closing
from typing import Any, Final, cast

import psycopg
import pytest

from penstock import Client
from penstock.ports.store import Store
from penstock.stores.postgres.store import PostgresStore
from penstock.ui import kept
from tests.api.node import Http, served
from tests.conftest import PgServer
from tests.plans.backlog import GROUPS, PLAIN, Size, fill_postgres, put_lanes
from tests.plans.counting import touched

SIZE: Final = Size(jobs=200_000, history=50_000)
HUGE: Final = Size(jobs=1_000_000, history=10_000_000)
CALLS: Final = 6
# What the figures cost that all pages share, at most once a second however many look: with what is due in
# each lane that is behind.
SHARED: Final = 60
ROWS: Final = 2_500
PAGES: Final = {
    "overview": "/",
    "lanes": "/lanes",
    "a lane": f"/lanes/{PLAIN}",
    "a lane of groups": f"/lanes/{GROUPS}",
    "jobs": "/jobs",
    "jobs that are dead": "/jobs?q=state:dead",
    "jobs that are due": f"/jobs?q=lane:{PLAIN}+state:pending+run<0s",
    "a job": "/jobs/{job}",
    "groups": "/groups",
    "all groups": "/groups?show=all",
    "dead letters": "/dead",
    "pools": "/pools",
    "nodes": "/nodes",
    "history": "/history",
    "history of a lane": f"/history?lane={PLAIN}&within=1d&state=succeeded",
    "audit": "/audit",
    "operations": "/operations",
}


class Counted:
    """A store that counts how often it is asked for what."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.calls = Counter[str]()

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401
        value = getattr(self._store, name)
        if not callable(value):
            return value

        def counted(*args: object, **kwargs: object) -> object:
            self.calls[name] += 1
            return value(*args, **kwargs)

        return counted


def _prepared(store: Store, fill: Callable[[dict[str, int]], None]) -> str:
    """Fill the store; return the id of a job that waits in a group."""
    store.migrate()
    fill(put_lanes(store))
    store.fold_counts()
    client = Client(store)
    client.enqueue(GROUPS, {"n": 1}, group="group-00000007", mode="block_on_error")
    return client.enqueue(GROUPS, {"n": 2}, group="group-00000007", mode="block_on_error").id


def _shown(http: Http, job: str, path: str) -> None:
    answer = http.get(path.format(job=job), headers={"Accept": "text/html"})
    assert answer.status_code == 200, (path, answer.text[:500])


@pytest.fixture(autouse=True)
def _keep_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let what all pages share stay as it is: a page is looked at twice, and the second look counts."""
    monkeypatch.setattr(kept, "FRESH_S", math.inf)


def _keep_figures(http: Http) -> None:
    http.node.figures._stats._until = math.inf


@pytest.mark.parametrize("size", [SIZE, pytest.param(HUGE, marks=pytest.mark.soak)], ids=["big", "huge"])
def test_a_page_makes_few_calls_and_reads_few_rows(pg_server: PgServer, size: Size) -> None:
    spread = "UPDATE penstock.dead SET finished_at = finished_at - arrival * interval '1 ms'"
    calls, rows = dict[str, dict[str, int]](), dict[str, float]()
    with pg_server(18).database() as url, closing(PostgresStore(url, max_connections=1)) as store:
        job = _prepared(store, lambda lanes: fill_postgres(url, lanes, size))
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute(spread)
            connection.execute("ANALYZE")
        counted = Counted(store)
        with served(Client(cast("Store", counted))) as http:
            http.node.figures.now()
            shared = counted.calls.total()
            _keep_figures(http)
            for name, page in PAGES.items():
                _shown(http, job, page)
                counted.calls.clear()
                before = touched(store)
                _shown(http, job, page)
                rows[name] = touched(store).since(before, 1).rows
                calls[name] = dict(counted.calls)
    assert shared <= SHARED
    assert {name: found for name, found in calls.items() if sum(found.values()) > CALLS} == {}
    assert {name: found for name, found in rows.items() if found > ROWS} == {}
