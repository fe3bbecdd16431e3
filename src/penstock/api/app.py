"""The application: every route of a node, behind the checks of access.py."""

import asyncio
from collections.abc import Callable, Collection, Sequence
from random import Random
from typing import Any

from litestar import Litestar, Request, Response, get
from litestar.exceptions import HTTPException, NotFoundException
from litestar.handlers import HTTPRouteHandler
from prometheus_client import CollectorRegistry

from penstock import __version__
from penstock.api.access import Guarded
from penstock.api.admitting import access_routes
from penstock.api.bodies import MAX_BODY
from penstock.api.callers import Callers
from penstock.api.desk import Desk, json_answer
from penstock.api.events import event_routes
from penstock.api.health import Readiness, health_routes, metrics_route
from penstock.api.jobs import job_routes
from penstock.api.lookout import lookout_routes
from penstock.api.methods import method_routes
from penstock.api.named import named_routes
from penstock.api.openapi import openapi_route
from penstock.api.operations import operation_routes
from penstock.api.outcomes import outcome_routes
from penstock.api.pausing import pausing_routes
from penstock.api.problems import Problem, answer
from penstock.api.scopes import check_routes, guard_of, needs, recall
from penstock.api.stats import Stats
from penstock.api.verbs import verb_routes
from penstock.client import Client
from penstock.domain.access import Scope
from penstock.errors import PenstockError
from penstock.observability.health import Health
from penstock.observability.live import Live
from penstock.ports.clock import Clock
from penstock.ports.executor import Executor


def make_app(
    client: Client,
    *,
    executor: Executor,
    health: Health,
    metrics: CollectorRegistry,
    live: Live,
    clock: Clock,
    rng: Random,
    stats: Stats,
    callers: Callers,
    hosts: Collection[str] = (),
    pages: Sequence[HTTPRouteHandler] = (),
    lost: Callable[[Request[Any, Any, Any], Exception], Response[bytes]] = answer,
    over: asyncio.Event | None = None,
) -> Guarded:
    """Return the ASGI application of a node.

    Blocking calls of the client run on the executor, which whoever made it closes. `callers` finds out who is
    asking; `hosts` are names beside the loopback ones that the node goes by; `pages` are handlers of the UI,
    `stats` the figures that it shares with `/api/stats`, `lost` what it answers for an address that is none.
    `over` lets go of those who listen to events, or read an export.
    """
    own = api_routes(
        Desk(client, executor),
        health=health,
        metrics=metrics,
        live=live,
        clock=clock,
        rng=rng,
        stats=stats,
        over=over,
    )
    routes = [*own, *pages]
    described = openapi_route(routes, version=__version__)
    return _served([*routes, described], callers=callers, hosts=hosts, lost=lost, over=over)


def api_routes(
    desk: Desk,
    *,
    health: Health,
    metrics: CollectorRegistry,
    live: Live,
    clock: Clock,
    rng: Random,
    stats: Stats,
    over: asyncio.Event | None = None,
) -> list[HTTPRouteHandler]:
    """Return what programs ask a node for; its document describes these routes, and those of its router."""
    readiness = Readiness(desk, health, clock.monotonic)

    @get("/api/stats", opt=needs(Scope.READ))
    async def get_stats() -> Response[bytes]:
        return json_answer(await desk.ask(stats))

    return [
        *job_routes(desk),
        *verb_routes(desk),
        *outcome_routes(desk, rng),
        *named_routes(desk),
        *lookout_routes(desk),
        *pausing_routes(desk),
        *operation_routes(desk),
        *event_routes(
            desk, monotonic=clock.monotonic, mark=f"{rng.getrandbits(48):x}", over=over or asyncio.Event()
        ),
        *health_routes(desk, readiness, live=live, metrics=metrics),
        *access_routes(desk),
        get_stats,
    ]


def make_router_app(
    client: Client,
    *,
    executor: Executor,
    health: Health,
    metrics: CollectorRegistry,
    live: Live,
    clock: Clock,
    routes: Sequence[HTTPRouteHandler],
    callers: Callers,
    hosts: Collection[str] = (),
) -> Guarded:
    """Return the application of a process that only routes: its own routes, health and metrics."""
    desk = Desk(client, executor)
    readiness = Readiness(desk, health, clock.monotonic)
    health_and_metrics = health_routes(desk, readiness, live=live, metrics=metrics)
    return _served([*routes, *health_and_metrics], callers=callers, hosts=hosts)


def make_metrics_app(
    client: Client,
    *,
    executor: Executor,
    metrics: CollectorRegistry,
    callers: Callers,
    hosts: Collection[str] = (),
) -> Guarded:
    """Return an application with `/metrics` alone, for a port of its own."""
    return _served([metrics_route(Desk(client, executor), metrics)], callers=callers, hosts=hosts)


def _served(
    routes: Sequence[HTTPRouteHandler],
    *,
    callers: Callers,
    hosts: Collection[str],
    lost: Callable[[Request[Any, Any, Any], Exception], Response[bytes]] = answer,
    over: asyncio.Event | None = None,
) -> Guarded:
    check_routes(routes)

    def nowhere(request: Request[Any, Any, Any], error: Exception) -> Response[bytes]:
        recall(callers, request)
        return lost(request, error)

    app = Litestar(
        route_handlers=[*method_routes(routes), *routes],  # the first of an address answers OPTIONS
        guards=[guard_of(callers)],
        exception_handlers={
            Problem: answer,
            PenstockError: answer,
            NotFoundException: nowhere,
            HTTPException: answer,
            Exception: answer,
        },
        request_max_body_size=MAX_BODY,
        openapi_config=None,
        logging_config=None,
        debug=False,
    )
    return Guarded(app, hosts=hosts, addresses=callers.login, over=over)
