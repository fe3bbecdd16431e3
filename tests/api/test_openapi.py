"""The OpenAPI document: complete, true, and asked for everything that it allows."""

import json
import re
from collections.abc import Iterator, Mapping
from itertools import count
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis.errors import Unsatisfiable
from litestar import get
from schemathesis import GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from penstock import Client
from penstock.api.openapi import Undescribed
from penstock.api.openapi import document as document_of
from penstock.described import api_document
from penstock.domain.access import Scope
from penstock.stores.connect import connect
from penstock.testing.store_suite.factories import ordered
from tests.api.node import Http, served
from tests.client.conftest import put_lane

CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_schema_conformance,
]
EXAMPLES = 4
SOAK = 300


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Http]:
    store = connect(f"sqlite:///{tmp_path_factory.mktemp('openapi')}/penstock.db")
    store.migrate()
    put_lane(store)
    with Client(store, actor="api") as client:
        ids = [client.enqueue("orders", {"n": n}).id for n in range(5)]
        client.hold(ids[0], reason="test")
        client.store.enqueue([ordered("g")])
        with served(client) as http:
            http.node.start()
            yield http


@pytest.fixture(scope="module")
def document(node: Http) -> dict[str, Any]:
    found: dict[str, Any] = node.get("/api/openapi.json").json()
    return found


@pytest.fixture(scope="module")
def schema(node: Http) -> Any:  # noqa: ANN401
    return schemathesis.openapi.from_url(f"{node.node.url}/api/openapi.json")


@pytest.fixture(scope="module")
def known(node: Http) -> dict[str, list[str]]:
    jobs = [job["id"] for job in node.get("/api/jobs").json()["jobs"]]
    body = {"verb": "hold", "filter": "lane:orders", "reason": "test", "dry_run": False}
    started = node.post("/api/operations", body).json()
    number = str(node.node.client.store.register_node("test"))
    return {"job_id": jobs, "name": ["orders", "web"], "operation_id": [started["id"]], "node": [number]}


def _ask(schema: Any, examples: int, known: Mapping[str, list[str]]) -> list[str]:  # noqa: ANN401
    """Ask every operation what it allows and what it does not; return what was wrong."""
    wrong = []
    for result in schema.get_all_operations():
        operation = result.ok()
        if operation.path == "/api/events":
            continue  # it has no end: test_events listens to it
        for mode in GenerationMode:
            try:
                _asked(operation.as_strategy(generation_mode=mode), examples, known)
            except Unsatisfiable:
                continue  # nothing can be wrong with a request that has no parts
            except Exception as error:  # noqa: BLE001 - whatever it is, it is told with the others
                wrong.append(f"{operation.label}: {error}")
    return wrong


def _asked(cases: Any, examples: int, known: Mapping[str, list[str]]) -> None:  # noqa: ANN401
    turns = count()

    @settings(
        max_examples=examples,
        deadline=None,
        database=None,
        derandomize=examples == EXAMPLES,  # at length each run asks anew, and names its seed
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(case=cases)
    def ask(case: Any) -> None:  # noqa: ANN401
        turn = next(turns)
        for name in case.path_parameters or {}:
            if turn % 2 == 0:  # every other request is about something that is there
                case.path_parameters[name] = known[name][turn // 2 % len(known[name])]
        case.call_and_validate(checks=CHECKS, timeout=60)

    ask()


def test_everything_that_the_document_allows_is_answered_as_it_says(
    schema: Any,  # noqa: ANN401
    known: Mapping[str, list[str]],
) -> None:
    wrong = _ask(schema, EXAMPLES, known)
    assert not wrong, "\n\n".join(wrong)


@pytest.mark.soak
@pytest.mark.timeout(3600)
def test_it_is_asked_at_length(schema: Any, known: Mapping[str, list[str]]) -> None:  # noqa: ANN401
    wrong = _ask(schema, SOAK, known)
    assert not wrong, "\n\n".join(wrong)


def test_every_operation_says_which_scope_it_needs(document: dict[str, Any]) -> None:
    operations = [one for path in document["paths"].values() for one in path.values()]
    assert len(operations) >= 45
    scopes = {one["x-penstock-scope"] for one in operations}
    assert scopes == {*map(str, Scope), None}
    assert all(one["responses"] and one["summary"] for one in operations)


def test_every_shape_that_is_named_is_there(document: dict[str, Any]) -> None:
    named = set(re.findall(r"#/components/schemas/(\w+)", json.dumps(document)))
    assert named <= document["components"]["schemas"].keys()


def test_a_route_that_nobody_described_cannot_be_served() -> None:
    @get("/api/secret")
    async def secret() -> None: ...

    with pytest.raises(Undescribed, match="GET /api/secret: describe it"):
        document_of([secret], version="1")


def test_the_document_can_be_had_without_a_node(document: dict[str, Any]) -> None:
    printed = json.loads(api_document())
    for of_router in ("/api/dispatch/process", "/api/router/messages"):  # this test's node has neither
        del printed["paths"][of_router]
    assert printed == document
