"""`penstock top`: from a node, or straight from the store."""

import json
from collections.abc import Iterator
from datetime import timedelta
from io import StringIO
from pathlib import Path
from shutil import copyfile

import pytest
from rich.console import Console

from penstock import Client
from penstock.api.stats import MOST_LANES
from penstock.cli.ask import NodeUnreachable, ask
from penstock.cli.figures import HEAD, rows, span
from penstock.cli.screen import screen
from penstock.cli.top import FromStore
from penstock.domain.lanes import lane
from penstock.ports.events import Called, LeaderChanged, NodeStarted, SinkFailed
from penstock.ports.store import Ask
from tests.api.node import Http, served
from tests.cli.conftest import Run

STORE = "sqlite:///penstock.db"


@pytest.fixture
def http(ready: Run, tmp_path: Path) -> Iterator[Http]:
    """Return a node on the store of this folder."""
    with Client(STORE) as client, served(client) as http:
        http.node.emit(NodeStarted(node=7, name="host:1", store=STORE))
        http.node.emit(LeaderChanged(node=7, term=1, leads=True))
        yield http


def drawn(figures: dict[str, object], problem: str = "") -> str:
    console = Console(width=80, record=True, file=StringIO())
    console.print(screen(figures, problem=problem))
    return console.export_text()


def test_without_a_node_the_store_is_asked(ready: Run, tmp_path: Path) -> None:
    (tmp_path / "penstock.toml").write_text("port = 1\n")
    ready("enqueue", "hello", "1", "--at", "+1h")
    ready("enqueue", "hello", "1")
    shown = ready("top")

    assert shown.stdout.split("\t")[:6] == ["hello", "2", "1", "0", "0", "0"]
    assert "no node on http://127.0.0.1:1 serves this store" in shown.stderr


def test_a_node_is_asked_by_its_address(http: Http, ready: Run) -> None:
    http.node.emit(Called(lane="hello", sink="console", jobs=3, outcomes={"accepted": 3}, took=0.1, lag=0.02))
    figures = json.loads(ready("top", "--url", http.node.url, "--json").stdout)

    assert figures["node"]["id"] == 7
    assert figures["lanes"][0]["lag_p99_ms"] == pytest.approx(20, rel=0.25)
    assert ready("top", "--url", http.node.url, "--once").stdout.startswith("hello\t")


def test_a_node_on_this_machine_is_found_if_it_serves_the_same_store(
    http: Http, ready: Run, tmp_path: Path
) -> None:
    (tmp_path / "penstock.toml").write_text(f"port = {http.node.url.rsplit(':', 1)[1]}\n")
    node = http.node.client.store.register_node("host:1")
    http.node.emit(NodeStarted(node=node, name="host:1", store=STORE))

    assert json.loads(ready("top", "--json").stdout)["node"]["id"] == node

    (tmp_path / "other.db").write_bytes((tmp_path / "penstock.db").read_bytes())
    elsewhere = json.loads(ready("top", "--json", "--store", "sqlite:///other.db").stdout)
    assert elsewhere["node"] == {"store": "sqlite:///other.db"}


def test_a_node_of_another_folder_is_not_asked(
    http: Http, ready: Run, made_by_dev: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both stores are sqlite:///penstock.db, each in its own folder."""
    node = http.node.client.store.register_node("host:1")
    http.node.emit(NodeStarted(node=node, name="host:1", store=STORE))
    (tmp_path / "mine").mkdir()
    copyfile(made_by_dev, tmp_path / "mine" / "penstock.db")
    monkeypatch.chdir(tmp_path / "mine")
    monkeypatch.setenv("PENSTOCK_PORT", http.node.url.rsplit(":", 1)[1])
    ready("lanes", "set", "mine", "--create")
    shown = ready("top", "--once")

    assert "mine\t" in shown.stdout
    assert "serves this store" in shown.stderr


@pytest.mark.parametrize(
    ("url", "words", "code"),
    [
        ("http://127.0.0.1:1", "Connection refused): start one with penstock serve or penstock dev", 4),
        ("ftp://127.0.0.1", "write http://HOST:7070", 2),
        ("nonsense", "write http://HOST:7070", 2),
        ("http://[", "write http://HOST:7070", 2),
        ("http://127.0.0.1:7070/api/", "write it without /api", 2),
        ("http://127.0.0.1:99999999", "no node answers", 4),
    ],
)
def test_a_node_that_does_not_answer_is_unreachable(run: Run, url: str, words: str, code: int) -> None:
    assert words in run("top", "--url", url, code=code).stderr


def test_a_node_that_refuses_is_no_node_that_is_away(ready: Run) -> None:
    with Client(STORE) as client, served(client, login=True) as locked:
        assert "set PENSTOCK_API_KEY" in ready("top", "--url", locked.node.url, code=1).stderr
        assert (
            "commands take it from PENSTOCK_API_KEY"
            in ready("jobs", "list", "--url", locked.node.url, code=1).stderr
        )


def test_what_answers_but_is_no_node_is_unreachable(http: Http) -> None:
    with pytest.raises(NodeUnreachable, match="it answered 404"):
        ask(http.node.url, "/nowhere")
    with pytest.raises(NodeUnreachable, match="what answers there is no Penstock node"):
        ask(http.node.url, "/")
    assert ask(f"{http.node.url}/health/", "/live")  # an address below a path, as proxies have them


def test_the_screen_shows_who_answers_the_lanes_and_the_trouble(http: Http) -> None:
    client = http.node.client
    http.node.emit(SinkFailed(sink="billing", error="no such queue", pause=timedelta(seconds=5)))
    job = http.post("/api/jobs", {"lane": "hello"}).json()["id"]
    client.store.claim(Ask(lane="hello", node=client.store.register_node("test")))
    client.report(job, 1, "failed", retryable=False)
    client.store.pause_store(paused=True, actor="ann", reason="maintenance")
    client.store.pause_lane("hello", paused=True, actor="ann", reason="look [bold]")

    text = drawn(http.get("/api/stats").json())

    assert "node 7 host:1  ·  store sqlite:///penstock.db  ·  up " in text
    assert "no leader" in text.replace("\n", "")
    for name in HEAD[:-1]:
        assert name in text
    assert "hello is paused by ann: look [bold]" in text
    assert "everything is paused by ann: maintenance" in text
    assert "sink billing: cannot be opened: no such queue" in text
    assert "no answer" in drawn(http.get("/api/stats").json(), problem="no answer for 5 s")


def test_lanes_that_are_left_out_are_said_to_be(http: Http, ready: Run) -> None:
    figures = http.get("/api/stats").json()
    assert "more" not in drawn(figures)
    assert "and 1,234 lanes more: penstock lanes list" in drawn(figures | {"more_lanes": 1234})

    with Client(STORE) as client:
        for number in range(MOST_LANES):
            client.store.put_lane(lane(f"idle-{number:03}"), actor="test")
    assert "and 1 lane more: penstock lanes list" in ready("top", "--once").stderr


def test_rates_from_the_store_are_what_succeeded_between_two_looks(ready: Run) -> None:
    ready("enqueue", "hello", "1")
    with Client(STORE) as client:
        look = FromStore(client, STORE)
        assert look()["lanes"][0]["sent_per_s"] == 0

        claim = client.store.claim(Ask(lane="hello", node=client.store.register_node("test")))
        assert claim is not None
        client.store.settle(claim)
        assert look()["lanes"][0]["sent_per_s"] > 0
        assert "store sqlite:///penstock.db" in drawn(dict(look()))


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0.0123, "12 ms"), (1.4, "1.4 s"), (119, "119 s"), (600, "10 min"), (7200, "2 h"), (864_000, "10 d")],
)
def test_spans_are_short(seconds: float, text: str) -> None:
    assert span(seconds) == text


def test_a_row_says_some_when_it_was_not_counted() -> None:
    lane = {
        "lane": "a\x1b[2J", "pending": 1200, "due": None, "due_capped": False, "claimed": 1, "dispatched": 2,
        "running": 3, "held": 0, "dead": 0, "sent_per_s": 0.04, "lag_p99_ms": None, "oldest_due_s": 0.0,
        "stopped": None,
    }  # fmt: skip
    assert rows({"lanes": [lane, lane | {"due": 20, "due_capped": True}]}) == [
        ("a\\x1b[2J", "1,200", "some", "6", "0", "0", "0.0", "-", "-", ""),
        ("a\\x1b[2J", "1,200", "20+", "6", "0", "0", "0.0", "-", "-", ""),
    ]
