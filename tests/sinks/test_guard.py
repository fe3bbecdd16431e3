"""The one place where connections begin. No test here connects to anything but this machine."""

import asyncio
import io
import socket
from collections.abc import AsyncIterator, Callable, Collection, Sequence
from contextlib import asynccontextmanager

import pytest
from aiohttp.abc import AbstractResolver, ResolveResult

from penstock.domain.addresses import networks
from penstock.domain.outcomes import Accepted, Rejected, TryAgain
from penstock.ports.clock import SystemClock
from penstock.ports.executor import ThreadExecutor
from penstock.ports.sink import Envelope, Sink, Supplies
from penstock.sinks.guard import Guard, GuardedResolver, RefusedAddress
from penstock.sinks.http import open_http
from penstock.testing.receiver import Answer, receiver

LOOPBACK = ("127.0.0.0/8",)
EVERYWHERE = ("0.0.0.0/0", "::/0")
PRIVATE = ["10.0.0.1", "127.0.0.1", "169.254.169.254", "192.168.0.1", "::1", "fd00::1", "::ffff:10.0.0.1",
           "64:ff9b::a9fe:a9fe", "2002:7f00:1::1", "0.0.0.0", "224.0.0.1"]  # noqa: S104 # fmt: skip


class Names(AbstractResolver):
    """A resolver that knows only what it is told."""

    def __init__(self, *addresses: str) -> None:
        self.addresses = addresses
        self.asked: list[str] = []

    async def resolve(self, host: str, port: int = 0, *_: object) -> list[ResolveResult]:
        self.asked.append(host)
        if not self.addresses:
            raise OSError(None, "no such name")
        return [
            ResolveResult(
                hostname=host,
                host=address,
                port=port,
                family=socket.AF_INET6 if ":" in address else socket.AF_INET,
                proto=0,
                flags=socket.AI_NUMERICHOST,
            )
            for address in self.addresses
        ]

    async def close(self) -> None:
        pass


@asynccontextmanager
async def opened(
    executor: ThreadExecutor,
    names: Names,
    *,
    allow: Sequence[str] = (),
    own: Collection[tuple[str, int]] = (),
) -> AsyncIterator[Sink]:
    supplies = Supplies(
        executor=executor,
        clock=SystemClock(),
        stream=io.StringIO(),
        allow_networks=allow,
        own_listeners=own,
    )
    sink = await open_http({}, supplies, resolver=names)
    try:
        async with asyncio.timeout(60):
            yield sink
    finally:
        await sink.close()


def to(target: str) -> Envelope:
    return Envelope("01JOB", 1, "orders", 1, "{}", target)


@pytest.fixture
def sockets(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """Return the addresses that anything tried to connect to; every such try fails the test."""
    tried: list[object] = []

    async def connect(_: object, __: object, address: object) -> None:
        tried.append(address)
        raise AssertionError(f"connected to {address}")

    monkeypatch.setattr(asyncio.SelectorEventLoop, "sock_connect", connect)
    return tried


@pytest.mark.parametrize("address", PRIVATE)
async def test_a_name_that_leads_inside_is_refused(
    executor: ThreadExecutor, sockets: list[object], address: str
) -> None:
    async with opened(executor, Names(address)) as sink:
        [receipt] = await sink.send([to("http://innocent.example/")])

    assert isinstance(receipt, Rejected)
    assert "refused address of innocent.example" in receipt.error
    assert sockets == []


@pytest.mark.parametrize("address", PRIVATE)
async def test_an_address_that_leads_inside_is_refused(
    executor: ThreadExecutor, sockets: list[object], address: str
) -> None:
    names = Names()
    host = f"[{address}]" if ":" in address else address
    async with opened(executor, names) as sink:
        [receipt] = await sink.send([to(f"http://{host}:8080/")])

    assert isinstance(receipt, Rejected)
    assert "refused address" in receipt.error
    assert (sockets, names.asked) == ([], [])


@pytest.mark.parametrize("spelled", ["0x7f000001", "0x7f.1", "localhost", "LOCALHOST.", "127.0.0.1.example"])
async def test_however_a_resolver_reads_it_the_address_counts(
    executor: ThreadExecutor, sockets: list[object], spelled: str
) -> None:
    async with opened(executor, Names("127.0.0.1")) as sink:
        [receipt] = await sink.send([to(f"http://{spelled}/")])

    assert isinstance(receipt, Rejected)
    assert sockets == []


async def test_a_name_with_good_and_bad_addresses_is_reached_by_the_good_one(
    executor: ThreadExecutor,
) -> None:
    async with receiver() as received:
        port = received.url.rpartition(":")[2]
        names = Names("169.254.169.254", "127.0.0.1", "10.0.0.1")
        async with opened(executor, names, allow=LOOPBACK) as sink:
            assert await sink.send([to(f"http://mixed.example:{port}/")]) == [Accepted("200")]

    assert names.asked == ["mixed.example"]
    assert received.requests[0].headers["host"] == f"mixed.example:{port}"


async def test_a_name_that_changes_its_mind_is_looked_at_each_time(executor: ThreadExecutor) -> None:
    """The address that was checked is the address that is connected to: there is no second look-up."""
    async with receiver() as received:
        port = received.url.rpartition(":")[2]
        names = Names("127.0.0.1")
        async with opened(executor, names, allow=LOOPBACK) as sink:
            assert await sink.send([to(f"http://fickle.example:{port}/")]) == [Accepted("200")]
        names.addresses = ("10.0.0.1",)
        async with opened(executor, names, allow=LOOPBACK) as sink:
            [receipt] = await sink.send([to(f"http://fickle.example:{port}/")])

    assert isinstance(receipt, Rejected)
    assert names.asked == ["fickle.example", "fickle.example"]


async def test_a_resolver_that_fails_lets_nothing_through(
    executor: ThreadExecutor, sockets: list[object]
) -> None:
    async with opened(executor, Names(), allow=["0.0.0.0/0"]) as sink:
        [receipt] = await sink.send([to("http://gone.example/")])

    assert receipt == TryAgain("gone.example cannot be found: no such name")
    assert sockets == []


async def test_redirects_lead_nowhere(executor: ThreadExecutor) -> None:
    def elsewhere(_: object) -> Answer:
        return Answer(status=307, headers={"Location": "http://169.254.169.254/latest"})

    async with receiver(answer=elsewhere) as received, opened(executor, Names(), allow=LOOPBACK) as sink:
        assert await sink.send([to(received.url)]) == [Rejected("HTTP 307")]


@pytest.mark.parametrize(
    "listener",
    [
        lambda port: ("127.0.0.1", port),
        lambda port: ("0.0.0.0", port),  # noqa: S104
        lambda port: ("::", port),
        lambda port: ("::ffff:127.0.0.1", port),
        lambda port: ("localhost", port),
    ],
    ids=["address", "any", "any of IPv6", "mapped", "name"],
)
async def test_our_own_listeners_are_refused_although_their_network_is_allowed(
    executor: ThreadExecutor, listener: Callable[[int], tuple[str, int]]
) -> None:
    async with receiver() as ours, receiver() as other:
        port = int(ours.url.rpartition(":")[2])
        names = [ours.url, *(f"http://{host}:{port}" for host in ("0.0.0.0", "[::]", "[::ffff:0.0.0.0]"))]  # noqa: S104
        async with opened(executor, Names(), allow=EVERYWHERE, own=[listener(port)]) as sink:
            refused = [receipt for name in names for receipt in await sink.send([to(name)])]
            [accepted] = await sink.send([to(other.url)])

    for receipt in refused:
        assert isinstance(receipt, Rejected)
        assert "this process itself listens" in receipt.error
    assert accepted == Accepted("200")
    assert ours.requests == []


def test_somebody_elses_address_is_not_ours() -> None:
    guard = Guard(allow=networks(["198.51.100.0/24"]), own_listeners=[("0.0.0.0", 80)])  # noqa: S104

    assert guard.refusal("198.51.100.7", 80) is None


def test_a_socket_is_made_only_for_an_address_that_is_allowed() -> None:
    made: list[tuple[int, int, int]] = []

    def make(family: int, kind: int, protocol: int) -> socket.socket:
        made.append((family, kind, protocol))
        raise OSError("no network in tests")

    guard = Guard(make_socket=make)
    with pytest.raises(RefusedAddress):
        guard.make_socket((socket.AF_INET, socket.SOCK_STREAM, 6, "", ("10.0.0.1", 80)))
    with pytest.raises(RefusedAddress):
        guard.make_socket((socket.AF_INET6, socket.SOCK_STREAM, 6, "", ("fe80::1%lo", 80, 0, 1)))
    assert made == []

    with pytest.raises(OSError, match="no network in tests"):
        guard.make_socket((socket.AF_INET, socket.SOCK_STREAM, 6, "", ("8.8.8.8", 80)))
    assert made == [(socket.AF_INET, socket.SOCK_STREAM, 6)]


async def test_a_name_without_addresses_is_no_refusal() -> None:
    class Nothing(Names):
        async def resolve(self, *_: object) -> list[ResolveResult]:
            return []

    resolver = GuardedResolver(Nothing(), Guard())

    assert await resolver.resolve("empty.example") == []
    await resolver.close()
