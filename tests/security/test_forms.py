"""Every form of every page, and every route that changes something: the token, and who may make one ask."""

from collections.abc import Iterator

import pytest

from tests.api.node import Http
from tests.security.conftest import log_in
from tests.security.forms import Form, forms_of
from tests.security.routes import Route, routes_of

HTML = {"Accept": "text/html"}
OPEN = ("/login", "/logout")  # nobody is anybody yet, or soon is nobody: Origin alone is checked


@pytest.fixture(scope="module")
def session(locked: Http) -> dict[str, str]:
    return log_in(locked)


@pytest.fixture(scope="module")
def job(locked: Http) -> Iterator[str]:
    client = locked.node.client
    made = client.enqueue("orders", {"n": 1}, group="g", mode="block_on_error")
    client.hold(made.id, reason="test")
    return made.id


def pages(http: Http, job: str) -> list[str]:
    """Return an address of every page."""
    found = [route for route in routes_of(http.node) if route.method == "GET" and not route.is_api]
    return [route.url(job if "job_id" in route.path else "orders") for route in found]


def forms(http: Http, job: str, session: dict[str, str]) -> list[tuple[str, Form]]:
    return [
        (page, form)
        for page in pages(http, job)
        for form in forms_of(http.get(page, headers=HTML | session).text, page)
        if form.method == "post"
    ]


def test_every_form_carries_the_token(locked: Http, session: dict[str, str], job: str) -> None:
    found = forms(locked, job, session)
    without = {f"{page}: {form.action}" for page, form in found if not form.fields.get("csrf")}

    assert len({form.kind for _, form in found}) > 15
    assert {form for form in without if not form.endswith(OPEN)} == set()


def changing(http: Http) -> list[Route]:
    return [
        route for route in routes_of(http.node) if route.method != "GET" and route.needs.scope is not None
    ]


@pytest.mark.parametrize("token", [None, "", "0" * 64], ids=["none", "empty", "wrong"])
def test_every_route_that_changes_something_wants_the_token(
    locked: Http, session: dict[str, str], token: str | None
) -> None:
    let_through = {}
    for route in changing(locked):
        fields = {"reason": "test"} | ({} if token is None else {"csrf": token})
        answer = locked.request(route.method, route.url("orders"), data=fields, headers=session)
        if answer.status_code != 403 or "wrong-csrf-token" not in answer.text:
            let_through[f"{route.method} {route.path}"] = (answer.status_code, answer.text[:200])
    assert let_through == {}
    assert len(changing(locked)) > 40


@pytest.mark.parametrize(
    "sender",
    [
        {"Origin": "https://evil.example"},
        {"Origin": "null"},
        {"Sec-Fetch-Site": "cross-site"},
        {"Host": "evil.example"},
    ],
    ids=["origin", "null", "cross-site", "rebound"],
)
def test_no_route_that_changes_something_listens_to_a_foreign_page(
    locked: Http, session: dict[str, str], sender: dict[str, str]
) -> None:
    acts = [route for route in routes_of(locked.node) if route.method != "GET"]
    let_through = {
        f"{route.method} {route.path}": answer.status_code
        for route in acts
        if (answer := locked.request(route.method, route.url("orders"), headers=session | sender)).status_code
        != 403
    }
    assert let_through == {}
