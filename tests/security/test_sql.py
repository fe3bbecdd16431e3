"""What callers write reaches the database as parameters, never as SQL."""

from collections.abc import Iterator
from contextlib import closing, suppress
from shutil import copyfile

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from penstock import Client
from penstock.domain.lanes import lane
from penstock.errors import PenstockError
from penstock.stores.connect import connect
from tests.security.hostile import HOSTILE

MARK = "q7zq"  # stands in no statement of ours
TEXTS = st.one_of(
    st.sampled_from([text for text in HOSTILE if len(text) < 200]),
    st.text(max_size=30),
    st.sampled_from(["'", '"', "\\", ";", "--", "/*", "%", "_", "\x00", ")", "::text", ":name", "$1", "?"]),
)
FIELDS = st.sampled_from(
    [
        "lane",
        "group",
        "tenant",
        "key",
        "error",
        "reason",
        "target",
        "payload",
        "payload.a.b",
        "entity",
        "node",
    ]
)
OPERATORS = st.sampled_from([":", "!=", "~", "<", ">=", ""])


@pytest.fixture(scope="module", params=["sqlite", "pg18"])
def url(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    if request.param == "pg18":
        with request.getfixturevalue("migrated_postgres")(18) as url:
            yield url
    else:
        file = request.getfixturevalue("migrated_file")
        yield f"sqlite:///{copyfile(file, tmp_path_factory.mktemp('sql') / 'penstock.db')}"


@pytest.fixture(scope="module")
def watched(url: str) -> Iterator[tuple[Client, list[str]]]:
    """Return a client, and every statement that its database ran since it was last emptied."""
    statements: list[str] = []
    with closing(connect(url)) as store:
        store.put_lane(lane("orders"), actor="test")
        database = store.db  # type: ignore[attr-defined]
        read = database.snapshot

        def snapshot(work):  # type: ignore[no-untyped-def] # noqa: ANN001, ANN202
            def noted(tx):  # type: ignore[no-untyped-def] # noqa: ANN001, ANN202
                return work(Noted(tx, statements))

            return read(noted)

        store.db = Watched(database, snapshot)  # type: ignore[attr-defined]
        client = Client(store)
        client.enqueue("orders", {"a": {"b": 1}}, group="g", tenant="t", key="k")
        yield client, statements


class Watched:
    """A database whose snapshots are noted."""

    def __init__(self, database: object, snapshot: object) -> None:
        self._database, self.snapshot = database, snapshot

    def __getattr__(self, name: str) -> object:
        return getattr(self._database, name)


class Noted:
    """A transaction whose statements are noted."""

    def __init__(self, tx: object, statements: list[str]) -> None:
        self._tx, self._statements = tx, statements

    def fetch(self, sql: str, **params: object) -> object:
        self._statements.append(sql)
        return self._tx.fetch(sql, **params)  # type: ignore[attr-defined]

    def fetch_each(self, sql: str, each: object, **params: object) -> object:
        self._statements.append(sql)
        return self._tx.fetch_each(sql, each, **params)  # type: ignore[attr-defined]

    def __getattr__(self, name: str) -> object:
        return getattr(self._tx, name)


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(field=FIELDS, operator=OPERATORS, text=TEXTS)
def test_a_filter_is_parameters_only(
    watched: tuple[Client, list[str]], field: str, operator: str, text: str
) -> None:
    client, statements = watched
    statements.clear()
    for line in (f'{field}{operator}"{MARK}{text}"', f"{field}{operator}{MARK}{text}", text):
        with suppress(PenstockError):
            client.list(filter=line)
    for name in ("lane", "group", "tenant", "key"):
        with suppress(PenstockError):
            client.list(**{name: MARK + text})  # type: ignore[arg-type]

    assert not [sql for sql in statements if MARK in sql]
    assert len(client.list().jobs) == 1


def test_statements_are_seen(watched: tuple[Client, list[str]]) -> None:
    client, statements = watched
    statements.clear()
    client.list(lane="orders", tenant="t")

    assert any("penstock" in sql for sql in statements)
