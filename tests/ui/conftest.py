"""A node with a seeded store, served for real, and a browser to look at it."""

from collections.abc import Iterator
from dataclasses import dataclass

import pytest
from playwright.sync_api import Browser

from penstock import Client
from penstock.ports.events import Called, NodeStarted
from penstock.stores.connect import connect
from tests.api.node import Http, served
from tests.ui.browsing import chromium
from tests.ui.seed import seed


@dataclass
class Seeded:
    """A node, its address, and the jobs that matter."""

    http: Http
    ids: dict[str, str]

    @property
    def url(self) -> str:
        return self.http.node.url

    @property
    def client(self) -> Client:
        return self.http.node.client


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """One Chromium per module: Playwright keeps an event loop, which other modules must not meet."""
    with chromium() as browser:
        yield browser


@pytest.fixture(scope="module")
def seeded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Seeded]:
    store = connect(f"sqlite:///{tmp_path_factory.mktemp('ui')}/penstock.db")
    store.migrate()
    with Client(store, actor="test") as client, served(client) as http:
        ids = seed(client)
        http.node.emit(NodeStarted(node=1, name="host-a:11", store="sqlite:///penstock.db"))
        for jobs in range(5):
            outcomes = {"accepted": 10 + jobs, "tryagain": jobs}
            http.node.emit(Called(lane="pay", sink="http", jobs=10, outcomes=outcomes, took=0.1, lag=0.02))
        yield Seeded(http, ids)
