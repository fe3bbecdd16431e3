"""`/api/lanes` and `/api/pools`: look at them, change them, pause them.

A change names the version that its caller saw (`If-Match`): of two who edit the same lane the second is told.
"""

from collections.abc import Callable
from datetime import datetime
from typing import Any, Final

import msgspec
from litestar import Request, Response, delete, get, post, put
from litestar.handlers import HTTPRouteHandler

from penstock.api.commands import Pause, Reason, checked_reason, command
from penstock.api.conditions import Condition, condition_of, mark_of_named
from penstock.api.desk import Desk, json_answer, tag_of, tagged
from penstock.api.params import items_of, read_params, text, time
from penstock.api.scopes import needs
from penstock.client import Client
from penstock.config import changing
from penstock.config.sources import lane_sources
from penstock.domain.access import Scope
from penstock.domain.lanes import Lane
from penstock.domain.pools import Pool
from penstock.errors import InvalidQuery, NotFound
from penstock.ports.store import Store
from penstock.wire import encode, lane_object, pool_object

Named = Lane | Pool
READ: Final = needs(Scope.READ, tenants=True)
OPERATE: Final = needs(Scope.OPERATE)
ADMIN: Final = needs(Scope.ADMIN)


class Settings(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """Settings by name; those not named stay as they are, or are the defaults of what is new."""

    settings: dict[str, Any]
    reason: str | None = None


class Kind(msgspec.Struct, frozen=True):
    """A kind of named thing, and the store's calls for it."""

    word: str
    all: Callable[[Store], Any]
    change: Callable[..., Any]
    show: Callable[[Any, datetime], dict[str, Any]]

    def one(self, store: Store, name: str) -> Named:
        """Return the one of this name, or raise NotFound."""
        found = self.all(store)
        if name not in found:
            raise NotFound(self.word, name)
        named: Named = found[name]
        return named

    def tag(self, named: Named, now: datetime) -> str:
        """Return the ETag that a change of it may be bound to."""
        return tag_of(encode(self.show(named, now)), mark_of_named(named))


LANE: Final = Kind("lane", lambda store: store.lanes(), changing.LANE.change, lane_object)
POOL: Final = Kind("pool", lambda store: store.pools(), changing.POOL.change, pool_object)


def named_routes(desk: Desk) -> list[HTTPRouteHandler]:
    """Return the handlers of lanes and pools."""

    @get("/api/lanes/{name:str}/sources", opt=needs(Scope.READ))
    async def sources(request: Request[Any, Any, Any]) -> Response[bytes]:
        store, name = desk.acting(request).store, request.path_params["name"]
        return json_answer(await desk.ask(_sources, store, name))

    return [*_routes(desk, LANE), *_routes(desk, POOL), sources]


def _routes(desk: Desk, kind: Kind) -> list[HTTPRouteHandler]:
    base, word = f"/api/{kind.word}s", kind.word

    async def told(client: Client, named: Named) -> str:
        return encode(kind.show(named, await desk.ask(client.store.now)))

    async def shown(client: Client, named: Named, *, status: int = 200) -> Response[bytes]:
        text = await told(client, named)
        return json_answer(text, status=status, headers={"ETag": tag_of(text, mark_of_named(named))})

    @get(base, name=f"list_{word}s", opt=READ)
    async def list_all(request: Request[Any, Any, Any]) -> Response[bytes]:
        found = await desk.ask(_all, kind, desk.acting(request).store)
        return tagged(request, encode({f"{word}s": sorted(found, key=lambda one: str(one["name"]))}))

    @get(f"{base}/{{name:str}}", name=f"get_{word}", opt=READ)
    async def get_one(request: Request[Any, Any, Any]) -> Response[bytes]:
        client, name = desk.acting(request), request.path_params["name"]
        found = await desk.ask(kind.one, client.store, name)
        return tagged(request, await told(client, found), mark=mark_of_named(found))

    @put(f"{base}/{{name:str}}", name=f"put_{word}", opt=ADMIN)
    async def put_one(request: Request[Any, Any, Any]) -> Response[bytes]:
        said, name = await command(request, Settings), request.path_params["name"]
        client, bound = desk.acting(request), condition_of(request)
        now, made = await desk.ask(_put, kind, client, name, said, bound)
        return await shown(client, now, status=201 if made else 200)

    @delete(f"{base}/{{name:str}}", name=f"delete_{word}", opt=ADMIN, status_code=200)
    async def delete_one(request: Request[Any, Any, Any]) -> Response[bytes]:
        reason = checked_reason(read_params(items_of(request), {"reason": text}).get("reason"))
        client, name, bound = desk.acting(request), request.path_params["name"], condition_of(request)
        return json_answer(encode(await desk.ask(_delete, kind, client, name, reason, bound)))

    @post(f"{base}/{{name:str}}/pause", name=f"pause_{word}", opt=OPERATE, status_code=200)
    async def pause(request: Request[Any, Any, Any]) -> Response[bytes]:
        said, name = await command(request, Pause), request.path_params["name"]
        until = None if said.until is None else time("until", said.until)
        client = desk.acting(request)
        now = await desk.ask(_pause, kind, client, name, reason=said.reason, until=until)
        return await shown(client, now)

    @post(f"{base}/{{name:str}}/resume", name=f"resume_{word}", opt=OPERATE, status_code=200)
    async def resume(request: Request[Any, Any, Any]) -> Response[bytes]:
        said, name = await command(request, Reason), request.path_params["name"]
        client = desk.acting(request)
        now = await desk.ask(_pause, kind, client, name, reason=said.reason, paused=False)
        return await shown(client, now)

    return [list_all, get_one, put_one, delete_one, pause, resume]


def _sources(store: Store, name: str) -> str:
    found = LANE.one(store, name)
    assert isinstance(found, Lane)  # noqa: S101 - for the type checker
    return encode({"settings": lane_sources(store, found)})


def _all(kind: Kind, store: Store) -> list[dict[str, Any]]:
    now = store.now()
    return [kind.show(one, now) for one in kind.all(store).values()]


def _put(
    kind: Kind, client: Client, name: str, said: Settings, bound: Condition | None
) -> tuple[Named, bool]:
    if said.reason is not None and kind is not LANE:
        raise InvalidQuery("reason", f"the audit keeps none of a change of a {kind.word}: leave it out")
    why = {} if said.reason is None else {"reason": checked_reason(said.reason)}
    put: tuple[Named, bool] = kind.change(
        client.store, name, said.settings, actor=client.actor, bound=bound, **why
    )
    return put


def _pause(
    kind: Kind, client: Client, name: str, *, reason: str, paused: bool = True, until: datetime | None = None
) -> Named:
    kind.one(client.store, name)
    pause_one = client.store.pause_lane if kind is LANE else client.store.pause_pool
    return pause_one(name, paused=paused, actor=client.actor, reason=reason, until=until)


def _delete(kind: Kind, client: Client, name: str, reason: str, bound: Condition | None) -> dict[str, Any]:
    found = kind.one(client.store, name)
    if bound is not None:
        bound(kind.word, name, found)
    delete_one = client.store.delete_lane if kind is LANE else client.store.delete_pool
    delete_one(name, actor=client.actor, reason=reason)
    return {"deleted": name}
