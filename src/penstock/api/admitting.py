"""`/api/access` and `/api/users`: who may come in. Whoever grants has the scope admin, and grants no more."""

import os
from typing import Any, Final

import msgspec
from litestar import Request, Response, delete, get, post, put
from litestar.handlers import HTTPRouteHandler

from penstock.api.commands import checked_reason, command
from penstock.api.desk import Desk, json_answer
from penstock.api.params import items_of, read_params, text
from penstock.api.problems import unknown_caller
from penstock.api.scopes import needs, who_of
from penstock.domain.access import Scope, Who, check_label
from penstock.domain.durations import BadDuration, parse_duration
from penstock.errors import InvalidSetting
from penstock.granting import grant_key, grant_login, key_object, user_object
from penstock.ports.store import Store
from penstock.wire import encode

ADMIN: Final = needs(Scope.ADMIN)
REASON: Final = {"reason": text}


class NewApiKey(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """A key to be made: what it may do by scopes or a role; `expires` is a duration like 90d."""

    name: str
    scopes: list[str] = []
    role: str | None = None
    tenant: str | None = None
    expires: str | None = None


class NewUser(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """Somebody to be added or changed; what is left out stays as it is."""

    password: str | None = None
    scopes: list[str] = []
    role: str | None = None
    tenant: str | msgspec.UnsetType | None = msgspec.UNSET


def access_routes(desk: Desk) -> list[HTTPRouteHandler]:
    """Return the handlers of keys and users."""
    store = desk.client.store

    @get("/api/access", opt=ADMIN)
    async def keys() -> Response[bytes]:
        return json_answer(await desk.ask(_keys, store))

    @post("/api/access", opt=ADMIN)
    async def make_key(request: Request[Any, Any, Any]) -> Response[bytes]:
        new, who = await command(request, NewApiKey), _who(request)
        return json_answer(await desk.ask(_make_key, store, new, who), status=201)

    @delete("/api/access/{name:str}", opt=ADMIN, status_code=200)
    async def revoke(request: Request[Any, Any, Any]) -> Response[bytes]:
        name, reason, who = request.path_params["name"], _reason(request), _who(request)
        return json_answer(await desk.ask(_revoke, store, name, reason, who))

    @get("/api/users", opt=ADMIN)
    async def users() -> Response[bytes]:
        found = await desk.ask(store.users)
        return json_answer(encode({"users": [user_object(user) for user in found]}))

    @put("/api/users/{name:str}", opt=ADMIN)
    async def put_user(request: Request[Any, Any, Any]) -> Response[bytes]:
        name, new, who = request.path_params["name"], await command(request, NewUser), _who(request)
        return json_answer(await desk.ask(_put_user, store, name, new, who))

    @delete("/api/users/{name:str}", opt=ADMIN, status_code=200)
    async def remove(request: Request[Any, Any, Any]) -> Response[bytes]:
        name, reason, who = request.path_params["name"], _reason(request), _who(request)
        await desk.ask(store.remove_user, check_label(name), actor=who.name, reason=reason)
        return json_answer(encode({"deleted": name}))

    return [keys, make_key, revoke, users, put_user, remove]


def _who(request: Request[Any, Any, Any]) -> Who:
    who = who_of(request)
    if who is None:
        raise unknown_caller()
    return who


def _reason(request: Request[Any, Any, Any]) -> str:
    return checked_reason(read_params(items_of(request), REASON).get("reason", ""))


def _keys(store: Store) -> str:
    now = store.now()
    return encode({"keys": [key_object(key, now) for key in store.api_keys()]})


def _make_key(store: Store, new: NewApiKey, who: Who) -> str:
    try:
        lasts = None if new.expires is None else parse_duration(new.expires)
    except BadDuration as error:
        raise InvalidSetting("expires", str(error)) from None
    made, key = grant_key(
        store,
        new.name,
        new.scopes,
        roles=[new.role] if new.role else (),
        tenant=new.tenant,
        lasts=lasts,
        actor=who.name,
        entropy=os.urandom,
        of=who.scopes,
    )
    return encode(key_object(made, made.created_at) | {"key": key})


def _revoke(store: Store, name: str, reason: str, who: Who) -> str:
    revoked = store.revoke_key(check_label(name), actor=who.name, reason=reason)
    return encode(key_object(revoked, store.now()))


def _put_user(store: Store, name: str, new: NewUser, who: Who) -> str:
    made = grant_login(
        store,
        name,
        password=new.password,
        scopes=new.scopes,
        roles=[new.role] if new.role else (),
        tenant=... if new.tenant is msgspec.UNSET else new.tenant,
        actor=who.name,
        entropy=os.urandom,
        of=who.scopes,
    )
    return encode(user_object(made))
