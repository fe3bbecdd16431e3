"""The commands of every page: those that end are run as they are printed, of the others the words are read.

The README, the tutorial, some pages of how-to and those of sinks have tests of their own.
"""

import re
import shlex
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from penstock import Client
from penstock.cli.main import main
from penstock.domain.lanes import lane
from penstock.domain.outcomes import Dead
from penstock.domain.states import Reason
from penstock.ports.store import Ask
from penstock.stores.connect import connect
from tests.api.node import served
from tests.docs.test_shell import PAGES as IN_A_SHELL

ROOT = Path(__file__).parents[2]
SHELL = re.compile(r"^```sh\n(.*?)^```", re.MULTILINE | re.DOTALL)
ELSEWHERE = {"README.md", "docs/tutorial/ten-minutes.md", *(f"docs/howto/{name}" for name in IN_A_SHELL)}
# They run until they are stopped, or for long; make, pip and export are not ours.
ONLY_READ = ("serve", "router", "listen", "sim")
OTHERS = ("make", "pip", "export", "curl")
URL = "sqlite:///penstock.db"
Run = Callable[[str], str]


def pages() -> dict[str, list[str]]:
    """Return the commands of each page, those that go on in a second line as one."""
    found = {}
    for page in sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]):
        name = str(page.relative_to(ROOT))
        lines = "".join(SHELL.findall(page.read_text(encoding="utf-8"))).replace("\\\n", " ").splitlines()
        if lines and name not in ELSEWHERE and "/sinks/" not in name and name != "CONTRIBUTING.md":
            found[name] = [line for line in lines if line.strip()]
    return found


def read(words: list[str]) -> None:
    """Have the command line read a command without running it."""
    command: click.Command = main
    context = None
    while isinstance(command, click.Group):
        context = click.Context(command, parent=context)
        _, found, words = command.resolve_command(context, words)
        assert found is not None
        command = found
    with command.make_context(command.name, words, parent=context):
        pass


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a store in which a dead job blocks group A-1 of lane orders."""
    file = tmp_path_factory.mktemp("made") / "penstock.db"
    store = connect(f"sqlite:///{file}")
    store.migrate()
    store.put_lane(lane("orders", mode="block_on_error"), actor="test")
    with Client(store) as client:
        client.enqueue_many([{"lane": "orders", "payload": n, "group": "A-1"} for n in range(2)])
        claim = store.claim_groups(Ask(lane="orders", node=store.register_node("test")))
        assert claim is not None
        store.settle(claim, {each.job.arrival: Dead(Reason.EXHAUSTED, "500") for each in claim.jobs})
    return file


@pytest.fixture
def run(made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Return `run("penstock jobs list")`, on a copy of the store of its own; it gives what was printed."""
    monkeypatch.chdir(tmp_path)
    for variable in ("PENSTOCK_STORE", "PENSTOCK_CONFIG", "PENSTOCK_URL"):
        monkeypatch.delenv(variable, raising=False)

    def run(line: str) -> str:
        shutil.copy(made, "penstock.db")
        with Client(URL) as client:
            [blocker] = client.list(state="dead").jobs
        words = shlex.split(line.replace(" ID", f" {blocker.id}"), comments=True)[1:]
        if ">" in words:
            words = words[: words.index(">")]
        if words[0] in ONLY_READ:
            read(words)
            return ""
        result = CliRunner().invoke(main, words)
        if "say --yes" in result.output:  # somebody at a terminal is asked
            result = CliRunner().invoke(main, [*words, "--yes"])
        assert result.exit_code == 0, (line, result.output)
        return result.stdout

    return run


@pytest.mark.parametrize("page", pages())
def test_the_commands_of_a_page(page: str, run: Run, postgres_url_if: Callable[[str], str]) -> None:
    for line in pages()[page]:
        if not line.startswith(OTHERS):
            run(line.replace("postgresql://user@host/db", postgres_url_if(line)))


@pytest.fixture
def postgres_url_if(request: pytest.FixtureRequest) -> Callable[[str], str]:
    """Return the URL of an empty database where a command names one."""
    return lambda line: request.getfixturevalue("pg18_dsn") if "postgresql://" in line else ""


def test_a_command_that_is_only_read_must_be_one() -> None:
    with pytest.raises(click.NoSuchOption):
        read(["serve", "--prot", "1"])


def test_the_request_of_the_api_page(made: Path, tmp_path: Path) -> None:
    shutil.copy(made, tmp_path / "penstock.db")
    # The second one needs the token of a message: tests/delivery/test_processing.py has some.
    enqueue, _ = [line for line in pages()["docs/reference/api.md"] if line.startswith("curl")]
    with Client(f"sqlite:///{tmp_path}/penstock.db") as client, served(client) as http:
        http.node.start()
        words = shlex.split(enqueue.replace("http://127.0.0.1:7070", http.node.url))
        done = subprocess.run([*words, "-s"], check=True, capture_output=True, text=True)

    assert '"group":"customer-4"' in done.stdout
