"""API keys: what they open, and when they no longer do."""

from collections.abc import Callable
from datetime import timedelta

import pytest

from penstock.api.callers import BAD_KEYS
from penstock.domain.access import ROLES, hashed
from penstock.ports.access import NewKey
from tests.api.node import Http
from tests.security.conftest import Bearer, make_key

JOB = {"lane": "orders", "payload": {"card": "4242"}, "headers": {"X-Secret": "hush"}}
Keys = Callable[..., Bearer]


def test_without_a_key_nothing_is_told(locked: Http) -> None:
    answer = locked.get("/api/jobs")

    assert answer.status_code == 401
    assert answer.headers["www-authenticate"].startswith("Bearer")
    assert answer.json()["type"] == "urn:penstock:problem:unknown-caller"
    assert "penstock access create" in answer.json()["hint"]


@pytest.mark.parametrize(
    "header",
    [
        "Bearer pk_nonsense",
        "Bearer pk_",
        "pk_nonsense",
        "Basic cGs6",
        "Bearer",
        "",
        "Bearer é",
        "bearer  pk_x",
    ],
)
def test_a_key_that_is_none_opens_nothing(locked: Http, header: str) -> None:
    answer = locked.get("/api/jobs", headers={"Authorization": header.encode()})

    assert answer.status_code == 401


def test_a_key_opens_what_its_scopes_say(locked: Http, key: Keys) -> None:
    assert locked.get("/api/jobs", headers=key("read")).status_code == 200
    refused = locked.post("/api/jobs", JOB, headers=key("read"))
    assert refused.status_code == 403
    assert refused.json()["scope"] == "enqueue"
    assert locked.post("/api/jobs", JOB, headers=key("enqueue")).status_code == 201
    assert locked.get("/api/jobs", headers=key("enqueue")).status_code == 403


def test_a_revoked_or_expired_key_opens_nothing_and_says_why(locked: Http) -> None:
    store = locked.node.client.store
    gone = make_key(store, "gone", "read")
    store.revoke_key("gone", actor="test", reason="left")
    store.add_key(NewKey("old", "old", hashed("pk_old"), ROLES["viewer"], None, timedelta(0)), actor="test")

    refused = locked.get("/api/jobs", headers=gone)
    assert refused.status_code == 401
    assert "was revoked" in refused.json()["detail"]
    expired = locked.get("/api/jobs", headers={"Authorization": "Bearer pk_old"})
    assert expired.status_code == 401
    assert "has expired" in expired.json()["detail"]


def test_only_a_hash_is_kept_and_the_last_use_is_noted(locked: Http) -> None:
    store = locked.node.client.store
    header = make_key(store, "used", "read")
    assert locked.get("/api/jobs", headers=header).status_code == 200

    [found] = [one for one in store.api_keys() if one.name == "used"]
    assert found.used_at is not None
    assert header["Authorization"].removeprefix("Bearer ") not in repr(store.api_keys())


def test_the_audit_names_the_key(locked: Http, key: Keys) -> None:
    made = locked.post("/api/jobs", JOB, headers=key("enqueue")).json()
    client = locked.node.client
    who = client.store.known_key(hashed(key("operate")["Authorization"].removeprefix("Bearer ")))
    assert who is not None
    from penstock.domain.access import Who  # noqa: PLC0415

    client.acting(Who(f"key:{who.key.name}", who.key.scopes)).cancel(made["id"], reason="test")

    assert client.store.audit_log().entries[0].actor == f"key:{who.key.name}"


def test_payloads_are_for_those_with_the_scope(locked: Http, key: Keys) -> None:
    made = locked.post("/api/jobs", JOB, headers=key("enqueue")).json()
    assert made["payload"] is None
    for path in (f"/api/jobs/{made['id']}", "/api/jobs?payloads=true", f"/api/jobs/{made['id']}/timeline"):
        hidden = locked.get(path, headers=key("read"))
        shown = locked.get(path, headers=key("read", "payload"))
        assert hidden.status_code == shown.status_code == 200
        assert "4242" not in hidden.text
        assert "hush" not in hidden.text
    assert locked.get(f"/api/jobs/{made['id']}", headers=key("read")).json()["hidden"] == [
        "payload",
        "headers",
        "result",
    ]
    assert "4242" in locked.get(f"/api/jobs/{made['id']}", headers=key("read", "payload")).text


def test_a_search_in_payloads_needs_the_scope_too(locked: Http, key: Keys) -> None:
    """Whoever may ask whether a payload is so can read it, one question at a time."""
    line = {"filter": "payload.card:4242"}
    assert locked.get("/api/jobs", params=line, headers=key("read", "payload")).status_code == 200
    refused = locked.get("/api/jobs", params=line, headers=key("read"))

    assert refused.status_code == 403
    assert "scope payload" in refused.json()["detail"]


def test_a_tenant_is_shown_lanes_and_pools_as_they_are_and_changes_none(locked: Http, key: Keys) -> None:
    """They are nobody's own: docs/howto/secure.md says what that means for those who must not know others."""
    store, tenant = locked.node.client.store, key("admin", tenant="acme")
    store.pause_lane("orders", paused=True, actor="ann", reason="their API is down")
    for path in ("/api/lanes", "/api/lanes/orders", "/api/pools"):
        assert locked.get(path, headers=tenant).json() == locked.get(path, headers=key("admin")).json()
    assert locked.get("/api/lanes/orders", headers=tenant).json()["paused_by"] == "ann"
    for path in ("/api/lanes/orders/pause", "/api/lanes/orders/resume"):
        assert locked.post(path, {"reason": "r"}, headers=tenant).status_code == 403
    for path in (
        "stats",
        "jobs/counts",
        "jobs/stats",
        "groups",
        "targets",
        "nodes",
        "events",
        "audit",
        "pause",
    ):
        assert locked.get(f"/api/{path}", headers=tenant).json()["type"].endswith("not-for-tenants"), path


def test_whoever_shows_bad_keys_all_the_time_has_to_wait(locked: Http, key: Keys) -> None:
    good = key("read")
    statuses = [
        locked.get("/api/jobs", headers={"Authorization": f"Bearer pk_{n}"}).status_code
        for n in range(BAD_KEYS + 5)
    ]
    answer = locked.get("/api/jobs", headers={"Authorization": "Bearer pk_one_more"})

    assert statuses[0] == 401
    assert answer.status_code == 429
    assert int(answer.headers["retry-after"]) > 0
    assert locked.get("/api/jobs", headers=good).status_code == 200
