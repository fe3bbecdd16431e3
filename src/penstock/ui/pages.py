"""All screens together, and what a browser is shown when something goes wrong."""

from collections.abc import Callable, Mapping, Sequence
from http import HTTPStatus
from typing import Final, NamedTuple
from urllib.parse import quote, urlsplit

from litestar import Response
from litestar.exceptions import HTTPException, NotFoundException
from litestar.handlers import HTTPRouteHandler

from penstock.api.desk import Desk
from penstock.api.marks import mark_of
from penstock.api.problems import Problem, answer, problem_of
from penstock.errors import PenstockError, UnknownLane
from penstock.observability.health import Health
from penstock.observability.live import Live
from penstock.ui.assets import Assets
from penstock.ui.figures import Figures
from penstock.ui.kept import Kept
from penstock.ui.rendering import environment
from penstock.ui.screens import (
    access,
    audit,
    bulk,
    dead,
    groups,
    history,
    job,
    jobs,
    lanes,
    nodes,
    overview,
    pools,
)
from penstock.ui.site import ONCE, AnyRequest, Site

SCREENS: Final[Sequence[Callable[[Site], list[HTTPRouteHandler]]]] = (
    overview.routes, lanes.routes, jobs.routes, job.routes, groups.routes, dead.routes, pools.routes,
    nodes.routes, history.routes, audit.routes, bulk.routes, access.routes,
)  # fmt: skip
NOT_TYPED: Final = frozenset({"csrf", "next", "job", "tag", "revision", "password"})


class Pages(NamedTuple):
    """Every page of the dashboard with the files they need, and what is shown where there is none."""

    handlers: list[HTTPRouteHandler]
    lost: Callable[[AnyRequest, Exception], Response[bytes]]


def pages(desk: Desk, figures: Figures, *, live: Live, health: Health) -> Pages:
    """Return the pages of a node."""
    assets = Assets()
    kept = Kept(desk.client.store, figures.monotonic)
    site = Site(desk, figures, live, health, environment(assets), kept)

    def failed(request: AnyRequest, error: Exception) -> Response[bytes]:
        if "text/html" not in request.headers.get("accept", ""):
            return answer(request, error)
        problem = problem_of(error) if isinstance(error, PenstockError) else error
        status = problem.status if isinstance(problem, Problem) else getattr(error, "status_code", 500)
        if status == HTTPStatus.SEE_OTHER:  # to the login
            return answer(request, error)
        if isinstance(error, UnknownLane):  # its name is the address of a page
            status = HTTPStatus.NOT_FOUND
        if status >= 500:
            answer(request, error)  # which logs it
        facts = {
            "screen": "",
            "status": status,
            "missing": "lane" if isinstance(error, UnknownLane) else "page",
            "text": _unknown(error) if isinstance(error, UnknownLane) else _text(problem, status),
            "hint": getattr(problem, "hint", ""),
            "request": mark_of(request),
            "log_in": _log_in(request) if status == HTTPStatus.UNAUTHORIZED else None,
            "written": _typed(problem.written) if isinstance(problem, Problem) else {},
            "still": True,  # asked for again it would fail again, under another id than the one shown
            "failed": True,
        }
        return site.rendered(request, "error.html", facts, status=status)

    def lost(request: AnyRequest, error: Exception) -> Response[bytes]:
        if request.url.path.startswith("/api/"):
            return answer(request, error)
        return failed(request, NotFoundException(f"Nothing is at {request.url.path}"))

    handlers = [assets.route(), *(route for screen in SCREENS for route in screen(site))]
    for handler in handlers:
        handler.exception_handlers = dict.fromkeys((PenstockError, Problem, HTTPException, Exception), failed)
    return Pages(handlers, lost)


def _log_in(request: AnyRequest) -> str:
    """Return the way to the login, and back to the page that a form was on."""
    try:
        page = urlsplit(request.headers.get("referer", ""))
    except ValueError:  # brackets that do not close
        page = urlsplit("")
    ours = page.netloc == request.headers.get("host")
    where = f"{page.path}?{page.query}" if page.query else page.path
    return f"/login?next={quote(where if ours else '/', safe='')}"


def _typed(written: Mapping[str, str]) -> dict[str, str]:
    """Return what somebody typed, as far as it may stand on a page."""
    return {
        name: text
        for name, text in sorted(written.items())  # they come in no order
        if text.strip() and name not in NOT_TYPED and not text.startswith(ONCE)
    }


def _unknown(error: UnknownLane) -> str:
    """Return what is wrong without what to do about it, which the hint says."""
    near = f" Did you mean {', '.join(error.near)}?" if error.near else ""
    return f'No lane is called "{error.lane}".{near}'


def _text(error: object, status: int) -> str:
    if isinstance(error, HTTPException):
        return error.detail
    return str(error) if status < 500 or isinstance(error, Problem) else "Something went wrong in the node."
