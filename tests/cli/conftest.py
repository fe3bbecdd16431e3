"""A store of its own for every test, and `penstock` as a person runs it."""

import json
import os
from collections.abc import Callable
from pathlib import Path
from shutil import copyfile
from typing import IO, Any

import pytest
from click.testing import CliRunner, Result

from penstock.cli.main import main

Run = Callable[..., Result]
RunJson = Callable[..., Any]


def foreign() -> list[str]:
    """Return the variables of whoever runs the tests that commands would heed."""
    return [name for name in os.environ if name.startswith("PENSTOCK_") or name == "NO_COLOR"]


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No test sees the environment or the files of whoever runs it."""
    monkeypatch.chdir(tmp_path)
    for variable in foreign():
        monkeypatch.delenv(variable)


@pytest.fixture
def run() -> Run:
    """Return `run("jobs", "list", code=0)`: the result of a command that must end with that exit code."""

    def run(*arguments: str, code: int = 0, stdin: str | bytes | IO[bytes] | None = None) -> Result:
        result = CliRunner().invoke(main, arguments, input=stdin)
        assert result.exit_code == code, (result.output, result.exception)
        return result

    return run


@pytest.fixture(scope="session")
def made_by_dev(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a database as `penstock dev` leaves it, to be copied."""
    path = tmp_path_factory.mktemp("dev") / "penstock.db"
    result = CliRunner(env=dict.fromkeys(foreign())).invoke(
        main, ["dev", "--once", "--store", f"sqlite:///{path}"]
    )
    assert result.exit_code == 0, result.output
    return path


@pytest.fixture
def ready(run: Run, tmp_path: Path, made_by_dev: Path) -> Run:
    """Return `run`, in a folder with a store that has the lane `hello`."""
    copyfile(made_by_dev, tmp_path / "penstock.db")
    return run


@pytest.fixture
def read(ready: Run) -> RunJson:
    """Return `read("jobs", "list")`: what the command prints with `--json`."""

    def read(*arguments: str, code: int = 0, stdin: str | None = None) -> Any:  # noqa: ANN401
        return json.loads(ready(*arguments, "--json", code=code, stdin=stdin).stdout)

    return read
