"""The rest of the API: verbs, lanes and pools, groups, nodes, audit, dead letters, operations, events."""

import asyncio
import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx
import pytest

from penstock import Client
from penstock.config.declared import declared
from penstock.config.file import read
from penstock.config.plan import apply
from penstock.domain.lanes import SETTINGS
from penstock.domain.outcomes import Dead
from penstock.domain.pools import pool
from penstock.domain.states import Reason, Verb
from penstock.domain.ulid import Ulids
from penstock.stores.memory import MemoryStore
from penstock.testing.store_suite.factories import claim, claim_groups, ordered, settle, some
from tests.api.node import Http, served
from tests.client.conftest import put_lane

STORES = [
    "memory",
    pytest.param("sqlite", marks=pytest.mark.soak),
    "pg18",
]  # half of them are on SQLite anyway
WHY = {"reason": "test"}


def enqueue(http: Http, **fields: object) -> str:
    answer = http.post("/api/jobs", {"lane": "orders", **fields})
    assert answer.status_code == 201, answer.text
    id_: str = answer.json()["id"]
    return id_


def die(http: Http, error: str = "boom") -> str:
    id_ = enqueue(http)
    settle(http.node.client.store, some(claim(http.node.client.store)), Dead(Reason.EXHAUSTED, error))
    return id_


def finish(http: Http, operation: dict[str, Any]) -> dict[str, Any]:
    """Do what the leader does."""
    store = http.node.client.store
    while operation["state"] in {"collecting", "working"}:
        step = store.collect_operation if operation["state"] == "collecting" else store.work_operation
        step(operation["id"])
        operation = http.get(f"/api/operations/{operation['id']}").json()
    return operation


def test_verbs_move_a_job_and_say_so(every: Http) -> None:
    id_ = enqueue(every)
    for verb, state in (("hold", "held"), ("release", "pending"), ("retry", "pending"), ("skip", "skipped")):
        answer = every.post(f"/api/jobs/{id_}/{verb}", WHY)
        assert (answer.status_code, answer.json()["state"]) == (200, state), verb
    refused = every.post(f"/api/jobs/{id_}/cancel", WHY)
    assert refused.status_code == 409
    assert "cancel does nothing to a job that is skipped" in refused.json()["detail"]
    assert every.node.client.timeline(id_).audit[-1].actor == "api"


def test_a_verb_that_only_asks_is_accepted(http: Http) -> None:
    id_ = enqueue(http)
    some(claim(http.node.client.store))
    answer = http.post(f"/api/jobs/{id_}/cancel", WHY)
    assert (answer.status_code, answer.json()["effect"]) == (202, "requested")


def test_an_edit_keeps_the_bytes_and_the_versions(every: Http) -> None:
    id_ = enqueue(every, payload={"n": 1})
    text = '{"reason": "typo", "payload": {"n":  1.10}}'
    assert every.post(f"/api/jobs/{id_}/edit", text).status_code == 200
    versions = every.get(f"/api/jobs/{id_}/versions")
    assert '{"n":  1.10}' in versions.text
    assert [v["actor"] for v in versions.json()["versions"]] == [None, "api"]
    assert every.get(f"/api/jobs/{id_}").json()["payload"] == {"n": 1.1}


@pytest.mark.parametrize(
    ("path", "body", "status", "words"),
    [
        ("hold", {}, 422, 'missing required field `reason`; write {"reason": …}'),
        ("hold", {"reason": " "}, 422, "say why"),
        ("hold", {"reason": "x", "force": True}, 422, "unknown field `force`"),
        ("settle", {"reason": "x", "outcome": "lost"}, 422, "neither succeeded nor dead"),
        ("edit", {"reason": "x", "lane": "b"}, 422, "lane: cannot be edited"),
        ("edit", {"reason": "x"}, 409, "there is nothing to change"),
        ("edit", {"reason": "x", "replay": 1, "payload": 1}, 422, "neither true nor false"),
    ],
)
def test_a_command_that_is_wrong_is_named(
    http: Http, path: str, body: dict[str, Any], status: int, words: str
) -> None:
    answer = http.post(f"/api/jobs/{enqueue(http)}/{path}", body)
    assert (answer.status_code, words in answer.json()["detail"]) == (status, True), answer.text
    assert answer.json()["hint"]
    assert "address" not in answer.json()["hint"]


def test_a_setting_that_stands_alone_is_told_where_it_belongs(http: Http) -> None:
    answer = http.request("PUT", "/api/lanes/orders", json={"rate": "5/s"})
    assert (answer.status_code, 'write {"settings": …}' in answer.json()["detail"]) == (422, True), (
        answer.text
    )


def test_lists_have_names_of_their_own(every: Http) -> None:
    later = enqueue(every, run_at="2099-01-01T00:00:00Z")
    soon, done = enqueue(every), enqueue(every)
    every.post(f"/api/jobs/{done}/cancel", WHY)

    def ids(path: str) -> list[str]:
        return [job["id"] for job in every.get(path).json()["jobs"]]

    assert ids("/api/jobs/scheduled") == [soon, later]
    assert ids("/api/jobs/scheduled?filter=run<1h") == [soon]
    assert ids("/api/jobs/history") == [done]
    assert ids("/api/jobs/history?from=2020-01-01T00:00:00Z&to=2021-01-01T00:00:00Z") == []
    assert ids("/api/jobs/history?state=succeeded") == []
    [lane] = every.get("/api/jobs/stats").json()["lanes"]
    assert (lane["lane"], lane["pending"], lane["due"]) == ("orders", 2, 1)
    assert every.get("/api/jobs/history?from=yesterday").status_code == 422
    assert "pending is no end" in every.get("/api/jobs/history?state=dead,pending").json()["detail"]


def test_what_is_due_is_counted_up_to_a_page_and_says_so(http: Http) -> None:
    client = http.node.client
    now = client.store.now()
    for lane, late, later in (("all", 501, 0), ("few", 499, 1), ("many", 501, 1)):
        put_lane(client.store, lane)
        client.enqueue_many([{"lane": lane, "run_at": now - timedelta(minutes=1)}] * late)
        client.enqueue_many([{"lane": lane, "run_at": now + timedelta(days=1)}] * later)

    lanes = http.get("/api/jobs/stats").json()["lanes"]

    counted = {each["lane"]: (each["due"], each["due_capped"]) for each in lanes}
    assert counted == {"all": (501, False), "few": (499, False), "many": (500, True), "orders": (0, False)}
    assert not any(each["capped"] for each in lanes)


def test_a_bad_filter_is_told_with_its_place(http: Http) -> None:
    answer = http.get("/api/jobs?filter=lane:orders%20stat:dead")
    assert answer.status_code == 422
    assert answer.json()["position"] == 13
    assert "did you mean state" in answer.json()["hint"]


def test_who_has_it_already_is_told_so(http: Http) -> None:
    path = f"/api/jobs/{enqueue(http)}"
    tag = http.get(path).headers["etag"]
    for known in (tag, f"W/{tag}", "*"):
        again = http.get(path, headers={"If-None-Match": known})
        assert (again.status_code, again.content) == (304, b"")
        assert again.headers["cache-control"] == "no-store"


def test_what_is_of_jobs_is_kept_by_nobody_and_lists_by_no_proxy(http: Http) -> None:
    job = enqueue(http)
    of_jobs = ("jobs", f"jobs/{job}", f"jobs/{job}/timeline", f"jobs/{job}/explain", "jobs/history", "dead")
    for path in of_jobs:
        assert http.get(f"/api/{path}").headers["cache-control"] == "no-store", path
    for path in ("lanes", "pools", "groups", "targets", "jobs/counts", "lanes/orders"):
        assert http.get(f"/api/{path}").headers["cache-control"] == "private, no-cache", path


@pytest.mark.parametrize("path", ["lanes", "pools", "groups", "targets", "jobs/counts"])
def test_who_has_a_list_already_is_told_so_until_it_changes(http: Http, path: str) -> None:
    client = http.node.client
    client.enqueue("orders", {}, group="first", mode="block_on_error")
    tag = http.get(f"/api/{path}").headers["etag"]
    again = http.get(f"/api/{path}", headers={"If-None-Match": f'"another", {tag}'})
    assert (again.status_code, again.content, again.headers["etag"]) == (304, b"", tag)
    assert again.headers["cache-control"] == "private, no-cache"
    assert http.get(f"/api/{path}", headers={"If-None-Match": "*"}).status_code == 304

    put_lane(client.store, "later")
    client.store.put_pool(pool("later"), actor="test")
    client.store.pause_target("http://later:1", paused=True, actor="test", reason="x")
    client.enqueue("later", {}, group="later", mode="block_on_error")
    changed = http.get(f"/api/{path}", headers={"If-None-Match": tag})
    assert changed.status_code == 200
    assert changed.headers["etag"] != tag
    assert "later" in changed.text


@pytest.mark.parametrize("kind", ["lanes", "pools"])
def test_who_has_a_lane_or_pool_is_told_so_until_it_changes(every: Http, kind: str) -> None:
    path = f"/api/{kind}/it"

    def knows(tag: str) -> bool:
        answer = every.get(path, headers={"If-None-Match": tag})
        assert answer.status_code == 200 or answer.content == b""
        return answer.status_code == 304

    every.request("PUT", path, json={"settings": {}})
    tag = every.get(path).headers["etag"]
    assert tag.startswith('"1-')
    assert knows(tag)
    every.post(f"{path}/pause", {"reason": "lunch"})
    assert not knows(tag)
    every.post(f"{path}/resume", WHY)
    resumed = every.get(path).headers["etag"]
    assert knows(resumed)
    every.request("DELETE", f"{path}?reason=old")
    every.request("PUT", path, json={"settings": {"rate": "5/s"}})
    assert not knows(tag)  # it is version 1 again, of another one


@pytest.mark.parametrize("kind", ["lanes", "pools"])
def test_a_tag_is_of_one_lane_and_of_none_that_is_made_anew(every: Http, kind: str) -> None:
    path, edit = f"/api/{kind}/it", {"settings": {"max_in_flight": 7}}
    old = every.request("PUT", path, json={"settings": {}}).headers["etag"]
    every.request("DELETE", f"{path}?reason=old", headers={"If-Match": old})
    anew = every.request("PUT", path, json={"settings": {}}).headers["etag"]

    assert old.startswith('"1-')
    assert anew.startswith('"1-')
    assert every.request("PUT", path, json=edit, headers={"If-Match": old}).status_code == 412
    assert every.request("DELETE", f"{path}?reason=old", headers={"If-Match": old}).status_code == 412
    edited = every.request("PUT", path, json=edit, headers={"If-Match": f"{old}, {anew}"})
    assert (edited.status_code, edited.json()["version"]) == (200, 2)
    several = {"If-Match": f'"other,tag",{edited.headers["etag"]}'}
    assert every.request("DELETE", f"{path}?reason=old", headers=several).status_code == 200


def test_what_is_no_tag_changes_nothing(http: Http) -> None:
    path = "/api/lanes/orders"
    tag, edit = http.get(path).headers["etag"], {"settings": {"weight": 5}}
    bare = tag.strip('"')
    version, number, digest = bare.split("-")
    for wrong in (
        "",
        bare,
        version,
        f"{tag}x",
        f"W/{tag}",
        f'W/"{version}"',
        f'"0{version}"',
        f'"{version}-"',
        f'"{version}-{digest}"',
        f'"{version}-{number}-"',
        f'"{version}-{number}-{digest}0"',
        f'{tag} "{version}"',
        f"*, {tag}",
        '"0"',
    ):
        seen = {"If-Match": wrong}
        for refused in (
            http.request("PUT", path, json=edit, headers=seen),
            http.request("DELETE", f"{path}?reason=old", headers=seen),
        ):
            assert (refused.status_code, "ETag" in refused.json()["hint"]) == (412, True), wrong
    assert http.get(path).headers["etag"] == tag
    assert http.request("PUT", path, json=edit, headers={"If-Match": f'"{version}"'}).status_code == 200


def test_a_pause_that_ended_by_itself_is_news_and_no_change() -> None:
    now = [datetime(2026, 3, 1, tzinfo=UTC)]
    store = MemoryStore(clock=lambda: now[0], ids=Ulids(lambda: 0, bytes))
    put_lane(store)
    lunch = now[0] + timedelta(hours=1)
    store.pause_lane("orders", paused=True, actor="test", reason="lunch", until=lunch)
    with Client(store) as client, served(client) as http:
        tag = http.get("/api/lanes/orders").headers["etag"]
        now[0] = lunch
        later = http.get("/api/lanes/orders", headers={"If-None-Match": tag})
        edit = {"settings": {"weight": 2}}
        edited = http.request("PUT", "/api/lanes/orders", json=edit, headers={"If-Match": tag})

    assert (later.status_code, later.json()["paused"]) == (200, False)
    assert edited.status_code == 200


def test_who_repeats_a_request_with_an_id_is_led_to_its_job(http: Http) -> None:
    """Not to another id: that would be a second job."""
    job = {"lane": "orders", "id": "01ARZ3NDEKTSV4RRFFQ69G5FAV"}
    assert http.post("/api/jobs", job).status_code == 201
    again = http.post("/api/jobs", job)

    assert (again.status_code, again.json()["field"]) == (422, "id")
    assert "GET /api/jobs/ID shows it" in again.json()["hint"]


def test_a_target_whose_port_cannot_be_is_refused(http: Http) -> None:
    put = {"settings": {"sink": "http", "target": "http://127.0.0.1/"}}
    assert http.request("PUT", "/api/lanes/orders", json=put).status_code == 200
    job = {"lane": "orders", "target": "http://127.0.0.1:99999/"}
    refused = http.post("/api/jobs", job)
    batch = http.post("/api/jobs", {"jobs": [job, {"lane": "orders"}]}).json()["results"]
    put["settings"]["target"] = job["target"]
    lane = http.request("PUT", "/api/lanes/orders", json=put)

    assert (refused.status_code, refused.json()["field"]) == (422, "target")
    assert "has a port that cannot be" in refused.json()["detail"]
    assert ["id" in each for each in batch] == [False, True]
    assert (lane.status_code, lane.json()["field"]) == (422, "target")


def test_why_a_lane_was_changed_is_kept(every: Http) -> None:
    off = {"settings": {"enabled": False}, "reason": "on fire"}
    assert every.request("PUT", "/api/lanes/orders", json=off).status_code == 200
    assert every.get("/api/audit?lane=orders&limit=1").json()["entries"][0]["reason"] == "on fire"
    of_pool = every.request("PUT", "/api/pools/web", json={"settings": {}, "reason": "x"})
    assert (of_pool.status_code, of_pool.json()["field"]) == (422, "reason")


def test_it_is_told_where_the_settings_of_a_lane_come_from(every: Http, tmp_path: Path) -> None:
    store, file = every.node.client.store, tmp_path / "lanes.toml"
    file.write_text('[lanes.pay]\nrate = "5/s"\nbatch_size = 7\n')
    apply(store, declared(read(file)), actor="cli:ann", file=file)
    every.request("PUT", "/api/lanes/pay", json={"settings": {"batch_size": 8}})
    found = every.get("/api/lanes/pay/sources").json()["settings"]

    assert found.keys() == SETTINGS.keys()
    assert (found["rate"]["source"], found["rate"]["actor"]) == ("lanes.toml", "cli:ann")
    assert (found["batch_size"]["source"], found["batch_size"]["actor"]) == ("database", "api")
    assert found["batch_size"]["at"] >= found["rate"]["at"]
    untouched = [one for name, one in found.items() if name not in ("rate", "batch_size")]
    assert untouched == [{"source": "default", "actor": None, "at": None}] * (len(SETTINGS) - 2)
    assert every.get("/api/lanes/none/sources").status_code == 404


def test_of_two_who_change_a_lane_the_second_is_told(every: Http) -> None:
    path = "/api/lanes/pay"
    made = every.request("PUT", path, json={"settings": {"batch_size": 7}}, headers={"If-None-Match": "*"})
    assert (made.status_code, made.headers["etag"]) == (201, every.get(path).headers["etag"])
    seen = {"If-Match": made.headers["etag"]}
    first = every.request("PUT", path, json={"settings": {"weight": 2}}, headers=seen)
    assert (first.status_code, first.json()["settings"]["batch_size"]) == (200, 7)
    for headers in (seen, {"If-Match": '"1"'}, {"If-None-Match": "*"}, {"If-Match": "x"}):
        second = every.request("PUT", path, json={"settings": {"weight": 3}}, headers=headers)
        assert second.status_code == 412
    assert every.get(path).json()["settings"]["weight"] == 2
    gone = every.request("DELETE", f"{path}?reason=old", headers={"If-Match": '"1"'})
    no_such = every.request("PUT", "/api/lanes/none", json={"settings": {}}, headers={"If-Match": "*"})
    there = every.request("PUT", path, json={"settings": {}}, headers={"If-Match": "*"})
    assert (gone.status_code, no_such.status_code, there.status_code) == (412, 412, 200)
    named = every.request("PUT", path, json={"settings": {"name": "other"}})
    assert (named.status_code, named.json()["field"]) == (422, "name")
    wrong = every.request("PUT", path, json={"settings": {"wieght": 3}})
    assert (wrong.status_code, "wieght" in wrong.text) == (422, True)


@pytest.mark.parametrize("kind", ["lanes", "pools"])
def test_lanes_and_pools_are_paused_until_a_time_and_deleted(every: Http, kind: str) -> None:
    path = f"/api/{kind}/it"
    every.request("PUT", path, json={"settings": {}})
    paused = every.post(f"{path}/pause", {"reason": "lunch", "until": "2099-01-01T00:00:00Z"}).json()
    assert (paused["paused"], paused["pause_reason"], paused["paused_by"]) == (True, "lunch", "api")
    assert paused["paused_until"] == "2099-01-01T00:00:00Z"
    assert every.post(f"{path}/pause", {"reason": "x", "until": "noon"}).status_code == 422
    assert every.post(f"{path}/resume", WHY).json()["paused"] is False
    assert "it" in [one["name"] for one in every.get(f"/api/{kind}").json()[kind]]
    assert every.request("DELETE", path).status_code == 422
    assert every.request("DELETE", f"{path}?reason=over").json() == {"deleted": "it"}
    for answer in (
        every.get(path),
        every.post(f"{path}/pause", WHY),
        every.request("DELETE", f"{path}?reason=x"),
    ):
        assert answer.status_code == 404
    actions = [entry["action"] for entry in every.get("/api/audit").json()["entries"]]
    assert f"{kind[:-1]}.delete" in actions


@pytest.mark.parametrize("kind", ["lanes", "pools"])
def test_a_pause_that_is_over_is_no_pause(kind: str) -> None:
    """Nobody writes to the row when its time comes: who looks at it then is told what holds then."""
    now = datetime(2026, 11, 16, 12, 0, tzinfo=UTC)
    store = MemoryStore(clock=lambda: now, ids=Ulids(lambda: 0, bytes))
    with Client(store, actor="api") as client, served(client) as http:
        http.node.start()
        path, until = f"/api/{kind}/it", now + timedelta(minutes=5)
        http.request("PUT", path, json={"settings": {}})
        paused = http.post(f"{path}/pause", {"reason": "lunch", "until": until.isoformat()}).json()
        assert (paused["paused"], paused["paused_until"]) == (True, "2026-11-16T12:05:00Z")
        now = until
        for shown in (http.get(path).json(), http.get(f"/api/{kind}").json()[kind][0]):
            assert (shown["paused"], shown["paused_until"]) == (False, None)


def test_a_lane_that_has_jobs_stays(http: Http) -> None:
    enqueue(http)
    assert http.request("DELETE", "/api/lanes/orders?reason=x").status_code == 409


def test_groups_are_listed_paused_and_resumed(every: Http) -> None:
    client = every.node.client
    client.store.enqueue([ordered("g"), ordered("g")])
    settle(client.store, some(claim_groups(client.store)), Dead(Reason.EXHAUSTED, "boom"))
    [group] = every.get("/api/groups?blocked=true").json()["groups"]
    assert (group["group"], group["state"], group["behind"]) == ("g", "blocked", 1)
    body = {"lane": "orders", "group": "g", **WHY}
    assert every.post("/api/groups/pause", body).json()["paused"] is True
    state = client.store.group("orders", "g")
    assert state is not None
    assert state.paused
    assert every.post("/api/groups/resume", body).json()["paused"] is False
    assert every.get("/api/groups?lane=nowhere").status_code == 422


def test_a_pause_until_a_time_that_is_past_is_refused(every: Http) -> None:
    every.request("PUT", "/api/pools/web", json={"settings": {"rate": "5/s"}})
    for path in ("lanes/orders/pause", "pools/web/pause", "groups/pause", "targets/pause", "pause"):
        named = {"groups/pause": {"lane": "orders", "group": "g"}, "targets/pause": {"target": "http://a"}}
        answer = every.post(
            f"/api/{path}", {"reason": "x", "until": "2020-01-01T00:00:00Z", **named.get(path, {})}
        )
        assert (answer.status_code, answer.json()["field"]) == (422, "until"), answer.text
        assert "is past already" in answer.json()["detail"]


def test_a_pause_until_a_time_that_no_store_keeps_is_refused_and_nothing_is_paused(every: Http) -> None:
    body = {"lane": "orders", "group": "g", "reason": "x", "until": "9999-12-31T23:59:59-12:00"}
    answer = every.post("/api/groups/pause", body)
    assert (answer.status_code, answer.json()["field"]) == (422, "until"), answer.text
    assert "is not between the years 1970 and 9998" in answer.json()["detail"]
    assert every.node.client.store.group("orders", "g") is None


def test_targets_are_paused_and_resumed(every: Http) -> None:
    body = {"target": "https://API.example/hook", "reason": "they move", "until": "2099-01-01T00:00:00Z"}
    paused = every.post("/api/targets/pause", body).json()
    assert paused["target"] == "https://api.example"
    assert (paused["pause"]["by"], paused["pause"]["reason"]) == ("api", "they move")
    [known] = every.get("/api/targets").json()["targets"]
    assert (known["name"], known["state"], known["pause"]) == (paused["target"], "closed", paused["pause"])
    wrong = every.post("/api/targets/pause", {"target": "orders", "reason": "x"})
    assert (wrong.status_code, wrong.json()["field"]) == (422, "target")
    resumed = every.post("/api/targets/resume", {"target": "https://api.example", "reason": "there"})
    assert resumed.json()["pause"] is None
    assert every.get("/api/targets").json() == {"targets": []}
    name, why = paused["target"], {"target": paused["target"], "reason": "they are back"}
    every.node.client.store.mark_target(
        name, failed=3, ok=0, trip_after=3, open_for=timedelta(hours=1), slow_for=timedelta(0)
    )
    assert every.post("/api/targets/reset", why).json() == {"target": name, "reset": True}
    assert every.post("/api/targets/reset", why).json() == {"target": name, "reset": False}


def test_a_node_is_drained_and_goes_on(every: Http) -> None:
    node = every.node.client.store.register_node("host-a")
    drained = every.post(f"/api/nodes/{node}/drain", {"reason": "a new machine"}).json()
    assert (drained["node"], drained["drain"]["reason"]) == (node, "a new machine")
    [shown] = [one for one in every.get("/api/nodes").json()["nodes"] if one["id"] == node]
    assert (shown["drain"], shown["claims_left"]) == (drained["drain"], None)
    assert every.post(f"/api/nodes/{node}/resume", WHY).json() == {"node": node, "drain": None}
    for unknown in ("999999", "x", "9" * 20):
        assert every.post(f"/api/nodes/{unknown}/drain", WHY).status_code == 404


def test_everything_can_be_paused(every: Http) -> None:
    assert every.get("/api/pause").json() == {"pause": None}
    assert every.post("/api/pause", {"reason": "fire"}).json()["pause"]["reason"] == "fire"
    assert every.post("/api/resume", WHY).json() == {"pause": None}


def test_nodes_and_targets_and_the_audit(every: Http) -> None:
    store = every.node.client.store
    node = store.register_node("host:1")
    [shown] = [one for one in every.get("/api/nodes").json()["nodes"] if one["id"] == node]
    assert (shown["name"], shown["alive"], shown["leads"]) == ("host:1", True, False)
    assert every.get("/api/targets").json() == {"targets": []}
    page = every.get("/api/audit?limit=1").json()
    assert len(page["entries"]) == 1


def test_dead_letters_are_grouped_by_their_cause(every: Http) -> None:
    for n in range(3):
        die(every, f"HTTP 503 from http://a/{n}")
    die(every, "no route")
    answer = every.get("/api/dead").json()
    assert [(cause["error"], cause["jobs"]) for cause in answer["causes"]] == [
        ("HTTP 503 from <url>", 3),
        ("no route", 1),
    ]
    mark = answer["causes"][0]["fingerprint"]
    assert len(every.get(f"/api/jobs?filter=fingerprint:{mark}").json()["jobs"]) == 3
    assert every.get("/api/dead?filter=error:route").json()["causes"][0]["jobs"] == 1
    assert "did you mean orders" in every.get("/api/dead?filter=lane:ordres").json()["hint"]


def test_an_operation_is_counted_first_and_begun_when_asked(every: Http) -> None:
    dead = [die(every) for _ in range(3)]
    body: dict[str, Any] = {"verb": "retry", "filter": "lane:orders error:boom", "reason": "fixed"}
    preview = every.post("/api/operations", body)
    assert (preview.status_code, preview.json()["matched"], preview.json()["capped"]) == (200, 3, False)
    assert set(preview.json()["ids"]) == set(dead)
    assert every.get("/api/operations").json()["operations"] == []

    headers = {"Idempotency-Key": "one"}
    started = every.post("/api/operations", {**body, "dry_run": False}, headers=headers)
    again = every.post("/api/operations", {**body, "dry_run": False}, headers=headers)
    assert (started.status_code, again.json()) == (202, started.json())
    assert every.get(started.headers["location"]).json() == started.json()
    ended = finish(every, started.json())
    assert (ended["state"], ended["done"], ended["matched"]) == ("done", 3, 3)
    assert [one["id"] for one in every.get("/api/operations").json()["operations"]] == [ended["id"]]
    assert {every.get(f"/api/jobs/{id_}").json()["state"] for id_ in dead} == {"pending"}


def test_replay_and_edit_and_stop(every: Http) -> None:
    id_ = die(every)
    assert every.post("/api/replay", {"filter": f"id:{id_}"}).json()["matched"] == 1
    body = {
        "verb": "edit",
        "filter": f"id:{id_}",
        "reason": "moved",
        "dry_run": False,
        "change": {"payload": {"n": 2}},
    }
    assert finish(every, every.post("/api/operations", body).json())["done"] == 1
    assert every.get(f"/api/jobs/{id_}").json()["payload"] == {"n": 2}
    replay = {"filter": "", "reason": "x", "dry_run": False, "rate": 5}
    running = every.post("/api/replay", replay).json()
    stopped = every.post(f"/api/operations/{running['id']}/stop", WHY).json()
    assert (stopped["state"], stopped["stopped_by"]) == ("stopped", "api")


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ({"verb": "burn"}, "verb: 'burn' is none of"),
        ({"filter": "lnae:x"}, "did you mean lane?"),
        ({"dry_run": False, "reason": None}, "reason: "),
        ({"dry_run": False, "rate": 0}, "rate: from 1 to"),
        ({"dry_run": False, "change": {"payload": 1}}, "only an edit changes"),
        ({"rate": 0}, "rate: from 1 to"),
        ({"verb": "edit", "change": {"x": 1}}, "'x' is none of"),
        ({"dry_run": False, "verb": "edit"}, "an edit says what changes"),
        ({"dry_run": False, "verb": "edit", "change": {"x": 1}}, "'x' is none of"),
        ({"dry_run": False, "verb": "edit", "change": {"merge": 1}}, "merge is an object"),
        ({"dry_run": False, "verb": "edit", "change": {"merge": {"a": 1}, "payload": 1}}, "not both"),
    ],
)
def test_an_operation_that_is_wrong_is_named(http: Http, body: dict[str, Any], words: str) -> None:
    answer = http.post("/api/operations", {"verb": "retry", "filter": "", "reason": "x", **body})
    assert answer.status_code == 422
    assert words in answer.json()["detail"]


async def listen(url: str, wanted: int, **options: Any) -> list[dict[str, str]]:  # noqa: ANN401
    """Return the first messages of a stream."""
    found: list[dict[str, str]] = []
    async with (
        httpx.AsyncClient(timeout=30) as client,
        client.stream("GET", f"{url}/api/events", **options) as stream,
    ):
        message: dict[str, str] = {}
        async for line in stream.aiter_lines():
            name, _, value = line.partition(": ")
            if line:
                message[name] = value
            elif "data" in message:
                found.append(message)
                message = {}
                if len(found) == wanted:
                    break
    return found


async def test_what_changes_is_told_as_it_changes(http: Http) -> None:
    [first] = await listen(http.node.url, 1, params={"topics": "jobs"})
    assert first["event"] == "jobs"
    async with asyncio.TaskGroup() as tasks:
        listening = tasks.create_task(listen(http.node.url, 2, params={"topics": "jobs,lanes"}))
        await asyncio.to_thread(enqueue, http)
    async with asyncio.timeout(30):
        again = await listen(
            http.node.url, 1, params={"topics": "jobs"}, headers={"Last-Event-ID": first["id"]}
        )
    assert {message["event"] for message in listening.result()} == {"jobs", "lanes"}
    assert json.loads(again[0]["data"])["states"]["pending"] == 1
    assert again[0]["id"] != first["id"]


async def test_a_last_event_that_was_never_told_is_none(http: Http) -> None:
    [first] = await listen(http.node.url, 1, params={"topics": "jobs"})
    mark = first["id"].partition("-")[0]
    async with asyncio.timeout(30):
        for last in (f"{mark}-{'9' * 5000}", f"{mark}--1", "else-1"):
            again = await listen(http.node.url, 1, params={"topics": "jobs"}, headers={"Last-Event-ID": last})
            assert again == [first]


async def test_everybody_is_told_of_operations_without_what_jobs_carry(http: Http) -> None:
    body = {"verb": "hold", "filter": "payload.card:4242", "reason": "x", "dry_run": False}
    await asyncio.to_thread(http.post, "/api/operations", body)
    [told] = await listen(http.node.url, 1, params={"topics": "operations"})
    assert json.loads(told["data"])["operations"][0]["verb"] == "hold"
    assert "4242" not in told["data"]


def test_an_unknown_topic_is_refused(http: Http) -> None:
    answer = http.get("/api/events?topics=lnaes")
    assert (answer.status_code, "did you mean lanes" in answer.text) == (422, True)


def test_verbs_of_the_port_are_verbs_of_the_api(http: Http) -> None:
    paths = http.get("/api/openapi.json").json()["paths"]
    for verb in Verb:
        assert f"/api/jobs/{{job_id}}/{verb.value.split('_')[0]}" in paths
