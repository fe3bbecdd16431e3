"""The one place where a connection to a target begins: an address that is not allowed gets no socket.

The socket also bounds what a target can make us read for one request, whatever it dresses it up as: without
that, an endless row of interim answers would keep the whole loop busy.

Names are looked up by our resolver, which drops what is not allowed, so that a name with a good and a bad
address is reached by the good one. The socket is the choke point all the same: whatever way an address came
there, it is looked at again, and it is the one that is then connected to.
"""

import socket
from collections.abc import Callable, Collection, Sequence
from ipaddress import IPv6Address, ip_address
from typing import Any, Final

from aiohttp import AddrInfoType
from aiohttp.abc import AbstractResolver, ResolveResult

from penstock.domain.addresses import Address, Network, refusal

MAX_RECEIVED: Final = 512 * 1024
_AT_ONCE: Final = 64 * 1024
_ANY_FAMILY: Final = socket.AF_UNSPEC
MakeSocket = Callable[[int, int, int], socket.socket]


class RefusedAddress(OSError):
    """Nothing was sent there, and nothing will be."""


class BoundedSocket(socket.socket):
    """Fails when more than MAX_RECEIVED bytes came since something was sent; takes them in small bites."""

    _left = MAX_RECEIVED

    def send(self, *data: Any) -> int:  # noqa: ANN401 - as the socket's own
        """Send, and allow a whole answer again."""
        self._left = MAX_RECEIVED
        return super().send(*data)

    def sendmsg(self, *data: Any) -> int:  # noqa: ANN401
        """Send, and allow a whole answer again."""
        self._left = MAX_RECEIVED
        return super().sendmsg(*data)

    def recv(self, size: int, flags: int = 0) -> bytes:
        """Receive no more than is allowed."""
        data = super().recv(self._allowed(size), flags)
        self._left -= len(data)
        return data

    def recv_into(self, buffer: Any, size: int = 0, flags: int = 0) -> int:  # noqa: ANN401
        """Receive no more than is allowed."""
        count = super().recv_into(buffer, self._allowed(size or len(buffer)), flags)
        self._left -= count
        return count

    def _allowed(self, size: int) -> int:
        if self._left <= 0:
            raise OSError(f"it answered with more than {MAX_RECEIVED // 1024} KiB")
        return min(size, self._left, _AT_ONCE)


class Guard:
    """Decides about addresses; `own_listeners` are refused even inside a network that is allowed."""

    def __init__(
        self,
        *,
        allow: Sequence[Network] = (),
        own_listeners: Collection[tuple[str, int]] = (),
        make_socket: MakeSocket = BoundedSocket,
    ) -> None:
        self._allow = allow
        self._own = own_listeners
        self._make_socket = make_socket

    def refusal(self, host: str, port: int) -> str | None:
        """Return why this address is refused; None = it may be connected to."""
        why = refusal(host, allow=self._allow)
        if why is None and any(port == ours and _same(host, own) for own, ours in self._own):
            return f"{host} port {port} is where this process itself listens: send to somebody else"
        return why

    def make_socket(self, info: AddrInfoType) -> socket.socket:
        """Return a socket for this address, or raise RefusedAddress."""
        family, kind, protocol, _, address = info
        why = self.refusal(str(address[0]), int(address[1]))
        if why is not None:
            raise RefusedAddress(why)
        return self._make_socket(family, kind, protocol)


class GuardedResolver(AbstractResolver):
    """Looks names up and leaves out what the guard refuses; a name with nothing else is refused."""

    def __init__(self, resolver: AbstractResolver, guard: Guard) -> None:
        self._resolver = resolver
        self._guard = guard

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = _ANY_FAMILY
    ) -> list[ResolveResult]:
        """Return the addresses of a name that may be connected to."""
        found = await self._resolver.resolve(host, port, family)
        refusals = [self._guard.refusal(one["host"], one["port"]) for one in found]
        allowed = [one for one, why in zip(found, refusals, strict=True) if why is None]
        if found and not allowed:
            raise RefusedAddress(refusals[0])
        return allowed

    async def close(self) -> None:
        """Close the resolver."""
        await self._resolver.close()


def _same(host: str, own: str) -> bool:
    """Say whether connecting to `host` reaches a listener on `own`, which may be a wildcard or a name."""
    address = _plain(host)
    try:
        listener = _plain(own)
    except ValueError:
        return _is_ours(address)
    if address.is_unspecified:  # whoever connects there reaches this machine
        return listener.is_unspecified or listener.is_loopback
    return _is_ours(address) if listener.is_unspecified else address == listener


def _plain(text: str) -> Address:
    address = ip_address(text.partition("%")[0])
    mapped = address.ipv4_mapped if isinstance(address, IPv6Address) else None
    return mapped or address


def _is_ours(address: Address) -> bool:
    """Say whether the address is one of this machine's: only those can be bound. No packet is sent."""
    family = socket.AF_INET6 if address.version == 6 else socket.AF_INET
    with socket.socket(family, socket.SOCK_DGRAM) as trial:
        try:
            trial.bind((str(address), 0))
        except OSError:
            return False
    return True
