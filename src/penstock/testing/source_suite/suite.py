"""The cases."""

import asyncio
import json
from collections import Counter, deque
from collections.abc import AsyncIterator, Callable, Collection, Sequence
from contextlib import asynccontextmanager
from datetime import timedelta
from time import monotonic
from typing import Any, Final

import pytest

from penstock.errors import StoreUnavailable
from penstock.ports.source import Incoming, Source, SourceUnavailable
from penstock.testing.source_suite.bed import SourceBed

PATIENCE_S: Final = 60.0
ZERO: Final = timedelta(0)
SECOND: Final = timedelta(seconds=1)
AWAY: Final = (SourceUnavailable, StoreUnavailable)
# What a reader and writer of JSON would change.
EXACT: Final = '{ "id" : "é\\u00e9\\/日本😀", "n":1.10, "z":1e2 ,"messageGroupId":null }'


def message(number: int, group: str | None = None) -> str:
    """Return a pointer of its own."""
    said = {"id": f"{number}", "messageGroupId": group, "mediationTarget": "http://127.0.0.1/"}
    return json.dumps(said)


def number_of(body: str) -> int:
    """Return which one it is."""
    return int(json.loads(body)["id"])


@asynccontextmanager
async def opened(bed: SourceBed, *, brief: bool = False) -> AsyncIterator[Source]:
    """Open a source, close it at the end, and let nothing take for ever."""
    async with asyncio.timeout(2 * PATIENCE_S):
        source = await (bed.open_brief() if brief else bed.open())
        try:
            yield source
        finally:
            await source.close()


async def receive(source: Source, number: int, *, limit: int = 100) -> list[Incoming]:
    """Return so many messages as soon as they are there, asked for again and again, as a router does."""
    found: list[Incoming] = []
    async with asyncio.timeout(PATIENCE_S):
        while len(found) < number:
            came = await source.receive(min(limit, number - len(found)))
            assert len(came) <= min(limit, number - len(found)), "more than asked for"
            found += came
    return found


async def persist(call: Callable[[], Any]) -> Any:  # noqa: ANN401 - whatever the call returns
    """Make a call until it gets through."""
    async with asyncio.timeout(PATIENCE_S):
        while True:
            try:
                return await call()
            except AWAY:
                await asyncio.sleep(0.05)


async def is_away(source: Source) -> bool:
    """Say that a source cannot be reached, as soon as it says so itself."""
    async with asyncio.timeout(PATIENCE_S):
        while True:
            try:
                await source.receive(5)
            except AWAY:
                return True


async def settle(bed: SourceBed, queue: str, number: int) -> None:
    """Wait until so many messages are left."""
    async with asyncio.timeout(PATIENCE_S):
        while await bed.left(queue) != number:  # noqa: ASYNC110 - nobody rings when a broker has counted
            await asyncio.sleep(0.05)


async def work(
    source: Source, number: int, *, refuse: Collection[int] = (), delay: timedelta = ZERO
) -> list[int]:
    """Do what a router does until so many messages are acknowledged; return them in that order.

    Of a group one goes after the other. Those in `refuse` come again once, with what is behind them.
    """
    done: list[int] = []
    refused: set[int] = set()
    async with asyncio.timeout(PATIENCE_S):
        while len(done) < number:
            lines: dict[str, deque[Incoming]] = {}
            for one in await source.receive(10):
                group = json.loads(one.body)["messageGroupId"] or f"alone {one.body}"
                lines.setdefault(group, deque()).append(one)
            for line in lines.values():
                while line:
                    which = number_of(line[0].body)
                    if which in refuse and which not in refused:
                        refused.add(which)
                        await source.nack(list(line)[1:], delay=delay)
                        await source.nack([line[0]], delay=delay)
                        break
                    await source.ack([line.popleft()])
                    done.append(which)
    assert refused == set(refuse)
    return done


async def hold(
    source: Source, other: Source, messages: Sequence[Incoming]
) -> tuple[Sequence[Incoming], list[Incoming], float]:
    """Keep messages for longer than they are hidden, while another source looks for them.

    Return what is still ours, what the other found, and the longest time between two extensions.
    """
    limit = source.visibility.total_seconds()
    over = monotonic() + 1.2 * limit
    kept, theirs, longest = messages, list[Incoming](), 0.0

    async def keep() -> None:
        nonlocal kept, longest
        last = monotonic()
        while monotonic() < over:
            kept = await source.extend(kept)
            longest, last = max(longest, monotonic() - last), monotonic()
            await asyncio.sleep(limit / 8)

    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(keep())
        while monotonic() < over:
            theirs += await other.receive(5)
    return kept, theirs, longest


def in_order(done: Sequence[int], groups: int) -> bool:
    """Say whether each group (number modulo groups) was done in order."""
    return all(
        [n for n in done if n % groups == group] == sorted(n for n in done if n % groups == group)
        for group in range(groups)
    )


@pytest.mark.asyncio
class SourceSuite:
    """Subclass it as `Test…` and give it a fixture `bed`."""

    async def test_messages_come_as_they_were_put_in(self, bed: SourceBed) -> None:
        """Byte for byte, from the queue they are in, received for the first time."""
        bodies = [EXACT, *(message(number) for number in range(5))]
        await bed.put(bed.queues[0], bodies)
        async with opened(bed) as source:
            found = await receive(source, 6)
            await source.ack(found)

            assert sorted(one.body for one in found) == sorted(bodies)
            assert {one.queue for one in found} == {bed.queues[0]}
            assert {one.receives for one in found} == {1}
            assert source.name
            assert source.visibility >= SECOND

    async def test_no_more_come_than_were_asked_for(self, bed: SourceBed) -> None:
        """The others come when they are asked for."""
        await bed.put(bed.queues[0], [message(number) for number in range(7)])
        async with opened(bed) as source:
            found = await receive(source, 7, limit=3)
            await source.ack(found)

            assert sorted(number_of(one.body) for one in found) == list(range(7))

    async def test_nothing_is_an_answer_too(self, bed: SourceBed) -> None:
        """An empty queue does not keep its reader for ever, nor does having none."""
        async with opened(bed) as source:
            assert list(await source.receive(5)) == []
            bed.queues.clear()
            assert list(await source.receive(5)) == []

    async def test_what_is_acknowledged_is_gone(self, bed: SourceBed) -> None:
        """Many at once, and what is said of nothing is nothing."""
        await bed.put(bed.queues[0], [message(number) for number in range(25)])
        async with opened(bed) as source:
            found = await receive(source, 25)
            await source.ack(found)
            await source.ack([])
            await source.nack([], delay=ZERO)

            assert list(await source.extend([])) == []
            assert list(await source.receive(5)) == []
        await settle(bed, bed.queues[0], 0)

    async def test_what_is_sent_back_comes_again_and_is_counted(self, bed: SourceBed) -> None:
        """For as long as nobody acknowledges it."""
        await bed.put(bed.queues[0], [message(1)])
        async with opened(bed) as source:
            counts: list[int] = []
            for _ in range(3):
                [one] = await receive(source, 1)
                counts.append(one.receives)
                await source.nack([one], delay=ZERO)
            await source.ack(await receive(source, 1))

            assert counts == sorted(counts)
            assert counts[-1] > counts[0]
        await settle(bed, bed.queues[0], 0)

    async def test_a_delay_is_kept(self, bed: SourceBed) -> None:
        """A message never comes early."""
        await bed.put(bed.queues[0], [message(1)])
        async with opened(bed) as source:
            late = await receive(source, 1)
            began = monotonic()
            await source.nack(late, delay=SECOND)
            again = await receive(source, 1)
            waited = monotonic() - began
            await source.ack(again)

            assert waited > 0.95

    async def test_what_is_held_is_nobody_elses(self, bed: SourceBed) -> None:
        """Also after the time for which messages are hidden, while that is extended."""
        await bed.put(bed.queues[0], [message(number) for number in range(3)])
        async with opened(bed, brief=True) as source, opened(bed, brief=True) as other:
            while True:
                ours, theirs, longest = await hold(source, other, await receive(source, 3))
                if longest < source.visibility.total_seconds() / 2:
                    break
                await source.nack(ours, delay=ZERO)  # the machine stood still: that shows nothing
                await other.nack(theirs, delay=ZERO)

            assert (len(ours), theirs) == (3, [])
            await source.ack(ours)
        await settle(bed, bed.queues[0], 0)

    async def test_what_its_holder_keeps_silent_about_comes_again(self, bed: SourceBed) -> None:
        """To itself or to another; what the first says too late counts for nothing."""
        await bed.put(bed.queues[0], [message(1)])
        async with opened(bed, brief=True) as source:
            [first] = await receive(source, 1)
            [again] = await receive(source, 1)
            assert list(await source.extend([first])) in ([], [first])
            await source.nack([first], delay=timedelta(hours=1))
            await source.ack([again])

            assert again.receives > first.receives
        await settle(bed, bed.queues[0], 0)

    async def test_closing_gives_back_what_is_held(self, bed: SourceBed) -> None:
        """In order, and whoever shuts down need not know who did before."""
        await bed.put(bed.queues[0], [message(number, "g") for number in range(4)])
        async with opened(bed, brief=True) as source:
            await receive(source, 1)
        async with opened(bed, brief=True) as other:
            done = await work(other, 4)
            await other.close()

            assert sorted(done) == [0, 1, 2, 3]
            assert done == sorted(done) or not bed.orders
        await settle(bed, bed.queues[0], 0)

    async def test_groups_keep_their_order_whatever_comes_again(self, bed: SourceBed) -> None:
        """What is behind a message waits for it; other groups do not."""
        if not bed.orders:
            pytest.skip("this kind leaves order to others")
        await bed.put(bed.queues[0], [message(number, f"g{number % 3}") for number in range(24)])
        async with opened(bed) as source:
            done = await work(source, 24, refuse=[0, 4, 7, 23], delay=SECOND)

            assert sorted(done) == list(range(24))
            assert in_order(done, 3)
        await settle(bed, bed.queues[0], 0)

    async def test_nothing_new_overtakes_a_message_that_is_put_off(self, bed: SourceBed) -> None:
        """Whenever it was put in."""
        if not bed.orders:
            pytest.skip("this kind leaves order to others")
        await bed.put(bed.queues[0], [message(1, "g")])
        async with opened(bed) as source:
            await source.nack(await receive(source, 1), delay=SECOND)
            await bed.put(bed.queues[0], [message(2, "g"), message(3, "g")])

            assert await work(source, 3) == [1, 2, 3]

    async def test_a_group_is_with_one_receiver_at_a_time(self, bed: SourceBed) -> None:
        """Where the broker can see to that."""
        if not bed.keeps_order:
            pytest.skip("this broker gives messages to whoever asks")
        await bed.put(bed.queues[0], [message(1, "g")])
        async with opened(bed) as source, opened(bed) as other:
            first = await receive(source, 1)
            await bed.put(bed.queues[0], [message(2, "g")])
            theirs = await other.receive(5)
            await source.ack(first)
            async with asyncio.timeout(PATIENCE_S):
                second: Sequence[Incoming] = []
                while not second:
                    second = await source.receive(5) or await other.receive(5)

            assert list(theirs) == []
            assert number_of(second[0].body) == 2

    async def test_every_queue_has_its_turn(self, bed: SourceBed) -> None:
        """Also one that is there only later; one that is there no longer is left alone."""
        first, second = bed.queues
        bed.queues.remove(second)
        await bed.put(first, [message(1)])
        await bed.put(second, [message(2)])
        async with opened(bed) as source:
            [one] = await receive(source, 1)
            bed.queues.append(second)
            [two] = await receive(source, 1)
            await source.ack([one, two])
            bed.queues.remove(first)
            await source.receive(1)
            await bed.put(first, [message(3)])
            await bed.put(second, [message(4)])
            [four] = await receive(source, 1)
            await source.ack([four])

            assert [(x.queue, number_of(x.body)) for x in (one, two, four)] == [
                (first, 1),
                (second, 2),
                (second, 4),
            ]
        await settle(bed, first, 1)
        await settle(bed, second, 0)

    async def test_what_nobody_can_deliver_is_put_aside(self, bed: SourceBed) -> None:
        """It is not in the queue any more, and a person finds it."""
        await bed.put(bed.queues[0], ["no pointer at all", message(1)])
        async with opened(bed) as source:
            found = await receive(source, 2)
            bad = [one for one in found if one.body == "no pointer at all"]
            await source.bury(bad)
            await source.ack([one for one in found if one not in bad])

            assert len(bad) == 1
        await settle(bed, bed.queues[0], 0)
        assert await bed.dead(bed.queues[0]) in (None, ["no pointer at all"])

    async def test_a_receiver_that_is_given_up_loses_nothing(self, bed: SourceBed) -> None:
        """The caller limits the time by cancelling."""
        async with opened(bed, brief=True) as source:
            await source.receive(1)
            async with asyncio.TaskGroup() as tasks:
                receiving = tasks.create_task(source.receive(5))
                await asyncio.sleep(0)
                receiving.cancel()
            await bed.put(bed.queues[0], [message(number) for number in range(5)])

            assert sorted(await work(source, 5)) == list(range(5))

    async def test_a_broker_that_comes_back_is_used_again(self, bed: SourceBed) -> None:
        """Nothing is lost by that, and while it is away the source says so."""
        await bed.put(bed.queues[0], [message(number, f"g{number % 2}") for number in range(10)])
        async with opened(bed, brief=True) as source:
            await receive(source, 2)
            if not await bed.break_down():
                pytest.skip("this kind is always there")
            assert await is_away(source)
            await bed.repair()
            await source.nack(await persist(lambda: source.receive(1)), delay=ZERO)
            done = await work(source, 10)

            assert Counter(done) == Counter(range(10))
            assert in_order(done, 2) or not bed.orders
        await settle(bed, bed.queues[0], 0)
