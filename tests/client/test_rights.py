"""The rights that the how-to grants are enough for what it says, and for nothing else."""

import re
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from psycopg.errors import InsufficientPrivilege

from penstock import Client
from penstock.errors import StoreError
from tests.client.conftest import LANE

PAGE = Path(__file__).parents[2] / "docs/howto/grant-rights.md"
BY_SQL, IN_MINE, BY_ITSELF, LOOKING = re.findall(
    r"^```sql\n(.*?)^```", PAGE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL
)


class Granted:
    """A database in which rights are granted step by step."""

    def __init__(self, url: str, owner: "psycopg.Connection[tuple[object, ...]]") -> None:
        self._url, self._owner = url, owner

    def grant(self, *blocks: str) -> None:
        for block in blocks:
            self._owner.execute(block.encode())

    def url(self, user: str) -> str:
        return self._url.replace("postgres@", f"{user}@")


@pytest.fixture
def granted(pg_url: str) -> Iterator[Granted]:
    with psycopg.connect(pg_url, autocommit=True) as owner:
        try:
            yield Granted(pg_url, owner)
        finally:
            for role in ("shop", "reader"):
                if owner.execute("SELECT 1 FROM pg_roles WHERE rolname = %s", [role]).fetchone():
                    owner.execute(f"DROP OWNED BY {role}; DROP ROLE {role}".encode())


def test_enqueueing_by_sql(granted: Granted) -> None:
    granted.grant(BY_SQL)
    with psycopg.connect(granted.url("shop"), autocommit=True) as own:
        insert = "INSERT INTO penstock.enqueue (lane, payload) VALUES (%s, '1') RETURNING id"
        assert own.execute(insert, [LANE]).fetchone()
        with pytest.raises(InsufficientPrivilege):
            own.execute("SELECT * FROM penstock.jobs")
    with pytest.raises(StoreError, match=r"permission denied.*docs/howto/grant-rights\.md"):
        Client(granted.url("shop"))


def test_enqueueing_in_the_callers_own_transaction(granted: Granted) -> None:
    granted.grant(BY_SQL, IN_MINE)
    with Client(granted.url("shop")) as client, psycopg.connect(granted.url("shop")) as own:
        assert client.enqueue(LANE, {"n": 1}, key="k", connection=own).id
        with pytest.raises(StoreError, match=r"permission denied.*grant-rights\.md"):
            client.enqueue(LANE)


def test_enqueueing_with_the_client_alone(granted: Granted) -> None:
    granted.grant(BY_SQL, IN_MINE, BY_ITSELF)
    with Client(granted.url("shop")) as client:
        first = client.enqueue(LANE, {"n": 1}, key="k", group="g", mode="block_on_error")
        assert client.enqueue(LANE, {"n": 1}, key="k").id == first.id
        with pytest.raises(StoreError, match="permission denied"):
            client.hold(first.id, reason="x")


def test_a_connection_without_rights_is_told_what_to_grant(granted: Granted) -> None:
    granted.grant("CREATE ROLE shop LOGIN")
    with (
        Client(granted.url("postgres")) as client,
        psycopg.connect(granted.url("shop")) as own,
        pytest.raises(StoreError, match=r"refuses this user: permission denied.*grant-rights\.md"),
    ):
        client.enqueue(LANE, connection=own)


def test_looking(granted: Granted) -> None:
    granted.grant(LOOKING)
    with Client(granted.url("postgres")) as client:
        job = client.enqueue(LANE, {"n": 1}, group="g", mode="block_on_error").id
    with Client(granted.url("reader")) as reader:
        assert reader.get(job).id == job
        assert [one.id for one in reader.list(filter=f"lane:{LANE}").jobs] == [job]
        assert reader.explain(job).text
        assert reader.timeline(job).attempts == []
        assert reader.counts()
        assert reader.groups().groups
        for refused in (lambda: reader.enqueue(LANE), lambda: reader.hold(job, reason="x")):
            with pytest.raises(StoreError, match="permission denied"):
                refused()
    with psycopg.connect(granted.url("reader"), autocommit=True) as own:
        for table in ("secrets", "api_keys", "users", "sessions"):
            with pytest.raises(InsufficientPrivilege):
                own.execute(f"SELECT * FROM penstock.{table}".encode())
