"""The commands of the README work in the order they are printed, beside a node with the demonstration."""

import os
import re
import shlex
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

README = (Path(__file__).parents[2] / "README.md").read_text(encoding="utf-8")
SHELL = re.compile(r"^```sh\n(.*?)^```", re.MULTILINE | re.DOTALL)
FILE = re.compile(r"^```toml\n# (\S+)\n(.*?)^```", re.MULTILINE | re.DOTALL)
PENSTOCK = ".venv/bin/penstock "
FOREVER = ("serve", "listen")


def commands() -> Iterator[str]:
    for block in SHELL.findall(README):
        for line in block.splitlines():
            if line.startswith(PENSTOCK):
                yield line.removeprefix(PENSTOCK).partition("    #")[0].strip()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with a file that the README only names."""
    (tmp_path / "jobs.ndjson").write_text('{"payload": 1}\n{"payload": 2}\n')
    return tmp_path


def environment() -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("PENSTOCK_")}
    return kept | {"PYTHONUNBUFFERED": "1", "PENSTOCK_PORT": "0"}


@contextmanager
def start(folder: Path, *args: str) -> "Iterator[subprocess.Popen[str]]":
    command = [sys.executable, "-m", "penstock", *args]
    with subprocess.Popen(
        command, cwd=folder, env=environment(), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def said(process: "subprocess.Popen[str]", words: str) -> None:
    assert process.stdout is not None
    lines = []
    while words not in (lines[-1] if lines else ""):
        lines.append(process.stdout.readline())
        assert lines[-1], "".join(lines)


def test_the_commands_of_the_readme_work(folder: Path) -> None:
    done = []
    with start(folder, "dev", "--demo") as dev:
        said(dev, "page")
        for line in commands():
            if line.startswith("lanes apply"):  # by then the reader has written the file
                for name, content in FILE.findall(README):
                    (folder / name).write_text(content)
            run(folder, line)
            done.append(line.split()[0])
        dev.send_signal(signal.SIGINT)
        dev.communicate(timeout=30)

    assert dev.returncode == 0
    assert {"enqueue", "groups", "jobs", "lanes", "serve", "listen"} <= set(done)


def run(folder: Path, line: str) -> None:
    """Run one command; one that serves for ever is told to stop once it says that it does."""
    first, *rest = shlex.split(line.partition(" < ")[0])
    if first in FOREVER:
        port = ["--port", "0"] if first == "listen" else []
        with start(folder, first, *[arg for arg in rest if arg not in ("--port", "9000")], *port) as process:
            said(process, "http://127.0.0.1:")
            process.send_signal(signal.SIGINT)
            process.communicate(timeout=30)
        assert process.returncode == 0, line
        return
    given = folder / "jobs.ndjson" if "<" in line else Path(os.devnull)
    with given.open() as stdin:
        command = [sys.executable, "-m", "penstock", first, *rest]
        done = subprocess.run(
            command, cwd=folder, env=environment(), stdin=stdin, capture_output=True, text=True, check=False
        )
    assert done.returncode == 0, line + "\n" + done.stdout + done.stderr
