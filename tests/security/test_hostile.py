"""Forty hostile texts through every field, every filter, every screen, the command line and the log."""

import json
import logging
from collections.abc import Iterator
from contextlib import closing
from io import StringIO
from pathlib import Path
from typing import Any
from urllib.parse import quote

import httpx
import pytest
from click.testing import CliRunner

from penstock import Client
from penstock.cli.main import main
from penstock.domain.intake import Fields
from penstock.domain.lanes import SETTINGS, lane
from penstock.domain.pools import POOL_SETTINGS, pool
from penstock.errors import PenstockError
from penstock.observability.logs import configure
from penstock.stores.connect import connect
from penstock.ui.telling import NOTE, read_note
from tests.api.node import Http, served
from tests.security.forms import forms_of
from tests.security.hostile import HOSTILE, worries
from tests.security.routes import Route, routes_of

HTML = {"Accept": "text/html"}
FIELDS = (
    "group",
    "key",
    "tenant",
    "target",
    "entity",
    "version",
    "correlation",
    "id",
    "pool",
    "mode",
    "lane",
)
PARAMETERS = ("q filter", "lane group tenant", "after key state within next from to")
QUIET = ("/health", "/metrics", "/login/", "/api/openapi", "/static")


@pytest.fixture(scope="module")
def store_url(tmp_path_factory: pytest.TempPathFactory) -> str:
    return f"sqlite:///{tmp_path_factory.mktemp('hostile')}/penstock.db"


@pytest.fixture(scope="module")
def hurt(store_url: str) -> Iterator[Http]:
    """Return a node whose store holds every text in every field that takes it."""
    with closing(connect(store_url)) as store:
        store.migrate()
        store.put_lane(lane("orders", mode="block_on_error"), actor="test")
        with Client(store, actor="api") as client, served(client) as http:
            http.node.start()
            for text in HOSTILE:
                seed(client, text)
            yield http


def seed(client: Client, text: str) -> None:
    """Put a text wherever it is let in; what is refused must be refused by name."""
    accepted = {}
    for field in FIELDS:
        [answer] = client.enqueue_many([{"lane": "orders", field: text}])
        if not isinstance(answer, PenstockError):
            accepted[field] = text
    fields: dict[str, object] = {name: value for name, value in accepted.items() if name not in ("id", "key")}
    for more in ({"payload": {text: [text]}}, {"headers": {"X-Text": text}}, {"event": {"type": text}}):
        [answer] = client.enqueue_many([{"lane": "orders", **more}])
        if not isinstance(answer, PenstockError):
            fields |= more
    [job] = client.enqueue_many([{**fields, "lane": "orders"}])
    assert not isinstance(job, PenstockError), job
    try:
        client.cancel(job.id, reason=text)
        client.store.pause_lane("orders", paused=True, actor="test", reason=text)
        client.store.pause_group("orders", text, paused=True, actor="test", reason=text)
    except (PenstockError, ValueError):
        pass


def check(answer: httpx.Response, what: str) -> list[str]:
    """Return what is wrong with an answer."""
    wrong = [f"{what}: {answer.status_code} {answer.text[:200]}"] if answer.status_code >= 500 else []
    names = {name.lower() for name, _ in answer.headers.multi_items()}
    if "x-injected" in names or "x-injected" in answer.headers.get("set-cookie", ""):
        wrong.append(f"{what}: a header was injected")
    if answer.headers.get("x-content-type-options") != "nosniff":
        wrong.append(f"{what}: types may be guessed")
    if answer.headers.get("content-type", "").startswith("text/html"):
        wrong += [f"{what}: {worry}" for worry in worries(answer.text)]
    return wrong


def looks(http: Http) -> list[Route]:
    return [route for route in routes_of(http.node) if route.method == "GET" and route.path != "/api/events"]


def test_there_are_forty() -> None:
    assert len(set(HOSTILE)) == 40


def test_every_screen_shows_them_as_text(hurt: Http) -> None:
    """Lists of everything, and each job by itself."""
    jobs = hurt.node.client.list(limit=500).jobs
    wrong = []
    for route in looks(hurt):
        values = [job.id for job in jobs[::11]] if "job_id" in route.path else ["orders"]
        for value in values:
            url = route.url(value)
            wrong += check(hurt.get(url, headers=HTML), url)
    assert wrong == []
    assert len(jobs) > 200


@pytest.mark.parametrize("part", range(4))
def test_no_address_and_no_filter_breaks_anything(hurt: Http, part: int) -> None:
    """Each text at a quarter of the addresses and filters; every address gets ten of them."""
    wrong = []
    routes = [route for route in looks(hurt) if not route.path.startswith(QUIET)]
    for number, text in enumerate(HOSTILE[part::4]):
        plain = text.encode("utf-8", "replace").decode()
        for route in [route for route in routes if "{" in route.path][number % 4 :: 4]:
            url = route.url(quote(plain, safe=""))
            wrong += check(hurt.get(url, headers=HTML), url)
        for route in [route for route in routes if "{" not in route.path][number % 4 :: 4]:
            for names in PARAMETERS:
                answer = hurt.get(route.path, params=dict.fromkeys(names.split(), plain), headers=HTML)
                wrong += check(answer, f"{route.path} {names} {plain!r}")
    assert wrong == []


def some(texts: int, at: int) -> list[str]:
    """Return so many of the texts, others for every field; as UTF-8 can carry them."""
    step = len(HOSTILE) // texts
    return [text.encode("utf-8", "replace").decode() for text in HOSTILE[at % step :: step]]


HOW_MANY = [2, pytest.param(40, marks=pytest.mark.soak)]


@pytest.mark.parametrize("texts", HOW_MANY)
def test_no_field_of_any_form_breaks_anything(hurt: Http, texts: int) -> None:
    """The forms are those that the pages show, each field by itself with the others as they were."""
    job = hurt.node.client.enqueue("orders", {"n": 1}, group="form").id
    pages = [route for route in looks(hurt) if not route.is_api]
    urls = [route.url(job if "job_id" in route.path else "orders") for route in pages]
    found = [form for url in urls for form in forms_of(hurt.get(url, headers=HTML).text, url)]
    forms = {form.kind: form for form in found if form.method == "post"}
    wrong, at = [], 0
    for form in forms.values():
        for field in form.fields:
            at += 1
            for text in some(texts, at):
                fields = {**form.fields, "reason": "test", field: text}
                answer = hurt.request("POST", form.action, data=fields, headers=HTML)
                wrong += check(answer, f"{form.action} {field} {text!r}")
                if at % 8 == 0 and "location" in answer.headers:
                    shown = hurt.get(answer.headers["location"], headers=HTML)
                    wrong += check(shown, f"behind {form.action} {field} {text!r}")
    assert wrong == []
    assert len(forms) > 15
    assert at > 90


NUL = "a\0b"
# Forms that act on a name, a group or for a reason.
ACTS = [
    *(
        f"{thing}/{verb}"
        for thing in ("/lanes/orders", "/pools/web", "/store")
        for verb in ("pause", "resume")
    ),
    *(f"/targets/{verb}?target=http://a.example" for verb in ("pause", "resume", "reset")),
    *(f"/groups/{path}lane=orders&group=g" for path in ("act?verb=pause&", "resume?")),
    *(f"/nodes/7/{verb}" for verb in ("drain", "resume")),
    *("/access/users/remove?name=ada", "/access/revoke?id=k"),
]
NAMES = ["/access/users/remove?name={}", "/access/revoke?id={}", "/access/users?name={}&role=viewer"]
NAMES += ["/groups/act?verb=pause&lane=orders&group={}", "/groups/resume?lane=orders&group={}"]


@pytest.mark.parametrize("where", ["sqlite_url", "pg_url"])
def test_what_no_database_keeps_is_refused_by_every_form(request: pytest.FixtureRequest, where: str) -> None:
    """PostgreSQL takes no NUL, and SQLite would keep it: neither is asked."""
    with Client(request.getfixturevalue(where)) as client, served(client) as http:
        client.store.put_lane(lane("orders"), actor="test")
        client.store.put_pool(pool("web"), actor="test")
        before = client.store.audit_log().entries
        asked = [(url, NUL) for url in ACTS] + [(url.format(quote(NUL)), "test") for url in NAMES]
        answers = {url: http.request("POST", url, data={"reason": reason}) for url, reason in asked}
        told = {url: read_note(answer.cookies.get(NOTE)) or {} for url, answer in answers.items()}
        refused = [url for url, note in told.items() if note.get("bad") or answers[url].status_code == 422]

        assert refused == [*answers]
        assert client.store.audit_log().entries == before
        assert http.get("/groups", params={"group": NUL}, headers=HTML).status_code == 422
        put = http.request("PUT", f"/api/users/{quote(NUL)}", json={"tenant": None})
        assert put.status_code == 422


@pytest.mark.parametrize("texts", HOW_MANY)
def test_no_field_of_any_body_and_no_parameter_breaks_anything(hurt: Http, texts: int) -> None:
    """The fields are those that the document knows, each by itself with the others as they may be."""
    document = hurt.get("/api/openapi.json").json()
    job = hurt.node.client.enqueue("orders", {"n": 1}, group="body").id
    wrong, at = [], 0
    for path, method, fields in asked(document):
        url = "/".join(
            (job if "job" in part else "orders") if part.startswith("{") else part for part in path.split("/")
        )
        for field, where in fields.items():
            at += 1
            for text in some(texts, at):
                what = f"{method} {path} {field} {text!r}"
                if where == "query":
                    wrong += check(hurt.request(method, url, params={field: text}, headers=HTML), what)
                else:
                    body = {"settings": {field: text}} if where == "settings" else VALID | {field: text}
                    wrong += check(hurt.request(method, url, json=body, headers=HTML), what)
    assert wrong == []
    assert at > 150


VALID = {"lane": "orders", "group": "g", "reason": "test", "filter": "lane:orders", "verb": "hold"}


def asked(document: dict[str, Any]) -> Iterator[tuple[str, str, dict[str, str]]]:
    """Yield every operation of the document with its parameters, fields and settings."""
    shapes = document["components"]["schemas"]
    for path, operations in document["paths"].items():
        for method, operation in operations.items():
            found = {p["name"]: "query" for p in operation.get("parameters", []) if p["in"] == "query"}
            content = operation.get("requestBody", {}).get("content", {})
            for shape in of_shape(shapes, content.get("application/json", {}).get("schema", {})):
                found |= dict.fromkeys(shape.get("properties", {}), "body")
            if found.pop("settings", None):
                found |= dict.fromkeys(SETTINGS if "/lanes/" in path else POOL_SETTINGS, "settings")
            if path != "/api/events":
                yield path, method.upper(), found


def of_shape(shapes: dict[str, Any], shape: dict[str, Any]) -> list[dict[str, Any]]:
    """Return a shape, or those that it may be."""
    if "$ref" in shape:
        return of_shape(shapes, shapes[shape["$ref"].rpartition("/")[2]])
    return [one for each in shape["oneOf"] for one in of_shape(shapes, each)] if "oneOf" in shape else [shape]


def test_every_field_of_a_job_is_among_them() -> None:
    others = {"payload", "headers", "event"}  # which seed() fills by themselves
    numbers_and_times = {"sequence", "max_attempts", "run_at", "start_by", "finish_by"}

    assert {*FIELDS, *others, *numbers_and_times} == {"lane", "payload", *Fields.__annotations__}


def printed(*arguments: str) -> str:
    result = CliRunner().invoke(main, arguments)
    assert result.exit_code in {0, 1}, (arguments, result.output, result.exception)
    return result.output


def test_no_command_lets_them_move_the_cursor(hurt: Http, store_url: str) -> None:
    jobs = hurt.node.client.list(limit=500).jobs
    outputs = {
        command: printed(*command.split(), "--store", store_url)
        for command in (
            "jobs list --limit 500",
            "groups list",
            "lanes list",
            "lanes show orders",
            "audit",
            "pools list",
            "dead list",
            "history",
        )
    }
    for job in jobs[::9]:
        for verb in ("show", "timeline", "explain"):
            outputs[f"{verb} {job.id}"] = printed("jobs", verb, job.id, "--store", store_url)
    wrong = {
        command: sorted(odd)
        for command, output in outputs.items()
        if (odd := {c for c in output if not c.isprintable() and c not in "\n\t"})
    }
    assert wrong == {}


@pytest.mark.parametrize("form", ["console", "json"])
def test_no_log_line_is_forged(form: str) -> None:
    stream = StringIO()
    root = logging.getLogger()
    before = root.handlers[:], root.level
    try:
        configure(level="info", form=form, stream=stream)
        for text in HOSTILE:
            logging.getLogger("penstock.access").warning("log-in of %r failed: %s", text, text)
    finally:
        root.handlers[:], root.level = before[0], before[1]
    lines = stream.getvalue().encode("utf-8", "replace").decode().splitlines()

    assert len(lines) == len(HOSTILE)
    assert all(line.isprintable() for line in lines)
    if form == "json":
        assert all(json.loads(line)["level"] == "warning" for line in lines)


def test_nothing_was_lost(hurt: Http, store_url: str) -> None:
    """After all this the tables are there, and no file but the store's."""
    assert hurt.node.client.list(limit=1).jobs
    assert hurt.get("/health/ready").status_code == 200
    assert {path.name.partition(".db")[0] for path in Path(store_url[10:]).parent.iterdir()} == {"penstock"}
