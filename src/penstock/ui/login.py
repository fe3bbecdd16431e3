"""Handlers of the page where people log in, and of logging out. No script, nothing from elsewhere."""

from html import escape
from importlib.resources import files
from string import Template
from typing import Any, Final

from litestar import Request, Response, get, post
from litestar.datastructures import Cookie
from litestar.handlers import HTTPRouteHandler

from penstock.api.callers import cookie_of
from penstock.api.login import Door, Proof, drop_cookies, set_cookie
from penstock.api.problems import Problem
from penstock.api.scopes import FORM, OPEN, who_of

WRONG: Final = "Name or password are wrong."
TOO_MANY: Final = "Too many attempts. Wait a few minutes and try again."
BUSY: Final = "Very many people log in right now. Try again in a moment."
_HEADERS: Final = {"Cache-Control": "no-store"}


def login_pages(door: Door) -> list[HTTPRouteHandler]:
    """Return the handlers of `/login` and `/logout`."""
    static = files("penstock.ui") / "static"
    shell = Template((static / "login.html").read_text(encoding="utf-8"))
    style, icon = ((static / name).read_bytes() for name in ("login.css", "icon.svg"))

    def page(where: str, *, said: str = "", status: int = 200, retry: str = "") -> Response[bytes]:
        told = f'<p class="said" role="alert">{escape(said)}</p>' if said else ""
        text = shell.substitute(next=escape(where), said=told)
        headers = _HEADERS | ({"Retry-After": retry} if retry else {})
        return Response(text.encode(), media_type="text/html", status_code=status, headers=headers)

    @get("/login", opt=OPEN)
    async def show(request: Request[Any, Any, Any]) -> Response[bytes]:
        return page(own_path(request.query_params.get("next", "/")))

    @get("/login/style.css", opt=OPEN)
    async def show_style() -> Response[bytes]:
        return Response(style, media_type="text/css", headers={"Cache-Control": "max-age=3600"})

    @get("/login/icon.svg", opt=OPEN)
    async def show_icon() -> Response[bytes]:
        return Response(icon, media_type="image/svg+xml", headers={"Cache-Control": "max-age=3600"})

    @post("/login", opt=OPEN)
    async def log_in(request: Request[Any, Any, Any]) -> Response[bytes]:
        if request.content_type[0] != FORM:
            raise Problem(415, "wrong-content-type", "this is for the form of /login", hint="open /login")
        form = await request.form()
        proof = Proof(str(form.get("name", "")), str(form.get("password", "")))
        where = own_path(str(form.get("next", "/")))
        address = request.client.host if request.client else ""
        try:
            token = await door.log_in(proof, address=address, before=_session(request))
        except Problem as problem:
            said = BUSY if problem.kind == "too-busy" else TOO_MANY
            return page(where, said=said, status=problem.status, retry=problem.headers.get("Retry-After", ""))
        if token is None:
            return page(where, said=WRONG, status=401)
        secure = request.headers.get("origin", "").startswith("https://")
        return _moved(where, [set_cookie(token, secure=secure)])

    @post("/logout", opt=OPEN)
    async def log_out(request: Request[Any, Any, Any]) -> Response[bytes]:
        session = _session(request)
        if session is not None and who_of(request) is not None:
            await door.log_out(session)
        return _moved("/login", drop_cookies())

    return [show, show_style, show_icon, log_in, log_out]


def own_path(path: str) -> str:
    """Return where to go afterwards: a path of this node, whatever was asked for."""
    fine = path.startswith("/") and not path.startswith(("//", "/\\")) and path.isprintable()
    return path if fine and len(path) <= 2000 and path.isascii() else "/"


def _session(request: Request[Any, Any, Any]) -> str | None:
    return cookie_of(request.headers.get("cookie", ""))


def _moved(where: str, cookies: list[Cookie]) -> Response[bytes]:
    return Response(b"", status_code=303, headers=_HEADERS | {"Location": where}, cookies=cookies)
