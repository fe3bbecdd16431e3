"""What operators stop and let go: groups, targets, nodes, everything. Lanes and pools: named.py."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, NamedTuple

from litestar import Request, Response, get, post
from litestar.handlers import HTTPRouteHandler

from penstock.api.commands import Pause, Reason, command
from penstock.api.desk import Desk, json_answer
from penstock.api.params import node_number, text, time
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


class Stop(NamedTuple):
    """Whether something is to be stopped, until when, and what the address names."""

    stopped: bool
    until: datetime | None
    path: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Stopping:
    """What can be stopped and let go: the addresses of both, what each takes, and what is done."""

    stop: str
    go: str
    takes: type[Reason]
    lets: type[Reason]
    act: Callable[[Client, Any, Stop], str]


def pausing_routes(desk: Desk) -> list[HTTPRouteHandler]:
    """Return the handlers."""

    @get("/api/pause", opt=needs(Scope.READ))
    async def store_pause(request: Request[Any, Any, Any]) -> Response[bytes]:
        pause = await desk.ask(desk.acting(request).store.store_pause)
        return json_answer(encode({"pause": pause_object(pause)}))

    @post("/api/targets/reset", opt=OPERATE, status_code=200)
    async def reset_target(request: Request[Any, Any, Any]) -> Response[bytes]:
        said, client = await command(request, TargetCommand), desk.acting(request)
        return json_answer(await desk.ask(_reset_target, client, said))

    return [store_pause, reset_target, *(route for kind in KINDS for route in _routes(desk, kind))]


def _routes(desk: Desk, kind: Stopping) -> list[HTTPRouteHandler]:
    @post(kind.stop, name=kind.stop, opt=OPERATE, status_code=200)
    async def stop(request: Request[Any, Any, Any]) -> Response[bytes]:
        said, client = await command(request, kind.takes), desk.acting(request)
        until = getattr(said, "until", None)
        how = Stop(True, None if until is None else time("until", until), request.path_params)
        return json_answer(await desk.ask(kind.act, client, said, how))

    @post(kind.go, name=kind.go, opt=OPERATE, status_code=200)
    async def go(request: Request[Any, Any, Any]) -> Response[bytes]:
        said, client = await command(request, kind.lets), desk.acting(request)
        return json_answer(await desk.ask(kind.act, client, said, Stop(False, None, request.path_params)))

    return [stop, go]


def _pause_group(client: Client, said: GroupCommand, how: Stop) -> str:
    for name in ("lane", "group"):
        if not text(name, getattr(said, name)):
            raise InvalidQuery(name, "is empty")
    client.lane(said.lane)
    who = {"actor": client.actor, "reason": said.reason}
    client.store.pause_group(said.lane, said.group, paused=how.stopped, until=how.until, **who)
    return encode({"lane": said.lane, "group": said.group, "paused": how.stopped, "until": how.until})


def _pause_target(client: Client, said: TargetCommand, how: Stop) -> str:
    name = paused_name(text("target", said.target))
    who = {"actor": client.actor, "reason": said.reason}
    pause = client.store.pause_target(name, paused=how.stopped, until=how.until, **who)
    return encode({"target": name, "pause": pause_object(pause)})


def _reset_target(client: Client, said: TargetCommand) -> str:
    name = paused_name(text("target", said.target))
    reset = client.store.reset_target(name, actor=client.actor, reason=said.reason)
    client.store.wake(())
    return encode({"target": name, "reset": reset})


def _drain(client: Client, said: Reason, how: Stop) -> str:
    node = node_number(how.path["node"])
    drain = client.store.drain_node(node, draining=how.stopped, actor=client.actor, reason=said.reason)
    return encode({"node": node, "drain": pause_object(drain)})


def _pause_store(client: Client, said: Reason, how: Stop) -> str:
    who = {"actor": client.actor, "reason": said.reason}
    pause = client.store.pause_store(paused=how.stopped, until=how.until, **who)
    return encode({"pause": pause_object(pause)})


KINDS: Final = (
    Stopping("/api/groups/pause", "/api/groups/resume", GroupPause, GroupCommand, _pause_group),
    Stopping("/api/targets/pause", "/api/targets/resume", TargetPause, TargetCommand, _pause_target),
    Stopping("/api/nodes/{node:str}/drain", "/api/nodes/{node:str}/resume", Reason, Reason, _drain),
    Stopping("/api/pause", "/api/resume", Pause, Reason, _pause_store),
)
