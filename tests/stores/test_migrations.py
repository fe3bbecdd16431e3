"""Migrations: applied once, in order, by whoever comes first; nothing is run on tables that do not fit."""

import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from importlib import import_module
from pathlib import Path
from threading import Barrier

import pytest

from penstock.errors import SchemaMismatch
from penstock.stores.sql.migrate import check_schema, load, migrate, render
from tests.stores.places import Place, Plain

DIALECTS = ["sqlite", "postgres"]
NEWER = (
    "INSERT INTO penstock.migrations (number, name, checksum, breaking) VALUES (9999, '9999_newer', 'x', {})"
)
HEADER = "-- phase: expand\n-- breaking: no\n"


def names(package: str) -> list[str]:
    return [migration.name for migration in load(package)]


@pytest.fixture
def next_version(place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Return a copy of the migrations that the package `upcoming.<dialect>` has, to add to or to change."""
    folder = tmp_path / "upcoming" / place.dialect / "migrations"
    origin = Path(import_module(place.package).__file__ or "").parent / "migrations"
    shutil.copytree(origin, folder)
    monkeypatch.syspath_prepend(tmp_path)
    yield folder
    for module in ["upcoming", f"upcoming.{place.dialect}"]:
        sys.modules.pop(module, None)


def schema(place: Place) -> str:
    """Return everything that makes the tables what they are, as the database itself tells it."""
    if place.server is None:
        with closing(sqlite3.connect(place.url)) as connection:
            rows = connection.execute("SELECT type, name, tbl_name, sql FROM sqlite_master ORDER BY name")
            return "\n".join(map(str, rows))
    dump = [str(place.server.bin_dir / "pg_dump"), "--schema-only", "--no-owner", place.url]
    done = subprocess.run(dump, check=True, capture_output=True, text=True)
    # A random word against injection into psql, a new one for every dump.
    return "\n".join(line for line in done.stdout.splitlines() if "restrict " not in line)


def test_a_fresh_database_gets_every_migration_once_and_in_order(place: Place) -> None:
    database = place.database()

    assert migrate(database, place.package) == names(place.package)
    assert migrate(database, place.package) == []
    check_schema(database, place.package)
    applied = place.plain()("SELECT name, checksum FROM penstock.migrations ORDER BY number")
    assert applied == [(migration.name, migration.checksum) for migration in load(place.package)]


def test_several_migrators_at_once_apply_each_migration_once(place: Place) -> None:
    databases = [place.database() for _ in range(4)]
    start = Barrier(len(databases))

    def run(number: int) -> list[str]:
        start.wait()
        return migrate(databases[number], place.package)

    with ThreadPoolExecutor(len(databases)) as threads:
        applied = [name for done in threads.map(run, range(len(databases))) for name in done]

    assert sorted(applied) == names(place.package)


def test_an_empty_database_is_refused_with_the_command_that_helps(place: Place) -> None:
    with pytest.raises(SchemaMismatch, match=r"has no Penstock tables.*; run penstock migrate"):
        check_schema(place.database(), place.package)


def test_a_database_that_is_behind_is_refused_and_catches_up(place: Place, next_version: Path) -> None:
    database = place.database()
    migrate(database, place.package)
    (next_version / "0099_more.sql").write_text(f"{HEADER}CREATE TABLE {place.prefix}more (x int);\n")

    with pytest.raises(SchemaMismatch, match="0099_more is needed; run penstock migrate"):
        check_schema(database, f"upcoming.{place.dialect}")
    assert migrate(database, f"upcoming.{place.dialect}") == ["0099_more"]
    check_schema(database, f"upcoming.{place.dialect}")


def test_a_migration_that_fails_leaves_nothing_behind(place: Place, next_version: Path) -> None:
    database = place.database()
    migrate(database, place.package)
    before = schema(place)
    (next_version / "0099_more.sql").write_text(
        f"{HEADER}CREATE TABLE {place.prefix}more (x int);\nDROP TABLE {place.prefix}no_such_table;\n"
    )

    with pytest.raises(SchemaMismatch, match=r"migration 0099_more does not fit the tables .*no_such_table"):
        migrate(database, f"upcoming.{place.dialect}")
    assert schema(place) == before
    check_schema(database, place.package)


def test_a_file_that_changed_after_it_was_applied_is_refused_by_name(
    place: Place, next_version: Path
) -> None:
    database = place.database()
    migrate(database, place.package)
    with (next_version / "0001_lanes.sql").open("a") as file:
        file.write("-- a harmless remark\n")

    for refuses in (migrate, check_schema):
        with pytest.raises(SchemaMismatch, match=r"0001_lanes\.sql is not the one that was applied"):
            refuses(database, f"upcoming.{place.dialect}")


def test_a_newer_database_is_refused_when_the_newer_part_breaks_this_version(place: Place) -> None:
    database = place.database()
    migrate(database, place.package)
    place.plain()(NEWER.format("true"))

    for refuses in (migrate, check_schema):
        with pytest.raises(SchemaMismatch, match="9999_newer, which this version does not know; upgrade"):
            refuses(database, place.package)


def test_a_newer_database_is_accepted_when_the_newer_part_breaks_nothing(place: Place) -> None:
    database = place.database()
    migrate(database, place.package)
    place.plain()(NEWER.format("false"))

    check_schema(database, place.package)
    assert migrate(database, place.package) == []


def test_every_dialect_has_the_same_migrations() -> None:
    found = {dialect: load(f"penstock.stores.{dialect}") for dialect in DIALECTS}

    facts = [[(m.number, m.name, m.phase, m.breaking) for m in migrations] for migrations in found.values()]
    assert facts[0]
    assert facts == facts[:1] * len(DIALECTS)
    assert [number for number, *_ in facts[0]] == list(range(1, len(facts[0]) + 1))


def test_a_file_without_its_header_is_an_error(place: Place, next_version: Path) -> None:
    (next_version / "0099_more.sql").write_text("CREATE TABLE more (x int);\n")

    with pytest.raises(ValueError, match=r"0099_more\.sql does not begin with"):
        load(f"upcoming.{place.dialect}")


def test_the_printed_sql_makes_the_same_tables(place: Place, tmp_path: Path) -> None:
    migrate(place.database(), place.package)
    printed = tmp_path / "schema.sql"
    printed.write_text(render(place.package))

    if place.server is None:
        with closing(Place(str(tmp_path / "by-hand.db"))) as by_hand:
            by_hand.plain().connection.executescript(printed.read_text())
            check_schema(by_hand.database(), place.package)
            assert schema(by_hand) == schema(place)
        return
    with place.server.database() as url, closing(Place(url, place.server)) as by_hand:
        psql = [str(place.server.bin_dir / "psql"), "-q", "-v", "ON_ERROR_STOP=1", "-f", str(printed), url]
        subprocess.run(psql, check=True, capture_output=True, text=True)
        check_schema(by_hand.database(), place.package)
        assert schema(by_hand) == schema(place)


def test_the_printed_sql_can_begin_after_what_is_there(place: Place) -> None:
    first, *others = names(place.package)

    printed = render(place.package, after=1)

    assert f"'{first}'" not in printed
    assert [name for name in others if f"'{name}'" in printed] == others


def test_a_user_who_owns_only_the_schema_can_migrate(postgres_place: Place) -> None:
    admin, place = postgres_place.plain(), postgres_place
    before = admin("SELECT extname FROM pg_extension")
    with (
        owner(admin) as name,
        closing(Place(place.url.replace("postgres@", f"{name}@"), place.server)) as own,
    ):
        database = own.database()
        assert migrate(database, place.package) == names(place.package)
        check_schema(database, place.package)

    assert admin("SELECT extname FROM pg_extension") == before


@contextmanager
def owner(admin: Plain) -> Iterator[str]:
    """Give the name of a user who may do nothing but what he likes in a schema that was made for him."""
    # A role belongs to the server, which other tests share.
    admin("CREATE ROLE schema_owner LOGIN")
    try:
        admin("CREATE SCHEMA penstock AUTHORIZATION schema_owner")
        yield "schema_owner"
    finally:
        admin("DROP OWNED BY schema_owner CASCADE")
        admin("DROP ROLE schema_owner")
