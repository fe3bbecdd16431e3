"""The SQL of these pages runs as it is printed, and what they say that a database refuses is what it says."""

import re
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import psycopg
import pytest

from penstock import Client
from penstock.domain.lanes import lane
from penstock.stores.connect import connect

HOWTO = Path(__file__).parents[2] / "docs" / "howto"
SQL = re.compile(r"^```sql\n(.*?)^```", re.MULTILINE | re.DOTALL)
TABLES = """
    CREATE TABLE orders (id integer, total numeric);
    CREATE TABLE invoices (id integer, due timestamptz, customer text, open boolean);
    INSERT INTO invoices VALUES (1, '2026-12-01', 'acme', true), (2, '2026-12-02', 'zeta', false)"""


def page(name: str) -> str:
    return (HOWTO / f"{name}.md").read_text(encoding="utf-8")


@pytest.fixture
def client(pg18_dsn: str) -> Iterator[Client]:
    with closing(connect(pg18_dsn)) as store:
        store.migrate()
        for name in ("billing", "reminders", "pay"):
            store.put_lane(lane(name), actor="test")
        with Client(store) as client:
            yield client


def test_every_page_with_sql_is_run() -> None:
    """The others are: tests/docs/test_readme.py and tests/client/test_rights.py."""
    root = HOWTO.parents[1]
    found = [
        path for path in [*root.glob("*.md"), *(root / "docs").rglob("*.md")] if SQL.search(path.read_text())
    ]

    assert {path.stem for path in found} == {"README", "grant-rights", "enqueue-from-sql", "change-a-lane"}


def refused(own: "psycopg.Connection[tuple[object, ...]]", statement: bytes) -> str:
    """Return what psql shows of an error, but for where it happened."""
    with pytest.raises(psycopg.errors.IntegrityError) as caught:
        own.execute(statement)
    said = caught.value.diag
    hint = f"HINT:  {said.message_hint}\n" if said.message_hint else ""
    return f"ERROR:  {said.message_primary}\n{hint}"


def test_enqueue_from_sql_on_postgres(pg18_dsn: str, client: Client) -> None:
    text = page("enqueue-from-sql")
    blocks = [block for block in SQL.findall(text) if "penstock_" not in block]
    assert len(blocks) == 3
    with psycopg.connect(pg18_dsn, autocommit=True) as own:
        own.execute(TABLES.encode())
        try:
            for block in blocks:
                own.execute(block.encode())
        finally:
            own.execute("DROP OWNED BY shop; DROP ROLE shop")
        said = [
            refused(own, b"INSERT INTO penstock.enqueue (lane) VALUES ('biling')"),
            refused(own, b"INSERT INTO penstock.enqueue (lane, payload) VALUES ('billing', 'x')"),
        ]
    assert f"```\n{''.join(said)}```" in text

    [bill] = client.list(lane="billing", payloads=True).jobs
    [remind] = client.list(lane="reminders", payloads=True).jobs
    assert (bill.payload, bill.group) == ({"order": 17}, "customer-4")
    assert (remind.payload, remind.live.tenant) == ({"invoice": 1}, "acme")


def test_enqueue_from_sql_on_sqlite(tmp_path: Path) -> None:
    blocks = [block for block in SQL.findall(page("enqueue-from-sql")) if "penstock_" in block]
    assert len(blocks) == 2
    file = tmp_path / "penstock.db"
    with closing(connect(f"sqlite:///{file}")) as store, closing(sqlite3.connect(file)) as own:
        store.migrate()
        store.put_lane(lane("billing"), actor="test")
        own.execute("CREATE TABLE orders (id integer, total numeric)")
        for block in blocks:
            own.executescript(block)

        assert store.depth("billing") == 1


def test_change_a_lane(pg18_dsn: str, client: Client) -> None:
    text = page("change-a-lane")
    changes, look = SQL.findall(text)
    with psycopg.connect(pg18_dsn, autocommit=True) as own:
        own.execute(changes.encode())
        assert len(own.execute(look.encode()).fetchall()) == 3
        said = refused(own, b"UPDATE penstock.lanes SET jitter = '8 sec' WHERE name = 'pay'")
    assert f"```\n{said}```" in text

    pay = client.store.lanes()["pay"]
    assert (pay["batch_size"], pay["jitter"], pay["rate"], pay["enabled"]) == (1000, "8s", "200/s", False)
