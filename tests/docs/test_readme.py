"""The examples of the README work in the order they are printed, beside a node with the demonstration."""

import os
import re
import signal
import sqlite3
import sys
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path

import psycopg

from penstock.domain.lanes import lane
from penstock.domain.states import JobState
from penstock.ports.store import Store
from penstock.stores.connect import connect
from tests.chaos.processes import PENSTOCK, Process, eventually, start
from tests.servers import free_port

README = (Path(__file__).parents[2] / "README.md").read_text(encoding="utf-8")
SHELL = re.compile(r"^```sh\n(.*?)^```", re.MULTILINE | re.DOTALL)
SQL = re.compile(r"^```sql\n(.*?)^```", re.MULTILINE | re.DOTALL)
FILE = re.compile(r"^```toml\n# (\S+)\n(.*?)^```", re.MULTILINE | re.DOTALL)
OURS = (".venv/bin/penstock ", "curl ", "echo ")
FOREVER = ("penstock serve", "penstock listen")


def commands() -> Iterator[str]:
    for block in SHELL.findall(README):
        for line in block.splitlines():
            if line.startswith(OURS):
                yield line.partition("    #")[0].strip().removeprefix(".venv/bin/")


async def test_the_commands_of_the_readme_work(tmp_path: Path) -> None:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("PENSTOCK_")}
    port = str(free_port())
    environment = kept | {
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{kept['PATH']}",
        "PENSTOCK_PORT": port,
        "PYTHONUNBUFFERED": "1",
    }
    ports = {"7070": port, "7071": str(free_port()), "9000": str(free_port())}

    def mine(text: str) -> str:
        return re.sub("|".join(ports), lambda found: ports[found[0]], text)

    dev = start("dev", tmp_path, *PENSTOCK, "dev", "--demo", environment=environment)
    running = [dev]
    try:
        await eventually("the node", lambda: "page   http" in dev.said)
        for line in map(mine, commands()):
            if line.startswith(FOREVER):
                running.append(start(line.split()[1], tmp_path, *line.split(), environment=environment))
                await eventually(line, lambda: "http://127.0.0.1:" in running[-1].said)
                continue
            if "lanes apply" in line:  # by then the reader has written the file
                for name, content in FILE.findall(README):
                    (tmp_path / name).write_text(mine(content))
            process = start("shell", tmp_path, "bash", "-c", line, environment=environment)
            assert await process.ended(within=60) == 0, f"{line}\n{process.said}{process.told}"
        await end(running)
        with closing(connect(f"sqlite:///{tmp_path / 'penstock.db'}")) as store:
            assert not store.counts().get(("shop", JobState.DEAD))
    finally:
        for process in running:
            process.popen.kill()
            process.popen.wait()


async def end(processes: Sequence[Process]) -> None:
    """See that each ends when told to."""
    for process in reversed(processes):
        process.signal(signal.SIGINT)
        assert await process.ended() == 0, process.told


def test_the_examples_are_five_and_say_what_they_should() -> None:
    assert re.findall(r"^\*\*(\d)\. ", README, re.MULTILINE) == ["1", "2", "3", "4", "5"]
    words = {line.split()[1] for line in commands() if line.startswith("penstock")}
    assert {"enqueue", "groups", "jobs", "lanes", "serve", "listen", "dead", "replay", "doctor"} <= words
    assert any(line.startswith("curl") for line in commands())


def test_the_statements_of_the_readme_make_a_job_each(pg18_dsn: str, tmp_path: Path) -> None:
    [both] = SQL.findall(README)
    on_sqlite, on_postgres = (part for part in both.split(";\n") if part)
    file = tmp_path / "penstock.db"
    with prepared(f"sqlite:///{file}") as store, closing(sqlite3.connect(file)) as connection:
        with connection:
            connection.execute(on_sqlite)
        assert store.depth("hello") == 1
    with prepared(pg18_dsn) as store:
        with psycopg.connect(pg18_dsn) as connection:
            connection.execute(on_postgres.encode())
        assert store.depth("hello") == 1


@contextmanager
def prepared(url: str) -> Iterator[Store]:
    with closing(connect(url)) as store:
        store.migrate()
        store.put_lane(lane("hello"), actor="test")
        yield store


def test_the_figures_of_the_readme_are_those_of_the_benchmarks() -> None:
    """Whoever records new figures writes them into the README's table as well."""
    results = (Path(__file__).parents[2] / "bench" / "RESULTS.md").read_text(encoding="utf-8")
    drained = re.search(r"PostgreSQL 18: the same without a limit \| ([\d,]+)/s", results)
    waited = re.search(r"PostgreSQL 18: Client\.enqueue to .*? p50 ([\d.]+) ms, p99 ([\d.]+) ms", results)

    assert drained is not None
    assert waited is not None
    per_second = int(drained[1].replace(",", "")) // 100 * 100
    assert f"| drained per second, 2 cores | {per_second:,} |" in README
    assert f"| enqueue to start, p50 / p99 ms | {waited[1]} / {float(waited[2]):.0f} |" in README
