"""Keys and users over the API: made by those who may, granting no more than they have."""

import os
import re
from collections.abc import Callable

import pytest

from penstock.domain.access import ROLES
from penstock.errors import Forbidden
from penstock.granting import grant_login
from tests.api.node import Http
from tests.security.conftest import PASSWORD, Bearer, csrf_of, log_in, make_key, make_user

Keys = Callable[..., Bearer]


def test_a_key_is_made_shown_once_used_and_revoked(locked: Http, key: Keys) -> None:
    admin = key("admin")
    new = {"name": "made", "role": "viewer", "tenant": "acme", "expires": "90d"}
    made = locked.post("/api/access", new, headers=admin)
    assert made.status_code == 201, made.text
    text = made.json()["key"]
    bearer = {"Authorization": f"Bearer {text}"}

    assert locked.get("/api/jobs", headers=bearer).status_code == 200
    listed = locked.get("/api/access", headers=admin)
    assert text not in listed.text
    assert "made" in {one["name"] for one in listed.json()["keys"]}
    assert locked.post("/api/access", new, headers=admin).status_code == 422
    revoked = locked.request("DELETE", "/api/access/made?reason=left", headers=admin)
    assert revoked.json()["valid"] is False
    assert locked.request("DELETE", "/api/access/made?reason=left", headers=admin).status_code == 404
    audit = locked.node.client.store.audit_log().entries
    assert [entry.action for entry in audit[:2]] == ["access.revoke", "access.create"]
    assert audit[0].actor.startswith("key:")


def test_nobody_grants_what_he_does_not_have(locked: Http, key: Keys) -> None:
    """Somebody who may only administer cannot make himself a key that reads payloads."""
    only = make_key(locked.node.client.store, "only", "scope:admin")
    refused = locked.post("/api/access", {"name": "more", "scopes": ["payload"]}, headers=only)

    assert refused.status_code == 403
    assert "grant what it does not have: payload" in refused.json()["detail"]
    for change in ({"password": PASSWORD + "2"}, {"tenant": None}, {"password": PASSWORD, "role": "admin"}):
        answer = locked.request("PUT", "/api/users/ada", json=change, headers=only)
        assert (answer.status_code, "payload" in answer.json()["detail"]) == (403, True)
    assert log_in(locked, "ada")


def test_people_are_added_changed_and_removed(locked: Http, key: Keys) -> None:
    admin = key("admin")
    added = locked.request(
        "PUT", "/api/users/eve", json={"password": PASSWORD, "role": "viewer"}, headers=admin
    )
    assert added.status_code == 200, added.text
    assert log_in(locked, "eve")
    bound = locked.request("PUT", "/api/users/eve", json={"tenant": "acme"}, headers=admin).json()
    still = locked.request("PUT", "/api/users/eve", json={"password": PASSWORD + "2"}, headers=admin).json()
    freed = locked.request("PUT", "/api/users/eve", json={"tenant": None}, headers=admin).json()
    assert [bound["tenant"], still["tenant"], freed["tenant"]] == ["acme", "acme", None]
    changed = locked.request("PUT", "/api/users/eve", json={"role": "operator"}, headers=admin).json()
    assert changed["role"] == "operator"
    assert "argon2" not in locked.get("/api/users", headers=admin).text
    assert locked.request("PUT", "/api/users/nobody", json={}, headers=admin).status_code == 404
    weak = locked.request("PUT", "/api/users/eve", json={"password": "short"}, headers=admin)
    assert weak.status_code == 422
    assert locked.request("DELETE", "/api/users/eve?reason=left", headers=admin).status_code == 200
    assert locked.request("DELETE", "/api/users/eve?reason=left", headers=admin).status_code == 404
    assert locked.request("DELETE", "/api/users/a%00b?reason=x", headers=admin).status_code == 422


def test_what_others_change_of_somebody_meanwhile_stays(locked: Http) -> None:
    """A password takes a while to be kept; who binds the user to a tenant within it has bound him."""
    store = locked.node.client.store
    make_user(store, "ivy", "viewer")

    def bound_meanwhile(size: int) -> bytes:
        store.put_user("ivy", password=None, scopes=None, tenant="acme", actor="another")
        return os.urandom(size)

    changed = grant_login(store, "ivy", password=PASSWORD + "2", actor="ops", entropy=bound_meanwhile)

    assert changed.tenant == "acme"
    assert store.user("ivy") == changed


def test_nobody_gives_a_password_to_somebody_who_may_more_meanwhile(locked: Http) -> None:
    store = locked.node.client.store
    make_user(store, "joe", "viewer")
    before = store.user("joe")

    def promoted_meanwhile(size: int) -> bytes:
        store.put_user("joe", password=None, scopes=ROLES["admin"], tenant=None, actor="another")
        return os.urandom(size)

    with pytest.raises(Forbidden, match="grant what it does not have"):
        grant_login(
            store, "joe", password=PASSWORD + "2", actor="ops", entropy=promoted_meanwhile, of=ROLES["viewer"]
        )
    after = store.user("joe")
    assert before is not None
    assert after is not None
    assert after.password == before.password


def test_who_may_not_see_payloads_sends_no_lane_elsewhere(locked: Http, key: Keys) -> None:
    only = make_key(locked.node.client.store, "lanes-only", "scope:admin")
    lane = "/api/lanes/elsewhere"

    def put(settings: dict[str, object], who: Bearer) -> int:
        return locked.request("PUT", lane, json={"settings": settings}, headers=who).status_code

    assert put({"sink": "http", "target": "https://a.example"}, only) == 201
    assert put({"batch_size": 7}, only) == 200
    for where in ({"target": "https://b.example"}, {"sink": "console"}, {"queue": "q"}):
        assert put({**where, "batch_size": 8}, only) == 403
    assert put({"target": "https://b.example"}, key("admin")) == 200


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"role": "viewer"}, "password: write a password for nobody9: there is no such user yet"),
        ({"password": PASSWORD}, "role: choose what nobody9 may do: there is no such user yet"),
    ],
)
def test_who_forgets_something_of_a_new_user_is_told_what(
    locked: Http, fields: dict[str, str], said: str
) -> None:
    session = log_in(locked)
    form = {"csrf": csrf_of(session), "name": "nobody9", **fields}
    answer = locked.request("POST", "/access/users", data=form, headers=session)
    by_api = locked.request(
        "PUT", "/api/users/nobody9", json=fields, headers=session | {"X-CSRF-Token": csrf_of(session)}
    )

    [shown] = re.findall(r'role="alert"[^>]*>(.*?)<', answer.text)
    assert (answer.status_code, shown) == (422, said)
    assert (by_api.status_code, "with a password and a role" in by_api.json()["hint"]) == (404, True)


def test_a_form_changes_of_somebody_only_what_it_says(locked: Http) -> None:
    store, session = locked.node.client.store, log_in(locked)
    make_user(store, "bob", "operator", tenant="acme")

    def sent(status: int = 303, **fields: str) -> tuple[bool, str | None]:
        empty = {"csrf": csrf_of(session), "name": "bob", "password": "", "role": "", "tenant": ""}
        answer = locked.request("POST", "/access/users", data=empty | fields, headers=session)
        assert answer.status_code == status, answer.text
        user = store.user("bob")
        assert user is not None
        return user.scopes == ROLES["operator"], user.tenant

    assert sent(password=PASSWORD + "2") == (True, "acme")
    assert sent(tenant="umbrella") == (True, "umbrella")
    assert sent(role="viewer") == (False, "umbrella")
    assert sent(role="operator", unbound="on") == (True, None)
    assert sent(422, name="new", password=PASSWORD) == (True, None)
    assert store.user("new") is None, "nobody said what he may do"
    form = locked.get("/access", headers=session | {"Accept": "text/html"}).text.partition('id="new-user"')[2]
    assert "selected" not in form.partition("</form>")[0]
    assert log_in(locked, "bob", PASSWORD + "2")
