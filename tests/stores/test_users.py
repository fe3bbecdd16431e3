"""Two who change one user at the same time, on PostgreSQL, where both write at once: the second one waits."""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from datetime import timedelta

import psycopg
import pytest

from penstock.domain.access import ROLES
from penstock.ports.access import User
from penstock.stores.postgres.store import PostgresStore
from penstock.stores.sql.store import SqlStore

WAITING = (
    "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"
)
HOUR = timedelta(hours=1)


@pytest.fixture
def store(pg18_dsn: str) -> Iterator[SqlStore]:
    """A store with a user ada."""
    with closing(PostgresStore(pg18_dsn)) as opened:
        opened.migrate()
        opened.put_user("ada", password="old", scopes=ROLES["viewer"], tenant=None, actor="test")  # noqa: S106
        yield opened


def after_the_other(url: str, statement: str, act: Callable[[], object]) -> object:
    """Return what comes of an act that began before another's statement was committed."""
    with closing(psycopg.connect(url)) as other, ThreadPoolExecutor(1) as thread:
        other.execute(statement)
        acting = thread.submit(act)
        with psycopg.connect(url, autocommit=True) as watch:
            while watch.execute(WAITING).fetchone() != (1,):
                assert not acting.done()
        other.commit()
        return acting.result(10)


def test_a_tenant_that_is_being_given_stays(store: SqlStore, pg18_dsn: str) -> None:
    changed = after_the_other(
        pg18_dsn,
        "UPDATE penstock.users SET tenant = 'acme'",
        lambda: store.put_user("ada", password="new", scopes=None, tenant=..., actor="test"),  # noqa: S106
    )

    assert isinstance(changed, User)
    assert (changed.password, changed.tenant) == ("new", "acme")
    assert store.user("ada") == changed


def test_somebody_who_is_being_added_is_changed(store: SqlStore, pg18_dsn: str) -> None:
    """What is not said stays as the other one wrote it, though there was nobody when we looked."""
    changed = after_the_other(
        pg18_dsn,
        """INSERT INTO penstock.users (name, password, scopes, tenant, created_at)
           VALUES ('bob', 'p', 'read', 'acme', now())""",
        lambda: store.put_user("bob", password="q", scopes=ROLES["viewer"], tenant=..., actor="test"),  # noqa: S106
    )

    assert isinstance(changed, User)
    assert (changed.password, changed.tenant) == ("q", "acme")


def test_no_session_begins_with_a_password_that_is_being_changed(store: SqlStore, pg18_dsn: str) -> None:
    opened = after_the_other(
        pg18_dsn,
        "UPDATE penstock.users SET password = 'new'",
        lambda: store.open_session("s1", "ada", password="old", most=HOUR),  # noqa: S106
    )

    assert opened is False
    assert store.session("s1") is None
