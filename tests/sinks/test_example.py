"""A sink of somebody else's package: installed, found by its entry point, used by a node."""

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

EXAMPLE = Path(__file__).parent / "example"
CONFIG = """
[sinks.spool]
kind = "filebox"
folder = "spool"

[sinks.elsewhere]
kind = "filebox"
folder = "nowhere"

[lanes.orders]
sink = "spool"
poll_interval = "50ms"

[lanes.lost]
sink = "elsewhere"
"""


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Install the package as its users would, into a folder of its own."""
    source = tmp_path_factory.mktemp("source") / "example"
    shutil.copytree(EXAMPLE, source, ignore=shutil.ignore_patterns("__pycache__"))
    target = tmp_path_factory.mktemp("site")
    options = ["--quiet", "--no-deps", "--no-build-isolation", "--no-index", "--disable-pip-version-check"]
    command = [sys.executable, "-m", "pip", "install", *options, "--target", str(target), str(source)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return target


def environment(installed: Path) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("PENSTOCK_")}
    return kept | {"PYTHONPATH": str(installed), "PYTHONUNBUFFERED": "1"}


def penstock(folder: Path, installed: Path, *args: str) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "penstock", *args],
        cwd=folder,
        env=environment(installed),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@contextmanager
def dev(folder: Path, installed: Path) -> Iterator[None]:
    """Run everything in one process, with the lanes of the configuration; its log is the file `log`."""
    command = [sys.executable, "-m", "penstock", "dev", "--port", "0"]
    with (
        (folder / "log").open("w") as log,
        subprocess.Popen(
            command, cwd=folder, env=environment(installed), stdout=subprocess.PIPE, stderr=log, text=True
        ) as process,
    ):
        try:
            assert process.stdout is not None
            while "page" not in (line := process.stdout.readline()):
                assert line, "it ended"
            yield
        finally:
            process.kill()


def test_a_node_sends_to_a_sink_of_another_package(installed: Path, tmp_path: Path) -> None:
    (tmp_path / "penstock.toml").write_text(CONFIG, encoding="utf-8")
    (spool := tmp_path / "spool").mkdir()
    with dev(tmp_path, installed):
        penstock(tmp_path, installed, "enqueue", "lost", "{}")
        sent = json.loads(penstock(tmp_path, installed, "enqueue", "orders", '{"n": 1}', "--json"))["id"]
        until(lambda: said(tmp_path, "orders: 1 sent"))
        until(lambda: said(tmp_path, "sink elsewhere cannot be opened: there is no folder nowhere: make it"))

    [message] = spool.glob("*.json")
    assert message.name == f"{sent}-1.json"
    assert json.loads(message.read_bytes())["payload"] == {"n": 1}


def said(folder: Path, words: str) -> bool:
    return words in (folder / "log").read_text(encoding="utf-8")


def until(condition: Callable[[], bool]) -> None:
    end = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.05)


def test_it_passes_the_suite_as_its_author_runs_it(installed: Path, tmp_path: Path) -> None:
    shutil.copy(EXAMPLE / "tests" / "test_filebox.py", tmp_path)
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_filebox.py"],
        cwd=tmp_path,
        env=environment(installed),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "15 passed, 1 skipped" in done.stdout, done.stdout
