"""`/health/live`, `/health/ready`, `/metrics`: what a supervisor and Prometheus ask."""

import asyncio
from collections.abc import Callable
from datetime import timedelta
from typing import Any, Final

from litestar import Request, Response, get
from litestar.handlers import HTTPRouteHandler
from prometheus_client import CollectorRegistry
from prometheus_client.exposition import choose_encoder

from penstock.api.desk import Desk, json_answer
from penstock.api.scopes import OPEN, needs, who_of
from penstock.domain.access import Scope
from penstock.errors import PenstockError
from penstock.observability.health import Health, Reason
from penstock.observability.live import Live
from penstock.wire import encode

PATIENCE: Final = timedelta(seconds=2)
FRESH_S: Final = 1.0
NOT_TOLD: Final = "told to those who log in or show a key"


class Readiness:
    """Whether the node is ready: what it knows of itself, and whether its store answers now.

    The store is asked at most once a second, however many probes there are.
    """

    def __init__(self, desk: Desk, health: Health, monotonic: Callable[[], float]) -> None:
        self._desk, self._health, self._monotonic = desk, health, monotonic
        self._asking = asyncio.Lock()
        self._store: list[Reason] = []
        self._until = monotonic()

    async def reasons(self) -> list[Reason]:
        """Return what keeps the node from being ready; empty = it is."""
        async with self._asking:
            if self._monotonic() >= self._until:
                self._store = await self._asked()
                self._until = self._monotonic() + FRESH_S
        return [*self._health.reasons(), *self._store]

    async def _asked(self) -> list[Reason]:
        try:
            async with asyncio.timeout(PATIENCE.total_seconds()):
                await self._desk.ask(self._desk.client.store.check_schema)
        except PenstockError as error:
            return [Reason("store", str(error))]
        except TimeoutError:
            return [Reason("store", f"it did not answer within {PATIENCE.total_seconds():.0f} s")]
        return []


def health_routes(
    desk: Desk, readiness: Readiness, *, live: Live, metrics: CollectorRegistry
) -> list[HTTPRouteHandler]:
    """Return the handlers of health and metrics."""

    @get("/health/live", opt=OPEN)
    async def alive() -> Response[bytes]:
        # Answering is the proof: the loop turns.
        return json_answer(
            encode({"alive": True, "loop_delay_ms": round(live.loop_delay() * 1000, 1)}),
        )

    @get("/health/ready", opt=OPEN)
    async def ready(request: Request[Any, Any, Any]) -> Response[bytes]:
        reasons = await readiness.reasons()
        told = reasons if who_of(request) else [reason._replace(text=NOT_TOLD) for reason in reasons]
        shown = {"ready": not reasons, "reasons": [reason._asdict() for reason in told]}
        return json_answer(encode(shown), status=503 if reasons else 200)

    return [alive, ready, metrics_route(desk, metrics)]


def metrics_route(desk: Desk, metrics: CollectorRegistry) -> HTTPRouteHandler:
    """Return the handler of `/metrics`; a scrape may ask the store, so it runs beside the loop."""

    @get("/metrics", opt=needs(Scope.READ))
    async def scrape(request: Request[Any, Any, Any]) -> Response[bytes]:
        try:
            write, media_type = choose_encoder(request.headers.get("accept", ""))
        except (TypeError, ValueError):  # a version in the Accept header that is no number
            write, media_type = choose_encoder("")
        return Response(await desk.ask(write, metrics), headers={"Content-Type": media_type})

    return scrape
