"""What is looked at before a node opens its doors: can anybody come in, and how safe is the way."""

import logging
from typing import Final

from penstock.api.access import is_loopback
from penstock.errors import InvalidSetting
from penstock.ports.store import Store

_LOG: Final = logging.getLogger("penstock.access")


def check_entrance(store: Store, *, host: str, login: bool) -> None:
    """Raise InvalidSetting when others come in and nobody was let in yet; warn of what can be overheard."""
    if not login:
        return
    if not store.users() and not any(key.revoked_at is None for key in store.api_keys()):
        problem = (
            "is on, and there is nobody who could log in: penstock users add NAME --role admin, or for a"
            " program penstock access create NAME --role admin"
        )
        if not is_loopback(host):
            raise InvalidSetting("login", problem)
        _LOG.warning("login %s", problem)
    if not is_loopback(host):
        _LOG.warning(
            "%s is reached without TLS: keys, passwords and payloads can be overheard. Put a proxy with a"
            " certificate before it and let it listen on 127.0.0.1: docs/howto/secure.md",
            host,
        )
