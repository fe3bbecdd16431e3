"""`penstock access` and `penstock users`: who may come in."""

import json
from collections.abc import Callable
from contextlib import closing
from io import BytesIO
from pathlib import Path

import pytest

from penstock.domain.access import ROLES, hashed
from penstock.passwords import fits
from penstock.stores.connect import connect
from tests.cli.conftest import Run, RunJson

PASSWORD = "several words together"  # noqa: S105


def test_a_key_is_shown_once(ready: Run, read: RunJson, tmp_path: Path) -> None:
    made = ready("access", "create", "ci", "--scope", "enqueue", "--expires", "90d", "--tenant", "acme")
    key = made.stdout.strip()
    [listed] = read("access", "list")["keys"]

    assert key.startswith("pk_")
    assert "is not shown again" in made.stderr
    assert (listed["name"], listed["scopes"], listed["tenant"]) == ("ci", ["enqueue"], "acme")
    assert listed["expires_at"] is not None
    assert key not in ready("access", "list").stdout + json.dumps(listed)
    with closing(connect(f"sqlite:///{tmp_path}/penstock.db")) as store:
        known = store.known_key(hashed(key))
    assert known is not None
    assert known.key.created_by.startswith("cli:")


def test_a_key_is_revoked_and_its_name_free_again(ready: Run, read: RunJson) -> None:
    read("access", "create", "ci", "--role", "operator")
    ready("access", "create", "ci", "--role", "viewer", code=2)
    revoked = read("access", "revoke", "ci", "--reason", "left", "--yes")

    assert revoked["valid"] is False
    ready("access", "create", "ci", "--role", "viewer")
    assert len(read("access", "list")["keys"]) == 1
    assert len(read("access", "list", "--all")["keys"]) == 2
    ready("access", "revoke", "gone", "--reason", "x", "--yes", code=3)


@pytest.mark.parametrize(
    ("arguments", "said", "code"),
    [
        (["ci"], "--role operator, or --scope enqueue", 2),
        (["ci", "--scope", "root"], "'root' is not one of", 2),
        (["a b", "--role", "viewer"], "name", 2),
        (["ci", "--role", "viewer", "--expires", "20000d"], "ten years", 2),
        (["ci", "--role", "viewer", "--tenant", ""], "tenant", 2),
    ],
)
def test_a_key_that_makes_no_sense_is_refused(ready: Run, arguments: list[str], said: str, code: int) -> None:
    refused = ready("access", "create", *arguments, code=code)

    assert said in refused.stderr
    assert ready("access", "list").stdout == ""


def test_people_are_added_changed_and_removed(ready: Run, read: RunJson, tmp_path: Path) -> None:
    ready("users", "add", "ada", "--role", "viewer", "--password-stdin", stdin=f"{PASSWORD}\n")
    again = ready("users", "add", "ada", "--role", "viewer", "--password-stdin", stdin=PASSWORD, code=2)
    assert "penstock users set ada" in again.stderr
    ready("users", "set", "ada", "--role", "operator", "--tenant", "acme")
    ready("users", "password", "ada", "--password-stdin", stdin="another sentence\n")
    with closing(connect(f"sqlite:///{tmp_path}/penstock.db")) as store:
        ada = store.user("ada")
    [listed] = read("users", "list")["users"]

    assert ada is not None
    assert fits("another sentence", ada.password)
    assert (ada.scopes, ada.tenant) == (ROLES["operator"], "acme")
    assert listed["role"] == "operator"
    assert "argon2" not in json.dumps(listed) + ready("users", "list").stdout
    assert read("users", "set", "ada", "--no-tenant")["tenant"] is None
    assert read("users", "remove", "ada", "--reason", "left", "--yes")["removed"]
    for command in (["set", "ada"], ["password", "ada", "--password-stdin"]):
        ready("users", *command, stdin=PASSWORD, code=3)


class Typing(BytesIO):
    """Somebody who types a password, while another does something."""

    def __init__(self, meanwhile: Callable[[], object]) -> None:
        super().__init__(f"{PASSWORD}\n".encode())
        self._meanwhile = meanwhile

    def read1(self, size: int | None = -1, /) -> bytes:
        self._meanwhile()
        return super().read1(size)


def test_what_others_change_while_a_password_is_typed_stays(
    ready: Run, read: RunJson, tmp_path: Path
) -> None:
    ready("users", "add", "ada", "--role", "viewer", "--password-stdin", stdin=f"{PASSWORD}\n")
    with closing(connect(f"sqlite:///{tmp_path}/penstock.db")) as store:

        def put(name: str, role: str) -> None:
            store.put_user(name, password="p", scopes=ROLES[role], tenant="acme", actor="another")  # noqa: S106

        typed = Typing(lambda: put("ada", "operator"))
        ready("users", "password", "ada", "--password-stdin", stdin=typed)
        late = Typing(lambda: put("eve", "viewer"))
        taken = ready("users", "add", "eve", "--role", "admin", "--password-stdin", stdin=late, code=2)

    assert "penstock users set eve" in taken.stderr
    people = {user["name"]: (user["role"], user["tenant"]) for user in read("users", "list")["users"]}
    assert people == {"ada": ("operator", "acme"), "eve": ("viewer", "acme")}


def test_a_bad_password_is_refused(ready: Run) -> None:
    short = ready("users", "add", "ada", "--role", "admin", "--password-stdin", stdin="short\n", code=2)
    nobody = ready("users", "add", "ada", "--role", "admin", stdin="", code=2)

    assert "from 10 to 200 characters" in short.stderr
    assert "--password-stdin" in nobody.stderr
    ready("users", "add", "ada", code=2)
