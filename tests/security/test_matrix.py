"""Every route × every role × tenants: who is let through, who is not, and what is kept from whom."""

import json
from collections.abc import Callable
from datetime import timedelta

import pytest

from penstock.domain.access import ROLES, Scope, hashed
from penstock.domain.lanes import lane
from penstock.domain.outcomes import Dead, Dispatched, Failed, Outcome, Returned
from penstock.domain.states import Reason
from penstock.ports.access import NewKey
from penstock.ports.store import Ask
from tests.api.node import Http
from tests.security.conftest import Bearer, make_key
from tests.security.routes import Route, routes_of

Keys = Callable[..., Bearer]
OTHERS = "hidden-of-other"
MARKS = {"acme": "seen-of-acme", "other": OTHERS}
SECRET = "4242424242424242"  # noqa: S105 - a card that nobody has
CALLERS: dict[str, tuple[tuple[str, ...], str | None]] = {
    **{f"only {scope}": ((f"scope:{scope}",), None) for scope in Scope},
    **{role: ((role,), None) for role in ROLES},
    "admin of a tenant": (("admin",), "acme"),
    "viewer of a tenant": (("viewer",), "acme"),
}


@pytest.fixture(scope="module")
def routes(locked: Http) -> list[Route]:
    return routes_of(locked.node)


def ask(http: Http, route: Route, headers: Bearer, url: str | None = None) -> tuple[int, str, str]:
    """Return status, problem and the beginning of the body; a stream of events is not waited for."""
    with http.stream(route.method, url or route.url(), headers=headers) as answer:
        if answer.headers.get("content-type", "").startswith("text/event-stream"):
            return answer.status_code, "", ""
        text = answer.read().decode()
    kind = ""
    if answer.headers.get("content-type") == "application/problem+json":
        kind = json.loads(text)["type"].removeprefix("urn:penstock:problem:")
    return answer.status_code, kind, text


def expected(route: Route, scopes: frozenset[Scope], tenant: str | None) -> str:
    needed = route.needs
    if needed.scope is None:
        return "through"
    if needed.scope not in scopes:
        return "missing-scope"
    return "not-for-tenants" if tenant is not None and not needed.tenants else "through"


def test_the_document_says_what_routes_need(locked: Http, routes: list[Route]) -> None:
    answer = locked.get("/api/openapi.json")
    if answer.status_code == 404:
        pytest.skip("this node has no document yet")
    told = {
        (method.upper(), path): (operation["x-penstock-scope"], operation["x-penstock-tenants"])
        for path, operations in answer.json()["paths"].items()
        for method, operation in operations.items()
    }
    held = {
        (route.method, route.path): (route.needs.scope, route.needs.tenants)
        for route in routes
        if route.is_api
    }

    assert told == held


def test_nobody_is_let_through_unasked(locked: Http, routes: list[Route]) -> None:
    assert len(routes) > 30
    wrong = {}
    for route in routes:
        status, kind, _ = ask(locked, route, {})
        if (status == 401 and kind == "unknown-caller") == (route.needs.scope is None):
            wrong[route] = (status, kind)
    assert wrong == {}


@pytest.fixture(scope="module")
def spent(locked: Http) -> dict[str, Bearer]:
    """Return keys that open nothing (any more), by what the answer says of them; each could do everything."""
    store = locked.node.client.store
    revoked = make_key(store, "spent-revoked", "admin")
    store.revoke_key("spent-revoked", actor="test", reason="left")
    over = NewKey("spent-old", "spent-old", hashed("pk_spent"), ROLES["admin"], None, timedelta(0))
    store.add_key(over, actor="test")
    return {
        "was revoked": revoked,
        "has expired": {"Authorization": "Bearer pk_spent"},
        "": {"Authorization": "Bearer pk_nobody-was-given-this-one"},
    }


@pytest.mark.parametrize("why", ["was revoked", "has expired", ""])
def test_a_key_that_is_no_longer_good_opens_no_route(
    locked: Http, routes: list[Route], spent: dict[str, Bearer], why: str
) -> None:
    """Routes that are open to all may let anybody through; none of the others does, and each says why."""
    closed = [route for route in routes if route.needs.scope is not None]
    assert len(closed) > 30
    wrong = {}
    for route in closed:
        status, kind, text = ask(locked, route, spent[why])
        if (status, kind) != (401, "unknown-caller") or why not in text:
            wrong[f"{route.method} {route.path}"] = (status, kind, text[:200])
    assert wrong == {}


@pytest.mark.parametrize("caller", CALLERS)
def test_everybody_is_let_through_where_he_may(
    locked: Http, routes: list[Route], key: Keys, caller: str
) -> None:
    names, tenant = CALLERS[caller]
    scopes = frozenset(
        scope for name in names for scope in (ROLES.get(name) or {Scope(name.removeprefix("scope:"))})
    )
    wrong = {}
    for route in routes:
        status, kind, text = ask(locked, route, key(*names, tenant=tenant))
        refused = kind if kind in {"missing-scope", "not-for-tenants", "unknown-caller"} else "through"
        if refused != expected(route, scopes, tenant) or status >= 500:
            wrong[f"{route.method} {route.path}"] = (status, kind, text[:200])
    assert wrong == {}


@pytest.fixture(scope="module")
def seeded(locked: Http) -> dict[str, str]:
    """Return ids of jobs of `acme` and of another tenant, in all kinds of states."""
    client = locked.node.client
    client.store.put_lane(lane("seeded", sink="http", mode="block_on_error"), actor="test")
    ids = {
        f"{tenant} {what}": client.enqueue(
            "seeded",
            {"card": SECRET, "mark": mark},
            tenant=tenant,
            group=f"{mark}-{what}",
            key=f"{mark}-{what}",
            headers={"X-Mark": mark, "X-Card": SECRET},
        ).id
        for tenant, mark in MARKS.items()
        for what in ("dead", "failed", "told", "sent", "cancelled", "pending")
    }
    node = client.store.register_node("seeding")
    claim = client.store.claim_groups(Ask(lane="seeded", node=node, lease=timedelta(minutes=5)))
    assert claim is not None
    whose = {id_: name for name, id_ in ids.items()}
    client.store.settle(
        claim, {one.job.arrival: _fate(whose[one.context.id]) for one in claim.jobs if one.context}
    )
    for tenant, mark in MARKS.items():
        client.cancel(ids[f"{tenant} cancelled"], reason=mark)
    return ids


def _fate(name: str) -> Outcome:
    tenant, what = name.split()
    error = f"HTTP 500: {MARKS[tenant]} {SECRET}"
    match what:
        case "dead":
            return Dead(Reason.PERMANENT, error)
        case "failed":
            return Failed(error, timedelta(hours=1))
        case "told":  # by an executor
            return Failed(f"card {SECRET} of {MARKS[tenant]} was declined", timedelta(hours=1))
        case "sent":
            return Dispatched(timedelta(hours=1), f"202 {MARKS[tenant]} {SECRET}")
        case _:
            return Returned("not now", timedelta(hours=1))


def looks(routes: list[Route]) -> list[Route]:
    """Return the routes that show something."""
    return [route for route in routes if route.method == "GET"]


def test_a_tenant_finds_nothing_of_another(
    locked: Http, routes: list[Route], key: Keys, seeded: dict[str, str]
) -> None:
    """Neither in lists, nor under the ids of others, nor by asking for them."""
    found: dict[str, str] = {}
    for route in looks(routes):
        urls = [route.url(id_) for name, id_ in seeded.items() if name.startswith("other")]
        urls += [f"{route.url(seeded['acme pending'])}?{q}" for q in ("tenant=other", f"key={OTHERS}-dead")]
        urls += [route.url(seeded["acme dead"]), route.url("seeded"), route.url(f"{OTHERS}-dead")]
        for url in dict.fromkeys(urls):
            status, _, text = ask(locked, route, key("admin", tenant="acme"), url)
            told = [word for word in (OTHERS, *_ids(seeded, "other")) if word not in url]
            leaks = [word for word in told if word in text]
            if leaks or status >= 500:
                found[url] = f"{status} {leaks} {text[:300]}"
    assert found == {}


def test_a_tenant_finds_its_own(locked: Http, key: Keys, seeded: dict[str, str]) -> None:
    listed = locked.get("/api/jobs?lane=seeded", headers=key("admin", tenant="acme")).json()["jobs"]

    assert {job["id"] for job in listed} == set(_ids(seeded, "acme"))


def test_a_tenant_changes_nothing_of_another(
    locked: Http, routes: list[Route], key: Keys, seeded: dict[str, str]
) -> None:
    before = _rows(locked, seeded)
    bodies = [
        {"reason": "mine now"},
        {"reason": "mine now", "force": True, "out_of_order": True, "outcome": "dead", "payload": {"n": 1}},
        {"send": 1, "outcome": "succeeded"},
        {"outcomes": [{"id": id_, "send": 1, "outcome": "failed"} for id_ in _ids(seeded, "other")]},
        {"verb": "cancel", "filter": "lane:seeded tenant:other", "reason": "x", "dry_run": False},
        {"filter": "lane:seeded", "reason": "x", "dry_run": False, "tenant": "other"},
    ]
    header = key("admin", tenant="acme")
    failed = {}
    for route in [route for route in routes if route.method != "GET" and not route.path.startswith("/log")]:
        for id_ in _ids(seeded, "other") if "{" in route.path else [""]:
            for body in bodies:
                answer = locked.request(route.method, route.url(id_), json=body, headers=header)
                if answer.status_code >= 500:
                    failed[f"{route.method} {route.path}"] = answer.text
    after = _rows(locked, seeded)

    assert failed == {}
    assert {id_: row for id_, row in after.items() if id_ in _ids(seeded, "other")} == {
        id_: row for id_, row in before.items() if id_ in _ids(seeded, "other")
    }


def test_what_jobs_carry_is_shown_to_nobody_without_the_scope(
    locked: Http, routes: list[Route], key: Keys, seeded: dict[str, str]
) -> None:
    shown: dict[str, str] = {}
    ids = _ids(seeded, "acme")
    begun = locked.node.client.start("hold", f"lane:nobody payload.card:{SECRET}", reason="look")
    extra = ["payloads=true", "by=all", "q=state:dead", "filter=lane:seeded&payloads=true"]
    for caller in ("viewer", "operate"):
        for route in looks(routes):
            urls = [*map(route.url, [*ids, begun.id]), *(f"{route.url('seeded')}?{q}" for q in extra)]
            for url in dict.fromkeys(urls):
                status, _, text = ask(locked, route, key("read", caller), url)
                if SECRET in text or status >= 500:
                    shown[url] = f"{status} {text[max(0, text.find(SECRET) - 200) :][:300]}"
    whole = locked.get(f"/api/jobs/{ids[0]}", headers=key("operator")).text

    assert shown == {}
    assert SECRET in whole


def _ids(seeded: dict[str, str], tenant: str) -> list[str]:
    return [id_ for name, id_ in seeded.items() if name.startswith(tenant)]


def _rows(http: Http, seeded: dict[str, str]) -> dict[str, object]:
    return {**http.node.client.store.find([*seeded.values()])}
