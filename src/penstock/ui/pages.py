"""All screens together, and what a browser is shown when something goes wrong."""

from collections.abc import Callable, Sequence
from http import HTTPStatus
from typing import Final, NamedTuple

from litestar import Response
from litestar.exceptions import HTTPException, NotFoundException
from litestar.handlers import HTTPRouteHandler

from penstock.api.desk import Desk
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
from penstock.ui.site import AnyRequest, Site

SCREENS: Final[Sequence[Callable[[Site], list[HTTPRouteHandler]]]] = (
    overview.routes, lanes.routes, jobs.routes, job.routes, groups.routes, dead.routes, pools.routes,
    nodes.routes, history.routes, audit.routes, bulk.routes, access.routes,
)  # fmt: skip


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
            "text": _text(problem, status),
            "hint": getattr(problem, "hint", ""),
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


def _text(error: object, status: int) -> str:
    if isinstance(error, HTTPException):
        return error.detail
    return str(error) if status < 500 or isinstance(error, Problem) else "Something went wrong in the node."
