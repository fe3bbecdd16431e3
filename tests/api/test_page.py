"""The status page and its numbers."""

import re
from datetime import UTC, datetime, timedelta

import pytest

from penstock import __version__
from penstock.domain.pools import pool
from penstock.errors import StoreUnavailable
from penstock.ports.events import Called, LeaderChanged, SinkFailed
from penstock.ports.insight import LEADER
from penstock.ports.store import Ask
from tests.api.node import VERSION, Http
from tests.client.conftest import put_lane
from tests.faulty import Faulty

ASSET = re.compile(r'(?:src|href)="([^"]+)"')


def test_the_page_needs_nothing_from_elsewhere(http: Http) -> None:
    page = http.get("/")

    assert page.headers["content-type"] == "text/html; charset=utf-8"
    assert __version__ in page.text
    assert "://" not in page.text.replace(http.node.url, "").replace("sqlite:///penstock.db", "")
    for address in ASSET.findall(page.text):
        assert http.get(address).status_code == 200, address


def test_the_page_has_no_script_or_style_of_its_own(http: Http) -> None:
    page = http.get("/").text

    assert re.search(r"<script(?![^>]*\bsrc=)", page) is None
    assert "<style" not in page
    assert re.search(r"<[^>]+\s(style|on\w+)=", page) is None


def test_the_commands_on_the_page_name_the_address_it_was_asked_by(http: Http) -> None:
    assert f"curl {http.node.url}/api/jobs" in http.get("/").text


def test_files_are_kept_by_browsers_until_they_change(http: Http) -> None:
    [style] = re.findall(r'href="(/static/[^"]+penstock.css)"', http.get("/").text)
    _, _, mark, name = style.split("/")

    assert "immutable" in http.get(style).headers["cache-control"]
    assert http.get(f"/static/of-another-version/{name}").headers["cache-control"] == "no-store"
    assert http.get(f"/static/{mark}/none.css").status_code == 404


def test_scripts_write_text_and_never_markup() -> None:
    """Lane, group and error come from callers; the CSP forbids the rest."""
    from importlib.resources import files  # noqa: PLC0415

    scripts = [file for file in (files("penstock.ui") / "static").iterdir() if file.name.endswith(".js")]
    assert len(scripts) > 3
    for script in scripts:
        assert (
            re.search(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|eval\(", script.read_text())
            is None
        )


def test_the_figures_of_a_lane(every: Http) -> None:
    client = every.node.client
    now = client.store.now()
    every.post("/api/jobs", {"jobs": [{"lane": "orders"}] * 3})
    late = (now - timedelta(minutes=5)).isoformat()
    every.post("/api/jobs", {"lane": "orders", "run_at": late})
    every.post("/api/jobs", {"lane": "orders", "run_at": (now + timedelta(hours=1)).isoformat()})
    held = every.post("/api/jobs", {"lane": "orders"}).json()["id"]
    client.hold(held, reason="look")
    every.node.emit(Called(lane="orders", sink="http", jobs=5, outcomes={"accepted": 5}, took=0.1, lag=0.01))

    stats = every.get("/api/stats").json()

    [lane] = [lane for lane in stats["lanes"] if lane["lane"] == "orders"]
    assert (lane["pending"], lane["due"], lane["held"], lane["dead"]) == (5, 4, 1, 0)
    assert lane["oldest_due_s"] == pytest.approx(300, abs=60)
    assert lane["lag_p99_ms"] == pytest.approx(10, rel=0.25)
    assert len(stats["jobs"]) == 6
    assert stats["ended"] == []
    assert stats["error"] is None


def test_what_is_due_is_counted_up_to_a_cap_where_others_are_of_the_future(every: Http) -> None:
    client = every.node.client
    now = client.store.now()
    for lane, future in (("all", 0), ("few", 1), ("many", 1)):
        put_lane(client.store, lane)
        late = 10 if lane == "few" else 50
        jobs = [{"lane": lane, "run_at": now - timedelta(minutes=1)}] * late
        client.enqueue_many(jobs + [{"lane": lane, "run_at": now + timedelta(hours=1)}] * future)

    shown = {
        lane["lane"]: (lane["due"], lane["due_capped"]) for lane in every.get("/api/stats").json()["lanes"]
    }

    assert shown == {"all": (50, False), "few": (10, False), "many": (20, True), "orders": (0, False)}


def test_the_figures_of_the_node(http: Http) -> None:
    http.node.emit(LeaderChanged(node=7, term=3, leads=True))
    refused = "postgresql://ann:hunter2@host/db refused"
    http.node.emit(SinkFailed(sink="billing", error=refused, pause=timedelta(seconds=5)))

    stats = http.get("/api/stats").json()

    assert stats["version"] == VERSION
    assert (stats["node"]["id"], stats["node"]["name"], stats["node"]["leads"]) == (7, "host:1", True)
    [trouble] = stats["troubles"]
    assert (trouble["kind"], trouble["name"]) == ("sink", "billing")
    assert "hunter2" not in trouble["text"]


def test_nodes_leader_and_a_pause_of_everything(every: Http) -> None:
    store = every.node.client.store
    node = store.register_node("host:2")
    store.elect(LEADER, node, timedelta(seconds=60))
    store.pause_store(paused=True, actor="ann", reason="maintenance")

    stats = every.get("/api/stats").json()

    assert stats["leader"] == node
    assert [(shown["id"], shown["name"]) for shown in stats["nodes"]] == [(node, "host:2")]
    assert stats["paused"] == "everything is paused by ann: maintenance"


def test_blocked_groups_name_what_blocks_them(every: Http) -> None:
    client = every.node.client
    job = {"lane": "orders", "group": "g", "mode": "block_on_error"}
    first = every.post("/api/jobs", job).json()["id"]
    every.post("/api/jobs", {"jobs": [job, job]})
    client.store.claim_groups(Ask(lane="orders", node=client.store.register_node("test")))
    client.report(first, 1, "failed", retryable=False)

    [blocked] = every.get("/api/stats").json()["blocked"]

    assert (blocked["lane"], blocked["group"], blocked["blocker"], blocked["behind"]) == (
        "orders",
        "g",
        first,
        2,
    )


def test_ended_jobs_are_shown_with_why(http: Http) -> None:
    client = http.node.client
    job = http.post("/api/jobs", {"lane": "orders"}).json()["id"]
    client.store.claim(Ask(lane="orders", node=client.store.register_node("test")))
    client.report(job, 1, "failed", error="HTTP 500: the card 4242 is", retryable=False)

    [shown] = http.get("/api/stats").json()["ended"]

    assert (shown["id"], shown["state"], shown["reason"]) == (job, "dead", "permanent")
    assert shown["error"] == "HTTP 500"  # one answer for everybody: the kind alone


def test_a_stopped_lane_says_who_stopped_it(http: Http) -> None:
    client = http.node.client
    client.store.pause_lane("orders", paused=True, actor="ann", reason="their API is down")
    put_lane(client.store, "later")
    until = datetime(2099, 1, 1, tzinfo=UTC)
    client.store.pause_lane("later", paused=True, actor="ann", reason="lunch", until=until)
    put_lane(client.store, "off", enabled=False)

    lanes = {lane["lane"]: lane["stopped"] for lane in http.get("/api/stats").json()["lanes"]}

    assert lanes == {
        "orders": "paused by ann: their API is down",
        "later": "paused by ann: lunch, until 2099-01-01 00:00:00 UTC",
        "off": "disabled",
    }


def test_a_paused_group_says_until_when(http: Http) -> None:
    until = datetime(2099, 1, 1, tzinfo=UTC)
    who = {"actor": "ann", "reason": "lunch"}
    http.node.client.store.pause_group("orders", "A-1", paused=True, until=until, **who)

    [group] = http.get("/api/groups").json()["groups"]
    assert (group["state"], group["until"]) == ("paused", "2099-01-01T00:00:00Z")
    assert re.search(r'ends <time datetime="2099-01-01T00:00:00', http.get("/groups").text)


def test_many_lanes_are_cut_to_those_at_work(http: Http) -> None:
    for number in range(210):
        put_lane(http.node.client.store, f"idle-{number:03}")
    http.post("/api/jobs", {"lane": "orders"})

    stats = http.get("/api/stats").json()

    assert len(stats["lanes"]) == 200
    assert stats["more_lanes"] == 11
    assert "orders" in {lane["lane"] for lane in stats["lanes"]}


def test_a_store_that_is_gone_is_one_of_the_figures(on_faulty: Http, faulty: Faulty) -> None:
    faulty.errors["counts"] = StoreUnavailable("counts")
    stats = on_faulty.get("/api/stats").json()

    assert stats["error"] == "store unavailable during counts"
    assert stats["node"]["id"] == 7


def test_the_store_is_asked_once_however_many_look(on_faulty: Http, faulty: Faulty) -> None:
    for _ in range(5):
        on_faulty.get("/api/stats")

    assert 1 <= faulty.calls.count("scout") <= 2


@pytest.mark.parametrize(
    "path", ["/", "/api/lanes", "/api/openapi.json", "/health/live", "/metrics", "/api/events"]
)
def test_head_is_answered_as_get_without_a_body(http: Http, path: str) -> None:
    http.node.start()
    head = http.request("HEAD", path)
    assert (head.status_code, head.content) == (200, b"")
    if path == "/api/openapi.json":
        get = http.get(path)
        assert head.headers["content-length"] == get.headers["content-length"]
        assert head.headers["content-type"] == get.headers["content-type"]


def test_head_of_what_cannot_be_looked_at_says_so(http: Http) -> None:
    assert http.request("HEAD", "/api/nowhere").status_code == 404
    assert http.request("HEAD", "/api/outcomes").status_code == 405


def test_an_address_that_is_none_is_a_page_for_people_and_json_for_programs(http: Http) -> None:
    html = {"Accept": "text/html"}
    for path in ("/nowhere", "/lanes/orders/nowhere", "/static/nowhere", "/lanes/nobody"):
        page = http.get(path, headers=html)
        assert (page.status_code, page.headers["content-type"]) == (404, "text/html; charset=utf-8"), path
        assert f"There is no such {'lane' if path == '/lanes/nobody' else 'page'}" in page.text
        assert page.text.count("penstock lanes list") == (path == "/lanes/nobody")
        assert http.get(path).json()["hint"]
    assert "Nothing is at /&lt;b&gt;" in http.get("/%3Cb%3E", headers=html).text
    assert http.get("/api/nowhere", headers=html).json()["status"] == 404


@pytest.mark.parametrize(
    ("path", "methods"),
    [
        ("/api/jobs", "GET, HEAD, OPTIONS, POST"),
        ("/api/lanes/orders", "DELETE, GET, HEAD, OPTIONS, PUT"),
        ("/api/outcomes", "OPTIONS, POST"),
        ("/jobs/new", "GET, HEAD, OPTIONS, POST"),
        ("/", "GET, HEAD, OPTIONS"),
    ],
)
def test_an_address_names_all_its_methods(http: Http, path: str, methods: str) -> None:
    told = http.request("OPTIONS", path)
    assert (told.status_code, told.headers["allow"], told.content) == (204, methods, b"")
    refused = http.request("TRACE", path)
    assert (refused.status_code, {*refused.headers["allow"].split(", ")}) == (405, {*methods.split(", ")})


def test_what_is_nowhere_has_no_methods(http: Http) -> None:
    assert http.request("OPTIONS", "/api/nowhere").status_code == 404


@pytest.mark.parametrize("path", ["/store", "/lanes/orders", "/pools/web", "/targets"])
def test_a_form_that_pauses_says_why_and_one_that_says_nothing_known_does_nothing(
    http: Http, path: str
) -> None:
    store = http.node.client.store
    store.put_pool(pool("web", rate="5/s"), actor="test")
    form = {"target": "https://api.example.org"}
    before = store.audit_log().entries
    for verb, reason in (("pause", ""), ("pause", " "), ("stop", "because")):
        http.request("POST", f"{path}/{verb}", data=form | {"reason": reason})
    assert store.audit_log().entries == before

    http.request("POST", f"{path}/pause", data=form | {"reason": "because"})
    [last, *_] = store.audit_log(limit=1).entries
    assert (last.reason, last.actor) == ("because", "dashboard")
