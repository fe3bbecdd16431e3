"""Handlers of the status page and of the files it needs."""

from hashlib import blake2s
from html import escape
from importlib.resources import files
from string import Template
from typing import Any, Final

from litestar import Request, Response, get
from litestar.exceptions import NotFoundException
from litestar.handlers import HTTPRouteHandler

from penstock import __version__
from penstock.api.scopes import OPEN, needs
from penstock.domain.access import Scope

_MEDIA_TYPES: Final = {
    "status.css": "text/css",
    "status.js": "text/javascript",
    "icon.svg": "image/svg+xml",
}


def pages() -> list[HTTPRouteHandler]:
    """Return the handlers of `/` and of its files, which are read once."""
    static = files("penstock.ui") / "static"
    contents = {name: (static / name).read_bytes() for name in _MEDIA_TYPES}
    tags = {name: f'"{blake2s(content, digest_size=8).hexdigest()}"' for name, content in contents.items()}
    shell = Template((static / "status.html").read_text(encoding="utf-8"))

    @get("/", opt=needs(Scope.READ))
    async def status(request: Request[Any, Any, Any]) -> Response[bytes]:
        # The Host was checked: it is a name of ours, and what the next commands on the page should say.
        base = escape(f"http://{request.headers.get('host', '')}")
        page = shell.substitute(version=escape(__version__), base=base)
        headers = {"Cache-Control": "no-store"}
        return Response(page.encode(), media_type="text/html", headers=headers)

    @get("/static/{name:str}", opt=OPEN)
    async def file(request: Request[Any, Any, Any]) -> Response[bytes]:
        name = request.path_params["name"]
        if name not in contents:
            raise NotFoundException(f"there is no file {name!r}")
        headers = {"Cache-Control": "no-cache", "ETag": tags[name]}
        if request.headers.get("if-none-match") == tags[name]:
            return Response(b"", status_code=304, headers=headers)
        return Response(contents[name], media_type=_MEDIA_TYPES[name], headers=headers)

    return [status, file]
