"""Letting somebody in: a key for a program, a login for a person. Checked here, kept by the store."""

from collections.abc import Callable, Collection, Iterable
from datetime import timedelta
from typing import Final

from penstock.domain.access import Scope, check_label, check_scopes, hashed, new_key
from penstock.domain.intake import check_text
from penstock.domain.passwords import SALT_BYTES, check_password, kept
from penstock.errors import Forbidden, InvalidSetting
from penstock.ports.access import Access, ApiKey, NewKey, User

ID_BYTES: Final = 6
LONGEST_LIFE: Final = timedelta(days=3660)
Entropy = Callable[[int], bytes]


def grant_key(
    store: Access,
    name: str,
    scopes: Iterable[str],
    *,
    tenant: str | None,
    lasts: timedelta | None,
    actor: str,
    entropy: Entropy,
    of: Collection[Scope] = frozenset(Scope),
) -> tuple[ApiKey, str]:
    """Make a key and return it with its text, which nobody is shown again. `of`: nobody grants more."""
    if lasts is not None and not timedelta(0) < lasts <= LONGEST_LIFE:
        raise InvalidSetting("expires", f"{lasts} is no time from now: write 90d, ten years at most")
    wanted = _granted(scopes, of, actor)
    key = new_key(entropy)
    new = NewKey(entropy(ID_BYTES).hex(), check_label(name), hashed(key), wanted, _tenant(tenant), lasts)
    return store.add_key(new, actor=actor), key


def grant_login(
    store: Access,
    name: str,
    *,
    password: str | None,
    scopes: Iterable[str] | None,
    tenant: str | None,
    actor: str,
    entropy: Entropy,
    of: Collection[Scope] = frozenset(Scope),
) -> User:
    """Add somebody, or change what he may do or his password; what is None stays as it is."""
    check_label(name)
    wanted = None if scopes is None else _granted(scopes, of, actor)
    secret = None if password is None else kept(check_password(password, name=name), entropy(SALT_BYTES))
    return store.put_user(name, password=secret, scopes=wanted, tenant=_tenant(tenant), actor=actor)


def _granted(names: Iterable[str], of: Collection[Scope], actor: str) -> frozenset[Scope]:
    wanted = check_scopes(names)
    if missing := wanted - frozenset(of):
        raise Forbidden(actor, f"grant what it does not have: {', '.join(sorted(missing))}")
    return wanted


def _tenant(tenant: str | None) -> str | None:
    if tenant is None:
        return None
    try:
        return check_text(tenant)
    except (ValueError, TypeError) as error:
        raise InvalidSetting("tenant", str(error)) from None
