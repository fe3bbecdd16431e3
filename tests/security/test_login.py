"""People log in: cookies, sessions, CSRF, guessing."""

import asyncio
import re
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import ExitStack, closing
from datetime import UTC, datetime, timedelta
from time import thread_time
from typing import TypeVar

import httpx
import pytest

from penstock import Client, NewJob
from penstock.api.callers import IDLE, LONGEST, Callers, cookie_of
from penstock.api.login import MOST_WAITING, PER_NAME, Door, Proof
from penstock.domain.access import ROLES, hashed, new_token
from penstock.domain.ulid import Ulids
from penstock.passwords import _TURNS, AT_ONCE, SALT_BYTES, kept
from penstock.ports.clock import SystemClock
from penstock.ports.executor import Executor, ThreadExecutor
from penstock.stores.memory import MemoryStore
from penstock.ui.login import own_path
from tests.api.node import Http, served
from tests.client.conftest import put_lane
from tests.security.conftest import OF_SCRYPT, PASSWORD, csrf_of, log_in, make_user

HTML = {"Accept": "text/html,*/*"}
JOB = {"lane": "orders"}
T = TypeVar("T")


def test_a_page_leads_to_the_login_and_back(locked: Http) -> None:
    answer = locked.get("/", headers=HTML)

    assert answer.status_code == 303
    assert answer.headers["location"] == "/login?next=%2F"
    filtered = locked.get("/jobs?q=state:dead%20lane:pay", headers=HTML)
    assert filtered.headers["location"] == "/login?next=%2Fjobs%3Fq%3Dstate%3Adead%2520lane%3Apay"
    assert 'name="password"' in locked.get("/login?next=%2Fjobs%3Fq%3D1").text
    assert 'value="/jobs?q=1"' in locked.get("/login?next=%2Fjobs%3Fq%3D1").text
    assert locked.get("/").status_code == 401  # a program is told so
    assert locked.get("/", headers=HTML | {"Sec-Fetch-Mode": "cors"}).status_code == 401


def test_a_session_is_a_cookie_that_no_script_reads(locked: Http) -> None:
    answer = locked.request(
        "POST",
        "/login",
        data={"name": "ada", "password": PASSWORD, "next": "/jobs"},
        headers={"Origin": locked.node.url},
    )
    cookie = answer.headers["set-cookie"]

    assert (answer.status_code, answer.headers["location"]) == (303, "/jobs")
    assert re.match(r"penstock_session=[A-Za-z0-9_-]{43};", cookie)
    assert {"HttpOnly", "SameSite=lax", "Path=/"} <= {part.strip() for part in cookie.split(";")}
    assert answer.headers["cache-control"] == "no-store"
    assert locked.get("/api/jobs", headers={"Cookie": cookie.partition(";")[0]}).status_code == 200


@pytest.mark.parametrize("other", ['a={"b": 1}', "a", "a[b]=1", "expires=never", 'a="b', "a=\u00e9"])
def test_cookies_of_others_on_this_host_hide_no_session(other: str) -> None:
    assert cookie_of(f"{other}; penstock_session=s-1_") == "s-1_"
    assert cookie_of(f"penstock_session=s-1_;{other}") == "s-1_"
    assert cookie_of(f"penstock_session=old; {other}; __Host-penstock_session=new") == "new"
    assert cookie_of(f"{other}; penstock_session=") is None


def test_over_https_the_cookie_is_for_https_only(sqlite_url: str) -> None:
    with Client(sqlite_url) as client, served(client, login=True, hosts=["penstock.example"]) as http:
        make_user(client.store)
        answer = http.request(
            "POST",
            "/login",
            data={"name": "ada", "password": PASSWORD},
            headers={"Host": "penstock.example", "Origin": "https://penstock.example"},
        )
    cookie = answer.headers["set-cookie"]

    assert cookie.startswith("__Host-penstock_session=")
    assert "; Secure" in cookie
    assert "Domain" not in cookie


@pytest.mark.parametrize(
    ("name", "password"),
    [("ada", "wrong"), ("nobody", PASSWORD), ("", ""), ("ada\x00", PASSWORD), ("' OR 1=1 --", "x" * 5000)],
)
def test_what_is_wrong_is_not_told(sqlite_url: str, name: str, password: str) -> None:
    with Client(sqlite_url) as client, served(client, login=True) as http:
        make_user(client.store)
        answers = [
            http.request("POST", "/login", data={"name": n, "password": p}, headers={"Origin": http.node.url})
            for n, p in ((name, password), ("ada", "also wrong"))
        ]

    assert [answer.status_code for answer in answers] == [401, 401]
    assert answers[0].text == answers[1].text
    assert "set-cookie" not in answers[0].headers


def test_guessing_has_to_wait(sqlite_url: str) -> None:
    with Client(sqlite_url) as client, served(client, login=True) as http:
        make_user(client.store)
        make_user(client.store, "bob")
        origin = {"Origin": http.node.url}
        for _ in range(PER_NAME):
            wrong = http.request("POST", "/login", data={"name": "ada", "password": "x"}, headers=origin)
            assert wrong.status_code == 401
        right = http.request("POST", "/login", data={"name": "ada", "password": PASSWORD}, headers=origin)

        assert right.status_code == 429
        assert int(right.headers["retry-after"]) > 0
        assert log_in(http, "bob")


def test_who_guesses_many_at_once_has_to_wait_too(sqlite_url: str) -> None:
    """Those that wait for their turn are counted when it comes, those at it as long as it lasts."""
    with Client(sqlite_url) as client, served(client, login=True) as http:

        def guess(_: int) -> int:
            form = {"name": "ada", "password": "x"}
            return http.request("POST", "/login", data=form, headers={"Origin": http.node.url}).status_code

        with ThreadPoolExecutor(MOST_WAITING) as guessers:
            answers = Counter(guessers.map(guess, range(MOST_WAITING)))

    assert answers == {401: PER_NAME, 429: MOST_WAITING - PER_NAME}


def test_many_who_log_in_at_once_are_told_to_come_again_in_a_moment(sqlite_url: str) -> None:
    """They did not fail: who waits for a turn gets in, and the others hear no word of failures."""
    more = 5
    with Client(sqlite_url) as client, served(client, login=True) as http:
        secret, names = kept(PASSWORD, bytes(SALT_BYTES)), [f"u{n}" for n in range(MOST_WAITING + more)]
        for name in names:
            client.store.put_user(name, password=secret, scopes=ROLES["viewer"], tenant=None, actor="test")

        def enter(name: str) -> httpx.Response:
            form = {"name": name, "password": PASSWORD}
            return http.request("POST", "/login", data=form, headers={"Origin": http.node.url})

        with ThreadPoolExecutor(len(names)) as people, ExitStack() as turns:
            for _ in range(AT_ONCE):
                turns.enter_context(_TURNS)  # nobody's password is compared until these are given back
            answers = as_completed([people.submit(enter, name) for name in names])
            refused = [next(answers).result() for _ in range(more)]
            turns.close()
            entered = [answer.result() for answer in answers]

    assert [(one.status_code, one.headers["retry-after"]) for one in refused] == [(503, "2")] * more
    assert all("Try again in a moment" in one.text for one in refused)
    assert [one.status_code for one in entered] == [303] * MOST_WAITING


def test_a_log_in_gives_a_new_session_and_ends_the_one_before(locked: Http) -> None:
    """Fixation: a cookie that somebody planted is worth nothing afterwards."""
    planted = {"Cookie": "penstock_session=planted"}
    first = log_in(locked)
    assert first != planted
    answer = locked.request(
        "POST",
        "/login",
        data={"name": "ada", "password": PASSWORD},
        headers={"Origin": locked.node.url, **first},
    )
    second = {"Cookie": answer.headers["set-cookie"].partition(";")[0]}

    assert second != first
    assert locked.get("/api/jobs", headers=first).status_code == 401
    assert locked.get("/api/jobs", headers=planted).status_code == 401
    assert locked.get("/api/jobs", headers=second).status_code == 200


def test_logging_out_ends_the_session_everywhere(locked: Http) -> None:
    session = log_in(locked)
    answer = locked.request("POST", "/logout", headers={"Origin": locked.node.url, **session})

    assert answer.status_code == 303
    assert "Max-Age=0" in answer.headers["set-cookie"]
    assert locked.get("/api/jobs", headers=session).status_code == 401
    assert locked.node.client.store.session(hashed(session["Cookie"].partition("=")[2])) is None


@pytest.mark.parametrize(("idle", "total"), [(IDLE, timedelta(0)), (IDLE / 2, LONGEST)])
def test_a_session_ends_by_itself(idle: timedelta, total: timedelta) -> None:
    """After a while without use, and after a longer one in any case."""
    now = datetime(2026, 3, 1, tzinfo=UTC)
    clock = [now]
    store = MemoryStore(clock=lambda: clock[0], ids=Ulids(lambda: 0, bytes))
    put_lane(store)
    with Client(store) as client, served(client, login=True) as http:
        make_user(store)
        session = log_in(http)
        token = hashed(session["Cookie"].partition("=")[2])
        while clock[0] - now < total:
            clock[0] += idle
            store.session_used(token)
        clock[0] += timedelta(seconds=1) if total else idle
        assert http.get("/api/jobs", headers=session).status_code == (200 if not total else 401)
        clock[0] += idle + timedelta(seconds=1)
        http.node.callers.forget(session["Cookie"].partition("=")[2])
        assert http.get("/api/jobs", headers=session).status_code == 401


def test_what_changes_something_needs_the_token_of_the_page(locked: Http) -> None:
    session = log_in(locked)
    token = {"X-CSRF-Token": csrf_of(session)}

    for wrong in ({}, {"X-CSRF-Token": ""}, {"X-CSRF-Token": "0" * 64}, {"X-CSRF-Token": "é".encode()}):
        refused = locked.post("/api/jobs", JOB, headers=session | wrong)
        assert refused.status_code == 403
        assert refused.json()["type"] == "urn:penstock:problem:wrong-csrf-token"
    assert locked.post("/api/jobs", JOB, headers=session | token).status_code == 201
    other = log_in(locked)
    assert locked.post("/api/jobs", JOB, headers=other | token).status_code == 403
    assert (
        locked.post(
            "/api/jobs", JOB, headers=session | token | {"Origin": "https://evil.example"}
        ).status_code
        == 403
    )


def test_the_audit_names_the_user(locked: Http) -> None:
    log_in(locked)

    last = locked.node.client.store.audit_log().entries[0]
    assert (last.action, last.actor) == ("user.login", "user:ada")


def test_a_changed_password_ends_sessions(locked: Http) -> None:
    store = locked.node.client.store
    make_user(store, "eve", "viewer")
    session = log_in(locked, "eve")
    assert locked.get("/api/jobs", headers=session).status_code == 200
    make_user(store, "eve", "viewer")
    locked.node.callers.forget(session["Cookie"].partition("=")[2])

    assert locked.get("/api/jobs", headers=session).status_code == 401


async def test_a_log_in_with_a_password_that_is_just_changed_begins_nothing() -> None:
    """The change ends all sessions, and this one would have begun after that."""
    store = MemoryStore(clock=lambda: datetime(2026, 3, 1, tzinfo=UTC), ids=Ulids(lambda: 0, bytes))
    make_user(store)
    clock, executor = SystemClock(), ThreadExecutor(1, name="test-door")
    callers = Callers(store, executor=executor, clock=clock, login=True)

    def changed_meanwhile(size: int) -> bytes:
        store.put_user("ada", password="another", scopes=None, tenant=..., actor="ops")  # noqa: S106
        return bytes(size)

    door = Door(store, callers, executor=executor, clock=clock, entropy=changed_meanwhile)

    with closing(executor):
        assert await door.log_in(Proof("ada", PASSWORD), address="127.0.0.1") is None
    assert store.session(hashed(new_token(bytes))) is None


def door_of(store: MemoryStore, executor: Executor) -> Door:
    callers = Callers(store, executor=executor, clock=SystemClock(), login=True)
    return Door(store, callers, executor=executor, clock=SystemClock())


async def test_a_password_of_an_earlier_version_is_kept_anew_at_the_next_log_in() -> None:
    store = MemoryStore(clock=lambda: datetime(2026, 3, 1, tzinfo=UTC), ids=Ulids(lambda: 0, bytes))
    store.put_user("ada", password=OF_SCRYPT, scopes=[], tenant=None, actor="test")
    with closing(ThreadExecutor(2, name="test-door")) as executor:
        door = door_of(store, executor)
        assert await door.log_in(Proof("ada", "wrong"), address="127.0.0.1") is None
        kept_still = store.user("ada")
        async with asyncio.TaskGroup() as both:  # one of them finds that the other has kept it anew
            logs_in = [
                both.create_task(door.log_in(Proof("ada", PASSWORD), address="127.0.0.1")) for _ in range(2)
            ]
        kept_anew = store.user("ada")
        again = await door.log_in(Proof("ada", PASSWORD), address="127.0.0.1")

    assert kept_still is not None
    assert kept_still.password == OF_SCRYPT
    for token in (*(task.result() for task in logs_in), again):
        assert token is not None
        assert store.session(hashed(token)) is not None
    assert kept_anew is not None
    assert kept_anew.password.startswith("$argon2id$")
    assert store.user("ada") == kept_anew


class Measured:
    """An executor that adds up what its calls computed."""

    def __init__(self) -> None:
        self.seconds = 0.0

    async def run(self, call: Callable[[], T]) -> T:
        began = thread_time()
        try:
            return call()
        finally:
            self.seconds += thread_time() - began


async def test_a_name_that_nobody_has_is_as_much_work() -> None:
    store = MemoryStore(clock=lambda: datetime(2026, 3, 1, tzinfo=UTC), ids=Ulids(lambda: 0, bytes))
    make_user(store)
    took = {}
    for name in ("ada", "nobody"):
        executor = Measured()
        assert await door_of(store, executor).log_in(Proof(name, "wrong"), address="127.0.0.1") is None
        took[name] = executor.seconds

    assert took["nobody"] > took["ada"] / 2


@pytest.mark.parametrize(
    ("path", "goes"),
    [
        ("/jobs?q=a", "/jobs?q=a"),
        ("//evil.example", "/"),
        ("/\\evil.example", "/"),
        ("https://evil.example", "/"),
        ("/a\r\nSet-Cookie: x=y", "/"),
        ("", "/"),
        ("/" + "a" * 3000, "/"),
    ],
)
def test_a_log_in_leads_to_a_page_of_ours(path: str, goes: str) -> None:
    assert own_path(path) == goes


def test_what_is_open_stays_open(locked: Http) -> None:
    for path in ("/health/live", "/health/ready", "/login", "/login/style.css", "/login/icon.svg"):
        assert locked.get(path).status_code == 200
        assert locked.get(path, headers={"Authorization": "Bearer pk_wrong"}).status_code == 200


@pytest.fixture
def large(sqlite_url: str) -> Iterator[Client]:
    """A store with more than fits between a node and a reader who takes nothing."""
    with Client(sqlite_url) as client:
        make_user(client.store)
        client.enqueue_many([NewJob("orders", payload=f'"{"x" * 200_000}"') for _ in range(100)])
        yield client


def test_an_export_is_cut_when_its_session_ends(large: Client) -> None:
    """What comes is what was on its way; the file does not look whole."""
    with served(large, login=True) as http:
        http.node.start()
        session = log_in(http)
        with http.stream("GET", "/jobs/export", headers=session) as answer:
            lines = answer.iter_lines()
            seen = [next(lines)]
            large.store.remove_user("ada", actor="boss", reason="gone")
            http.node.callers.forget(session["Cookie"].partition("=")[2])
            with pytest.raises(httpx.RemoteProtocolError):
                seen.extend(lines)
    assert len(seen) < 100


def test_an_export_is_cut_when_its_node_stops(large: Client, caplog: pytest.LogCaptureFixture) -> None:
    """The node waited five seconds for it, and said with a traceback that it no longer does."""
    with served(large, login=True) as http:
        http.node.start()
        with http.stream("GET", "/jobs/export", headers=log_in(http)) as answer:
            lines = answer.iter_lines()
            assert next(lines)
            http.node.stop()
            with pytest.raises(httpx.RemoteProtocolError):
                list(lines)
    assert "Traceback" not in caplog.text
