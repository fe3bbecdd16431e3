"""One request to a node's API, and what its refusals mean."""

import json
import re
import ssl
import threading
from collections.abc import Callable, Mapping
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from typing import Any, Final
from urllib.parse import urlencode, urlsplit
from weakref import WeakSet

from penstock.domain.access import proof
from penstock.domain.sense import is_callable
from penstock.errors import (
    NOWHERE,
    Forbidden,
    InUse,
    InvalidCursor,
    InvalidJob,
    InvalidQuery,
    InvalidSetting,
    KeyConflict,
    LaneFull,
    NotFound,
    PenstockError,
    StoreClosed,
    StoreUnavailable,
    UnknownLane,
    VersionChanged,
)
from penstock.wire import encode, enqueue_object, job_objects

PATIENCE_S: Final = 30.0
NO_NODE: Final = "what answers there is no Penstock node"
LONGEST_ANSWER: Final = 256 * 1024 * 1024
_NOBODY: Final = re.compile(r'no (\w+) "(.*)"', re.DOTALL)
_QUOTED: Final = re.compile(r'"(.*?)"', re.DOTALL)
_FULL: Final = re.compile(r'lane: "(.*?)" is full: it holds max_depth = ([0-9]+) jobs')
ABROAD: Final = (OSError, HTTPException, ssl.SSLError)


class Refused(PenstockError):
    """The API refused, for a reason that has no error of its own."""

    def __init__(self, status: int, problem: Mapping[str, Any]) -> None:
        super().__init__(f"{problem.get('detail', status)} ({problem.get('hint', 'see its log')})")
        self.status, self.problem = status, problem


class Api:
    """Requests to one node; each thread has a connection of its own."""

    def __init__(self, url: str, *, key: str | None = None) -> None:
        parts = urlsplit(url)
        try:
            host, port = parts.hostname, parts.port
        except ValueError:
            host, port = None, None
        more = parts.username or parts.password or parts.query or parts.fragment
        if not host or more or not is_callable(url):
            raise InvalidSetting("store", "an API is written http://host:port, without a user or a query")
        self.url = url.rstrip("/")
        self._base = parts.path.rstrip("/")
        self._open: Callable[[], HTTPConnection] = lambda: (
            HTTPSConnection(host, port, timeout=PATIENCE_S)
            if parts.scheme == "https"
            else HTTPConnection(host, port, timeout=PATIENCE_S)
        )
        self._proof = proof(key)
        self._own = threading.local()
        self._closed = threading.Event()
        self._lock = threading.Lock()
        self._opened = WeakSet[HTTPConnection]()  # of threads that live

    def get(self, path: str, **params: object) -> dict[str, Any]:
        """Return the object at an address, or raise what its problem means."""
        given = {name: _spelled(value) for name, value in params.items() if value is not None}
        return self._done("GET", f"{path}?{urlencode(given)}" if given else path, None, {})

    def send(
        self, method: str, path: str, body: object, *, headers: Mapping[str, str] | None = None
    ) -> dict[str, Any]:
        """Send an object and return the answer, or raise what its problem means."""
        return self._done(method, path, encode(body).encode(errors="surrogatepass"), headers or {})

    def close(self) -> None:
        """Close the connections of all threads, and open no other."""
        with self._lock:
            self._closed.set()
            for connection in self._opened:
                connection.close()

    def _done(self, method: str, path: str, body: bytes | None, headers: Mapping[str, str]) -> dict[str, Any]:
        for again in (True, False):
            connection = getattr(self._own, "connection", None)
            fresh = connection is None
            if connection is None:
                connection = self._own.connection = self._new()
            if self._closed.is_set():
                raise StoreClosed(f"{method} {self.url}")
            try:
                return self._asked(connection, method, path, body, headers)
            except ABROAD as error:
                connection.close()
                self._own.connection = None
                # A connection that was kept may have been closed meanwhile; a look is safe to repeat.
                if again and not fresh and method == "GET":
                    continue
                why = getattr(error, "strerror", None) or repr(error)
                raise StoreUnavailable(f"{method} {self.url} ({why}): is a node running there?") from error
        raise AssertionError

    def _new(self) -> HTTPConnection:
        connection = self._open()
        with self._lock:
            self._opened.add(connection)
        return connection

    def _asked(
        self,
        connection: HTTPConnection,
        method: str,
        path: str,
        body: bytes | None,
        headers: Mapping[str, str],
    ) -> dict[str, Any]:
        sent = {"Accept": "application/json", **headers, **self._proof}
        if body is not None:
            sent["Content-Type"] = "application/json"
        connection.request(method, self._base + path, body, sent)
        answer = connection.getresponse()
        text = answer.read(LONGEST_ANSWER)
        try:
            found = json.loads(text)
        except (ValueError, RecursionError):
            found = None
        if not isinstance(found, dict):
            raise StoreUnavailable(f"{method} {self.url} ({NO_NODE})")
        if answer.status >= 400:
            raise error_of(answer.status, found)
        # A payload is cut out, not decoded: it is shown byte for byte.
        if any("payload" in one for one in found.get("jobs", ())):
            return {**found, "jobs": job_objects(text.decode())}
        return enqueue_object(text.decode()) if "payload" in found else found


def error_of(status: int, problem: Mapping[str, Any]) -> PenstockError:
    """Return the error that a problem was made of."""
    kind = str(problem.get("type", "")).rpartition(":")[2]
    detail, field = str(problem.get("detail", "")), str(problem.get("field", ""))
    words = detail.removeprefix(f"{field}: ")
    quoted = _QUOTED.search(detail)
    name = quoted[1] if quoted else ""
    thing, rest = (detail[: quoted.start() - 1], detail[quoted.end() + 1 :]) if quoted else ("", words)
    who, said, what = detail.partition(" may not ")
    made: Mapping[str, Callable[[], PenstockError]] = {
        "invalid-job": lambda: InvalidJob(field, words),
        "lane-full": lambda: lane_full(detail) or InvalidJob("lane", words),
        "bad-json": lambda: InvalidJob("object", words),
        "unknown-lane": lambda: UnknownLane(name, list(problem.get("near", []))),
        "key-conflict": lambda: KeyConflict(str(problem.get("key")), str(problem.get("job"))),
        "invalid-query": lambda: InvalidQuery(field, words),
        "invalid-cursor": lambda: InvalidCursor(words.removeprefix(NOWHERE)),
        "invalid-setting": lambda: InvalidSetting(field, words),
        "version-changed": lambda: VersionChanged(thing or "lane", name, int(problem.get("version", 0))),
        "in-use": lambda: InUse(thing, name, rest),
        "forbidden": lambda: Forbidden(who, what) if said else Refused(status, problem),
        "missing-scope": lambda: Forbidden(who, what),
        "store-unavailable": lambda: StoreUnavailable(words.removeprefix("store unavailable during ")),
    }
    gone = _NOBODY.fullmatch(detail)
    if kind == "not-found" and gone:
        return NotFound(gone[1], gone[2])
    return made.get(kind, lambda: Refused(status, problem))()


def lane_full(said: str) -> LaneFull | None:
    """Return the error that these words are of, if they say that a lane is full: it may be tried again."""
    found = _FULL.match(said)
    return LaneFull(found[1], int(found[2])) if found else None


def _spelled(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return encode(value).strip('"') if not isinstance(value, str) else value
