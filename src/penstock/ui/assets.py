"""Files that pages need: read once, sent with a name that changes when they do, so browsers keep them."""

from hashlib import blake2s
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import Any, Final

from litestar import Request, Response, get
from litestar.exceptions import NotFoundException
from litestar.handlers import HTTPRouteHandler

from penstock.api.scopes import OPEN

KINDS: Final = {".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}
FOR_EVER: Final = "public, max-age=31536000, immutable"


class Assets:
    """The files of `static`, by their path below it."""

    def __init__(self) -> None:
        self.contents = dict(_found(files("penstock.ui") / "static", ""))
        # One mark for all: modules import each other by plain names, and must change together.
        self.mark = blake2s(b"".join(self.contents.values()), digest_size=6).hexdigest()

    def url(self, name: str) -> str:
        """Return the address of a file; a wrong name is an error of ours."""
        if name not in self.contents:
            raise KeyError(name)
        return f"/static/{self.mark}/{name}"

    def route(self) -> HTTPRouteHandler:
        """Return the handler that sends them."""

        @get("/static/{mark:str}/{name:path}", opt=OPEN)
        async def file(request: Request[Any, Any, Any]) -> Response[bytes]:
            name = str(request.path_params["name"]).removeprefix("/")
            if name not in self.contents:
                raise NotFoundException(f"there is no file {name!r}")
            kind = KINDS[name[name.rindex(".") :]]
            # A page of another version may still be open: it gets what there is, and does not keep it.
            keep = FOR_EVER if request.path_params["mark"] == self.mark else "no-store"
            return Response(self.contents[name], media_type=kind, headers={"Cache-Control": keep})

        return file


def _found(folder: Traversable, prefix: str) -> list[tuple[str, bytes]]:
    found: list[tuple[str, bytes]] = []
    for entry in sorted(folder.iterdir(), key=lambda entry: entry.name):
        if entry.is_dir():
            found += _found(entry, f"{prefix}{entry.name}/")
        elif entry.name.endswith(tuple(KINDS)):
            found.append((prefix + entry.name, entry.read_bytes()))
    return found
