"""Whose turn it is."""

from datetime import timedelta

import pytest

from penstock.ports.source import SourceUnavailable
from penstock.sources.turns import Turns
from tests.sources.test_shelf import HandClock


def test_each_time_another_queue_is_first() -> None:
    turns = Turns(lambda: ["a", "b", "c"], HandClock())

    assert ["".join(turns.next()) for _ in range(4)] == ["abc", "bca", "cab", "abc"]


def test_when_not_all_can_be_looked_at_all_have_their_turn() -> None:
    turns = Turns(lambda: list("abcde"), HandClock())

    assert ["".join(turns.next(2)) for _ in range(5)] == ["ab", "cd", "ea", "bc", "de"]


def test_a_queue_in_trouble_is_left_alone_and_complained_of_once() -> None:
    clock = HandClock()
    turns = Turns(lambda: ["a", "b"], clock)
    turns.skip("a", "there is no a", timedelta(seconds=10))

    with pytest.raises(SourceUnavailable, match="there is no a"):
        turns.complain()
    turns.complain()
    assert (turns.next(), turns.current()) == (["b"], {"a", "b"})
    clock.seconds += 11
    assert sorted(turns.next()) == ["a", "b"]


def test_a_queue_that_comes_and_goes_takes_nobodys_turn() -> None:
    clock = HandClock()
    turns = Turns(lambda: ["a", "b", "c"], clock)
    seen = []
    for _ in range(6):
        [queue] = turns.next(1)
        seen.append(queue)
        if queue == "a":
            turns.skip("a", "there is no a", timedelta(seconds=1))
        clock.seconds += 0.6

    assert "".join(seen) == "abcabc"


def test_no_queues_is_nobodys_turn() -> None:
    assert Turns(list, HandClock()).next() == []
