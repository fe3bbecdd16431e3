"""`/access`: who may come in, programs by keys and people by name; for those with the scope admin."""

import os
from collections.abc import Mapping
from typing import Any, Final

from litestar import Response, get, post
from litestar.handlers import HTTPRouteHandler
from litestar.response import Redirect

from penstock.api.scopes import needs, who_of
from penstock.domain.access import ROLES, Scope, check_label, told
from penstock.domain.durations import BadDuration, parse_duration
from penstock.errors import InvalidSetting, NotFound, PenstockError
from penstock.granting import grant_key, grant_login
from penstock.ports.access import ApiKey, User
from penstock.ui.site import NOTHING_REFUSED, AnyRequest, Site, acted, form, reason_of, who
from penstock.ui.telling import back

HERE: Final = "/access"
MOST: Final = 200
ADMIN: Final = needs(Scope.ADMIN)


def routes(site: Site) -> list[HTTPRouteHandler]:
    """Return the handlers."""
    return [*_key_routes(site), *_user_routes(site)]


def _key_routes(site: Site) -> list[HTTPRouteHandler]:
    @get(HERE, opt=ADMIN)
    async def access(request: AnyRequest) -> Response[bytes]:
        everything = request.query_params.get("show") == "all"
        return await site.page(request, "access.html", lambda: _view(site, everything=everything))

    @post(HERE, opt=ADMIN, status_code=200)
    async def make_key(request: AnyRequest) -> Response[bytes] | Redirect:
        """The answer is the page itself: the key is in no cookie, no address and no history."""
        fields = await form(request)
        try:
            made, key = await site.desk.ask(lambda: _make_key(site, request, fields))
        except PenstockError as error:
            return await site.again(
                request, "access.html", lambda: _view(site) | {"refused": "key"}, (fields, error)
            )
        return await site.page(
            request, "access.html", lambda: _view(site, made=made) | {"key": key, "still": True}
        )

    @post(f"{HERE}/revoke", opt=ADMIN)
    async def revoke(request: AnyRequest) -> Response[Any]:
        fields, actor = await form(request), who(request)

        def act() -> str:
            name = check_label(fields.get("id", ""))
            key = site.store.revoke_key(name, actor=actor, reason=reason_of(fields))
            return f"Key {key.name} opens nothing any more."

        return await acted(site, request, HERE, act)

    return [access, make_key, revoke]


def _user_routes(site: Site) -> list[HTTPRouteHandler]:
    @post(f"{HERE}/users", opt=ADMIN)
    async def put_user(request: AnyRequest) -> Response[bytes] | Redirect:
        fields = await form(request) | {"password": ""}  # which no page ever has
        password = str((await request.form()).get("password", ""))  # with the blanks that it may have
        try:
            user = await site.desk.ask(_let_in, site, request, fields, password or None)
        except PenstockError as error:
            return await site.again(
                request, "access.html", lambda: _view(site) | {"refused": "user"}, (fields, error)
            )
        site.forget()
        bound = f", of tenant {user.tenant}" if user.tenant else ""
        return back(HERE, f"{user.name} is let in: {told(user.scopes)}{bound}.")

    @get(f"{HERE}/users", opt=ADMIN)
    async def left() -> Redirect:
        """What the browser has as the address of a form that was refused."""
        return Redirect(HERE, status_code=303)

    @post(f"{HERE}/users/remove", opt=ADMIN)
    async def remove(request: AnyRequest) -> Response[Any]:
        fields, actor = await form(request), who(request)

        def act() -> str:
            name = check_label(fields.get("name", ""))
            site.store.remove_user(name, actor=actor, reason=reason_of(fields))
            return f"{name} is let in no more."

        return await acted(site, request, HERE, act)

    return [put_user, left, remove]


def _view(site: Site, *, everything: bool = False, made: ApiKey | None = None) -> dict[str, Any]:
    now = site.store.now()
    keys = [key for key in site.store.api_keys() if everything or key.revoked_at is None]
    return {
        "screen": "access",
        "now": now,
        "keys": [{"key": key, "may": told(key.scopes), "problem": key.problem(now)} for key in keys[:MOST]],
        "more": max(0, len(keys) - MOST),
        "users": [{"user": user, "may": told(user.scopes)} for user in site.store.users()[:MOST]],
        "everything": everything,
        "made": made,
        "key": None,
        "scopes": [scope.value for scope in Scope],
        "roles": list(ROLES),
        "refused": None,
        **NOTHING_REFUSED,
    }


def _make_key(site: Site, request: AnyRequest, fields: Mapping[str, str]) -> tuple[ApiKey, str]:
    try:
        lasts = parse_duration(fields["expires"]) if fields.get("expires") else None
    except BadDuration as error:
        raise InvalidSetting("expires", str(error)) from None
    return grant_key(
        site.store,
        fields.get("name", ""),
        tenant=fields.get("tenant") or None,
        lasts=lasts,
        entropy=os.urandom,
        **_granted(request, fields),
    )


def _let_in(site: Site, request: AnyRequest, fields: Mapping[str, str], password: str | None) -> User:
    """Add somebody, or change him: what the form leaves empty stays as it is, his tenant too."""
    name, granted = fields.get("name", ""), _granted(request, fields)
    tenant = fields.get("tenant") or (None if "unbound" in fields else ...)
    try:
        return grant_login(site.store, name, password=password, tenant=tenant, entropy=os.urandom, **granted)
    except NotFound:
        missing, what = ("role", "choose what {} may do")
        if granted["scopes"] or granted["roles"]:
            missing, what = ("password", "write a password for {}")
        raise InvalidSetting(missing, f"{what.format(name)}: there is no such user yet") from None


def _granted(request: AnyRequest, fields: Mapping[str, str]) -> dict[str, Any]:
    """Return what is granted by whom: a role, scopes one by one, or both; nobody grants more than he has."""
    caller = who_of(request)
    return {
        "scopes": [scope.value for scope in Scope if f"scope-{scope}" in fields],
        "roles": [fields["role"]] if fields.get("role") else [],
        "actor": who(request),
        "of": frozenset() if caller is None else caller.scopes,
    }
