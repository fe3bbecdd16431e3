import os
import re
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import chain, count

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.domain.names import shown
from penstock.domain.ulid import ALPHABET, MAX_MS, BadUlid, Ulids, is_valid, new, parse, timestamp_ms

LEAST, MOST = "0" * 26, "7" + "Z" * 25
FULL = b"\xff" * 10

milliseconds = st.integers(0, MAX_MS)
entropies = st.binary(min_size=10, max_size=10)


def zeros(size: int) -> bytes:
    return bytes(size)


def ticking(*times: int) -> Callable[[], int]:
    clock: Iterator[int] = iter(times)
    return lambda: next(clock)


def decode(text: str) -> int:
    value = 0
    for letter in text:
        value = value * 32 + ALPHABET.index(letter)
    return value


def test_the_example_of_the_specification() -> None:
    """The time part of the reference implementation's example is ours too."""
    assert new(1_469_918_176_385, zeros(10))[:10] == "01ARYZ6S41"
    assert timestamp_ms("01ARYZ6S41TSV4RRFFQ69G5FAV") == 1_469_918_176_385


def test_the_ends_of_the_range() -> None:
    """The least and the greatest id are the specification's."""
    assert new(0, zeros(10)) == LEAST
    assert new(MAX_MS, FULL) == MOST


@given(milliseconds, entropies)
def test_an_id_holds_its_time_and_its_entropy(ms: int, entropy: bytes) -> None:
    """26 characters of Crockford's alphabet from which both can be read."""
    ulid = new(ms, entropy)

    assert is_valid(ulid)
    assert ms == timestamp_ms(ulid)
    assert (ms << 80) + int.from_bytes(entropy) == decode(ulid)


@given(st.tuples(milliseconds, entropies), st.tuples(milliseconds, entropies))
def test_ids_sort_as_time_then_entropy(a: tuple[int, bytes], b: tuple[int, bytes]) -> None:
    """Text order is time order."""
    assert (a < b) == (new(*a) < new(*b))


@pytest.mark.parametrize("ms", [-1, MAX_MS + 1])
def test_a_time_outside_the_range_is_refused(ms: int) -> None:
    """A broken clock gives an error, not a strange id."""
    with pytest.raises(BadUlid, match="set the clock"):
        new(ms, zeros(10))


@pytest.mark.parametrize("size", [0, 9, 11])
def test_entropy_has_ten_bytes(size: int) -> None:
    """Less would collide, more would be lost."""
    with pytest.raises(BadUlid, match="give 10"):
        new(0, zeros(size))


@pytest.mark.parametrize(
    "text",
    [
        "",
        LEAST[1:],
        LEAST + "0",
        "8" + LEAST[1:],
        "I" * 26,
        "0" * 25 + "U",
        LEAST + "\n",
        "\uff10" * 26,
        None,
        5,
    ],
)
def test_what_is_no_id_is_refused(text: object) -> None:
    """Wrong length, alphabet, range or type."""
    assert not is_valid(text)
    with pytest.raises(
        BadUlid, match=f"{re.escape(shown(text))} is not an id: write its 26 letters and digits"
    ):
        parse(text)


def test_small_letters_are_read_and_capitals_written() -> None:
    """People type small letters; stored ids compare as text."""
    ulid = "01ARYZ6S41TSV4RRFFQ69G5FAV"

    assert ulid == parse(ulid.lower())
    assert ulid == parse(ulid)
    assert not is_valid(ulid.lower())
    assert timestamp_ms(ulid) == timestamp_ms(ulid.lower())


def test_letters_that_become_capitals_elsewhere_are_no_letters_here() -> None:
    """The long s and the sharp s have ASCII capitals, but no place in an id."""
    with pytest.raises(BadUlid):
        parse("0" * 25 + "\u017f")
    with pytest.raises(BadUlid):
        parse("0" * 24 + "\u00df")


def test_a_new_millisecond_draws_new_entropy() -> None:
    """The same millisecond counts on."""
    draws = iter([b"\1" * 10, b"\2" * 10])
    ulids = Ulids(ticking(5, 5, 6), lambda _: next(draws))

    ids = [ulids() for _ in range(3)]

    first = decode(new(5, b"\1" * 10))
    assert [first, first + 1, decode(new(6, b"\2" * 10))] == [decode(ulid) for ulid in ids]


@given(st.lists(milliseconds, min_size=1, max_size=50), st.data())
def test_ids_rise_whatever_the_clock_does(times: list[int], data: st.DataObject) -> None:
    """Forward, standing still or back, with any entropy that leaves room."""
    entropy = st.binary(min_size=9, max_size=9).map(lambda tail: b"\0" + tail)
    ulids = Ulids(ticking(*times), lambda _: data.draw(entropy))

    ids = [ulids() for _ in times]

    assert sorted(set(ids)) == ids
    assert all(is_valid(ulid) for ulid in ids)
    assert timestamp_ms(ids[-1]) == max(times)


@given(st.integers(0, MAX_MS - 1), st.integers(0, 2**21))
def test_counting_carries(ms: int, before_the_end: int) -> None:
    """Id after id is the last one plus one, from the tail into the head and from there into the time."""
    entropy = ((1 << 80) - 1 - before_the_end % 3).to_bytes(10)
    ulids = Ulids(lambda: ms, lambda _: entropy)
    start = decode(new(ms, entropy))

    assert [start + n for n in range(6)] == [decode(ulid) for ulid in ulids.batch(6)]


def test_a_full_millisecond_borrows_from_the_next() -> None:
    """The clock that then reaches the borrowed millisecond counts on in it."""
    ulids = Ulids(ticking(5, 5, 6, 7), lambda _: FULL)

    ids = [ulids() for _ in range(4)]

    assert [new(5, FULL), new(6, zeros(10)), new(6, zeros(9) + b"\1"), new(7, FULL)] == ids


def test_the_last_id_is_the_last() -> None:
    """After it there is an error, each time, and never a repeated id."""
    ulids = Ulids(lambda: MAX_MS, lambda _: FULL)
    assert ulids() == MOST

    for _ in range(2):
        with pytest.raises(BadUlid, match="used up"):
            ulids()


def test_a_failing_clock_does_not_block_the_next_caller() -> None:
    """The error reaches one caller; the source stays usable."""
    answers = chain([None], count(7))

    def clock() -> int:
        answer = next(answers)
        if answer is None:
            raise OSError
        return answer

    ulids = Ulids(clock, zeros)
    with pytest.raises(OSError):
        ulids()

    assert new(7, zeros(10)) == ulids()


def test_a_batch_rises_with_the_single_ids_around_it() -> None:
    """A batch is as many calls, with one look at the clock."""
    ulids = Ulids(ticking(5, 5, 6), zeros)

    ids = [ulids(), *ulids.batch(3), *ulids.batch(2)]

    assert [new(5, n.to_bytes(10)) for n in range(4)] + [new(6, n.to_bytes(10)) for n in range(2)] == ids
    assert Ulids(lambda: 5, zeros).batch(0) == []


def test_threads_share_a_source_without_sharing_an_id() -> None:
    """Each thread sees its own ids rise, and none is given twice, across many tails and milliseconds."""
    times = count(1)
    ulids = Ulids(lambda: next(times) // 100, os.urandom)

    with ThreadPoolExecutor(8) as threads:
        runs = list(threads.map(lambda _: [ulids() for _ in range(2_000)], range(8)))

    assert len(set(chain.from_iterable(runs))) == 16_000
    assert all(sorted(run) == run for run in runs)
