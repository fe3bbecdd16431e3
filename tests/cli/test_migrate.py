"""`penstock migrate`: what an operator and a DBA see, and the exit codes scripts rely on."""

import json
import sqlite3
import sys
from contextlib import closing
from pathlib import Path

import psycopg
import pytest
from click.testing import CliRunner, Result

from penstock.cli.main import main
from penstock.stores.sql.migrate import load

SQLITE = [migration.name for migration in load("penstock.stores.sqlite")]


def run(*arguments: str) -> Result:
    return CliRunner().invoke(main, ["migrate", *arguments])


def test_it_makes_the_default_file_and_says_what_it_did(tmp_path: Path) -> None:
    first, second = run(), run()

    assert (first.exit_code, first.output.splitlines()) == (0, [f"applied {name}" for name in SQLITE])
    assert (second.exit_code, second.output) == (0, "nothing to do: the database is up to date\n")
    assert (tmp_path / "penstock.db").exists()


def test_the_store_comes_from_the_option_or_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PENSTOCK_STORE", "sqlite:///by-variable.db")

    assert run().exit_code == 0
    assert json.loads(run("--store", f"sqlite:///{tmp_path}/by%20option.db", "--json").output) == {
        "applied": SQLITE
    }
    assert {file.name for file in tmp_path.glob("*.db")} == {"by-variable.db", "by option.db"}


def test_it_migrates_postgres(postgres_url: str) -> None:
    assert run("--store", postgres_url).output.splitlines() == [f"applied {name}" for name in SQLITE]
    assert run("--store", postgres_url).output == "nothing to do: the database is up to date\n"


@pytest.mark.parametrize("url", ["sqlite:///never.db", "postgresql://nobody:secret@127.0.0.1:1/never"])
def test_print_connects_to_nothing(tmp_path: Path, url: str) -> None:
    result = run("--store", url, "--print")

    assert result.exit_code == 0
    assert [name for name in SQLITE if f"'{name}'" in result.output] == SQLITE
    assert list(tmp_path.iterdir()) == []


def test_print_can_begin_after_a_migration() -> None:
    assert f"'{SQLITE[0]}'" not in run("--print", "--after", "1").output
    assert run("--after", "1").exit_code == 2


@pytest.mark.parametrize(
    "url",
    ["mysql://root:secret@host/db", "penstock.db", "sqlite://penstock.db", "sqlite://", "sqlite:///x.db?a=b"],
)
def test_a_url_that_is_none_is_wrong_usage_and_keeps_its_password(url: str) -> None:
    result = run("--store", url)

    assert result.exit_code == 2
    assert "--store" in result.output
    assert "secret" not in result.output


def test_a_store_that_cannot_be_reached_is_told_from_one_that_is_refused() -> None:
    result = run("--store", "sqlite:///no/such/folder/penstock.db")

    assert result.exit_code == 4
    assert "unable to open database file: see that its folder is there" in result.output


def test_a_database_of_a_newer_version_is_refused(tmp_path: Path) -> None:
    run()
    with closing(sqlite3.connect(tmp_path / "penstock.db")) as connection, connection:
        connection.execute("INSERT INTO penstock_migrations VALUES (9999, '9999_newer', 'x', 1, 0)")

    result = run()

    assert (result.exit_code, "upgrade penstock" in result.output) == (4, True)


def test_a_file_that_is_no_database_is_refused(tmp_path: Path) -> None:
    (tmp_path / "penstock.db").write_text("Dear diary, " * 100)

    result = run()

    assert (result.exit_code, "file is not a database" in result.output) == (4, True)


def test_a_user_without_the_right_is_refused_in_the_words_of_the_database(postgres_url: str) -> None:
    with psycopg.connect(postgres_url, autocommit=True) as admin:
        admin.execute("CREATE ROLE guest LOGIN")
        try:
            result = run("--store", postgres_url.replace("postgres@", "guest@"))
        finally:
            admin.execute("DROP ROLE guest")

    assert (result.exit_code, "permission denied for database" in result.output) == (4, True)


def test_a_missing_driver_is_named_with_the_command_that_installs_it(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in [name for name in sys.modules if name.startswith("penstock.stores.postgres")]:
        monkeypatch.delitem(sys.modules, module)
    monkeypatch.setitem(sys.modules, "psycopg", None)

    result = run("--store", "postgresql://127.0.0.1/db")

    assert result.exit_code == 4
    assert "pip install 'penstock[postgres]'" in result.output
