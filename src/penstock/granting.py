"""Letting somebody in: a key for a program, a login for a person. Checked here, kept by the store."""

from collections.abc import Callable, Collection, Iterable
from datetime import datetime, timedelta
from types import EllipsisType
from typing import Any, Final

from penstock.domain.access import (
    Scope,
    check_granted,
    check_label,
    check_scopes,
    hashed,
    new_key,
    role_of,
)
from penstock.domain.intake import check_text
from penstock.errors import InvalidSetting
from penstock.passwords import SALT_BYTES, check_password, kept
from penstock.ports.access import Access, ApiKey, NewKey, User

ID_BYTES: Final = 6
LONGEST_LIFE: Final = timedelta(days=3660)
Entropy = Callable[[int], bytes]


def grant_key(
    store: Access,
    name: str,
    scopes: Iterable[str],
    *,
    roles: Iterable[str] = (),
    tenant: str | None,
    lasts: timedelta | None,
    actor: str,
    entropy: Entropy,
    of: Collection[Scope] = frozenset(Scope),
) -> tuple[ApiKey, str]:
    """Make a key and return it with its text, which nobody is shown again. `of`: nobody grants more."""
    if lasts is not None and not timedelta(0) < lasts <= LONGEST_LIFE:
        raise InvalidSetting("expires", f"{lasts} is no time from now: write 90d, ten years at most")
    wanted = check_granted(check_scopes(scopes, roles), of, actor)
    key = new_key(entropy)
    new = NewKey(entropy(ID_BYTES).hex(), check_label(name), hashed(key), wanted, _tenant(tenant), lasts)
    return store.add_key(new, actor=actor), key


def grant_login(
    store: Access,
    name: str,
    *,
    password: str | None,
    scopes: Iterable[str] = (),
    roles: Iterable[str] = (),
    tenant: str | EllipsisType | None = ...,
    actor: str,
    entropy: Entropy,
    of: Collection[Scope] = frozenset(Scope),
    new: bool = False,
) -> User:
    """Add somebody, or change what he may do or his password; what is not given stays as it is.

    `of`: nobody lets others in as somebody who may more than he does, by a new password for example. The
    store decides both, with the row in its hands: a password takes a while, in which others change him too.
    """
    names, bundles = [*scopes], [*roles]
    wanted = check_scopes(names, bundles) if names or bundles else None
    bound = tenant if isinstance(tenant, EllipsisType) else _tenant(tenant)
    label = check_label(name)
    secret = None if password is None else kept(check_password(password, name=name), entropy(SALT_BYTES))
    return store.put_user(label, password=secret, scopes=wanted, tenant=bound, actor=actor, of=of, new=new)


def _tenant(tenant: str | None) -> str | None:
    if tenant is None:
        return None
    try:
        return check_text(tenant)
    except (ValueError, TypeError) as error:
        raise InvalidSetting("tenant", str(error)) from None


def key_object(key: ApiKey, now: datetime) -> dict[str, Any]:
    """Return what is told of a key, which is never the key."""
    return {
        "id": key.id,
        "name": key.name,
        "scopes": [scope.value for scope in Scope if scope in key.scopes],
        "role": role_of(key.scopes),
        "tenant": key.tenant,
        "valid": key.problem(now) is None,
        "created_at": key.created_at,
        "created_by": key.created_by,
        "expires_at": key.expires_at,
        "revoked_at": key.revoked_at,
        "used_at": key.used_at,
    }


def user_object(user: User) -> dict[str, Any]:
    """Return what is told of a user."""
    return {
        "name": user.name,
        "scopes": [scope.value for scope in Scope if scope in user.scopes],
        "role": role_of(user.scopes),
        "tenant": user.tenant,
        "created_at": user.created_at,
        "seen_at": user.seen_at,
    }
