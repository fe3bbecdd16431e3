"""What operators stop and let go: groups, targets, nodes, everything. Lanes and pools: named.py."""

from datetime import datetime
from typing import Any, Final

from litestar import Request, Response, get, post
from litestar.handlers import HTTPRouteHandler

from penstock.api.commands import Pause, Reason, command
from penstock.api.desk import Desk, json_answer
from penstock.api.params import node_of, text, time
from penstock.api.scopes import needs
from penstock.client import Client
from penstock.domain.access import Scope
from penstock.domain.targets import paused_name
from penstock.errors import InvalidQuery
from penstock.wire import encode, pause_object

OPERATE: Final = needs(Scope.OPERATE)


class GroupCommand(Reason, kw_only=True):
    """Which group, and why."""

    lane: str
    group: str


class GroupPause(GroupCommand, kw_only=True):
    """Until when; no time = until somebody lets it go."""

    until: str | None = None


class TargetCommand(Reason, kw_only=True):
    """Which target, and why."""

    target: str


class TargetPause(TargetCommand, kw_only=True):
    """Until when; no time = until somebody lets it go."""

    until: str | None = None


def pausing_routes(desk: Desk) -> list[HTTPRouteHandler]:
    """Return the handlers."""
    return [*_group_routes(desk), *_target_routes(desk), *_node_routes(desk), *_store_routes(desk)]


def _group_routes(desk: Desk) -> list[HTTPRouteHandler]:
    @post("/api/groups/pause", opt=OPERATE, status_code=200)
    async def pause_group(request: Request[Any, Any, Any]) -> Response[bytes]:
        said, client = await command(request, GroupPause), desk.acting(request)
        until = _until(said)
        return json_answer(await desk.ask(_pause_group, client, said, paused=True, until=until))

    @post("/api/groups/resume", opt=OPERATE, status_code=200)
    async def resume_group(request: Request[Any, Any, Any]) -> Response[bytes]:
        said, client = await command(request, GroupCommand), desk.acting(request)
        return json_answer(await desk.ask(_pause_group, client, said, paused=False))

    return [pause_group, resume_group]


def _target_routes(desk: Desk) -> list[HTTPRouteHandler]:
    @post("/api/targets/pause", opt=OPERATE, status_code=200)
    async def pause_target(request: Request[Any, Any, Any]) -> Response[bytes]:
        said, client = await command(request, TargetPause), desk.acting(request)
        until = _until(said)
        return json_answer(await desk.ask(_pause_target, client, said, paused=True, until=until))

    @post("/api/targets/resume", opt=OPERATE, status_code=200)
    async def resume_target(request: Request[Any, Any, Any]) -> Response[bytes]:
        said, client = await command(request, TargetCommand), desk.acting(request)
        return json_answer(await desk.ask(_pause_target, client, said, paused=False))

    return [pause_target, resume_target]


def _node_routes(desk: Desk) -> list[HTTPRouteHandler]:
    @post("/api/nodes/{node:str}/drain", opt=OPERATE, status_code=200)
    async def drain_node(request: Request[Any, Any, Any]) -> Response[bytes]:
        said, node = await command(request, Reason), node_of(request)
        return json_answer(await desk.ask(_drain, desk.acting(request), node, said, draining=True))

    @post("/api/nodes/{node:str}/resume", opt=OPERATE, status_code=200)
    async def resume_node(request: Request[Any, Any, Any]) -> Response[bytes]:
        said, node = await command(request, Reason), node_of(request)
        return json_answer(await desk.ask(_drain, desk.acting(request), node, said, draining=False))

    return [drain_node, resume_node]


def _store_routes(desk: Desk) -> list[HTTPRouteHandler]:
    @get("/api/pause", opt=needs(Scope.READ))
    async def store_pause(request: Request[Any, Any, Any]) -> Response[bytes]:
        pause = await desk.ask(desk.acting(request).store.store_pause)
        return json_answer(encode({"pause": pause_object(pause)}))

    @post("/api/pause", opt=OPERATE, status_code=200)
    async def pause_all(request: Request[Any, Any, Any]) -> Response[bytes]:
        said, client = await command(request, Pause), desk.acting(request)
        until = _until(said)
        return json_answer(await desk.ask(_pause_store, client, said, paused=True, until=until))

    @post("/api/resume", opt=OPERATE, status_code=200)
    async def resume_all(request: Request[Any, Any, Any]) -> Response[bytes]:
        said, client = await command(request, Reason), desk.acting(request)
        return json_answer(await desk.ask(_pause_store, client, said, paused=False))

    return [store_pause, pause_all, resume_all]


def _until(said: GroupPause | TargetPause | Pause) -> datetime | None:
    return None if said.until is None else time("until", said.until)


def _pause_group(client: Client, said: GroupCommand, *, paused: bool, until: datetime | None = None) -> str:
    for name in ("lane", "group"):
        if not text(name, getattr(said, name)):
            raise InvalidQuery(name, "is empty")
    client.lane(said.lane)
    who = {"actor": client.actor, "reason": said.reason}
    client.store.pause_group(said.lane, said.group, paused=paused, until=until, **who)
    return encode({"lane": said.lane, "group": said.group, "paused": paused, "until": until})


def _pause_target(client: Client, said: TargetCommand, *, paused: bool, until: datetime | None = None) -> str:
    name = paused_name(text("target", said.target))
    who = {"actor": client.actor, "reason": said.reason}
    pause = client.store.pause_target(name, paused=paused, until=until, **who)
    return encode({"target": name, "pause": pause_object(pause)})


def _drain(client: Client, node: int, said: Reason, *, draining: bool) -> str:
    drain = client.store.drain_node(node, draining=draining, actor=client.actor, reason=said.reason)
    return encode({"node": node, "drain": pause_object(drain)})


def _pause_store(client: Client, said: Reason, *, paused: bool, until: datetime | None = None) -> str:
    pause = client.store.pause_store(paused=paused, actor=client.actor, reason=said.reason, until=until)
    return encode({"pause": pause_object(pause)})
