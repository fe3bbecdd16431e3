"""What a process is told: by the environment, by a file, by default; and what it is told about mistakes."""

import json
from pathlib import Path

import pytest

from penstock.config.keys import KEYS, masked
from penstock.config.settings import Value, load, look
from penstock.errors import InvalidConfig
from penstock.routing import endpoint_of

EXAMPLE = """\
store = "postgresql://user@host/db"
host = "127.0.0.1"
port = 7071
log_level = "info"
lanes_served = ["*"]
[http]
allow_networks = ["127.0.0.0/8"]
[standby]
enabled = false
[router]
processing_endpoint = ""
default_pool = "DISPATCH-POOL"
[sinks.billing-queue]
kind = "sqs"
url = "http://127.0.0.1:9324"
secret_FILE = "/run/secrets/billing"
[sinks.temporal]
kind = "temporal"
url = "127.0.0.1:7233"
namespace = "default"
[pools.web]
rate = "200/s"
[lanes.orders]
sink = "http"
"""


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    path = Path("penstock.toml")
    path.write_text(EXAMPLE)
    return path


def problems(path: Path, text: str) -> list[str]:
    path.write_text(text)
    with pytest.raises(InvalidConfig) as caught:
        load(None, {})
    return list(caught.value.problems)


def test_without_a_file_there_are_defaults(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)

    settings = load(None, {})

    assert settings.values == {name: Value(key.default, "default") for name, key in KEYS.items()}


def test_the_example_of_the_documentation_is_right(file: Path) -> None:
    settings = load(None, {})

    assert settings["store"] == "postgresql://user@host/db"
    assert settings["http.allow_networks"] == ("127.0.0.0/8",)
    assert settings["router.processing_endpoint"] is None
    assert settings.values["port"] == Value(7071, "penstock.toml:3")
    assert settings.sinks()["billing-queue"] == {
        "kind": "sqs",
        "url": "http://127.0.0.1:9324",
        "secret_FILE": "/run/secrets/billing",
    }


def test_a_file_is_given_or_named_by_a_variable_or_lies_here(file: Path) -> None:
    other, third = Path("other.toml"), Path("third.toml")
    other.write_text("port = 1")
    third.write_text("port = 2")
    variable = {"PENSTOCK_CONFIG": "other.toml"}

    assert [load(third, variable)["port"], load(None, variable)["port"], load(None, {})["port"]] == [
        2,
        1,
        7071,
    ]


def test_a_variable_wins_over_the_file(file: Path) -> None:
    settings = load(
        None,
        {
            "PENSTOCK_PORT": "8080",
            "PENSTOCK_LANES_SERVED": "pay, orders",
            "PENSTOCK_STANDBY__ENABLED": "true",
            "PENSTOCK_SINKS__BILLING_QUEUE__URL": "http://other",
            "PENSTOCK_SINKS__BILLING_QUEUE__TOKEN_FILE": "/run/x",
            "PENSTOCK_HOST": "",
            "PATH": "/bin",
        },
    )

    assert settings.values["port"] == Value(8080, "PENSTOCK_PORT")
    assert settings["lanes_served"] == ("pay", "orders")
    assert settings["standby.enabled"] is True
    assert settings["host"] == "127.0.0.1"
    assert settings.sinks()["billing-queue"]["url"] == "http://other"
    assert settings.sinks()["billing-queue"]["token_FILE"] == "/run/x"  # noqa: S105
    assert settings.warnings == []


def test_a_variable_nobody_knows_is_a_warning_with_a_hint(file: Path) -> None:
    settings = look(None, {"PENSTOCK_PROT": "1", "PENSTOCK_SINKS__NONE__URL": "x", "PENSTOCK_ZZZZZZ": "1"})

    assert settings.problems == []
    assert settings.warnings == [
        "PENSTOCK_PROT: there is no such key; did you mean PENSTOCK_PORT?",
        "PENSTOCK_SINKS__NONE__URL: no [sinks.none] is declared in a configuration file",
        "PENSTOCK_ZZZZZZ: there is no such key",
    ]


def test_what_only_commands_are_told_is_no_key_that_is_missing(file: Path) -> None:
    settings = look(
        None, {"PENSTOCK_URL": "http://node", "PENSTOCK_API_KEY": "pk_x", "PENSTOCK_CONFIG": str(file)}
    )

    assert (settings.problems, settings.warnings) == ([], [])


def test_every_mistake_is_named_at_once_with_its_line_and_a_hint(file: Path) -> None:
    found = problems(
        file,
        'stor = "x"\nport = "80"\nlog_level = "loud"\nlanes_served = "*"\nrouter = 1\n'
        "[standby]\nenabled = 1\nttl = 30\nrefrsh = '1s'\n"
        '[http]\nallow_networks = ["10.0.0.0/99"]\n'
        '[sinks.bad]\nurl = {a = 1}\n[sinks."a b"]\nkind = "http"\n[lane.x]\n[lanes]\nx = 1\n',
    )

    assert found == [
        "penstock.toml:1: stor: there is no such key; did you mean store?",
        "penstock.toml:2: port: '80' is not a port: write a whole number from 0 to 65535, 0 picks a free one",
        "penstock.toml:3: log_level: 'loud' is none of debug, info, warning, error",
        'penstock.toml:4: lanes_served: write a list of texts, like ["*"]',
        "penstock.toml:5: router: is a section: write [router]",
        "penstock.toml:7: standby.enabled: write true or false",
        "penstock.toml:8: standby.ttl: 30 is not a duration: write 5s, 250ms, 1m, 2h or 7d",
        "penstock.toml:9: standby.refrsh: there is no such key; did you mean refresh?",
        "penstock.toml:11: http.allow_networks: '10.0.0.0/99' does not appear to be an IPv4 or IPv6 network",
        'penstock.toml:12: sinks.bad: has no kind: write kind = "http", for example',
        "penstock.toml:13: sinks.bad.url: write a text, a number, true or false, or a list of texts",
        "penstock.toml:14: sinks.a b: 'a b' is not a sink: use 1 to 63 of A-Z a-z 0-9 _ . - and begin with a letter or digit",  # noqa: E501
        "penstock.toml:16: lane: there is no such key; did you mean lanes?",
        "penstock.toml:18: lanes.x: is a table: write [lanes.x] and its keys below it",
    ]


@pytest.mark.parametrize(
    "given",
    ["nonsense", "ftp://host/process", "http://host", "https://host:7070/", "http://u:hush@host/process",
     "http://host:99999/process", "http:///process", "http://[x/process", "http://host/process?x=1"],
)  # fmt: skip
def test_an_endpoint_that_no_message_could_be_brought_to_is_refused(given: str) -> None:
    settings = look(None, {"PENSTOCK_ROUTER__PROCESSING_ENDPOINT": given})

    advice = "is no address of an endpoint: write https://HOST:PORT/api/dispatch/process"
    assert settings.problems == [f"PENSTOCK_ROUTER__PROCESSING_ENDPOINT: {advice}"]


@pytest.mark.parametrize(
    "given",
    ["redis://127.0.0.1:abc/0", "redis://:pw#secret@host", "redis://[", "127.0.0.1:6379", "http://host", 7],
)
def test_what_is_no_redis_is_refused_without_a_word_of_it(file: Path, given: str | int) -> None:
    [problem] = problems(file, f"[standby]\nredis_url = {json.dumps(given)}\n")

    assert problem.startswith(
        "penstock.toml:2: standby.redis_url: is no address of a Redis: write redis://HOST"
    )
    assert not any(word in problem for word in ("secret", "pw", "abc"))


@pytest.mark.parametrize(
    "given",
    ["redis://host", "redis:///1", "rediss://u:p%23w@host:6380/2?protocol=3", "unix:///run/redis.sock"],
)
def test_every_way_to_a_redis_is_taken(given: str) -> None:
    assert load(None, {"PENSTOCK_STANDBY__REDIS_URL": given})["standby.redis_url"] == given


@pytest.mark.parametrize(
    ("variables", "endpoint"),
    [
        ({}, "http://127.0.0.1:7070/api/dispatch/process"),
        ({"PENSTOCK_HOST": "::1", "PENSTOCK_PORT": "80"}, "http://[::1]:80/api/dispatch/process"),
        ({"PENSTOCK_ROUTER__PROCESSING_ENDPOINT": "https://host/p"}, "https://host/p"),
    ],
)
def test_the_endpoint_of_a_router_is_that_of_a_node_with_its_settings(
    variables: dict[str, str], endpoint: str
) -> None:
    assert endpoint_of(look(None, variables)) == endpoint


@pytest.mark.parametrize(
    ("login", "names"), [("true", ("a.example", "penstock.internal")), ("false", ("a.example",))]
)
def test_a_process_goes_by_the_name_of_its_endpoint(login: str, names: tuple[str, ...]) -> None:
    """Else it would refuse what every router brings; without a login only this machine comes in."""
    endpoint = "https://penstock.internal:7070/api/dispatch/process"
    told = {"HOSTS": "a.example", "LOGIN": login, "ROUTER__PROCESSING_ENDPOINT": endpoint}
    settings = look(None, {f"PENSTOCK_{name}": text for name, text in told.items()})

    assert settings.hosts() == names


@pytest.mark.parametrize(
    ("key", "variable", "toml", "url"),
    [
        ("store", "PENSTOCK_STORE_FILE", 'store_FILE = "{}"', "postgresql://me:hush@host/db"),
        (
            "standby.redis_url",
            "PENSTOCK_STANDBY__REDIS_URL_FILE",
            '[standby]\nredis_url_FILE = "{}"',
            "redis://:hush@host/0",
        ),
    ],
)
def test_what_may_hold_a_password_is_read_from_a_file(
    file: Path, key: str, variable: str, toml: str, url: str
) -> None:
    Path("secret").write_text(f"{url}\n")
    Path("other").write_text(url.replace("host", "other"))
    file.write_text(toml.format("other"))

    by_file, by_variable = load(None, {}), load(None, {variable: "secret"})

    assert by_file[key] == url.replace("host", "other")
    assert by_file.values[key].source == f"penstock.toml:{toml.count(chr(10)) + 1}"
    assert by_variable.values[key] == Value(url, variable)
    assert by_file.changed(by_variable) == [key]
    assert "hush" not in str(masked(key, by_variable[key]))


def test_a_plain_variable_wins_over_a_file_that_the_configuration_names(file: Path) -> None:
    Path("secret").write_text("sqlite:///secret.db")
    file.write_text('store_FILE = "secret"')

    assert load(None, {"PENSTOCK_STORE": "sqlite:///plain.db"})["store"] == "sqlite:///plain.db"


def test_a_secret_that_cannot_be_had_or_is_given_twice_says_so_without_a_word_of_it(file: Path) -> None:
    Path("empty").write_text("\n")
    Path("bytes").write_bytes(b"hush\xff")
    Path("redis").write_text("redis://:hu#sh@host")
    told = "store = 'sqlite:///a.db'\nstore_FILE = 'gone'\n[standby]\nredis_url_FILE = "

    gone, twice, wrong = problems(file, f"{told}'redis'\n")
    assert gone == "penstock.toml:2: store_FILE: gone cannot be read: No such file or directory"
    assert twice == "penstock.toml:2: store_FILE: stands beside store: write one of them"
    assert wrong.startswith("penstock.toml:4: standby.redis_url_FILE: is no address of a Redis: write redis:")
    assert "sh@" not in wrong
    assert problems(file, "store_FILE = 'empty'") == [
        "penstock.toml:1: store_FILE: empty is empty: write the store into it"
    ]
    assert problems(file, "store_FILE = 7\n[standby]\nredis_url_FILE = 'bytes'") == [
        'penstock.toml:1: store_FILE: write the name of a file, like "/run/secrets/penstock"',
        "penstock.toml:3: standby.redis_url_FILE: bytes cannot be read: it is no UTF-8 text",
    ]
    assert problems(file, "store_file = 'x'") == [
        "penstock.toml:1: store_file: there is no such key; did you mean store_FILE or store?"
    ]
    file.write_text("")
    both = {"PENSTOCK_STORE": "sqlite:///a.db", "PENSTOCK_STORE_FILE": "redis"}
    assert look(None, both).problems == ["PENSTOCK_STORE_FILE: stands beside PENSTOCK_STORE: set one of them"]


def test_a_wrong_variable_is_named(file: Path) -> None:
    settings = look(None, {"PENSTOCK_PORT": "eighty", "PENSTOCK_STANDBY__ENABLED": "yes"})

    assert settings.problems == [
        "PENSTOCK_PORT: 'eighty' is not a port: write a whole number from 0 to 65535, 0 picks a free one",
        "PENSTOCK_STANDBY__ENABLED: write true or false",
    ]


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b"port = ", "penstock.toml: is not TOML: Invalid value (at end of document)"),
        (b"a = 1\nb = x\n", "penstock.toml: is not TOML: Invalid value (at line 2, column 5)"),
        (b"\xff", "penstock.toml: is not UTF-8 text (byte 0)"),
    ],
)
def test_a_file_that_cannot_be_read_says_why(file: Path, content: bytes, problem: str) -> None:
    file.write_bytes(content)

    assert look(None, {}).problems == [problem]


def test_a_file_that_is_not_there_says_so(tmp_path: Path) -> None:
    found = look(tmp_path / "none.toml", {}).problems

    assert found == [f"{tmp_path}/none.toml: cannot be read: No such file or directory"]


def test_secrets_are_not_shown() -> None:
    assert masked("sinks.a.password", "x") == "***"
    assert masked("sinks.a.api_key", "x") == "***"
    assert masked("sinks.a.password_FILE", "/run/x") == "/run/x"
    assert masked("standby.lock_key", "name") == "name"
    assert masked("store", "postgresql://me:secret@host/db") == "postgresql://me:***@host/db"
    assert masked("store", "postgresql://me@host/db") == "postgresql://me@host/db"
    assert masked("store", "postgresql://me:se#cr?et@host/db") == "postgresql://me:***@host/db"
    assert masked("sinks.a.urls", ("amqp://me:se/cret@a", "amqp://b")) == ("amqp://me:***@a", "amqp://b")
    assert masked("port", 1) == 1
