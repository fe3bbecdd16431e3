"""The test servers themselves: others rely on them being fresh, restartable and gone afterwards."""

import re
import subprocess
import sys
from pathlib import Path

import psycopg
import pytest

from tests.servers import Server, ServerUnavailableError, missing, running_server

ABANDON = """
import os, sys
from tests.servers import Server
server = Server(18, in_memory=True)
server.start()
print(server.home, server.data_dir.resolve(strict=True), flush=True)
os.kill(os.getpid(), 9)
"""


def test_the_server_has_the_version_in_its_name(postgres: Server) -> None:
    with psycopg.connect(postgres.dsn) as connection:
        assert postgres.version == connection.info.server_version // 10_000


def test_every_test_gets_a_database_of_its_own(postgres: Server) -> None:
    with postgres.database() as one, postgres.database() as other:
        with psycopg.connect(one) as connection:
            connection.execute("CREATE TABLE here (x int)")
        with psycopg.connect(other) as connection:
            assert connection.execute("SELECT to_regclass('here')").fetchone() == (None,)


def test_a_database_goes_even_while_somebody_is_connected(postgres: Server) -> None:
    with postgres.database() as url:
        forgotten = psycopg.connect(url)
    forgotten.close()
    with psycopg.connect(postgres.dsn) as connection:
        left = connection.execute("SELECT datname FROM pg_database").fetchall()
    assert (url.rpartition("/")[2],) not in left


def test_what_was_committed_survives_a_crash_of_the_server() -> None:
    with running_server(18) as server, server.database() as url:
        with psycopg.connect(url) as connection:
            connection.execute("CREATE TABLE kept AS SELECT 1 AS x")
        server.restart("immediate")
        with psycopg.connect(url) as connection:
            assert connection.execute("SELECT x FROM kept").fetchone() == (1,)


def test_a_killed_test_run_leaves_nothing_behind() -> None:
    abandoned = subprocess.run([sys.executable, "-c", ABANDON], check=False, capture_output=True, text=True)
    home, data = map(Path, abandoned.stdout.split())

    # The janitor holds the other end of the output pipe: `run` returned only after it was done.
    assert (abandoned.returncode, home.exists(), data.exists()) == (-9, False, False)


def test_the_url_is_one_psycopg_understands(postgres_url: str) -> None:
    with psycopg.connect(postgres_url) as connection:
        assert connection.execute("SELECT current_user").fetchone() == ("postgres",)


def test_a_version_that_is_not_here_says_how_to_get_it() -> None:
    with pytest.raises(ServerUnavailableError, match="PostgreSQL 9 is not installed"), running_server(9):
        pass


@pytest.mark.parametrize(
    ("required", "outcome"),
    [("", pytest.skip.Exception), ("1", pytest.fail.Exception)],
    ids=["skips", "fails"],
)
def test_a_missing_server(
    monkeypatch: pytest.MonkeyPatch, required: str, outcome: type[BaseException]
) -> None:
    monkeypatch.setenv("REQUIRE_SERVICES", required)
    with pytest.raises(outcome, match="no such server"):
        missing("no such server")


@pytest.mark.parametrize(
    "package",
    ["postgresql-15", "rabbitmq-server", "activemq", "chromium", "prometheus", "faketime", "groff-base"],
)
def test_what_no_wheel_carries_is_installed_before_the_tests(package: str) -> None:
    script = Path(__file__).parents[1] / "tools" / "install-services.sh"
    assert re.search(rf"missing\+=\(.*\b{package}\b.*\)", script.read_text(encoding="utf-8"))
