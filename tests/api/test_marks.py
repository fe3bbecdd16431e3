"""Requests have an id: whoever reports an error, and whoever reads the log, can name the same one."""

import json
import logging
import re
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from litestar import Request

from penstock import Client
from penstock.api.marks import mark
from penstock.api.problems import answer
from penstock.observability.logs import FIELDS
from penstock.stores.sqlite.store import SqliteStore
from tests.api.node import Http, served

MADE = re.compile("[0-9a-f]{16}")
PAGE = {"Accept": "text/html"}


@pytest.fixture
def http(tmp_path: Path) -> Iterator[Http]:
    with closing(SqliteStore(tmp_path / "penstock.db")) as store, served(Client(store)) as http:
        store.migrate()
        yield http


def test_every_answer_has_an_id_of_its_own(http: Http) -> None:
    paths = ("/", "/api/jobs", "/health/live", "/nowhere", "/api/jobs/nobody", "/login")
    found = [http.get(path).headers["x-request-id"] for path in (*paths, "/")]
    assert all(MADE.fullmatch(each) for each in found)
    assert len({*found}) == len(found)


def test_a_request_keeps_the_id_it_came_with_if_it_is_sane(http: Http) -> None:
    def kept(sent: str) -> str:
        return http.get("/api/jobs", headers={"X-Request-Id": sent}).headers["x-request-id"]

    assert kept("proxy-1.a_B") == "proxy-1.a_B"
    for odd in ("", "two words", "<b>", "x" * 65, "a,b"):
        assert MADE.fullmatch(kept(odd))
    twice = http.get("/api/jobs", headers=[("X-Request-Id", "a"), ("X-Request-Id", "b")])
    assert MADE.fullmatch(twice.headers["x-request-id"])


def test_problems_and_pages_of_errors_name_it(http: Http) -> None:
    mine = {"X-Request-Id": "mine-7"}
    assert http.get("/api/jobs/nobody", headers=mine).json()["request"] == "mine-7"
    assert http.get("/api/jobs", headers=mine | {"Host": "evil.example"}).json()["request"] == "mine-7"
    for path in ("/nowhere", "/jobs/nobody", "/lanes/nobody"):
        assert '<code id="request">mine-7</code>' in http.get(path, headers=mine | PAGE).text


def test_the_log_has_what_failed_under_the_same_id(caplog: pytest.LogCaptureFixture) -> None:
    sent = [(b"x-request-id", b"mine-7")]
    scope: Any = {"type": "http", "method": "GET", "path": "/api/jobs", "headers": sent}
    request: Request[Any, Any, Any] = Request(scope)
    assert mark(request.scope) == "mine-7"
    with caplog.at_level(logging.ERROR, logger="penstock.api"):
        told = json.loads(answer(request, RuntimeError("it broke")).content)

    assert (told["status"], told["request"]) == (500, "mine-7")
    assert "mine-7" in told["hint"]
    [line] = caplog.records
    assert line.getMessage() == "request mine-7 failed: GET /api/jobs"
    assert getattr(line, FIELDS) == {"request": "mine-7"}
    assert "it broke" not in json.dumps(told)
