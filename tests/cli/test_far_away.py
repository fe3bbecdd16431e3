"""Commands say the same of a node far away (`--url`) as of its database."""

import json
import shlex
import threading
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import count
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from click.testing import CliRunner, Result

from penstock import Client
from penstock.cli.main import main
from penstock.domain.lanes import lane
from penstock.domain.outcomes import Dead
from penstock.domain.pools import pool
from penstock.domain.states import Verb
from penstock.ports.store import Ask, Store
from penstock.stores.connect import connect
from tests.api.node import served
from tests.security.conftest import make_key

NUMBERS = count()
LOOKS = [
    "jobs list",
    'jobs list "state:dead error:gone"',
    "jobs list --due",
    "jobs show DEAD",
    "jobs timeline DEAD",
    "jobs watch DEAD",
    "groups list",
    "groups blocked",
    "lanes list",
    "lanes show orders",
    "pools list",
    "pools show web",
    "dead list",
    "dead show CAUSE",
    "history",
    "audit",
    "audit --lane orders",
    "operations list",
    "targets list",
    'replay "error:gone" --reason fixed --dry-run',
    'bulk skip "state:dead" --reason old --dry-run',
]


class Place(NamedTuple):
    """One store, and the two ways to it."""

    store: str
    url: str
    words: Mapping[str, str]

    def json(self, line: str, *, far: bool) -> Any:  # noqa: ANN401
        for word, own in self.words.items():
            line = line.replace(word, own)
        where = ["--url", self.url] if far else ["--store", self.store]
        result = CliRunner().invoke(main, [*shlex.split(line), "--json", *where])
        assert result.exit_code == 0, result.output
        return [json.loads(each) for each in result.stdout.splitlines()]


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    """A store with a dead job, one that waits for it, a pool, and an operation that has not begun."""
    url = f"sqlite:///{tmp_path_factory.mktemp('far')}/penstock.db"
    store = connect(url)
    store.migrate()
    store.put_pool(pool("web", rate="5/s"), actor="ann")
    store.put_lane(lane("orders", mode="block_on_error", pool="web"), actor="ann")
    store.put_pool(pool("stops"), actor="ann")
    store.put_lane(lane("stops"), actor="ann")
    with Client(store, actor="api") as client:
        ids = [client.enqueue("orders", {"n": n}, group="acme", key=f"k{n}").id for n in range(2)]
        claim = store.claim_groups(Ask(lane="orders", node=1))
        assert claim is not None
        store.settle(claim, {claim.jobs[0].job.arrival: Dead("permanent", "gone 17")})
        store.pause_lane("orders", paused=True, actor="ann", reason="lunch")
        client.start("skip", "error:nothing-like-it", reason="a test")
        with served(client) as http:
            http.node.start()
            cause = Place(url, "", {}).json("dead list", far=False)[0]["causes"][0]["fingerprint"]
            yield Place(url, http.node.url, {"DEAD": ids[0], "CAUSE": cause})


@pytest.mark.parametrize("line", LOOKS)
def test_a_look_shows_the_same_from_afar(place: Place, line: str) -> None:
    assert place.json(line, far=True) == place.json(line, far=False)


@pytest.mark.parametrize("line", ["jobs list", "history", "dead list", "jobs export"])
def test_a_lane_that_nobody_made_is_named_from_afar_too(place: Place, line: str) -> None:
    where = ["--store", place.store], ["--url", place.url]
    here, far = (CliRunner().invoke(main, [*shlex.split(line), "lane:ordres", *way]) for way in where)

    assert (far.exit_code, far.stdout, far.stderr) == (here.exit_code, here.stdout, here.stderr)
    assert (here.exit_code, "did you mean orders" in here.stderr) == (0, True)


def test_what_is_done_from_afar_is_done(place: Place) -> None:
    [made] = place.json("enqueue orders 1 --group far --at +1h", far=True)
    [held] = place.json(f"jobs hold {made['id']} --reason wait", far=True)
    assert held["results"][0]["state"] == "held"
    [shown] = place.json(f"jobs show {made['id']}", far=False)
    assert (shown["state"], shown["group"]) == ("held", "far")
    place.json("lanes set orders batch_size=7", far=True)
    [orders] = place.json("lanes show orders", far=False)
    assert orders["settings"]["batch_size"] == 7


@pytest.fixture
def allowed(place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., Result]]:
    """Return `allowed("enqueue", "jobs list")`: a command with a key of one scope, which the node wants."""
    with Client(connect(place.store), actor="api") as client, served(client, login=True) as http:

        def run(scope: str, line: str, tenant: str | None = None) -> Result:
            name = f"{tmp_path.name}-{scope}-{next(NUMBERS)}"
            key = make_key(client.store, name, scope, tenant=tenant)["Authorization"].removeprefix("Bearer ")
            monkeypatch.setenv("PENSTOCK_API_KEY", key)
            return CliRunner().invoke(main, [*shlex.split(line), "--url", http.node.url])

        yield run


@pytest.mark.parametrize("form", ["", " --json"])
def test_whoever_may_not_see_the_job_he_waits_for_learns_that_it_is_in(
    allowed: Callable[..., Result], place: Place, form: str
) -> None:
    waited = allowed("enqueue", f"enqueue orders 1 --at +1h --wait{form}")

    job = json.loads(waited.stdout)["id"] if form else waited.stdout.strip()
    assert waited.exit_code == 1
    assert f"the job is in: {job}" in waited.stderr
    assert "it needs the scope read" in waited.stderr
    assert place.json(f"jobs show {job}", far=False)[0]["state"] == "pending"


@contextmanager
def leading(store: Store) -> Iterator[None]:
    """Carry out what begins to hold jobs, as a node that leads does."""
    over = threading.Event()

    def work() -> None:
        while not over.wait(0.01):
            for operation in store.open_operations():
                if operation.verb == Verb.HOLD:
                    step = (
                        store.collect_operation if operation.state == "collecting" else store.work_operation
                    )
                    step(operation.id)

    with ThreadPoolExecutor(1) as thread:
        working = thread.submit(work)
        try:
            yield
        finally:
            over.set()
            working.result(10)


def test_what_a_tenants_key_does_is_done(allowed: Callable[..., Result], place: Place) -> None:
    """Who leads, whether a node is there, how much is in a lane: no tenant is told, and nothing fails."""
    waited = allowed("operator", "enqueue orders 1 --at +1h --wait --timeout 1ms", tenant="acme")
    assert "still pending" in waited.stderr
    assert "not known here" not in waited.stderr
    with closing(connect(place.store)) as store, leading(store):
        held = allowed("operator", "bulk hold tenant:acme --reason wait --yes", tenant="acme")

    assert (held.exit_code, "done: 1 of 1" in held.stderr) == (0, True), held.output
    lanes = allowed("operator", "lanes list", tenant="acme")
    assert (lanes.exit_code, "orders" in lanes.stdout) == (0, True), lanes.output
    assert "not told to this key" in lanes.stderr
    for line in ("lanes show orders", "pools show web"):
        shown = allowed("operator", line, tenant="acme")
        assert (shown.exit_code, "max_in_flight" in shown.stdout) == (0, True), shown.output
        assert "not told to this key" in shown.stderr
        assert "database" not in shown.stdout
        assert "default" in shown.stdout
        assert "changed" not in json.loads(allowed("operator", f"{line} --json", tenant="acme").stdout)


def test_who_waits_is_shown_a_page_that_he_may_see(allowed: Callable[..., Result], place: Place) -> None:
    """The pages are for nobody who is bound to a tenant."""
    again = "enqueue orders 1 --key page --at 2099-01-01T00:00:00Z"
    job = allowed("operator", again, tenant="acme").stdout.strip()
    place.json(f"jobs cancel {job} --reason over --yes", far=False)
    own, ours = (allowed("operator", f"{again} --wait", tenant=tenant) for tenant in ("acme", None))

    assert f"See: penstock jobs timeline {job}\n" in own.stderr
    assert f"See: penstock jobs timeline {job}, or http://127.0.0.1:" in ours.stderr


@pytest.mark.parametrize(
    ("pause", "resume", "goes_on"),
    [
        ("lanes pause stops", "lanes resume stops", 'lane "stops" goes on'),
        ("pools pause stops", "pools resume stops", 'pool "stops" goes on'),
        ("pause-all", "resume-all", "all lanes go on"),
        ("targets pause http://a.example", "targets resume http://a.example", "http://a.example goes on"),
    ],
)
def test_who_may_stop_may_let_go(
    allowed: Callable[..., Result], place: Place, pause: str, resume: str, goes_on: str
) -> None:
    paused = allowed("operate", f"{pause} --reason lunch")
    assert paused.exit_code == 0, paused.output
    resumed = allowed("operate", resume)
    assert (resumed.exit_code, goes_on in resumed.stderr) == (0, True), resumed.output
    known = CliRunner().invoke(main, [*shlex.split(resume), "--store", place.store])
    assert "was not paused" in known.stderr


def test_a_group_is_stopped_and_let_go_by_who_may_do_nothing_else(
    allowed: Callable[..., Result], place: Place
) -> None:
    assert allowed("operate", "groups pause orders quiet --reason lunch").exit_code == 0
    [listed] = place.json("groups list", far=False)
    assert ("quiet", "paused") in [(group["group"], group["state"]) for group in listed["groups"]]
    assert allowed("operate", "groups resume orders quiet").exit_code == 0


@pytest.mark.parametrize("line", ["lanes pause orders", "pools pause web", "groups pause orders quiet"])
def test_who_may_not_stop_is_told_what_it_takes(allowed: Callable[..., Result], line: str) -> None:
    refused = allowed("enqueue", f"{line} --reason lunch")

    assert (refused.exit_code, "it needs the scope operate" in refused.stderr) == (1, True), refused.output


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("lanes pause ordres", 'no lane "ordres"'),
        ("pools pause wbe", 'no pool "wbe"'),
        ("groups pause ordres quiet", 'unknown lane "ordres"; did you mean orders?'),
    ],
)
def test_who_stops_what_is_not_there_learns_it(allowed: Callable[..., Result], line: str, said: str) -> None:
    missing = allowed("operate", f"{line} --reason lunch")

    assert (missing.exit_code, said in missing.stderr) == (3, True), missing.output


def test_jobs_are_not_exported_to_be_enqueued_without_what_they_carry(
    allowed: Callable[..., Result],
) -> None:
    exported = allowed("read", "jobs export --enqueueable")

    assert (exported.exit_code, exported.stdout) == (1, "")
    assert "--enqueueable needs the scope payload" in exported.stderr


def test_a_node_that_does_not_answer_is_unreachable() -> None:
    result = CliRunner().invoke(main, ["jobs", "list", "--url", "http://127.0.0.1:1"])

    assert result.exit_code == 4
    assert "127.0.0.1:1" in result.stderr


@pytest.mark.parametrize("line", ["jobs list", "top --once"])
def test_what_cannot_be_a_key_is_refused_and_not_shown(line: str) -> None:
    shell = CliRunner(env={"PENSTOCK_API_KEY": "pk_x\npk_y"})
    result = shell.invoke(main, [*line.split(), "--url", "http://127.0.0.1:1"])

    assert isinstance(result.exception, SystemExit)
    assert "api_key: has characters that no key has" in result.stderr
    assert "pk_x" not in result.stderr


HERE_ONLY = [
    "access create ci --scope read",
    "access list",
    "access revoke ci --reason old --yes",
    "users add ann --role viewer --password-stdin",
    "users set ann --role viewer",
    "users password ann --password-stdin",
    "users list",
    "users remove ann --reason gone --yes",
    "keys list",
    "keys rotate token --reason old --yes",
    "keys show token",
    "doctor",
]


@pytest.mark.parametrize("line", HERE_ONLY)
def test_what_needs_the_database_says_so(line: str, monkeypatch: pytest.MonkeyPatch) -> None:
    far = "https://penstock.example"
    by_option = CliRunner().invoke(main, [*shlex.split(line), "--store", "sqlite:///gone.db", "--url", far])
    monkeypatch.setenv("PENSTOCK_URL", far)
    by_environment = CliRunner().invoke(main, shlex.split(line))

    name = " ".join(line.split()[:2])
    for result in (by_option, by_environment):
        assert result.exit_code == 2
        assert f"{name} works on the database itself, not through {far}: run it where the" in result.stderr
    told = CliRunner().invoke(main, [*name.split(), "--help"]).stdout
    assert "Not with this command: run it where the database is." in " ".join(told.split())


@pytest.mark.parametrize("url", ["sqlite:///{}/penstock.db", "garbage", "http://[::1", ""])
def test_whatever_an_option_for_nodes_names_is_no_database(tmp_path: Path, url: str) -> None:
    named = url.format(tmp_path)
    with closing(connect(f"sqlite:///{tmp_path}/penstock.db")) as made:
        made.migrate()
    result = CliRunner().invoke(main, ["users", "list", "--url", named])

    assert (result.exit_code, result.stdout) == (2, "")
    assert f"users list works on the database itself, not through {named}: run" in result.stderr


def test_who_is_sent_to_the_database_is_not_told_his_own_password() -> None:
    result = CliRunner().invoke(main, ["users", "list", "--url", "https://ann:canary@penstock.example"])

    assert "not through https://ann:***@penstock.example: run" in result.stderr
    assert "canary" not in result.output


def test_a_store_that_is_named_goes_before_a_node_of_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = f"sqlite:///{tmp_path}/penstock.db"
    with closing(connect(store)) as made:
        made.migrate()
    monkeypatch.setenv("PENSTOCK_URL", "https://penstock.example")

    assert CliRunner().invoke(main, ["keys", "list", "--store", store]).exit_code == 0
    monkeypatch.setenv("PENSTOCK_STORE", store)
    assert CliRunner().invoke(main, ["users", "list"]).exit_code == 0


class Agreeable(BaseHTTPRequestHandler):
    """What answers everything with an empty object, as some gateways do, or with other words."""

    words = b"{}"

    def answer(self) -> None:
        self.rfile.read(int(self.headers.get("Content-Length", 0)))
        self.send_response(200)
        self.send_header("Content-Length", str(len(self.words)))
        self.end_headers()
        self.wfile.write(self.words)

    do_GET = do_POST = do_PUT = answer  # noqa: N815 - as the standard library calls them

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@pytest.mark.parametrize("words", [b"{}", b"[" * 3_000])
def test_what_says_yes_to_everything_is_no_node(words: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Agreeable, "words", words)
    with ThreadingHTTPServer(("127.0.0.1", 0), Agreeable) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        far = ["--url", f"http://127.0.0.1:{server.server_port}"]
        for line in ("lanes list", "jobs list", "enqueue hello 1", "top --once", "nodes list"):
            result = CliRunner().invoke(main, [*line.split(), *far])
            assert result.exit_code == 4, (line, result.output)
            assert "what answers there is no Penstock node" in result.stderr
        server.shutdown()
