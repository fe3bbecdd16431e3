"""`--profile`: connections with a name, from a file of the person who uses them."""

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import click
import pytest
from click.shell_completion import BashComplete

from penstock import Client
from penstock.cli.main import main
from penstock.cli.options import Way
from penstock.config.profiles import Profile, find_profile, profile_names, profiles_file
from penstock.errors import InvalidConfig
from penstock.stores.connect import connect
from tests.api.node import Http, served
from tests.cli.conftest import Run
from tests.client.conftest import put_lane
from tests.security.conftest import make_key

CANARY = "pk_canary"
Write = Callable[[str], Path]


@pytest.fixture
def write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Write:
    """Return `write(toml)`: make that the file of profiles, and return its folder."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "xdg"))
    folder = tmp_path / "xdg" / "penstock"
    folder.mkdir(parents=True)

    def write(toml: str) -> Path:
        (folder / "config.toml").write_text(toml)
        return folder

    return write


@pytest.fixture
def far(tmp_path: Path) -> Iterator[Http]:
    """A node that wants a key, of a store with the lane `far`."""
    url = f"sqlite:///{tmp_path}/far.db"
    store = connect(url)
    store.migrate()
    put_lane(store, "far")
    with Client(store, actor="api") as client, served(client, login=True) as http:
        http.node.start()
        yield http


def lanes(run: Run, *arguments: str) -> str:
    return run("lanes", "list", *arguments).stdout.partition("\t")[0]


def key_of(far: Http, name: str = "ops") -> str:
    return make_key(far.node.client.store, name, "operator")["Authorization"].removeprefix("Bearer ")


def test_a_profile_leads_to_a_node_with_its_key(
    ready: Run, write: Write, far: Http, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PENSTOCK_API_KEY", CANARY)  # of another node
    folder = write(f'[profiles.prod]\nurl = "{far.node.url}"\napi_key_FILE = "prod.key"\n')
    (folder / "prod.key").write_text(f"{key_of(far)}\n")

    assert lanes(ready, "--profile", "prod") == "far"
    assert ready("top", "--once", "--profile", "prod").stdout.startswith("far\t")
    monkeypatch.setenv("PENSTOCK_PROFILE", "prod")
    assert lanes(ready) == "far"


def test_who_shows_the_wrong_key_is_told_where_it_comes_from(ready: Run, write: Write, far: Http) -> None:
    write(f'[profiles.prod]\nurl = "{far.node.url}"\napi_key = "{CANARY}"\n')

    for command, said in (
        (["lanes", "list"], "or their profile"),
        (["top", "--once"], "the key of your profile"),
    ):
        refused = ready(*command, "--profile", "prod", code=1)
        assert (said in refused.stderr, CANARY in refused.output) == (True, False)


def test_a_profile_without_a_key_uses_that_of_the_environment(
    ready: Run, write: Write, far: Http, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(f'[profiles.prod]\nurl = "{far.node.url}"\n')
    ready("lanes", "list", "--profile", "prod", code=1)
    monkeypatch.setenv("PENSTOCK_API_KEY", key_of(far))

    assert lanes(ready, "--profile", "prod") == "far"


def test_the_key_of_a_profile_goes_to_its_own_node_alone(
    ready: Run, write: Write, far: Http, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(f'[profiles.prod]\nurl = "https://penstock.example"\napi_key = "{key_of(far)}"\n')
    monkeypatch.setenv("PENSTOCK_PROFILE", "prod")

    assert "wants to know who is asking" in ready("lanes", "list", "--url", far.node.url, code=1).stderr
    assert "one of them" in ready("jobs", "list", "--profile", "prod", "--url", far.node.url, code=2).stderr


def test_flag_before_environment_before_profile_before_file(
    ready: Run, write: Write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("flag", "env", "profile", "file", "held"):
        store = connect(f"sqlite:///{tmp_path}/{name}.db")
        store.migrate()
        put_lane(store, name)
        store.close()
    (tmp_path / "penstock.toml").write_text(f'store = "sqlite:///{tmp_path}/file.db"\n')
    write(f'[profiles.mine]\nstore = "sqlite:///{tmp_path}/profile.db"\n')
    flag = ("--store", f"sqlite:///{tmp_path}/flag.db")

    assert lanes(ready) == "file"
    monkeypatch.setenv("PENSTOCK_PROFILE", "mine")
    assert lanes(ready) == "profile"
    (tmp_path / "held").write_text(f"sqlite:///{tmp_path}/held.db")
    monkeypatch.setenv("PENSTOCK_STORE_FILE", str(tmp_path / "held"))
    assert lanes(ready) == "held"
    monkeypatch.delenv("PENSTOCK_STORE_FILE")
    monkeypatch.setenv("PENSTOCK_STORE", f"sqlite:///{tmp_path}/env.db")
    assert lanes(ready) == "env"
    assert lanes(ready, "--profile", "mine") == "profile"
    assert lanes(ready, *flag) == "flag"
    monkeypatch.setenv("PENSTOCK_URL", "http://127.0.0.1:1")
    assert lanes(ready, *flag) == "flag"
    assert lanes(ready, "--profile", "mine") == "profile"
    ready("lanes", "list", code=4)


def test_what_works_on_a_database_takes_a_profile_of_one(run: Run, write: Write, tmp_path: Path) -> None:
    write(
        f'[profiles.db]\nstore = "sqlite:///{tmp_path}/db.db"\n'
        f'[profiles.far]\nurl = "https://penstock.example"\napi_key = "{CANARY}"\n'
    )
    run("migrate", "--profile", "db")
    run("access", "create", "ci", "--role", "viewer", "--profile", "db")

    assert run("access", "list", "--profile", "db").stdout.startswith("ci\t")
    assert "the tables of this version are there" in run("doctor", "--profile", "db").stdout
    for command in (["access", "list"], ["migrate"], ["doctor"]):
        refused = run(*command, "--profile", "far", code=2)
        assert "works on the database itself, not through the profile far" in refused.stderr
        assert "without --profile and PENSTOCK_PROFILE" in refused.stderr
        assert CANARY not in refused.output


@pytest.mark.parametrize(
    ("toml", "said"),
    [
        ("[profiles.local]\n[profiles.test]\n", 'there is no profile "prod": there are local, test'),
        ("", 'there is no profile "prod": write [profiles.prod] into it'),
        ("profiles = 7\n", 'there is no profile "prod"'),
        ("[profiles.prod]\n", "config.toml:1: profiles.prod: write url"),
        (
            '[profiles.prod]\nurl = "https://a"\nstore = "sqlite:///b"\n',
            "config.toml:1: profiles.prod: write url",
        ),
        ('profiles.prod = "a"\n', "config.toml:1: profiles.prod: is a table: write [profiles.prod]"),
        ('[profiles]\nx = "a"\n', 'there is no profile "prod": write [profiles.prod] into it'),
        ('[profiles."\\u001b[2J"]\n[profiles.b]\n', 'there is no profile "prod": there are b'),
        ('[profiles.prod]\nurl = "ftp://a"\n', "config.toml:1: profiles.prod.url: write http://HOST:7070"),
        ('[profiles.prod]\nurl = "https://a?b=1"\n', "config.toml:1: profiles.prod.url: write http://HOST"),
        ('[profiles.prod]\nurl = "https://a:x"\n', "config.toml:1: profiles.prod.url: write http://HOST"),
        (
            '[profiles.prod]\nurl = "https://a"\napi_key = "pk_canary\\u0007"\n',
            "config.toml:3: profiles.prod.api_key: has characters that no key has",
        ),
        (
            '[profiles.prod]\nurl = "https://pk_canary@a"\n',
            "config.toml:2: profiles.prod.url: write",
        ),
        ('[profiles.prod]\nstore = "mysql://u:pk_canary@h/d"\n', '"mysql:" is no store'),
        ('[profiles.prod]\nurll = "https://a"\n', "did you mean url?"),
        (
            '[profiles.prod]\nurl = "https://a"\napi_key = 5\n',
            "config.toml:3: profiles.prod.api_key: write",
        ),
        ('[profiles.prod]\nstore = "sqlite:///b"\napi_key = "pk_canary"\n', "a database asks for no key"),
        (
            '[profiles.prod]\nurl = "https://a"\napi_key = "pk_canary"\napi_key_FILE = "k"\n',
            "config.toml:4: profiles.prod.api_key_FILE: stands beside",
        ),
        ('[profiles.prod]\nurl = "https://a"\napi_key_FILE = "gone"\n', "gone cannot be read: No such file"),
        ('[profiles.prod]\nurl = "https://a"\napi_key_FILE = "~nobody17/k"\n', "write the whole path"),
        ("[profiles.prod\n", "is not TOML"),
    ],
)
def test_what_is_wrong_with_a_profile_is_said_without_its_secrets(
    ready: Run, write: Write, toml: str, said: str
) -> None:
    write(toml)
    refused = ready("jobs", "list", "--profile", "prod", code=2)

    assert said in refused.stderr
    assert CANARY not in refused.output


def test_a_name_is_not_printed_as_it_is(ready: Run, write: Write) -> None:
    write("[profiles.prod]\n")
    refused = ready("jobs", "list", "--profile", "a\x1b[2J", code=2)

    assert r"'a\x1b[2J' is no name of a profile" in refused.stderr
    assert "\x1b" not in refused.output


def test_two_places_at_once_are_refused(ready: Run, tmp_path: Path) -> None:
    both = ("--url", "http://127.0.0.1:1", "--store", f"sqlite:///{tmp_path}/penstock.db")
    for command in (["lanes", "list"], ["top", "--once"]):
        assert "say one of them" in ready(*command, *both, code=2).stderr


def test_without_a_file_it_is_said_what_to_write(ready: Run, write: Write) -> None:
    refused = ready("jobs", "list", "--profile", "prod", code=2)

    assert "penstock/config.toml: there is no such file" in refused.stderr
    assert "write [profiles.prod] into it" in refused.stderr


def test_a_file_that_cannot_be_looked_for_is_said_to_be(
    ready: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / ("x" * 300)))
    refused = ready("jobs", "list", "--profile", "prod", code=2)

    assert "penstock/config.toml: cannot be read: File name too long" in refused.stderr


def test_a_mistake_in_another_profile_is_in_nobodys_way(ready: Run, write: Write, tmp_path: Path) -> None:
    write(f'[profiles.bad]\nurll = 1\n[profiles.good]\nstore = "sqlite:///{tmp_path}/penstock.db"\n')

    assert lanes(ready, "--profile", "good") == "hello"


def test_those_of_the_docs_can_be_read(write: Write) -> None:
    page = (Path(__file__).parents[2] / "docs/howto/use-profiles.md").read_text()
    folder = write(page.partition("```toml\n")[2].partition("```")[0])
    (folder / "prod.key").write_text(CANARY)

    assert [(name, find_profile(name, os.environ).key) for name in profile_names(os.environ)] == [
        ("laptop", None),
        ("prod", CANARY),
        ("reports", None),
    ]


def test_the_file_is_where_xdg_says() -> None:
    assert profiles_file({"HOME": "/h"}) == Path("/h/.config/penstock/config.toml")
    assert profiles_file({"HOME": "/h", "XDG_CONFIG_HOME": "/x"}) == Path("/x/penstock/config.toml")
    assert profiles_file({"HOME": "/h", "XDG_CONFIG_HOME": "x"}) == Path("/h/.config/penstock/config.toml")


def test_without_a_home_folder_it_is_said_what_to_set(monkeypatch: pytest.MonkeyPatch) -> None:
    def homeless() -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.setattr(Path, "home", homeless)

    with pytest.raises(InvalidConfig, match="set XDG_CONFIG_HOME"):
        profiles_file({})
    assert profile_names({}) == []


def test_a_shell_completes_the_names(write: Write) -> None:
    write("[profiles.prod]\n[profiles.preview]\n[profiles.laptop]\n")
    assert isinstance(main, click.Command)
    shell = BashComplete(main, {}, "penstock", "_PENSTOCK_COMPLETE")

    found = shell.get_completions(["jobs", "list", "--profile"], "pr")

    assert [item.value for item in found] == ["preview", "prod"]
    assert profile_names(os.environ) == ["laptop", "preview", "prod"]


def test_no_log_shows_what_leads_there() -> None:
    assert CANARY not in f"{Way(CANARY, CANARY)!r} {Profile('x', CANARY, CANARY, CANARY)!r}"
