"""Connections Penstock knows, those it does not, and those used in the wrong place."""

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import asyncpg
import psycopg
import psycopg2.extras
import pytest
import sqlalchemy
from psycopg.rows import dict_row

from penstock import AsyncClient, Client, Enqueued, InvalidJob, KeyConflict, UnknownLane
from penstock.errors import PenstockError, SchemaMismatch
from penstock.integrations.refusals import refusal
from penstock.stores.connect import connect
from penstock.stores.memory import MemoryStore
from tests.client.callers import path
from tests.client.conftest import LANE, put_lane


class TestRows:
    """A connection may have been told to return rows as something else."""

    def test_of_psycopg(self, pg_url: str) -> None:
        with (
            Client(pg_url) as client,
            psycopg.connect(pg_url, row_factory=dict_row, cursor_factory=psycopg.RawCursor) as own,
        ):
            made = client.enqueue(LANE, connection=own)
            own.commit()
            assert client.get(made.id).id == made.id

    def test_of_psycopg2(self, pg_url: str) -> None:
        factory = psycopg2.extras.RealDictCursor
        with Client(pg_url) as client, closing(psycopg2.connect(pg_url, cursor_factory=factory)) as own:
            made = client.enqueue(LANE, connection=own)
            own.commit()
            assert client.get(made.id).id == made.id

    def test_of_sqlite3(self, sqlite_url: str) -> None:
        with Client(sqlite_url) as client, closing(sqlite3.connect(path(sqlite_url))) as own:
            own.row_factory = lambda cursor, row: dict(zip(cursor.description, row, strict=True))
            first = client.enqueue(LANE, key="k", connection=own)
            assert client.enqueue(LANE, key="k", connection=own) == Enqueued(first.id, duplicate=True)

    def test_of_sqlite3_as_bytes(self, sqlite_url: str) -> None:
        with Client(sqlite_url) as client, closing(sqlite3.connect(path(sqlite_url))) as own:
            own.text_factory = bytes
            first = client.enqueue(LANE, key="k", connection=own)
            assert client.enqueue(LANE, key="k", connection=own) == Enqueued(first.id, duplicate=True)
            with pytest.raises(KeyConflict, match=first.id):
                client.enqueue(LANE, 2, key="k", connection=own)
            assert own.text_factory is bytes

    def test_of_a_connection_that_commits_by_itself(self, pg_url: str) -> None:
        with Client(pg_url) as client, psycopg.connect(pg_url, autocommit=True) as own:
            assert client.get(client.enqueue(LANE, connection=own).id)


def sqlalchemy_connection(url: str) -> sqlalchemy.Connection:
    return sqlalchemy.create_engine(
        url.replace("postgresql:", "postgresql+psycopg:"), poolclass=sqlalchemy.NullPool
    ).connect()


class TestKinds:
    def test_a_connection_to_another_kind_of_database_is_refused(self, pg_url: str, sqlite_url: str) -> None:
        with Client(pg_url) as client, closing(sqlite3.connect(path(sqlite_url))) as own:
            with pytest.raises(InvalidJob, match="leads to sqlite, but this client is on postgresql"):
                client.enqueue(LANE, connection=own)
            assert not own.in_transaction

    @pytest.mark.parametrize("open_", [psycopg.connect, psycopg2.connect, sqlalchemy_connection])
    def test_a_connection_to_another_database_is_refused(
        self, pg_url: str, pg18_dsn: str, open_: Callable[[str], Any]
    ) -> None:
        with closing(connect(pg18_dsn)) as other, Client(pg_url) as client:
            other.migrate()
            put_lane(other)
            with closing(open_(pg18_dsn)) as own:
                for _ in range(2):
                    with pytest.raises(InvalidJob, match=r"leads to the database .*, but this client is on"):
                        client.enqueue(LANE, connection=own)
            with closing(open_(pg_url)) as own:
                client.enqueue(LANE, connection=own)
            assert other.counts() == {}

    async def test_asyncpg_to_another_database_is_refused(self, pg_url: str, pg18_dsn: str) -> None:
        own = await asyncpg.connect(pg18_dsn)
        try:
            async with AsyncClient(pg_url) as client:
                with pytest.raises(InvalidJob, match="leads to the database"):
                    await client.enqueue(LANE, connection=own)
        finally:
            await own.close()

    def test_a_connection_to_another_file_is_refused(self, sqlite_url: str, tmp_path: Path) -> None:
        with Client(sqlite_url) as client:
            for file in (tmp_path / "other.db", ":memory:"):
                with closing(sqlite3.connect(file)) as own, pytest.raises(InvalidJob, match="leads to"):
                    client.enqueue(LANE, connection=own)
            (tmp_path / "link.db").symlink_to(path(sqlite_url))
            with closing(sqlite3.connect(tmp_path / "link.db")) as own:
                assert client.enqueue(LANE, connection=own).id

    def test_a_database_without_our_tables_says_so(self, pg18_dsn: str, memory: MemoryStore) -> None:
        client = Client(memory)  # what it is on is not known
        with psycopg.connect(pg18_dsn) as own, pytest.raises(SchemaMismatch, match="has no tables of Penst"):
            client.enqueue(LANE, connection=own)
        with (
            closing(psycopg2.connect(pg18_dsn)) as other,
            pytest.raises(SchemaMismatch, match="no tables"),
        ):
            client.enqueue(LANE, connection=other)
        with (
            closing(sqlite3.connect(":memory:")) as file,
            pytest.raises(SchemaMismatch, match="no tables"),
        ):
            client.enqueue(LANE, connection=file)

    def test_what_is_none_is_told_what_is(self, sqlite_url: str) -> None:
        with Client(sqlite_url) as client, pytest.raises(TypeError) as caught:
            client.enqueue(LANE, connection=object())

        for known in ("builtins.object", "psycopg.Connection", "asyncpg.Connection", "django.", "sqlite3."):
            assert known in str(caught.value)

    async def test_asyncio_belongs_to_asyncio(self, pg_url: str) -> None:
        async with await psycopg.AsyncConnection.connect(pg_url) as own:
            with Client(pg_url) as client, pytest.raises(TypeError, match="use it with AsyncClient"):
                client.enqueue(LANE, connection=own)

    async def test_what_blocks_does_not(self, sqlite_url: str) -> None:
        with closing(sqlite3.connect(path(sqlite_url))) as own:
            async with AsyncClient(sqlite_url) as client:
                with pytest.raises(TypeError, match="would block the event loop: use it with Client"):
                    await client.enqueue(LANE, connection=own)
                with pytest.raises(TypeError, match="none of the connections"):
                    await client.enqueue(LANE, connection=object())

    def test_other_databases_keep_no_jobs(self, sqlite_url: str) -> None:
        facts = {"__module__": "sqlalchemy.engine.base", "dialect": SimpleNamespace(name="mysql")}
        with Client(sqlite_url) as client, pytest.raises(TypeError, match="leads to mysql"):
            client.enqueue(LANE, connection=type("Connection", (), facts)())


@pytest.fixture
def humble_url(pg_url: str) -> Iterator[str]:
    """Return the URL of a user who may see that there is a schema, and nothing in it."""
    with psycopg.connect(pg_url, autocommit=True) as admin:
        admin.execute("CREATE ROLE humble LOGIN; GRANT USAGE ON SCHEMA penstock TO humble")
        yield pg_url.replace("postgres@", "humble@")
        admin.execute("DROP OWNED BY humble; DROP ROLE humble")


def test_the_rights_that_the_how_to_names_are_enough(pg_url: str, humble_url: str) -> None:
    with Client(pg_url) as client, psycopg.connect(humble_url) as own:
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            client.enqueue(LANE, connection=own)
        own.rollback()
        with psycopg.connect(pg_url) as admin:
            admin.execute("GRANT INSERT, SELECT ON penstock.enqueue TO humble")
        made = client.enqueue(LANE, {"n": 1}, key="k", group="g", mode="block_on_error", connection=own)
        assert client.enqueue(LANE, {"n": 1}, key="k", connection=own).duplicate
        own.commit()
        assert client.get(made.id).id == made.id


class TestErrors:
    def test_of_another_kind_stay_as_they_are(self, sqlite_url: str) -> None:
        words = {"penstock: unknown lane": 1}
        read_only = sqlite3.connect(f"file:{path(sqlite_url)}?mode=ro", uri=True)
        with (
            Client(sqlite_url) as client,
            closing(read_only) as own,
            pytest.raises(sqlite3.OperationalError, match="readonly"),
        ):
            client.enqueue(LANE, words, connection=own)

    @pytest.mark.parametrize("dialect", ["sqlite", "pg"])
    def test_a_lane_that_is_gone_by_now_is_unknown(
        self, dialect: str, request: pytest.FixtureRequest
    ) -> None:
        url = request.getfixturevalue(f"{dialect}_url")
        own = sqlite3.connect(path(url)) if dialect == "sqlite" else psycopg.connect(url)
        with Client(url) as client, closing(own):
            put_lane(client.store, "brief")
            assert client.lane("brief")
            client.store.delete_lane("brief", actor="test")
            with pytest.raises(UnknownLane):
                client.enqueue("brief", connection=own)

    def test_two_of_one_batch_that_fight_for_a_key(self, sqlite_url: str) -> None:
        with Client(sqlite_url) as client, closing(sqlite3.connect(path(sqlite_url))) as own:
            client.enqueue(LANE, 0, key="other", connection=own)
            jobs = [{"lane": LANE, "payload": n, "key": "k"} for n in (1, 2)]
            with pytest.raises(KeyConflict) as caught:
                client.enqueue_many([{"lane": LANE, "payload": 0, "key": "other"}, *jobs], connection=own)
        assert caught.value.key == "k"

    @pytest.mark.parametrize(
        ("said", "expected"),
        [
            (
                'penstock: key "a\nb" already belongs to job 01ARZ3NDEKTSV4RRFFQ69G5FAV, which has',
                KeyConflict("a\nb", "01ARZ3NDEKTSV4RRFFQ69G5FAV"),
            ),
            ('penstock: unknown lane "order"\nCONTEXT: x', UnknownLane("order")),
            (
                'penstock: unknown lane "orde"; did you mean orders, order-events?\nHINT: x',
                UnknownLane("orde", ["orders", "order-events"]),
            ),
            ("penstock: unknown lane; see SELECT", UnknownLane("")),
            (
                'penstock: key "a"b" already belongs to job 01ARZ3NDEKTSV4RRFFQ69G5FAV, which has',
                KeyConflict('a"b', "01ARZ3NDEKTSV4RRFFQ69G5FAV"),
            ),
            ('penstock: unknown pool "wbe"\nCONTEXT', InvalidJob("pool", 'unknown pool "wbe"')),
            ("penstock: message_group: write 1 to 255", InvalidJob("group", "write 1 to 255")),
            ("penstock: the moon is full", InvalidJob("job", "the moon is full")),
            ("server closed the connection: penstock: x", None),
        ],
    )
    def test_are_told_by_their_words(self, said: str, expected: PenstockError | None) -> None:
        wrapped = RuntimeError("a framework's own words")
        wrapped.__cause__ = ValueError(said)

        found = refusal(wrapped)

        assert (type(found), str(found)) == (type(expected), str(expected))
