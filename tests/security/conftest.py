"""A node that wants to know who is asking, with a key for every role, of a tenant and of none."""

import os
from collections.abc import Callable, Iterator
from contextlib import closing

import pytest

from penstock import Client
from penstock.api.callers import Caller
from penstock.domain.access import ROLES, check_scopes, hashed, new_key
from penstock.passwords import SALT_BYTES, kept
from penstock.ports.access import NewKey
from penstock.ports.store import Store
from penstock.stores.connect import connect
from tests.api.conftest import empty_postgres, pg_url, sqlite_url
from tests.api.node import Http, served
from tests.client.conftest import put_lane

__all__ = ["empty_postgres", "pg_url", "sqlite_url"]

PASSWORD = "correct horse battery"  # noqa: S105
# What was kept of it before passwords were kept by Argon2id.
OF_SCRYPT = "scrypt$15$8$1$AAECAwQFBgcICQoLDA0ODw==$xy6UCICz8Vv/P6JqOkkUD4DOmhxN0tXSe6sQAUBxupQ="
Bearer = dict[str, str]


def make_key(store: Store, name: str, *scopes: str, tenant: str | None = None) -> Bearer:
    """Make a key and return the header that shows it; the scope admin alone is `scope:admin`."""
    plain = [scope for scope in scopes if scope not in ROLES]
    wanted = check_scopes([scope.removeprefix("scope:") for scope in plain], set(scopes) & set(ROLES))
    key = new_key(os.urandom)
    store.add_key(NewKey(name, name, hashed(key), wanted, tenant), actor="test")
    return {"Authorization": f"Bearer {key}"}


def make_user(store: Store, name: str = "ada", role: str = "admin", tenant: str | None = None) -> None:
    """Make somebody who logs in with PASSWORD."""
    secret = kept(PASSWORD, os.urandom(SALT_BYTES))
    store.put_user(name, password=secret, scopes=ROLES[role], tenant=tenant, actor="test")


@pytest.fixture(scope="module")
def locked(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Http]:
    """Return a node with a login, on SQLite, with a lane `orders`; tests of a module share it."""
    with closing(connect(f"sqlite:///{tmp_path_factory.mktemp('locked')}/penstock.db")) as store:
        store.migrate()
        put_lane(store)
        with Client(store, actor="api") as client, served(client, login=True) as http:
            http.node.start()
            make_user(store)
            yield http


@pytest.fixture(scope="module")
def key(locked: Http) -> Callable[..., Bearer]:
    """Return headers with a key of these scopes, made once for each."""
    made: dict[tuple[str | None, ...], Bearer] = {}

    def get(*scopes: str, tenant: str | None = None) -> Bearer:
        wanted = (tenant, *sorted(scopes))
        if wanted not in made:
            made[wanted] = make_key(locked.node.client.store, f"k{len(made)}", *scopes, tenant=tenant)
        return made[wanted]

    return get


def log_in(http: Http, name: str = "ada", password: str = PASSWORD) -> dict[str, str]:
    """Log in and return the header with the cookie."""
    answer = http.request(
        "POST", "/login", data={"name": name, "password": password}, headers={"Origin": http.node.url}
    )
    assert answer.status_code == 303, answer.text
    cookie = answer.headers["set-cookie"].partition(";")[0]
    return {"Cookie": cookie}


def csrf_of(session: dict[str, str]) -> str:
    """Return what pages of a session send along with whatever changes something."""
    return Caller(None, session["Cookie"].partition("=")[2]).csrf
