"""Messages that wait in memory."""

import asyncio
from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from penstock.ports.source import Incoming
from penstock.sources.shelf import Shelf, group_of, kept_of

ZERO, SECOND = timedelta(0), timedelta(seconds=1)
VISIBILITY = timedelta(seconds=30)


class HandClock:
    """A clock that is moved by hand."""

    seconds = 100.0

    def now(self) -> datetime:
        return datetime.fromtimestamp(self.seconds, UTC)

    def monotonic(self) -> float:
        return self.seconds


def shelf_of(*groups: str | None) -> tuple[Shelf, HandClock]:
    clock = HandClock()
    shelf = Shelf(clock, VISIBILITY)
    for number, group in enumerate(groups):
        shelf.put("q", f"{number}", group, tag=number)
    return shelf, clock


def bodies(messages: list[Incoming]) -> str:
    return "".join(message.body for message in messages)


async def test_of_a_group_one_is_out_at_a_time() -> None:
    shelf, _ = shelf_of("a", "a", "b", None, "a", None)

    first = shelf.take(10)
    assert bodies(first) == "0235"
    assert bodies(shelf.take(10)) == ""
    shelf.done(first)
    second = shelf.take(10)
    assert bodies(second) == "1"
    shelf.again(second, SECOND)
    assert bodies(shelf.take(10)) == ""
    assert len(shelf) == 2


async def test_what_is_put_off_is_due_in_its_time_and_its_group_waits() -> None:
    shelf, clock = shelf_of("a", "a", "b")
    both = shelf.take(10)
    shelf.again(both[:1], SECOND)
    shelf.done(both[1:])

    assert not shelf.due
    assert shelf.due_in == 1.0
    clock.seconds += 1.0
    [again] = shelf.take(10)
    assert (again.body, again.receives) == ("0", 2)


async def test_whoever_keeps_silent_has_lost_its_message() -> None:
    shelf, clock = shelf_of("a", "a")
    [late] = shelf.take(10)
    clock.seconds += 29
    assert shelf.extend([late]) == [late]
    clock.seconds += 29
    assert shelf.take(10) == []
    clock.seconds += 1

    [again] = shelf.take(10)
    assert (again.body, again.receives) == ("0", 2)
    assert shelf.extend([late]) == []
    shelf.again([late], timedelta(hours=1))
    assert shelf.done([late]) == []
    shelf.done([again])
    assert bodies(shelf.take(10)) == "1"


async def test_what_the_broker_gives_to_others_is_gone() -> None:
    shelf, _ = shelf_of("a", "a", "a", None)
    held = shelf.take(10)
    shelf.lose(lambda kept: kept.tag in {0, 3})

    assert shelf.extend(held) == []
    assert shelf.done(held) == []
    assert (0 in shelf, 1 in shelf) == (False, True)
    [next_] = shelf.take(10)
    assert next_.body == "1"
    shelf.lose(lambda kept: kept.tag == 2)  # it waited in line
    shelf.done([next_])
    assert (len(shelf), shelf.due_in) == (0, float("inf"))


async def test_a_message_that_went_before_it_was_due_is_not_taken() -> None:
    shelf, clock = shelf_of(None)
    [one] = shelf.take(1)
    shelf.again([one], SECOND)
    shelf.lose(lambda _: True)
    clock.seconds += 5

    assert shelf.take(1) == []


async def test_news_end_a_rest() -> None:
    shelf, _ = shelf_of()
    async with asyncio.timeout(60), asyncio.TaskGroup() as tasks:
        resting = tasks.create_task(shelf.rest(3600))
        await asyncio.sleep(0)
        shelf.put("q", "x", None, tag="x")
        await resting

    assert bodies(shelf.take(1)) == "x"


@given(st.data())
async def test_groups_are_in_order_whatever_happens(data: st.DataObject) -> None:
    groups = data.draw(st.lists(st.sampled_from(["a", "b", None]), max_size=12))
    shelf, clock = shelf_of(*groups)
    out: list[Incoming] = []
    done: list[int] = []
    for _ in range(data.draw(st.integers(0, 60))):
        match data.draw(st.sampled_from(["take", "done", "again", "wait", "extend", "forget"])):
            case "take":
                out += shelf.take(data.draw(st.integers(1, 4)))
            case "wait":
                clock.seconds += data.draw(st.sampled_from([1, 10, 31]))
            case _ if not out:
                continue
            case "done":
                one = out.pop(data.draw(st.integers(0, len(out) - 1)))
                done += [int(kept.body) for kept in shelf.done([one])]
            case "again":
                one = out.pop(data.draw(st.integers(0, len(out) - 1)))
                shelf.again([one], data.draw(st.sampled_from([ZERO, SECOND])))
            case "extend":
                shelf.extend(out)
            case _:
                out.pop()
        busy = [kept_of(one).group for one in out if not kept_of(one).gone and kept_of(one).group]
        assert len(busy) == len(set(busy))
    for _ in range(2 * len(groups) + 2):  # in the end nothing is lost
        clock.seconds += 31
        done += [int(kept.body) for kept in shelf.done(shelf.take(100))]

    assert sorted(done) == list(range(len(groups)))
    for group in ("a", "b"):
        mine = [n for n in done if groups[n] == group]
        assert mine == sorted(mine)


def test_the_group_of_a_pointer_is_known_and_of_nothing_else() -> None:
    assert group_of('{"messageGroupId": "g"}') == "g"
    for body in (
        "",
        "[]",
        "{",
        "7",
        '{"messageGroupId": 7}',
        '{"messageGroupId": null}',
        "[" * 100_000,
        '"' * 300_000,
    ):
        assert group_of(body) is None
