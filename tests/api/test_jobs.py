"""Jobs in and out by HTTP."""

import json
from datetime import timedelta
from typing import cast

import pytest

from penstock.errors import SchemaMismatch, StoreUnavailable
from penstock.ports.store import Ask
from tests.api.node import Http
from tests.client.conftest import put_lane
from tests.faulty import Faulty

# Spaces, escapes, a long number, a trailing zero: whatever a decoder would write differently.
ODD = '{ "a" : 1.10, "b":"\\u00e9\\/",\t"c": 12345678901234567890, "d":[ ] }'


def test_one_object_becomes_a_job(every: Http) -> None:
    made = every.post("/api/jobs", {"lane": "orders", "payload": {"n": 1}, "group": "g", "sequence": 3})

    assert made.status_code == 201
    job = made.json()
    assert (job["lane"], job["group"], job["sequence"], job["state"]) == ("orders", "g", 3, "pending")
    assert made.headers["location"] == f"/api/jobs/{job['id']}"
    assert every.get(made.headers["location"]).json() == job


def test_a_payload_is_kept_byte_for_byte(every: Http) -> None:
    one = every.post("/api/jobs", f'{{"lane":"orders", "payload" : {ODD} }}').json()["id"]
    many = every.post("/api/jobs", f'{{"jobs":[{{"payload":{ODD},"lane":"orders"}}]}}').json()

    for job_id in (one, many["results"][0]["id"]):
        context = every.node.client.get(job_id).context
        assert context is not None
        assert context.payload == ODD
        assert ODD in every.get(f"/api/jobs/{job_id}").text


def test_the_same_key_is_the_same_job(every: Http) -> None:
    first = every.post("/api/jobs", {"lane": "orders", "payload": 1, "key": "k"})
    again = every.post("/api/jobs", {"lane": "orders", "payload": 1, "key": "k"})
    other = every.post("/api/jobs", {"lane": "orders", "payload": 2, "key": "k"})

    assert (first.status_code, again.status_code, other.status_code) == (201, 200, 409)
    assert "duplicate" not in first.json()
    assert again.json() == first.json() | {"duplicate": True}
    problem = other.json()
    assert (problem["type"], problem["job"], problem["key"]) == (
        "urn:penstock:problem:key-conflict",
        first.json()["id"],
        "k",
    )


def test_the_key_may_come_as_a_header(http: Http) -> None:
    headers = {"Idempotency-Key": "k"}
    first = http.post("/api/jobs", {"lane": "orders"}, headers=headers)
    assert (first.status_code, first.json()["key"]) == (201, "k")
    assert http.post("/api/jobs", {"lane": "orders", "key": "k"}, headers=headers).status_code == 200

    refused = http.post("/api/jobs", {"lane": "orders", "key": "other"}, headers=headers)
    assert (refused.status_code, refused.json()["field"]) == (422, "key")


def test_a_batch_with_a_key_of_its_own_is_safe_to_repeat(http: Http) -> None:
    headers, jobs = {"Idempotency-Key": "b"}, [{"lane": "orders"}, {"lane": "orders", "key": "own"}, 17]
    first, again = (
        http.post("/api/jobs", {"jobs": jobs}, headers=headers).json()["results"] for _ in range(2)
    )
    assert [result["id"] for result in again[:2]] == [result["id"] for result in first[:2]]
    assert [result["duplicate"] for result in again[:2]] == [True, True]
    assert [http.get(f"/api/jobs/{one['id']}").json()["key"] for one in first[:2]] == ["b/0", "own"]
    assert "id" not in again[2]


def test_a_batch_whose_key_is_none_for_all_of_it_is_refused_whole(http: Http) -> None:
    """An empty one is that of everybody whose variable was not set."""
    jobs = [{"lane": "orders", "payload": n} for n in range(11)]
    for key, why in (("", "leave it out"), ("k" * 253, "has 253 bytes in UTF-8, and with /10 behind it")):
        answer = http.post("/api/jobs", {"jobs": jobs}, headers={"Idempotency-Key": key})
        assert (answer.status_code, answer.json()["field"]) == (422, "Idempotency-Key"), answer.text
        assert why in answer.json()["detail"]
    assert "for 11 jobs use at most 252" in answer.json()["detail"]

    assert http.get("/api/jobs").json()["jobs"] == []
    few = http.post("/api/jobs", {"jobs": jobs[:10]}, headers={"Idempotency-Key": "k" * 253})
    assert all("id" in result for result in few.json()["results"])
    own = [{"lane": "orders", "key": "own"}]
    assert "id" in http.post("/api/jobs", {"jobs": own}, headers={"Idempotency-Key": ""}).json()["results"][0]


def test_a_key_in_the_head_of_a_request_is_utf_8(http: Http) -> None:
    head = {"Content-Type": "application/json"}
    made = http.request(
        "POST", "/api/jobs", content='{"lane": "orders"}', headers=head | {"Idempotency-Key": "é→".encode()}
    )
    assert made.json()["key"] == "é→"
    assert http.post("/api/jobs", {"lane": "orders", "key": "é→"}).json()["duplicate"]
    hold = '{"verb": "hold", "filter": "lane:orders", "reason": "x", "dry_run": false}'
    for path, body in (("/api/jobs", '{"lane": "orders"}'), ("/api/operations", hold)):
        latin = head | {"Idempotency-Key": "é".encode("latin-1")}
        answer = http.request("POST", path, content=body, headers=latin)
        assert (answer.status_code, answer.json()["field"]) == (400, "Idempotency-Key"), answer.text
        assert "not UTF-8" in answer.json()["detail"]


def test_two_keys_in_the_head_of_a_request_are_refused(http: Http) -> None:
    twice = [("Idempotency-Key", "a"), ("Idempotency-Key", "b"), ("Content-Type", "application/json")]
    hold = '{"verb": "hold", "filter": "lane:orders", "reason": "x"}'
    for path, body in (("/api/jobs", '{"lane": "orders"}'), ("/api/operations", hold)):
        answer = http.request("POST", path, content=body, headers=twice)
        assert (answer.status_code, answer.json()["field"]) == (422, "Idempotency-Key"), answer.text


def test_a_batch_is_answered_one_by_one(every: Http) -> None:
    jobs = [
        {"lane": "orders", "payload": 1, "key": "k"},
        {"lane": "ordres"},
        {"lane": "orders", "payload": 1, "key": "k"},
        {"lane": "orders", "sequence": -1},
        17,
        {"lane": "orders"},
    ]
    answer = every.post("/api/jobs", {"jobs": jobs})

    assert answer.status_code == 200
    results = answer.json()["results"]
    assert [result["index"] for result in results] == [0, 1, 2, 3, 4, 5]
    assert results[2] == {"index": 2, "id": results[0]["id"], "duplicate": True}
    assert results[1]["error"] == 'unknown lane "ordres"; did you mean orders?'
    assert results[3]["field"] == "sequence"
    assert "error" in results[4]
    assert every.get(f"/api/jobs/{results[5]['id']}").status_code == 200


def test_an_empty_batch_is_nothing(http: Http) -> None:
    assert http.post("/api/jobs", ' { "jobs" : [ ] } ').json() == {"results": []}


@pytest.mark.parametrize(("count", "status"), [(1000, 200), (1001, 413)])
def test_a_batch_has_at_most_a_thousand_jobs(http: Http, count: int, status: int) -> None:
    answer = http.post("/api/jobs", {"jobs": [{"lane": "orders"}] * count})

    assert answer.status_code == status
    assert len(http.get("/api/jobs?limit=500").json()["jobs"]) == (500 if status == 200 else 0)


@pytest.mark.parametrize(("size", "status"), [(8 * 1024 * 1024, 400), (8 * 1024 * 1024 + 1, 413)])
def test_a_body_has_at_most_8_mib(http: Http, size: int, status: int) -> None:
    answer = http.post("/api/jobs", b" " * size)

    assert answer.status_code == status
    assert answer.headers["content-type"] == "application/problem+json"


def test_a_list_goes_on_where_it_ended(every: Http) -> None:
    made = [every.post("/api/jobs", {"lane": "orders", "payload": n}).json()["id"] for n in range(5)]

    first = every.get("/api/jobs", params={"lane": "orders", "limit": "3"}).json()
    rest = every.get("/api/jobs", params={"lane": "orders", "limit": "3", "after": first["next"]}).json()

    assert [job["id"] for job in first["jobs"] + rest["jobs"]] == made[::-1]
    assert rest["next"] is None
    assert "payload" not in first["jobs"][0]
    with_payloads = every.get("/api/jobs?payloads=true&limit=1").json()["jobs"]
    assert with_payloads[0]["payload"] == 4


def test_a_list_that_is_empty_hints_at_names_that_lead_nowhere(every: Http) -> None:
    every.post("/api/jobs", {"lane": "orders", "group": "customer-7", "mode": "block_on_error"})

    def hint(query: str) -> str | None:
        answer = every.get(f"/api/jobs?{query}").json()
        assert answer["jobs"] == []
        return cast("str | None", answer.get("hint"))

    assert hint("filter=lane:ordres") == 'unknown lane "ordres"; did you mean orders?'
    assert "of group customer-8; did you mean customer-7?; jobs of mode" in str(hint("group=customer-8"))
    assert "no ordered job of group nobody; jobs of" in str(hint("filter=lane:orders group:nobody"))
    assert hint("group=customer-7&state=dead") is None
    assert hint("state=dead") is None


def test_a_list_is_filtered(http: Http) -> None:
    http.post("/api/jobs", {"lane": "orders", "group": "g", "mode": "block_on_error", "tenant": "t"})
    held = http.post("/api/jobs", {"lane": "orders", "key": "k"}).json()["id"]
    http.node.client.hold(held, reason="look")

    def ids(query: str) -> list[str]:
        return [job["id"] for job in http.get(f"/api/jobs?{query}").json()["jobs"]]

    assert ids("state=held") == ids("key=k") == ids("state=held,dead&state=running") == [held]
    assert len(ids("order=due")) == len(ids("group=g&tenant=t")) == 1


@pytest.mark.parametrize(
    ("query", "status", "words"),
    [
        ("lane=ordres", 422, "did you mean orders?"),
        ("state=sleeping", 422, "none of pending"),
        ("states=held", 422, "did you mean state?"),
        ("colour=red", 422, "known are filter, lane"),
        ("limit=0", 422, "from 1 to 500"),
        ("limit=501", 422, "from 1 to 500"),
        ("limit=-1", 422, "no whole number from 0"),
        ("limit=٣", 422, "no whole number"),
        ("limit=1&limit=2", 422, "stands twice"),
        ("order=random", 422, "none of newest"),
        ("order=due&state=dead", 422, "only pending"),
        ("payloads=yes", 422, "neither true nor false"),
        ("after=xyz", 400, "no place to go on from"),
        ("filter=created<9999-12-31T23:59:59Z", 422, "is not between the years 1970 and 9998"),
        ("filter=created>0001-01-01T00:00:00Z", 422, "is not between the years 1970 and 9998"),
        ("filter=created>9999999d", 200, ""),
        ("group=", 422, "not empty"),
        ("group=%00", 422, "NUL"),
        ("key=%ff%fe", 200, ""),
    ],
)
def test_a_filter_that_is_wrong_is_named(shared: Http, query: str, status: int, words: str) -> None:
    answer = shared.get(f"/api/jobs?{query}")

    assert answer.status_code == status, answer.text
    assert words in answer.json().get("detail", "")


def test_the_timeline_tells_what_happened(every: Http) -> None:
    job = every.post("/api/jobs", {"lane": "orders"}).json()["id"]
    every.node.client.hold(job, reason="look")

    found = every.get(f"/api/jobs/{job}/timeline").json()

    assert (found["id"], found["state"]) == (job, "held")
    assert [event["event"] for event in found["events"]] == ["enqueued", "hold"]


def test_a_job_explains_itself(every: Http) -> None:
    job = {"lane": "orders", "group": "g", "mode": "block_on_error"}
    first, second = (every.post("/api/jobs", job).json()["id"] for _ in range(2))
    every.node.client.hold(first, reason="look")

    behind = every.get(f"/api/jobs/{second}/explain").json()
    held = every.get(f"/api/jobs/{first}/explain").json()

    assert (behind["state"], behind["gate"], behind["job"]) == ("pending", "group", first)
    assert (held["gate"], held["by"]) == ("held", "api")
    assert first in behind["text"]


@pytest.mark.parametrize("path", ["/api/jobs/{}", "/api/jobs/{}/explain", "/api/jobs/{}/timeline"])
@pytest.mark.parametrize("job", ["01KA0000000000000000000000", "x", "%00", "%ff", "é", "a" * 5000])
def test_a_job_nobody_knows_is_not_found(shared: Http, path: str, job: str) -> None:
    answer = shared.get(path.format(job))

    assert answer.status_code == 404
    assert answer.json()["type"] == "urn:penstock:problem:not-found"
    assert answer.json()["hint"]


def test_a_full_lane_says_when_to_come_again(http: Http) -> None:
    put_lane(http.node.client.store, "small", max_depth=1)
    assert http.post("/api/jobs", {"lane": "small"}).status_code == 201

    full = http.post("/api/jobs", {"lane": "small"})
    assert (full.status_code, full.json()["lane"], full.headers["retry-after"]) == (429, "small", "1")


def test_an_outcome_is_applied_or_late(every: Http) -> None:
    client = every.node.client
    put_lane(client.store, "reported", complete_on="reported")
    job = every.post("/api/jobs", {"lane": "reported"}).json()["id"]
    node = client.store.register_node("test")
    assert client.store.claim(Ask(lane="reported", node=node)) is not None

    body = {"send": 1, "outcome": "succeeded", "result": {"ok": 1.10}}
    said = [every.post(f"/api/jobs/{job}/outcome", body).json() for _ in range(2)]

    assert said == [
        {"applied": True, "late": False, "cancel_requested": False},
        {"applied": False, "late": True, "cancel_requested": False},
    ]
    shown = every.get(f"/api/jobs/{job}").json()
    assert (shown["state"], json.loads(shown["result"])) == ("succeeded", {"ok": 1.1})


def test_many_outcomes_are_answered_one_by_one(every: Http) -> None:
    client = every.node.client
    made = every.post("/api/jobs", {"jobs": [{"lane": "orders"}] * 3}).json()["results"]
    ids = [result["id"] for result in made]
    node = client.store.register_node("test")
    assert client.store.claim(Ask(lane="orders", node=node)) is not None

    answer = every.post(
        "/api/outcomes",
        json.dumps(
            {
                "outcomes": [
                    {"id": ids[0], "send": 1, "outcome": "started"},
                    {"id": ids[0], "send": 1, "outcome": "heartbeat"},
                    {"id": ids[1], "send": 1, "outcome": "failed", "error": "no\ud800", "after": "30s"},
                    {"id": "01KA0000000000000000000000", "send": 1, "outcome": "started"},
                    {"id": ids[2], "send": 1, "outcome": "asleep"},
                    {"send": 1, "outcome": "started"},
                    {"id": ids[2], "send": "1", "outcome": "started"},
                    {"id": ids[2], "send": "\ud800", "outcome": "started"},
                    {"id": ids[2], "send": 1, "outcome": "deferred", "after": 1.5, "x": 1},
                ]
            }
        ),
    )

    assert answer.status_code == 200
    results = answer.json()["results"]
    assert [result.get("applied") for result in results] == [True, True, True, *[None] * 6]
    errors = [result["error"] for result in results[3:]]
    assert "no job" in errors[0]
    assert "asleep" in errors[1]
    assert "no job" in errors[2]
    assert "send" in errors[3]
    assert "send: holds a lone surrogate" in errors[4]
    assert "`x`" in errors[5]
    assert every.get(f"/api/jobs/{ids[1]}").json()["state"] == "pending"


@pytest.mark.parametrize(
    ("body", "status", "field"),
    [
        ({"outcome": "started"}, 422, "outcome"),
        ({"send": 1}, 422, "outcome"),
        ({"send": -1, "outcome": "started"}, 422, "send"),
        ({"send": 2**31, "outcome": "started"}, 422, "send"),
        ({"send": 10**30, "outcome": "started"}, 422, "send"),
        ({"send": 1.5, "outcome": "started"}, 422, "send"),
        ({"send": True, "outcome": "started"}, 422, "send"),
        ({"send": 1, "outcome": "asleep"}, 422, "outcome"),
        ({"send": 1, "outcome": "deferred", "after": "soon"}, 422, "after"),
        ({"send": 1, "outcome": "deferred", "after": -1}, 422, "after"),
        ({"send": 1, "outcome": "deferred", "after": 1e300}, 422, "after"),
        ({"send": 1, "outcome": "succeeded", "result": "x" * 70_000}, 422, "result"),
        ({"send": 1, "outcome": "succeeded", "id": "other"}, 422, "id"),
        ([], 400, None),
        ('{"send": 1, "send": 2, "outcome": "started"}', 400, None),
        ('{"send": 1, "outcome": "succeeded", "result": NaN}', 400, None),
        ('{"send": 1, "outcome": "succeeded", "result": ' + "1" * 5000 + "}", 400, None),
        ('{"send": 1, "outcome": "succeeded", "result": 1e999}', 422, "result"),
        ('{"send": 1, "outcome": "succeeded", "result": "\\ud800"}', 422, "result"),
        ('{"send": "\\ud800", "outcome": "succeeded"}', 422, "send"),
        ('{"send": 1, "outcome": "succeeded", "\\ud800": 1}', 422, "outcome"),
        ('{"send": 1, "outcome": "succeeded", "result": ' + "[" * 100_000 + "]" * 100_000 + "}", 400, None),
    ],
)
def test_a_report_that_is_wrong_is_refused(
    shared: Http, body: object, status: int, field: str | None
) -> None:
    job = shared.post("/api/jobs", {"lane": "orders"}).json()["id"]
    node = shared.node.client.store.register_node("test")
    shared.node.client.store.claim(Ask(lane="orders", node=node))

    answer = shared.post(f"/api/jobs/{job}/outcome", body)

    assert answer.status_code == status, answer.text
    assert answer.json().get("field") == field
    assert shared.get(f"/api/jobs/{job}").json()["state"] == "claimed"


@pytest.mark.parametrize("after", [-1, 366 * 86_400, 1e15, -1e300])
def test_a_delay_that_is_too_long_is_refused_in_one_sentence(shared: Http, after: float) -> None:
    job = shared.post("/api/jobs", {"lane": "orders"}).json()["id"]
    answer = shared.post(f"/api/jobs/{job}/outcome", {"send": 1, "outcome": "failed", "after": after})

    assert (answer.status_code, answer.json()["detail"]) == (422, "after: must be between 0 and 365 days")


def test_reports_of_a_job_nobody_knows_are_not_found(http: Http) -> None:
    body = {"send": 1, "outcome": "started"}

    assert http.post("/api/jobs/01KA0000000000000000000000/outcome", body).status_code == 404
    assert http.post("/api/outcomes", body).status_code == 400


def test_a_store_that_is_gone_is_unavailable_for_now(on_faulty: Http, faulty: Faulty) -> None:
    faulty.errors["enqueue"] = StoreUnavailable("enqueue")
    answer = on_faulty.post("/api/jobs", {"lane": "orders"})

    assert (answer.status_code, answer.headers["retry-after"]) == (503, "1")
    assert answer.json()["type"] == "urn:penstock:problem:store-unavailable"


def test_tables_of_another_version_are_unavailable_until_migrated(on_faulty: Http, faulty: Faulty) -> None:
    faulty.errors["find"] = SchemaMismatch("the tables are older", "run penstock migrate")
    answer = on_faulty.get("/api/jobs/01KA0000000000000000000000")

    assert (answer.status_code, answer.json()["hint"]) == (503, "run penstock migrate")


def test_a_job_that_was_written_is_never_answered_as_refused(on_faulty: Http, faulty: Faulty) -> None:
    faulty.errors["find"] = StoreUnavailable("find")
    made = on_faulty.post("/api/jobs", {"lane": "orders"})
    faulty.errors.clear()

    assert (made.status_code, set(made.json())) == (201, {"id"})
    assert on_faulty.get(f"/api/jobs/{made.json()['id']}").status_code == 200


def test_a_bug_is_an_answer_without_its_trace(
    on_faulty: Http, faulty: Faulty, caplog: pytest.LogCaptureFixture
) -> None:
    faulty.errors["find"] = KeyError("the secret of the house")
    answer = on_faulty.get("/api/jobs/01KA0000000000000000000000")

    assert answer.status_code == 500
    assert "secret" not in answer.text
    assert "the secret of the house" in caplog.text


def test_many_reports_cost_two_calls(on_faulty: Http, faulty: Faulty) -> None:
    made = on_faulty.post("/api/jobs", {"jobs": [{"lane": "orders"}] * 50}).json()["results"]
    faulty.calls.clear()

    reports = [{"id": result["id"], "send": 1, "outcome": "started"} for result in made]
    assert on_faulty.post("/api/outcomes", {"outcomes": reports}).status_code == 200
    assert sorted(set(faulty.calls) - {"lanes"}) == ["find", "report"]
    assert len(faulty.calls) <= 3


def test_times_travel_as_rfc_3339(every: Http) -> None:
    at = every.node.client.store.now() + timedelta(hours=1)

    made = every.post("/api/jobs", {"lane": "orders", "run_at": at.isoformat()}).json()

    assert made["run_at"].endswith("Z")
    assert every.node.client.get(made["id"]).live.due_at == at
