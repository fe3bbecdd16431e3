"""People and programs before two nodes on one database: what one of them is told holds on the other."""

from collections.abc import Iterator
from contextlib import closing, contextmanager

import httpx
import pytest

from penstock import Client
from penstock.stores.connect import connect
from tests.api.node import Http, served
from tests.client.conftest import put_lane
from tests.security.conftest import csrf_of, log_in, make_key, make_user

JOB = {"lane": "orders"}


@pytest.fixture
def nodes(pg_url: str) -> Iterator[tuple[Http, Http]]:
    with closing(connect(pg_url)) as store:
        store.migrate()
        put_lane(store)
        make_user(store)
        with (
            Client(store) as client,
            Client(pg_url) as other,
            served(client, login=True) as here,
            served(other, login=True) as there,
        ):
            yield here, there


@contextmanager
def listening(http: Http, headers: dict[str, str]) -> Iterator[Iterator[str]]:
    """Yield the lines of a node's events, of which one was heard."""
    with httpx.stream("GET", f"{http.node.url}/api/events?topics=jobs", headers=headers, timeout=60) as told:
        lines = told.iter_lines()
        assert next(line for line in lines if line.startswith("data: "))
        yield lines


def read_to_the_end(lines: Iterator[str]) -> None:
    """Return when a stream is over: nothing more is told to somebody who left."""
    for _ in lines:
        pass


def test_a_session_of_one_node_is_one_of_the_other_and_so_is_its_end(nodes: tuple[Http, Http]) -> None:
    here, there = nodes
    session = log_in(here)
    token = {"X-CSRF-Token": csrf_of(session)}

    assert there.get("/api/jobs", headers=session).status_code == 200
    assert there.post("/api/jobs", JOB, headers=session).status_code == 403
    assert there.post("/api/jobs", JOB, headers=session | token).status_code == 201
    with listening(here, session) as mine, listening(there, session) as theirs:
        gone = here.request("POST", "/logout", headers={"Origin": here.node.url, **session})
        assert gone.status_code == 303
        read_to_the_end(mine)
        read_to_the_end(theirs)
    assert there.get("/api/jobs", headers=session).status_code == 401


def test_a_key_that_is_revoked_is_told_nothing_more(nodes: tuple[Http, Http]) -> None:
    here, there = nodes
    key = make_key(here.node.client.store, "ci", "read")
    with listening(there, key) as told:
        here.node.client.store.revoke_key("ci", actor="test", reason="it leaked")
        read_to_the_end(told)
    assert there.get("/api/jobs", headers=key).status_code == 401
