"""A server that is not there, or cannot be used for a while, is named as such: with what it answered."""

from collections.abc import Iterator
from contextlib import suppress
from datetime import timedelta
from traceback import format_exception

import psycopg
import pytest

from penstock import Client
from penstock.domain.masking import MISSPELLED
from penstock.errors import InvalidSetting, PenstockError, StoreUnavailable
from penstock.stores.connect import reach
from penstock.stores.postgres import database
from penstock.stores.postgres.wakeups import PostgresWakeups
from tests.conftest import Migrated
from tests.servers import free_port


def test_who_waits_for_a_connection_hears_why_there_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(database, "PATIENCE_S", 1.0)
    port = free_port()
    nobody = database.PostgresDatabase(f"postgresql://ann@127.0.0.1:{port}/jobs")
    try:
        with pytest.raises(StoreUnavailable, match=rf"port {port} failed: Connection refused"):
            nobody.read(lambda tx: tx.now)
    finally:
        nobody.close()


@pytest.fixture
def url(migrated_postgres: Migrated) -> Iterator[str]:
    with migrated_postgres(18) as found:
        yield found


@pytest.fixture
def server(url: str) -> Iterator[psycopg.Connection]:
    """Return a session of its administrator."""
    with psycopg.connect(url, autocommit=True) as server:
        yield server


def set_for_new_sessions(server: psycopg.Connection, setting: str) -> None:
    server.execute(f"ALTER DATABASE {server.info.dbname} {setting}")  # type: ignore[arg-type]


def test_a_server_that_takes_no_writes_for_a_while_is_away_for_that_long(
    url: str, server: psycopg.Connection
) -> None:
    """As after a failover, or when its disk is full: nodes must live through it."""
    set_for_new_sessions(server, "SET default_transaction_read_only = on")
    with Client(url) as client:
        with pytest.raises(StoreUnavailable, match="read-only transaction"):
            client.store.register_node("a")
        set_for_new_sessions(server, "RESET default_transaction_read_only")
        for _ in range(10):  # as a node does: connections may have been made meanwhile
            with suppress(StoreUnavailable):
                assert client.store.register_node("a") == 1
                return
        pytest.fail("it is writable again")


@pytest.mark.parametrize("how", ["register", "read"])
def test_a_lock_that_lasts_longer_than_the_server_waits_for_is_an_outage(
    url: str, server: psycopg.Connection, how: str
) -> None:
    set_for_new_sessions(server, "SET lock_timeout = '10ms'")
    with Client(url) as client:
        with server.transaction():
            server.execute("LOCK TABLE penstock.nodes")
            with pytest.raises(StoreUnavailable, match="lock timeout"):
                client.store.register_node("a") if how == "register" else read_still(client)
        assert client.store.register_node("a") == 1


def read_still(client: Client) -> None:
    with client.store.frozen() as store:
        store.nodes()


MISREAD = ["topsek@ret9", "topsek/ret9", "12/ret9", "top%zzret9", "top ret9", "to?p/ret9", "to[p/ret9"]


@pytest.mark.parametrize("password", MISREAD)
def test_a_password_that_is_taken_for_something_else_is_not_quoted(password: str) -> None:
    url = f"postgresql://ann:{password}@127.0.0.1:{free_port()}/jobs"
    with pytest.raises(PenstockError) as caught:
        reach(url)

    said = "".join(format_exception(caught.value))
    assert MISSPELLED in said or "this is no URL" in said
    assert "ret9" not in str(caught.value)
    assert not any(word in said for word in ("topsek", "ret9", "top%"))


@pytest.mark.parametrize("begins", ["postgresql:/", "postgresql:", "postgres:/"])
def test_an_address_without_its_slashes_is_not_quoted(begins: str) -> None:
    url = f"{begins}ann:topsekret9@127.0.0.1/jobs"
    with pytest.raises(InvalidSetting, match="two slashes behind the scheme") as caught:
        reach(url)

    assert "topsek" not in "".join(format_exception(caught.value))


def test_who_listens_or_waits_hears_it_without_the_password_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(database, "PATIENCE_S", 0.5)
    url = f"postgresql://ann:topsek@ret9@127.0.0.1:{free_port()}/jobs"
    nobody, wakeups = database.PostgresDatabase(url), PostgresWakeups(url)
    try:
        with pytest.raises(StoreUnavailable, match="write @ as %40"):
            nobody.read(lambda tx: tx.now)
        with pytest.raises(StoreUnavailable, match="write @ as %40"):
            wakeups.wait(timedelta())
    finally:
        nobody.close()
        wakeups.close()


@pytest.mark.parametrize(
    "address", ["ann:to#p?sek@{}/jobs", "ann:top%40sek@{}/a%40b", "ann:topsek@{}/jobs?application_name=a@b"]
)
def test_an_address_that_is_read_as_it_is_meant_has_the_words_of_the_system(address: str) -> None:
    with pytest.raises(StoreUnavailable, match="Connection refused"):
        reach("postgresql://" + address.format(f"127.0.0.1:{free_port()}"))


def test_what_else_is_wrong_with_an_address_is_said() -> None:
    with pytest.raises(PenstockError, match='invalid URI query parameter: "bogus"'):
        reach("postgresql://ann:topsek@127.0.0.1/jobs?bogus=1")
