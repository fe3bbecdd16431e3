"""The top of the command line: fast, and honest about what it has."""

import subprocess
import sys
from importlib.metadata import version
from pathlib import Path
from types import ModuleType

import click
import pytest
from click.testing import CliRunner

from penstock.app import missing
from penstock.cli.errors import Unreachable, reported
from penstock.cli.main import COMMANDS, Entry, LazyGroup, main
from penstock.errors import StoreError
from tests.cli.conftest import Run

# What the interpreter loads for `penstock --help` beyond a bare start; drivers and servers must not be there.
LOADED = """
import sys
from click.testing import CliRunner
from penstock.cli.main import main
CliRunner().invoke(main, ["--help"])
print(" ".join(name for name in sys.modules if name.startswith("penstock")))
"""


LOADED_BY = """
import sys
from click.testing import CliRunner
from penstock.cli.main import main
CliRunner().invoke(main, {command})
print(" ".join(sys.modules))
"""
SLOW = {
    *("aiohttp", "asyncio", "jinja2", "litestar", "opentelemetry", "prometheus_client", "psycopg", "rich"),
    *("pydantic", "uvicorn", "penstock.app", "penstock.scheduler", "penstock.testing"),
}


def test_version_is_the_installed_one() -> None:
    result = CliRunner().invoke(main, ["--version"])

    assert (0, f"penstock, version {version('penstock')}\n") == (result.exit_code, result.output)
    assert CliRunner().invoke(main, ["version"]).output == result.output
    assert f'"version":"{version("penstock")}"' in CliRunner().invoke(main, ["version", "--json"]).output


def test_help_names_every_command_and_its_summary() -> None:
    output = CliRunner().invoke(main, ["--help"], terminal_width=200).output

    missing = [
        name for name, entry in COMMANDS.items() if f"{name} " not in output or entry.summary not in output
    ]
    assert missing == []


def test_an_unknown_command_is_a_usage_error() -> None:
    result = CliRunner().invoke(main, ["no-such-command"])

    assert result.exit_code == 2
    assert "No such command" in result.output
    assert "Did you mean enqueue?" in CliRunner().invoke(main, ["enque"]).output


@pytest.mark.parametrize(
    "command",
    [
        "lanes list",
        "jobs list",
        "jobs show 01M7FVNKF8SZX9KDE7ZWENQYAQ",
        "enqueue hello 1",
        "dead list",
        "history",
        "audit",
        "groups blocked",
        "pools list",
        "top --once",
        "init elsewhere",
        "completion bash",
    ],
)
def test_a_command_loads_no_server_no_driver_and_nothing_slow(ready: Run, command: str) -> None:
    """What starts fast is what loads little: each of these costs a tenth of a second or more."""
    code = LOADED_BY.format(command=command.split())
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)

    assert set(done.stdout.split()) & SLOW == set()


@pytest.mark.parametrize(
    "command", [["jobs", "list"], ["lanes", "list"], ["enqueue", "hello", "1"]], ids=" ".join
)
def test_missing_tables_name_the_command_that_makes_them(
    run: Run, tmp_path: Path, command: list[str]
) -> None:
    (tmp_path / "penstock.db").touch()

    assert "run penstock migrate" in run(*command, code=4).stderr


def test_the_store_of_the_configuration_file_is_used(run: Run, tmp_path: Path) -> None:
    (tmp_path / "penstock.toml").write_text('store = "sqlite:///mine.db"\n[lanes.orders]\n')
    run("dev", "--once")

    assert run("lanes", "list").stdout.startswith("orders\t")
    assert run("lanes", "list", "--store", "sqlite:///mine.db").stdout.startswith("orders\t")
    assert run("lanes", "list", "--store", "sqlite:///other.db", code=4).stdout == ""


def test_a_wrong_configuration_file_is_wrong_usage(run: Run, tmp_path: Path) -> None:
    (tmp_path / "penstock.toml").write_text('store = "mysql://root:secret@host/db"\n')
    said = run("jobs", "list", code=2).stderr
    assert 'penstock.toml:1: store: "mysql:" is no store' in said
    assert "secret" not in said

    (tmp_path / "penstock.toml").write_text("stroe = 1\n")
    assert "penstock.toml:1: stroe: there is no such key; did you mean store" in run("migrate", code=2).stderr


def test_help_imports_no_sub_command() -> None:
    done = subprocess.run([sys.executable, "-c", LOADED], check=True, capture_output=True, text=True)

    assert set(done.stdout.split()) == {"penstock", "penstock.cli", "penstock.cli.main"}


def test_lanes_to_be_served_that_are_not_there_are_named() -> None:
    assert missing(("*", "orders"), ["orders"]) == []
    assert missing(("order",), ["orders"]) == ['unknown lane "order"; did you mean orders?']


INTERRUPTED_WHILE_LOADING = """
import sys
from importlib.abc import MetaPathFinder

class CtrlC(MetaPathFinder):
    def find_spec(self, name, path, target=None):
        if name == "click":
            raise KeyboardInterrupt

sys.meta_path.insert(0, CtrlC())
from penstock.__main__ import main
main()
"""


def test_ctrl_c_while_a_command_is_loaded_is_no_traceback() -> None:
    done = subprocess.run(
        [sys.executable, "-c", INTERRUPTED_WHILE_LOADING], capture_output=True, text=True, check=False
    )

    assert (done.returncode, done.stdout, done.stderr) == (130, "", "")


@pytest.mark.parametrize("asked", [False, True])
def test_ctrl_c_ends_a_command_with_130(monkeypatch: pytest.MonkeyPatch, asked: bool) -> None:  # noqa: FBT001
    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    def run() -> None:
        if asked:
            monkeypatch.setattr("click.termui.visible_prompt_func", interrupted)
            click.confirm("Really?", abort=True)
        interrupted()

    monkeypatch.setitem(sys.modules, "penstock_example", ModuleType("penstock_example"))
    sys.modules["penstock_example"].run = click.command()(run)  # type: ignore[attr-defined]
    example = LazyGroup(entries={"run": Entry("penstock_example:run", "")}, help="")

    result = CliRunner().invoke(example, ["run"])

    assert result.exit_code == 130
    assert "interrupted" in result.output
    assert "Aborted" not in result.output


def test_closed_stdin_is_told(ready: Run) -> None:
    ready("lanes", "list")
    commands = [["enqueue", "hello", "-"], ["lanes", "delete", "hello", "--reason", "x"]]
    for command in commands:
        done = subprocess.run(
            ["bash", "-c", '"$@" <&-', "bash", sys.executable, "-m", "penstock", *command],
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 2, done.stderr
        assert "stdin is closed" in done.stderr or "say --yes" in done.stderr


def test_parts_of_a_node_that_end_together_say_why_in_one_line() -> None:
    lost = ExceptionGroup("node", [ExceptionGroup("services", [StoreError("file is not a database")])])
    with pytest.raises(Unreachable, match=r"^file is not a database$"), reported():
        raise lost


def test_a_bug_in_one_part_of_a_node_stays_a_traceback() -> None:
    both = ExceptionGroup("node", [StoreError("file is not a database"), ZeroDivisionError()])
    with pytest.raises(ExceptionGroup), reported():
        raise both
