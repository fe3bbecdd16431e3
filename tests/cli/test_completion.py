"""Scripts for shells."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.conftest import Run
from tests.servers import missing

ASK = """
eval "$(penstock completion bash)"
COMP_WORDS=(penstock {words}) COMP_CWORD={at}
_penstock_completion penstock
printf '%s\\n' "${{COMPREPLY[@]}}"
"""


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_there_is_a_script_for_each_shell(run: Run, shell: str) -> None:
    assert "_PENSTOCK_COMPLETE" in run("completion", shell).stdout


def test_an_unknown_shell_is_wrong_usage(run: Run) -> None:
    assert "'bash'" in run("completion", "cmd", code=2).stderr


@pytest.mark.parametrize(
    ("words", "expected"),
    [("jo", {"jobs"}), ("jobs re", {"release", "retry"}), ("history --st", {"--state", "--store"})],
)
def test_bash_completes_commands_and_options(words: str, expected: set[str]) -> None:
    bash = shutil.which("bash")
    if bash is None:
        pytest.skip("there is no bash here")
    script = ASK.format(words=words, at=len(words.split()))
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        [bash, "-c", script], env=os.environ | {"PATH": path}, capture_output=True, text=True, check=True
    )
    assert set(done.stdout.split()) == expected, done.stderr


def test_the_manual_page_can_be_formatted() -> None:
    groff = shutil.which("groff")
    if groff is None:
        missing("there is no groff on this machine")
    page = Path(__file__).parents[2] / "docs/reference/penstock.1"
    done = subprocess.run(
        [groff, "-man", "-Tutf8", "-ww", "-P-c", str(page)], capture_output=True, check=True
    )
    assert done.stderr == b""
    assert "penstock targets pause [OPTIONS] URL" in done.stdout.decode()


def test_the_document_of_the_api_is_printed_without_a_node(run: Run) -> None:
    found = json.loads(run("openapi").stdout)
    assert found["openapi"] == "3.1.0"
    assert {"/api/jobs", "/api/dispatch/process", "/api/router/messages"} <= found["paths"].keys()
