"""Input that was made to hurt: always an answer, never a 5xx, and the others go on."""

import socket
from urllib.parse import urlsplit

import pytest

from tests.api.node import Http

DEEP = "[" * 100_000 + "]" * 100_000
NESTED = "[" * 65 + "]" * 65
LONG = "1" * 5000
JOB = '{"lane":"orders","payload":%s}'

# body, status of the body alone, and of a batch that holds it: None = the batch cannot be taken apart
TABLE = [
    ("", 400, None),
    ("{", 400, None),
    ("null", 400, 200),
    ("[]", 400, 200),
    ('"text"', 400, 200),
    ("{}", 422, 200),
    ("{'lane': 'orders'}", 400, None),
    ('{"lane": "orders",}', 400, None),
    ('{"lane": "orders"} {}', 400, None),
    ('\ufeff{"lane": "orders"}', 400, None),
    ('{"lane": "orders", "lane": "orders"}', 422, 200),
    ('{"lane": 17}', 422, 200),
    ('{"lane": null}', 422, 200),
    ('{"lane": "no such"}', 422, 200),
    ('{"lane": "\\u0000"}', 422, 200),
    ('{"lane": "\\ud800"}', 422, 200),
    ('{"lane": "orders", "\\ud800": 1}', 422, 200),
    ('{"lane": "orders", "' + "x" * 100_000 + '": 1}', 422, 200),
    ('{"lane": "orders", "colour": "red"}', 422, 200),
    ('{"lane": "orders", "jobs": []}', 422, 200),
    (JOB % "NaN", 422, 200),
    (JOB % "-Infinity", 422, 200),
    (JOB % "1e999", 422, 200),
    (JOB % LONG, 400, 200),
    (JOB % ('{"a":' + LONG + "}"), 400, 200),
    (JOB % '{"a":1,"a":2}', 422, 200),
    (JOB % '"\\ud800"', 422, 200),
    (JOB % '{"\\udfff":1}', 422, 200),
    (JOB % '"\\u0000"', 422, 200),
    (JOB % '"a\x00b"', 400, None),
    (JOB % '"a\nb"', 400, None),
    (JOB % DEEP, 400, None),
    (JOB % NESTED, 422, 200),
    (JOB % ('"' + "x" * 300_000 + '"'), 422, 200),
    ('{"lane":"orders","sequence":' + LONG + "}", 400, 200),
    ('{"lane":"orders","sequence":1.5}', 422, 200),
    ('{"lane":"orders","sequence":true}', 422, 200),
    ('{"lane":"orders","sequence":99999999999999999999}', 422, 200),
    ('{"lane":"orders","max_attempts":0}', 422, 200),
    ('{"lane":"orders","run_at":"yesterday"}', 422, 200),
    ('{"lane":"orders","run_at":"2026-11-15T10:00:00"}', 422, 200),
    ('{"lane":"orders","run_at":1}', 422, 200),
    ('{"lane":"orders","run_at":"9999-12-31T23:59:59-23:59"}', 422, 200),
    ('{"lane":"orders","group":""}', 422, 200),
    ('{"lane":"orders","group":"' + "é" * 128 + '"}', 422, 200),
    ('{"lane":"orders","key":["k"]}', 422, 200),
    ('{"lane":"orders","headers":{"a b":"c"}}', 422, 200),
    ('{"lane":"orders","headers":{"X-A":"c\\r\\nX-B: d"}}', 422, 200),
    ('{"lane":"orders","headers":' + NESTED + "}", 422, 200),
    ('{"lane":"orders","mode":"sideways"}', 422, 200),
    ('{"lane":"orders","id":"not-an-id"}', 422, 200),
    ('{"lane":"orders","pool":"no-such"}', 422, 200),
    ('{"lane":"orders","event":{"colour":"red"}}', 422, 200),
]


WRONG = [
    ("POST", "/api/operations", '{"verb": "hold", "filter": "", "reason": "r", "rate": "\\ud800"}', "rate"),
    (
        "POST",
        "/api/operations",
        '{"verb": "hold", "filter": "", "reason": "r", "dry_run": "\\ud800"}',
        "dry_run",
    ),
    ("POST", "/api/replay", '{"filter": "", "reason": "r", "out_of_order": "\\ud800"}', "out_of_order"),
    ("POST", "/api/access", '{"name": "n", "scopes": "\\ud800"}', "scopes"),
    ("PUT", "/api/lanes/orders", '{"settings": "\\ud800"}', "settings"),
    ("PUT", "/api/lanes/orders", '{"settings": {}, "\\ud800": 1}', "body"),
    ("POST", "/api/pause", '{"reason": "r", "\\ud800": 1}', "body"),
]


@pytest.mark.parametrize(("method", "path", "body", "field"), WRONG)
def test_what_is_no_text_where_another_type_belongs_is_refused(
    http: Http, method: str, path: str, body: str, field: str
) -> None:
    refused = http.request(method, path, content=body, headers={"Content-Type": "application/json"})

    assert (refused.status_code, refused.json()["field"]) == (422, field), refused.text
    assert "holds a lone surrogate" in refused.json()["detail"]


@pytest.mark.parametrize("value", ['"' + "[" * 3_000 + '"', "[" * 990 + "]" * 990, "[" * 3_000])
@pytest.mark.parametrize("setting", ["retry", "mode"])
def test_a_setting_that_is_nested_too_deeply_is_refused(http: Http, setting: str, value: str) -> None:
    body = f'{{"settings": {{"{setting}": {value}}}}}'
    refused = http.request(
        "PUT", "/api/lanes/orders", content=body, headers={"Content-Type": "application/json"}
    )

    assert refused.status_code in {400, 422}, refused.text


@pytest.mark.parametrize("field", ["lane", "mode", "id"])
def test_a_field_that_is_nested_almost_too_deeply_to_be_read_is_refused(shared: Http, field: str) -> None:
    for depth in range(970, 1_000):
        refused = shared.post("/api/jobs", f'{{"{field}": {"[" * depth}{"]" * depth}}}')
        assert refused.status_code in {400, 422}, depth


@pytest.mark.parametrize(("body", "status", "in_batch"), TABLE, ids=lambda v: repr(v)[:40])
def test_what_is_wrong_is_refused_and_its_neighbours_are_not(
    shared: Http, body: str, status: int, in_batch: int | None
) -> None:
    refused = shared.post("/api/jobs", body)

    assert refused.status_code == status, refused.text[:500]
    assert refused.headers["content-type"] == "application/problem+json"
    assert {"type", "title", "status", "detail", "hint"} <= set(refused.json())
    assert len(refused.content) < 5000

    batch = shared.post("/api/jobs", f'{{"jobs": [{{"lane":"orders"}}, {body}, {{"lane":"orders"}}]}}')
    assert batch.status_code == (in_batch or 400), batch.text[:500]
    if in_batch is not None:
        first, middle, last = batch.json()["results"]
        assert "error" in middle
        assert all("id" in result for result in (first, last))


@pytest.mark.parametrize(
    "body",
    [
        '{"jobs": 1}',
        '{"jobs": {"lane": "orders"}}',
        '{"jobs": null}',
        '{"jobs": [}',
        '{"jobs": [,]}',
        '{"jobs": [{"lane": "orders"},]}',
        '{"jobs": [{"lane": "orders"} {"lane": "orders"}]}',
        '{"jobs": [{"lane": "orders"}], "lane": "orders"}',
        '{"jobs": [], "jobs": [{"lane": "orders"}]}',
        '{"jobs": []}}',
        '{"jobs": []',
        '{"jobs": [' + "[" * 100_000,
    ],
    ids=lambda v: v[:40],
)
def test_a_batch_that_is_none_writes_nothing(shared: Http, body: str) -> None:
    before = shared.get("/api/jobs?limit=1").json()
    answer = shared.post("/api/jobs", body)

    assert answer.status_code == 400, answer.text
    assert shared.get("/api/jobs?limit=1").json() == before


@pytest.mark.parametrize("body", [b"\xff\xfe", b'{"lane": "\xff"}', '{"lane": "orders"}'.encode("utf-16")])
def test_what_is_not_utf_8_is_refused(shared: Http, body: bytes) -> None:
    assert shared.post("/api/jobs", body).status_code == 400


@pytest.mark.parametrize(
    "kind",
    [
        "",
        "text/plain",
        "text/plain; format=flowed",
        "application/x-www-form-urlencoded",
        "multipart/form-data; boundary=a",
        "application/json; charset=latin-1",
        "json",
        ";;;",
    ],
)
@pytest.mark.parametrize("path", ["/api/jobs", "/api/jobs/x/outcome", "/api/outcomes", "/api/pause"])
def test_only_json_is_read(shared: Http, path: str, kind: str) -> None:
    answer = shared.post(path, '{"lane": "orders"}', headers={"Content-Type": kind})

    assert answer.status_code == 415
    assert "application/json" in answer.json()["hint"]


def test_a_body_that_is_packed_is_refused_as_such(shared: Http) -> None:
    answer = shared.post("/api/jobs", '{"lane": "orders"}', headers={"Content-Encoding": "gzip"})

    assert (answer.status_code, answer.json()["detail"]) == (415, "the body is packed (gzip)")


@pytest.mark.parametrize(
    "kind", ["application/json", "application/json; charset=utf-8", "Application/JSON; charset=UTF-8"]
)
def test_json_may_say_that_it_is_utf_8(shared: Http, kind: str) -> None:
    assert shared.post("/api/jobs", '{"lane": "orders"}', headers={"Content-Type": kind}).status_code == 201


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "/nowhere", 404),
        ("GET", "/api", 404),
        ("GET", "/api/jobs/../../etc/passwd", 404),
        ("GET", "/static/..%2f..%2fpages.py", 404),
        ("GET", "/static/%2e%2e/pages.py", 404),
        ("DELETE", "/api/jobs", 405),
        ("PUT", "/api/jobs/x", 405),
        ("POST", "/health/ready", 405),
        ("GET", "/api/outcomes", 405),
    ],
)
def test_an_address_that_is_wrong_is_a_problem_too(shared: Http, method: str, path: str, status: int) -> None:
    answer = shared.request(method, path)

    assert answer.status_code == status
    assert answer.headers["content-type"] == "application/problem+json"
    assert answer.json()["hint"]


@pytest.mark.parametrize(
    "accept", ["text/plain; version=abc", "application/openmetrics-text; version=x.y", "é", "," * 5000]
)
def test_no_accept_header_breaks_a_scrape(shared: Http, accept: str) -> None:
    assert shared.get("/metrics", headers={"Accept": accept.encode()}).status_code == 200


@pytest.mark.parametrize(
    "raw",
    [
        b"GET / HTTP/1.1\r\n\r\n",
        b"nonsense\r\n\r\n",
        b"GET /\x00 HTTP/1.1\r\nHost: localhost\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: localhost\r\nHost: evil.example\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: localhost\r\nX: " + b"a" * 1_000_000 + b"\r\n\r\n",
        (
            b"POST /api/jobs HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
            b"Content-Length: abc\r\n\r\n"
        ),
        (
            b"POST /api/jobs HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
            b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"
        ),
    ],
    ids=["no-host", "nonsense", "nul", "two-hosts", "huge-header", "length", "smuggling"],
)
def test_a_request_that_is_no_http_does_not_hurt_the_next(shared: Http, raw: bytes) -> None:
    parts = urlsplit(shared.node.url)
    with socket.create_connection((parts.hostname, parts.port), timeout=10) as sock:
        try:
            sock.sendall(raw)
            answer = sock.recv(100)
        except ConnectionError:
            answer = b""
    assert not answer.startswith(b"HTTP/1.1 5")

    assert shared.get("/health/live").status_code == 200


def test_a_body_without_an_end_does_not_hurt_the_next(shared: Http) -> None:
    parts = urlsplit(shared.node.url)
    head = b"POST /api/jobs HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    with socket.create_connection((parts.hostname, parts.port), timeout=10) as sock:
        sock.sendall(head + b"Content-Length: 1000\r\n\r\n{")

    assert shared.post("/api/jobs", {"lane": "orders"}).status_code == 201


def test_a_chunked_body_is_counted_as_it_comes(shared: Http) -> None:
    chunk = b" " * 65536
    answer = shared.request(
        "POST",
        "/api/jobs",
        content=(chunk for _ in range(129)),
        headers={"Content-Type": "application/json"},
    )

    assert answer.status_code == 413
