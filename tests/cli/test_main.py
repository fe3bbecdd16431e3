"""The top of the command line: fast, and honest about what it has."""

import subprocess
import sys
from importlib.metadata import version

from click.testing import CliRunner

from penstock.cli.main import COMMANDS, main

# What the interpreter loads for `penstock --help` beyond a bare start; drivers and servers must not be there.
LOADED = """
import sys
from click.testing import CliRunner
from penstock.cli.main import main
CliRunner().invoke(main, ["--help"])
print(" ".join(name for name in sys.modules if name.startswith("penstock")))
"""


def test_version_is_the_installed_one() -> None:
    result = CliRunner().invoke(main, ["--version"])

    assert (0, f"penstock, version {version('penstock')}\n") == (result.exit_code, result.output)


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


def test_help_imports_no_sub_command() -> None:
    done = subprocess.run([sys.executable, "-c", LOADED], check=True, capture_output=True, text=True)

    assert set(done.stdout.split()) == {"penstock", "penstock.cli", "penstock.cli.main"}
