"""Which addresses may be connected to, in every spelling."""

from ipaddress import IPv6Address

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.domain.addresses import is_address, networks, refusal

PRIVATE = [
    "0.0.0.0",  # noqa: S104 - an address to refuse
    "10.0.0.1",
    "100.64.0.1",
    "100.100.100.200",
    "127.0.0.1",
    "127.255.255.254",
    "168.63.129.16",
    "169.254.169.254",
    "172.16.0.1",
    "192.0.0.192",
    "192.0.2.1",
    "192.88.99.1",
    "192.168.1.1",
    "198.18.0.1",
    "224.0.0.1",
    "239.1.1.1",
    "240.0.0.1",
    "255.255.255.255",
]
PUBLIC = ["1.1.1.1", "8.8.8.8", "93.184.216.34", "2606:4700:4700::1111", "2a00:1450:4001:80b::200e"]


def wrapped(v4: str) -> list[str]:
    """Return the IPv6 addresses that hide this one: mapped, translated, compatible, NAT64, 6to4, Teredo."""
    a, b, c, d = map(int, v4.split("."))
    high, low = f"{a:02x}{b:02x}", f"{c:02x}{d:02x}"
    inverted = f"{a ^ 255:02x}{b ^ 255:02x}:{c ^ 255:02x}{d ^ 255:02x}"
    return [
        f"::ffff:{v4}",
        f"::ffff:0:{v4}",
        f"::{v4}",
        f"64:ff9b::{v4}",
        f"64:ff9b:1::{v4}",
        f"2002:{high}:{low}::1",
        f"2001:0:808:808:0:0:{inverted}",
        f"2001:0:{high}:{low}::f7f7:f7f7",
    ]


@pytest.mark.parametrize("address", PUBLIC)
def test_global_addresses_are_fine(address: str) -> None:
    assert refusal(address) is None


@pytest.mark.parametrize("address", PRIVATE)
def test_what_is_not_global_is_refused(address: str) -> None:
    assert "allow its network" in str(refusal(address))


@pytest.mark.parametrize("address", [form for v4 in PRIVATE for form in wrapped(v4)])
def test_what_is_not_global_is_refused_in_every_wrapping(address: str) -> None:
    assert refusal(address) is not None


@pytest.mark.parametrize(
    "address",
    ["::", "::1", "fe80::1", "fe80::1%eth0", "fc00::1", "fd00:ec2::254", "fec0::1", "ff02::1", "2001:db8::1",
     "100::1", "5f00::1", "3fff::1", "2002:808:808::1", "2001:0:808:808::f7f7:f7f7"],
)  # fmt: skip
def test_ipv6_that_is_not_global_unicast_is_refused(address: str) -> None:
    assert refusal(address) is not None


def test_an_address_of_the_internet_may_come_through_nat64() -> None:
    assert refusal("64:ff9b::8.8.8.8") is None
    assert refusal("::ffff:8.8.8.8") is None


def test_the_refusal_names_what_is_hidden() -> None:
    assert str(refusal("64:ff9b::a9fe:a9fe")).startswith("169.254.169.254, inside 64:ff9b::a9fe:a9fe")


def test_an_allowed_network_is_fine_in_its_own_spelling_and_mapped() -> None:
    allow = networks(["127.0.0.0/8", "fd00::/8"])

    assert refusal("127.0.0.1", allow=allow) is None
    assert refusal("::ffff:127.0.0.1", allow=allow) is None
    assert refusal("fd00::7", allow=allow) is None
    assert refusal("10.0.0.1", allow=allow) is not None


def test_allowing_the_wrapping_does_not_allow_what_is_inside() -> None:
    assert refusal("2002:7f00:1::1", allow=networks(["2002::/16"])) is not None
    assert refusal("2002:7f00:1::1", allow=networks(["2002::/16", "127.0.0.0/8"])) is None
    assert refusal("::127.0.0.1", allow=networks(["::/96"])) is not None
    assert refusal("::127.0.0.1", allow=networks(["::/96", "127.0.0.0/8"])) is None
    assert refusal("2001:0:808:808::80ff:fffe", allow=networks(["2001::/32"])) is not None
    assert refusal("2001:0:808:808::80ff:fffe", allow=networks(["2001::/32", "127.0.0.0/8"])) is None


def test_a_name_is_no_address() -> None:
    assert "no IP address" in str(refusal("localhost"))


def test_a_network_is_spelled_right() -> None:
    with pytest.raises(ValueError):
        networks(["10.0.0.1/8"])


@given(st.integers(0, 2**128 - 1))
def test_no_ipv6_address_outside_the_internet_gets_through(number: int) -> None:
    address = IPv6Address(number)

    if refusal(str(address)) is None:
        assert address.is_global
        assert not address.is_multicast


@pytest.mark.parametrize(
    ("text", "is_one"), [("10.0.0.1", True), ("::1", True), ("fe80::1%eth0", True), ("a.example", False)]
)
def test_names_and_addresses_are_told_apart(text: str, *, is_one: bool) -> None:
    assert is_address(text) is is_one
