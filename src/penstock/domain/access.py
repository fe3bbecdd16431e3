"""Who may do what: scopes, the roles that bundle them, and somebody who is known.

A scope is what a request needs, a role is a name for the scopes that people usually have together. Whoever is
bound to a tenant sees and enqueues that tenant's jobs only, whatever his scopes are.
"""

import re
from base64 import urlsafe_b64encode
from collections.abc import Callable, Collection, Iterable, Mapping
from enum import StrEnum
from hashlib import sha256
from typing import Final, NamedTuple

from penstock.errors import Forbidden, InvalidSetting

PREFIX: Final = "pk_"
BYTES: Final = 32
_UNSENDABLE: Final = re.compile(r"[^ -~]")
_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.@+-]{0,62}")


class Scope(StrEnum):
    """What somebody may do."""

    READ = "read"  # look at jobs, lanes, groups, figures: everything but what jobs carry
    PAYLOAD = "payload"  # see payloads, headers, results, and what targets answered
    ENQUEUE = "enqueue"  # put jobs into lanes, and messages into the router
    REPORT = "report"  # say what became of a send
    OPERATE = "operate"  # act on jobs, pause lanes, pools and groups, replay
    ADMIN = "admin"  # change lanes and pools, keys and people


ROLES: Final[Mapping[str, frozenset[Scope]]] = {
    "viewer": frozenset({Scope.READ}),
    "operator": frozenset(set(Scope) - {Scope.ADMIN}),
    "admin": frozenset(Scope),
}


class Who(NamedTuple):
    """Somebody who is known; `name` is what the audit calls him."""

    name: str
    scopes: frozenset[Scope]
    tenant: str | None = None

    def may(self, scope: Scope) -> bool:
        """Say whether he has the scope."""
        return scope in self.scopes

    @property
    def sees_all(self) -> bool:
        """Whether nothing that a store holds is kept from him."""
        return self.tenant is None and Scope.PAYLOAD in self.scopes


# Whoever reaches a node that asks for no login: a program or a page of this machine.
LOCAL: Final = Who("api", frozenset(Scope))


def check_scopes(names: Iterable[str], roles: Iterable[str] = ()) -> frozenset[Scope]:
    """Return scopes by their names and by roles, or raise InvalidSetting.

    They are told apart because `admin` is both: the scope alone opens no job, the role everything.
    """
    found: set[Scope] = set()
    for name in names:
        if name not in set(Scope):
            raise InvalidSetting("scope", f"{name!r} is none of {', '.join(Scope)}")
        found.add(Scope(name))
    for role in roles:
        if role not in ROLES:
            raise InvalidSetting("role", f"{role!r} is none of {', '.join(ROLES)}")
        found |= ROLES[role]
    if not found:
        raise InvalidSetting("scope", "there is none: give at least one, or a role")
    return frozenset(found)


def check_granted(scopes: frozenset[Scope], of: Collection[Scope], actor: str) -> frozenset[Scope]:
    """Return what somebody gets from one who has `of`, or raise Forbidden: nobody grants more than he has."""
    if missing := scopes - frozenset(of):
        raise Forbidden(actor, f"grant what it does not have: {', '.join(sorted(missing))}")
    return scopes


def role_of(scopes: Collection[Scope]) -> str | None:
    """Return the role that is exactly these scopes, if there is one."""
    return next((role for role, bundle in ROLES.items() if bundle == frozenset(scopes)), None)


def told(scopes: Collection[Scope]) -> str:
    """Return what somebody may do as people read it: a role, or scopes; `admin` alone is not the role."""
    alone = frozenset(scopes) == {Scope.ADMIN}
    return role_of(scopes) or (f"{Scope.ADMIN} alone" if alone else spelled(scopes))


def spelled(scopes: Iterable[Scope]) -> str:
    """Return scopes as they are kept: names in their own order, with a comma between."""
    chosen = frozenset(scopes)
    return ",".join(scope for scope in Scope if scope in chosen)


def new_key(entropy: Callable[[int], bytes]) -> str:
    """Return a new API key: 256 random bits, and a beginning by which a leaked one is found."""
    return PREFIX + new_token(entropy)


def new_token(entropy: Callable[[int], bytes]) -> str:
    """Return 256 random bits as text."""
    return urlsafe_b64encode(entropy(BYTES)).rstrip(b"=").decode()


def hashed(token: str) -> str:
    """Return what is kept of a key or a session. It has 256 random bits, so a plain hash is enough."""
    return sha256(token.encode(errors="replace")).hexdigest()


def proof(key: str | None) -> dict[str, str]:
    """Return the header that shows a key, if there is one; the line end of its file is no part of it.

    Raise InvalidSetting, which does not quote it.
    """
    text = (key or "").strip()
    if _UNSENDABLE.search(text):
        raise InvalidSetting(
            "api_key",
            "has characters that no key has: give what `penstock access create` printed, and nothing else"
            " (commands take it from PENSTOCK_API_KEY or their profile)",
        )
    return {"Authorization": f"Bearer {text}"} if text else {}


def check_label(name: str) -> str:
    """Return the name of a key or a user, or raise InvalidSetting."""
    if not _NAME.fullmatch(name):
        raise InvalidSetting(
            "name", f"{name!r} is none: letters, digits and _ . @ + - after the first, 63 at most"
        )
    return name
