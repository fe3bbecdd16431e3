"""Sources: the store's own queues, and how sources are found by name."""

import asyncio
from collections.abc import Iterator, Sequence
from datetime import timedelta
from importlib.metadata import EntryPoint, EntryPoints
from pathlib import Path
from random import Random

import pytest

from penstock.delivery import opening
from penstock.delivery.opening import LateSource, queues_of, sources_of
from penstock.domain.lanes import lane
from penstock.errors import InvalidSetting
from penstock.ports.clock import SystemClock
from penstock.ports.events import ignore
from penstock.ports.executor import ThreadExecutor
from penstock.ports.queue import Message
from penstock.ports.source import Incoming, Options, SourceUnavailable, Supplies
from penstock.ports.store import Store
from penstock.scheduler.board import Board
from penstock.scheduler.ground import Ground
from penstock.sources.embedded import DEAD, EmbeddedSource, RungQueue, open_embedded

MINUTE, ZERO = timedelta(minutes=1), timedelta(0)


@pytest.fixture
def queues() -> list[str]:
    return ["a", "b"]


@pytest.fixture
def source(store: Store, executor: ThreadExecutor, queues: list[str]) -> EmbeddedSource:
    return EmbeddedSource(store, queues=lambda: queues, executor=executor)


async def test_queues_are_looked_at_in_turn(store: Store, source: EmbeddedSource) -> None:
    for queue in "ab":
        store.push(queue, [Message(f"{queue}{n}") for n in range(3)])

    found = [(await source.receive(1))[0].body for _ in range(6)]

    assert sorted(found) == ["a0", "a1", "a2", "b0", "b1", "b2"]
    assert {found[0][0], found[1][0]} == {"a", "b"}


async def test_what_is_said_of_a_message_is_done(store: Store, source: EmbeddedSource) -> None:
    store.push("a", [Message(f"{n}", dedup=f"{n}") for n in range(4)])
    done, again, kept, bad = await source.receive(10)
    await source.ack([done])
    await source.nack([again], delay=ZERO)
    assert await source.extend([kept]) == [kept]
    await source.bury([bad])
    await source.bury([bad])

    [came] = await source.receive(10)
    assert (came.body, came.receives) == ("1", 2)
    assert [one.body for one in store.receive(f"a{DEAD}", 10, visibility=MINUTE)] == ["3"]
    assert store.queued("a", ["0", "1", "2", "3"]) == {"1", "2"}


async def test_what_was_received_again_is_no_longer_ours(store: Store, source: EmbeddedSource) -> None:
    store.push("a", [Message("0"), Message("1")])
    ours, theirs = await source.receive(10)
    await source.nack([theirs], delay=ZERO)
    store.receive("a", 1, visibility=MINUTE)

    assert await source.extend([ours, theirs]) == [ours]


async def test_a_bell_ends_the_wait(store: Store, source: EmbeddedSource, executor: ThreadExecutor) -> None:
    source._pause = 60.0
    queue = RungQueue(store, source.ring)
    async with asyncio.timeout(60), asyncio.TaskGroup() as tasks:
        waiting = tasks.create_task(source.receive(1))
        await executor.run(lambda: queue.push("a", [Message("here")]))
        await waiting

    found = waiting.result() or await source.receive(1)
    assert [message.body for message in found] == ["here"]


async def test_no_queues_is_nothing_to_do(source: EmbeddedSource, queues: list[str]) -> None:
    queues.clear()

    assert list(await source.receive(5)) == []
    await source.close()


# -- by name


class Box:
    name = "box"
    visibility = MINUTE

    def __init__(self, queues: Sequence[str]) -> None:
        self.queues = queues
        self.said: list[str] = []

    async def receive(self, limit: int) -> Sequence[Incoming]:
        return [Incoming(queue, "{}", 1, None) for queue in self.queues][:limit]

    async def ack(self, messages: Sequence[Incoming]) -> None:
        self.said.append(f"ack {len(messages)}")

    async def nack(self, messages: Sequence[Incoming], *, delay: timedelta) -> None:
        self.said.append(f"nack {len(messages)} {delay}")

    async def extend(self, messages: Sequence[Incoming]) -> Sequence[Incoming]:
        self.said.append("extend")
        return messages

    async def bury(self, messages: Sequence[Incoming]) -> None:
        self.said.append(f"bury {len(messages)}")

    async def close(self) -> None:
        self.said.append("close")


OPENED: list[Box] = []


async def open_box(options: Options, supplies: Supplies) -> Box:
    if options.get("broken"):
        raise SourceUnavailable("the lid is stuck")
    OPENED.append(Box(supplies.queues()))
    return OPENED[-1]


@pytest.fixture
def _box_kind(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """As if a package had brought the kind `box`, and one that cannot be imported."""
    points = EntryPoints(
        [
            EntryPoint("box", "tests.delivery.test_sources:open_box", "penstock.sources"),
            EntryPoint("gone", "tests.delivery.nowhere:open_it", "penstock.sources"),
        ]
    )
    monkeypatch.setattr(opening, "entry_points", points.select)
    OPENED.clear()
    yield
    OPENED.clear()


def supplies(name: str, executor: ThreadExecutor, *queues: str) -> Supplies:
    return Supplies(name=name, queues=lambda: queues, executor=executor, clock=SystemClock())


@pytest.mark.usefixtures("_box_kind")
async def test_kinds_of_other_packages_are_found(executor: ThreadExecutor) -> None:
    source = LateSource(None, supplies("box", executor, "q"))
    assert source.visibility == opening.UNOPENED

    messages = await source.receive(5)
    await source.ack(messages)
    await source.nack(messages, delay=ZERO)
    await source.extend(messages)
    await source.bury(messages)
    await source.close()

    [box] = OPENED
    assert [message.queue for message in messages] == ["q"]
    assert box.said == ["ack 1", "nack 1 0:00:00", "extend", "bury 1", "close"]
    assert source.visibility == MINUTE


@pytest.mark.usefixtures("_box_kind")
@pytest.mark.parametrize(
    ("options", "name", "words"),
    [
        (None, "boxx", "did you mean box"),
        (None, "gone", "lacks a package"),
        ({"kind": "box", "broken": True}, "mine", "the lid is stuck"),
        ({"kind": "embedded"}, "mine", "no store with queues"),
        ({"kind": "embedded", "uri": "x"}, "mine", "no such option"),
        ({"kind": "embedded", "visibility": "1ms"}, "mine", "no store with queues"),
    ],
)
async def test_a_source_that_cannot_be_opened_says_why(
    executor: ThreadExecutor, options: Options | None, name: str, words: str
) -> None:
    source = LateSource(options, supplies(name, executor, "q"))

    with pytest.raises(SourceUnavailable, match=words):
        await source.receive(1)
    await source.close()


@pytest.mark.usefixtures("_box_kind")
def test_every_sink_that_can_be_received_from_is_known() -> None:
    sinks: dict[str, Options] = {
        "mine": {"kind": "box"},
        "web": {"kind": "http"},
        "own": {"kind": "embedded"},
        "redis": {"kind": "redis"},
    }

    kinds = ["activemq", "box", "embedded", "gone", "rabbitmq", "sqs"]
    assert sources_of(sinks) == [*kinds, "mine", "own", "redis"]


@pytest.mark.usefixtures("_box_kind")
async def test_a_source_is_opened_when_a_lane_uses_it(executor: ThreadExecutor) -> None:
    queues: list[str] = []
    given = Supplies(name="box", queues=lambda: queues, executor=executor, clock=SystemClock())
    source = LateSource(None, given)

    assert await source.receive(5) == []
    assert not OPENED
    queues.append("q")
    assert len(await source.receive(5)) == 1


async def test_options_may_be_in_files(executor: ThreadExecutor, tmp_path: Path) -> None:
    (tmp_path / "address").write_text("ftp://nowhere\n")
    options = {"kind": "rabbitmq", "url_FILE": str(tmp_path / "address")}

    with pytest.raises(SourceUnavailable, match="is not the address of a RabbitMQ"):
        await LateSource(options, supplies("mine", executor, "q")).receive(1)


async def test_the_stores_own_queues_can_be_opened_by_name(store: Store, executor: ThreadExecutor) -> None:
    given = Supplies(name="own", queues=lambda: ["q"], executor=executor, clock=SystemClock(), queue=store)
    store.push("q", [Message("here")])

    source = await open_embedded({"kind": "embedded", "visibility": "3s"}, given)

    assert (source.name, source.visibility) == ("own", timedelta(seconds=3))
    for wrong in ("1ms", "soon"):
        with pytest.raises(InvalidSetting, match="visibility"):
            await open_embedded({"visibility": wrong}, given)
    assert [message.body for message in await source.receive(1)] == ["here"]


async def test_only_queues_of_pointers_are_received_from(store: Store, executor: ThreadExecutor) -> None:
    for name, said in {
        "orders": {"sink": "embedded"},
        "named": {"sink": "embedded", "queue": "shared", "format": "pointer"},
        "raw": {"sink": "embedded", "format": "payload"},
        "web": {"sink": "http"},
    }.items():
        store.put_lane(lane(name, **said), actor="test")
    board = Board(Ground(store, executor, SystemClock(), Random(1), ignore))  # noqa: S311
    await board.refresh()

    assert queues_of(board, "embedded")() == ["orders", "shared"]
    assert queues_of(board, "embedded", "all")() == ["all", "shared"]
