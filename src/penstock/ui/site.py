"""What every screen shares: the client and its threads, the figures, the templates, and who is asking."""

import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from hashlib import blake2s
from http import HTTPStatus
from typing import Any, Final, cast
from urllib.parse import quote

from jinja2 import Environment
from litestar import Request, Response

from penstock import __version__
from penstock.api.callers import SECURE_COOKIE
from penstock.api.desk import Desk
from penstock.api.problems import problem_of, unknown_caller
from penstock.api.scopes import csrf_of, who_of
from penstock.client import Client
from penstock.domain.access import LOCAL, Scope
from penstock.domain.arguments import check_reason
from penstock.domain.names import unknown
from penstock.errors import InvalidQuery, NotFound, PenstockError, VersionChanged
from penstock.observability.health import Health
from penstock.observability.live import Live
from penstock.ports.store import Store
from penstock.ui.figures import Figures
from penstock.ui.kept import Kept, Looking
from penstock.ui.rendering import spelled_out
from penstock.ui.telling import NOTE, Told, back, read_note

AnyRequest = Request[Any, Any, Any]
NAV: Final = (
    ("overview", "/", "Overview", "o"),
    ("lanes", "/lanes", "Lanes", "l"),
    ("jobs", "/jobs", "Jobs", "j"),
    ("groups", "/groups", "Groups", "g"),
    ("dead", "/dead", "Dead letters", "d"),
    ("pools", "/pools", "Pools and targets", "p"),
    ("operations", "/operations", "Bulk operations", "b"),
    ("nodes", "/nodes", "Nodes", "n"),
    ("history", "/history", "History", "h"),
    ("audit", "/audit", "Audit", "a"),
    ("access", "/access", "Keys and users", "u"),
)
FOR_ADMINS: Final = frozenset({"access"})
KEY_BYTES: Final = 12
ONCE: Final = "form-"
SERVED_BY: Final = "Penstock-Served-By"
REFUSED: Final = 422
AGO: Final = re.compile(rb"(?<= data-ago>)[^<]*")
MOST_DIGITS: Final = 18
# What a page with forms shows of them before one was refused: see `kept`.
NOTHING_REFUSED: Final[Mapping[str, Any]] = {"fields": {}, "problem": None, "wrong": "", "changed": False}
# What a command adds where this node asks who is there; the shell puts in the key, which no page knows.
BEARER: Final = ' -H "Authorization: Bearer $PENSTOCK_API_KEY"'


@dataclass(frozen=True, slots=True)
class Site:
    """One node's pages."""

    desk: Desk
    figures: Figures
    live: Live
    health: Health
    templates: Environment
    kept: Kept

    @property
    def client(self) -> Client:
        """The client."""
        return self.desk.client

    @property
    def store(self) -> Store:
        """The store behind the client."""
        return self.desk.client.store

    @property
    def look(self) -> Store:
        """The same store for looking at, with what changes seldom at most a second old."""
        return cast("Store", Looking(self.store, self.kept))

    @property
    def served(self) -> str:
        """What every page says of the node that it comes from."""
        return " · ".join(filter(None, (__version__, self.live.name)))

    def forget(self) -> None:
        """Show what is there now, not what was there a second ago."""
        self.kept.forget()
        self.figures.forget()

    def acting(self, request: AnyRequest) -> Client:
        """Return the client as whoever is asking may use it, under the name that the audit will have."""
        found = who_of(request)
        if found is None:
            raise unknown_caller()
        return self.client.acting(found._replace(name=who(request)))

    def seen_by(self, request: AnyRequest) -> "Site":
        """Return the site as whoever is asking sees it, and acts on it: his client in the place of ours."""
        return replace(self, desk=Desk(self.acting(request), self.desk.executor))

    async def page(
        self, request: AnyRequest, template: str, view: Callable[[], Mapping[str, Any]], *, status: int = 200
    ) -> Response[bytes]:
        """Return a page: the view gathers what the template shows, both beside the event loop.

        A script that refreshes a page asks for its middle alone.
        """
        return await self.desk.ask(lambda: self.rendered(request, template, view(), status=status))

    async def again(
        self,
        request: AnyRequest,
        template: str,
        view: Callable[[], Mapping[str, Any]],
        refused: tuple[Mapping[str, str], PenstockError],
    ) -> Response[bytes]:
        """Return the page of a form that was refused: as things are now, with all that somebody wrote."""
        self.forget()
        facts, status = kept(*refused), problem_of(refused[1]).status
        return await self.page(request, template, lambda: {**view(), **facts}, status=status)

    def rendered(
        self, request: AnyRequest, template: str, facts: Mapping[str, Any], *, status: int = 200
    ) -> Response[bytes]:
        """Return a page that shows these facts."""
        fragment = "hx-request" in request.headers
        note = None if fragment else request.cookies.get(NOTE)
        text = self.templates.get_template(template).render(
            {
                "layout": "fragment.html" if fragment else "base.html",
                "nav": [each for each in NAV if each[0] not in FOR_ADMINS or may(request, Scope.ADMIN)],
                "path": request.url.path,
                "here": request.url.path + (f"?{request.url.query}" if request.url.query else ""),
                "served": self.served,
                "note": read_note(note),
                "origin": origin_of(request),
                "bearer": BEARER if who_of(request) not in (None, LOCAL) else "",
                "actor": who(request),
                "csrf": csrf_of(request),
                "may": {scope.value: may(request, scope) for scope in Scope},
                **facts,
            }
        )
        body = spelled_out(text).encode(errors="replace")
        headers = {"Cache-Control": "no-store", "Vary": "HX-Request"}
        if fragment:  # beside the middle that is fetched, and so where that did not change, too
            headers[SERVED_BY] = quote(spelled_out(self.served), errors="replace")
        if fragment and status == HTTPStatus.OK:
            headers["ETag"] = tag = tag_of(body)
            if request.headers.get("if-none-match") == tag:
                return Response(b"", media_type="text/html", status_code=304, headers=headers)
        response = Response(body, media_type="text/html", status_code=status, headers=headers)
        if note is not None:
            response.delete_cookie(NOTE)
        return response


def tag_of(page: bytes) -> str:
    """Return the ETag of the middle of a page; how long ago something was, its script tells by itself."""
    return f'"{blake2s(AGO.sub(b"", page), digest_size=9).hexdigest()}"'


def who(request: AnyRequest) -> str:
    """Return who is asking, for the audit."""
    found = who_of(request)
    return "dashboard" if found is None or found is LOCAL else found.name


def origin_of(request: AnyRequest) -> str:
    """Return the address that the page was asked by, for commands to copy: TLS may end before this node."""
    host, headers = request.headers.get("host", ""), request.headers
    linked = headers.get("referer", "").startswith(f"https://{host}/")
    secure = linked or headers.get("x-forwarded-proto") == "https" or SECURE_COOKIE in request.cookies
    return f"{'https' if secure else request.url.scheme}://{host}"


def may(request: AnyRequest, scope: Scope) -> bool:
    """Say whether whoever is asking has a scope."""
    found = who_of(request)
    return found is not None and found.may(scope)


async def form(request: AnyRequest) -> dict[str, str]:
    """Return the fields of a form, the last one of each name, without the blanks around them.

    Browsers send lines with CR LF, whatever was between them on the page. So what a form is about stands in
    its address, which comes back byte for byte: the name of a group may begin with a blank, or hold a CR.
    """
    fields = (await request.form()).multi_items()
    typed = {name: str(value).replace("\r\n", "\n").strip() for name, value in fields}
    return typed | dict(request.query_params.multi_items())


def pause_asked(verb: str, fields: Mapping[str, str]) -> tuple[bool, str]:
    """Return whether a form pauses or resumes, and why; a pause without a reason is refused."""
    if verb not in ("pause", "resume"):
        raise NotFound("verb", verb)
    paused = verb == "pause"
    return paused, reason_of(fields, "" if paused else "resumed")


def reason_of(fields: Mapping[str, str], otherwise: str = "") -> str:
    """Return why a form is sent, or what is kept in its place; checked as the API checks it."""
    reason = fields.get("reason") or otherwise
    if not reason:
        raise InvalidQuery("reason", "say why: it is kept in the audit")
    return check_reason(reason)


def lane_choice(site: Site, figures: Mapping[str, Any], asked: str) -> dict[str, Any]:
    """Return what a field for a lane offers: as many as the figures list, and the one that was asked for."""
    known, listed = site.look.lanes(), {each["lane"] for each in figures["lanes"]}
    offered = sorted(listed | ({asked} & known.keys()))
    return {
        "lanes": offered,
        "more_lanes": max(0, len(known) - len(offered)),
        "why": unknown("lane", asked, known) if asked and asked not in known else None,
    }


def whole(text: str) -> int | None:
    """Return the whole number that somebody wrote; None = it is none, or beyond anything that is counted."""
    return int(text) if text.isdecimal() and len(text) <= MOST_DIGITS else None


def once(entropy: Callable[[int], bytes] = os.urandom) -> str:
    """Return the key of one form that is shown: however often that form is sent, it does its thing once."""
    return f"{ONCE}{entropy(KEY_BYTES).hex()}"


def kept(fields: Mapping[str, str], error: PenstockError) -> dict[str, Any]:
    """Return what a form shows that was refused: why, and all that somebody wrote; nothing refreshes it.

    Who is told what it was changed to meanwhile has seen that: his next try is about what is on the page.
    """
    changed = isinstance(error, VersionChanged)
    return {
        "fields": {name: text for name, text in fields.items() if not (changed and name == "tag")},
        "problem": str(error),
        "wrong": getattr(error, "setting", ""),
        "changed": changed,
        "still": True,
    }


async def acted(site: Site, request: AnyRequest, to: str, action: Callable[[], str | Told]) -> Response[Any]:
    """Carry something out and say what it did, or why it did not."""
    try:
        said = await site.desk.ask(action)
        site.forget()
        return back(to, said)
    except PenstockError as error:
        return refused(request, to, error)


def refused(request: AnyRequest, to: str, error: PenstockError) -> Response[Any]:
    """Say why something was not done: in the form, where a script keeps that open, else on the next page."""
    if "hx-request" not in request.headers:
        return back(to, str(error), bad=True)
    words, status = spelled_out(str(error)).encode(errors="replace"), problem_of(error).status
    return Response(words, media_type="text/plain", status_code=status, headers={"Cache-Control": "no-store"})
