"""Which addresses a message from outside may make us connect to.

Only global ones, unless a network is allowed on purpose. An IPv6 address may carry an IPv4 address that some
translator on the way will use, so every form is looked at: mapped, compatible, NAT64, 6to4, Teredo.
`ipaddress.is_global` alone is not enough: it takes several of them, multicast, and addresses of clouds' own
services for global, and which ones depends on the version of Python.
"""

from collections.abc import Iterable, Iterator, Sequence
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from typing import Final

Address = IPv4Address | IPv6Address
Network = IPv4Network | IPv6Network

METADATA_NAMES: Final = frozenset(
    {"metadata", "metadata.google.internal", "metadata.goog", "instance-data", "instance-data.ec2.internal"}
)
_NAT64: Final = IPv6Network("64:ff9b::/96")
_COMPATIBLE: Final = IPv6Network("::/96")
_GLOBAL_UNICAST: Final = IPv6Network("2000::/3")
_NEVER_GLOBAL: Final[tuple[Network, ...]] = (
    IPv4Network("168.63.129.16/32"),  # a cloud's platform service on a public address
    IPv4Network("192.0.0.0/24"),  # protocol assignments; a cloud keeps its metadata there
    IPv4Network("192.88.99.0/24"),  # relays for 6to4
    IPv6Network("2001::/32"),  # Teredo
    IPv6Network("2002::/16"),  # 6to4
    IPv6Network("3fff::/20"),  # for examples in documents
)


def networks(texts: Iterable[str]) -> tuple[Network, ...]:
    """Return networks as configured, or raise ValueError."""
    return tuple(ip_network(text) for text in texts)


def refusal(text: str, *, allow: Sequence[Network] = ()) -> str | None:
    """Return why nobody may be sent to this address, None = it may be connected to."""
    try:
        address = ip_address(text.partition("%")[0])
    except ValueError:
        return f"{text!a} is no IP address"
    for form in forms(address):
        if not (_global(form) or any(form in network for network in allow)):
            hidden = "" if form == address else f", inside {address}"
            return f"{form}{hidden} is not a global address: allow its network in http.allow_networks"
    return None


def is_address(text: str) -> bool:
    """Say whether it is an address, and not a name."""
    try:
        ip_address(text.partition("%")[0])
    except ValueError:
        return False
    return True


def forms(address: Address) -> Iterator[Address]:
    """Yield every address that connecting to this one may reach."""
    if isinstance(address, IPv4Address):
        yield address
        return
    if address.ipv4_mapped is not None:  # only a way to write the other
        yield address.ipv4_mapped
        return
    if address in _NAT64:
        yield _last_32_bits(address)
        return
    yield address
    if address in _COMPATIBLE and int(address) > 1:
        yield _last_32_bits(address)
    if address.sixtofour is not None:
        yield address.sixtofour
    if address.teredo is not None:
        yield from address.teredo


def _global(address: Address) -> bool:
    if address.is_multicast or not address.is_global:
        return False
    if isinstance(address, IPv6Address) and address not in _GLOBAL_UNICAST:
        return False
    return not any(address in network for network in _NEVER_GLOBAL)


def _last_32_bits(address: IPv6Address) -> IPv4Address:
    return IPv4Address(int(address) & 0xFFFFFFFF)
