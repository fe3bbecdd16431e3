"""Of a bucket with room for one token, whoever holds the token holds the bucket: it grows again there."""

import math
from datetime import timedelta

import pytest

from penstock.domain.rates import Rate
from penstock.ports.flow import Grant, Limit, Need
from penstock.scheduler.share import LATE_S, NOBODY, TURN_S, Reached, Share

TEN = Rate(10, timedelta(seconds=1))
NOW = 100.0
SECOND = timedelta(seconds=1)


def holding(rate: Rate = TEN, *, burst: int = 1) -> Share:
    """Return a share of a node that was just given the token, at second 100, and is trusted until 104."""
    share = Share(Limit("pool", "web", rate=rate, burst=burst), tokens=1, until=104.0, nodes=2)
    share.come_or_gone(100.0, here=share.whole > 0)
    return share


def test_a_token_that_was_spent_grows_again_in_its_time() -> None:
    share = holding()
    share.take("orders", 1, 100.0)

    assert (share.free(100.0), share.spent, share.has_all(100.0)) == (0, 1, True)
    assert not share.regrow(100.099)
    assert share.regrow(100.1)
    assert (share.free(100.1), share.spent, share.grows(100.1)) == (1, 0, False)
    assert not share.regrow(100.2)


def test_what_a_timer_is_late_by_is_not_lost_and_more_is() -> None:
    share = holding()
    share.take("orders", 1, 100.0)
    share.regrow(100.1)
    share.take("orders", 1, 100.1 + LATE_S / 2)
    assert share.grows_at == pytest.approx(100.2)
    share.regrow(100.2)
    share.take("orders", 1, 100.25)
    assert share.grows_at == pytest.approx(100.35 - LATE_S)


@pytest.mark.parametrize(
    ("rate", "burst"), [(TEN, 2), (Rate(30, timedelta(minutes=1)), 1)], ids=["room for two", "slow"]
)
def test_elsewhere_it_grows_in_the_store_alone(rate: Rate, burst: int) -> None:
    share = holding(rate, burst=burst)
    share.take("orders", 1, 100.0)

    assert (share.whole, share.grows(100.0), share.regrow(103.9)) == (0.0, False, False)
    assert share.spent == 1


def test_nothing_grows_where_nobody_knows_whose_it_is() -> None:
    share = holding()
    share.take("orders", 1, 103.95)
    assert not share.regrow(104.1)  # its lease is over
    lost = holding()
    lost.take("orders", 1, 100.0)
    lost.void = True
    assert not lost.regrow(100.1)
    gone = holding()
    gone.take("orders", 1, 100.0)
    gone.come_or_gone(100.05, here=False)
    assert not gone.regrow(100.1)


def test_a_turn_ends_with_a_token_at_hand() -> None:
    share = holding()
    end = 100.0 + TURN_S / 2

    share.take("orders", 1, end - 0.05)
    assert not share.turn_over(end)
    share.regrow(end + 0.05)
    assert (share.turn_over(end + 0.05), share.free(end + 0.05)) == (True, 0)


def test_a_lease_that_is_renewed_goes_on_with_its_turn() -> None:
    share = holding()
    share.take("orders", 1, 101.0)
    share.come_or_gone(101.02, here=True)

    assert (share.turn_ends, share.grows(101.02)) == (100.0 + TURN_S / 2, True)


def test_slots_that_are_too_many_go_as_their_jobs_end() -> None:
    """At once where no job has them; the books are told of each."""
    limit = Limit("lane", "orders", max_in_flight=2)
    share = Share(limit, slots=5, busy=3)
    share.granted(Need(limit, slots=5, busy=5), Grant(0, 5, surplus=4), started=100.0, now=100.0)
    assert (share.slots, share.surplus, share.gone) == (3, 2, 2)
    share.gone = 0  # told

    assert share.let_go(1, NOW, out=False)
    assert (share.slots, share.busy, share.surplus, share.gone) == (2, 2, 1, 1)
    assert share.let_go(1, NOW, out=True)
    assert (share.slots, share.busy, share.surplus, share.gone) == (1, 1, 0, 2)
    assert not share.let_go(1, NOW, out=False)
    assert (share.slots, share.free_slots) == (1, 1)


def test_what_went_while_the_question_was_on_its_way_is_not_granted_again() -> None:
    limit = Limit("lane", "orders", max_in_flight=2)
    share = Share(limit, slots=2, busy=2)
    share.let_go(1, NOW, out=True)
    share.granted(Need(limit, slots=2, busy=2), Grant(0, 2, surplus=1), started=100.0, now=100.0)

    assert (share.slots, share.busy, share.surplus, share.gone) == (1, 1, 0, 1)


def test_slots_are_missing_only_where_there_are_none_to_be_had() -> None:
    """Not while a node has none because it gave them back: its jobs wait for another limit."""
    limit = Limit("lane", "orders", max_in_flight=4)
    share = Share(limit, nodes=2)
    share.wants["orders", NOBODY] = 9
    share.granted(Need(limit, slots=0), Grant(0, 0), started=100.0, now=100.0)
    assert share.reached(100.0) is None

    share.granted(Need(limit, slots=2), Grant(0, 1), started=100.0, now=100.0)
    share.take("orders", 1, 100.0)
    assert share.reached(100.0) == Reached(None, 0)  # the store had no more
    share.granted(Need(limit, slots=2, busy=1), Grant(0, 2), started=100.0, now=100.0)
    assert share.reached(100.0) is None
    share.take("orders", 1, 100.0)
    assert share.reached(100.0) == Reached(None, 0)  # that is its part of four


def test_slots_are_idle_a_second_after_their_last_use_whenever_that_is_looked_at() -> None:
    share = Share(Limit("lane", "orders", max_in_flight=4), slots=2)
    share.take("orders", 1, 100.0)
    assert not share.idle(100.9)
    assert share.idle_at == math.inf
    share.let_go(1, 101.0, out=False)

    assert not share.idle(101.9)
    assert share.idle_at == 102.0
    assert share.idle(102.0)


def test_slots_that_were_never_used_are_idle_a_second_after_nobody_wants_them() -> None:
    share = Share(Limit("lane", "orders", max_in_flight=4), slots=2)

    assert not share.idle(100.0)
    assert share.idle(101.0)


def test_slots_for_jobs_to_come_are_idle_if_none_come_and_not_while_they_are_missing() -> None:
    share = Share(Limit("lane", "orders", max_in_flight=4))
    share.wants["orders", NOBODY] = 9
    assert not share.idle(100.0)
    assert not share.idle(101.0)  # others have them
    share.slots = 2
    assert not share.idle(101.0)
    assert share.idle(102.0)

    share.wants["orders", 1] = 1
    assert not share.idle(103.0)


def test_a_slot_that_every_node_wants_goes_back_at_once_unless_somebody_here_does() -> None:
    share = Share(Limit("pool", "each", "acme", max_in_flight=1), slots=1, nodes=3)
    share.take("orders", 1, 100.0)
    assert not share.to_spare(100.0, leaving=False)
    assert share.let_go(1, 101.0, out=False)
    assert share.to_spare(101.0, leaving=False)

    share.wants["orders", 1] = 1
    share.take("orders", 1, 102.0)
    assert not share.let_go(1, 103.0, out=False)
    assert not share.to_spare(103.0, leaving=False)


def test_it_is_asked_for_often_at_first_and_then_as_any_other() -> None:
    share = Share(Limit("pool", "each", "acme", max_in_flight=1), nodes=3)
    need = Need(share.limit, slots=1)
    for now in (100.0, 100.2):
        share.granted(need, Grant(0, 0), started=now, now=now)
    assert share.again_in(100.2) == pytest.approx(0.05)
    assert share.again_in(100.0) == 0.025
    assert share.again_in(130.0) == 0.25

    share.granted(need, Grant(0, 1), started=130.0, now=130.0)
    share.granted(need, Grant(0, 0), started=131.0, now=131.0)
    assert share.again_in(131.0) == 0.025
    share.nodes = 1
    assert share.again_in(131.0) == 0.25


def asked_for(jobs: int, *, slots: int = 0) -> Share:
    """Return slots of a limit for which so many jobs wait, and the question of which is on its way."""
    share = Share(Limit("lane", "orders", max_in_flight=50), slots=slots, until=200.0)
    share.wants["orders", 1] = jobs
    assert share.worth_asking(100.0)
    share.ask(100.0)
    assert not share.worth_asking(100.0)
    return share


def test_a_question_that_was_answered_in_full_is_followed_by_the_next() -> None:
    share = asked_for(2, slots=1)
    share.take("orders", 1, 100.0)
    share.wants["orders", 1] = 1
    share.granted(Need(share.limit, slots=2, busy=1), Grant(0, 2), started=100.0, now=100.0)
    share.take("orders", 1, 100.0)

    share.wants["orders", 1] = 1  # another one
    assert share.worth_asking(100.0)


def test_a_question_that_was_not_is_over_after_a_while() -> None:
    share = asked_for(5)
    share.granted(Need(share.limit, slots=5), Grant(0, 2), started=100.0, now=100.0)
    share.take("orders", 2, 100.0)
    share.wants["orders", 1] = 3

    assert not share.worth_asking(100.1)
    assert not share.over(100.1)
    assert share.over(100.3)


def test_a_node_holds_some_slots_and_as_many_as_it_has_a_use_for() -> None:
    """Whoever comes finds some, long before the others have heard of it."""
    share = Share(Limit("lane", "orders", max_in_flight=200), slots=200)
    assert share.enough(100.0) == 50
    share.take("orders", 70, 100.0)
    assert share.enough(100.0) == 140
    share.take("orders", 60, 100.1)
    assert share.enough(100.1) == 200
    share.let_go(125, NOW, out=False)
    assert (share.enough(101.0), share.enough(101.2)) == (200, 50)
    share.nodes = 10
    assert share.enough(101.2) == 20
    assert share.to_spare(101.2, leaving=False)


def test_a_node_borrows_slots_for_the_jobs_that_wait_here_and_asks_whether_others_lack_them() -> None:
    limit = Limit("pool", "web", max_in_flight=8)
    share = Share(limit, nodes=4, slots=2, busy=2)
    assert share.enough(NOW) == 2
    share.wants["orders", NOBODY] = 500
    assert share.enough(NOW) == 4  # some, for the next ones of a lane
    share.wants["orders", 1] = 3
    assert share.enough(NOW) == 5
    assert not share.borrows(NOW)

    share.granted(Need(limit, slots=5, busy=2, part=2), Grant(0, 5), started=NOW, now=NOW)
    share.ask(NOW)
    assert (share.borrows(NOW), share.borrows(NOW + 0.25), share.lacks) == (False, True, 0)


def test_a_node_lacks_what_is_missing_of_its_part_alone() -> None:
    limit = Limit("pool", "web", max_in_flight=8)
    share = Share(limit, nodes=2)
    share.granted(Need(limit, slots=7, part=4), Grant(0, 1), started=NOW, now=NOW)
    assert share.lacks == 3
    share.granted(Need(limit, slots=0, part=4), Grant(0, 0), started=NOW, now=NOW)
    assert share.lacks == 0


@pytest.mark.parametrize(("leaving", "spare"), [(False, False), (True, True)])
def test_a_node_that_leaves_keeps_what_is_in_use_alone(*, leaving: bool, spare: bool) -> None:
    share = Share(Limit("lane", "orders", max_in_flight=8), slots=2)
    share.take("orders", 1, 100.0)
    assert share.to_spare(100.0, leaving=leaving) == spare
    rate = Share(Limit("pool", "web", rate=TEN), slots=2)
    assert not rate.to_spare(100.0, leaving=leaving)


def test_jobs_that_wait_for_slots_come_back_as_slots_are_freed() -> None:
    """Each after the one before it: the backlog of one key is not claimed and given back again and again."""
    share = Share(Limit("pool", "each", "a", max_in_flight=2), slots=2)
    assert [share.book(SECOND, 60 * SECOND, now=NOW) for _ in range(2)] == [SECOND] * 2  # nothing is known
    for turn in range(20):
        share.take("orders", 1, NOW + turn)
        share.let_go(1, NOW + turn + 0.5, out=False)
    later = NOW + 20
    waits = [share.book(SECOND, 60 * SECOND, now=later).total_seconds() for _ in range(3)]
    assert waits == pytest.approx([1.0, 1.5, 2.0], abs=0.01)

    share.take("orders", 2, later)
    waits = [share.book(SECOND, 60 * SECOND, now=later + 10).total_seconds() for _ in range(8)]
    assert waits == pytest.approx([2.0, 12.0, 22.0, 32.0, 42.0, 52.0, 60.0, 60.0], abs=0.1)


def test_of_one_key_no_more_wait_than_have_their_turn_soon() -> None:
    """By its slots or by its rate, whichever takes longer."""
    key = Limit("pool", "each", "a", max_in_flight=2)
    waits = [Share(key, pace=1.0).patience(place, now=NOW) for place in (8, 9)]
    assert waits == [timedelta(0), 9 * SECOND]
    both = Limit("pool", "each", "a", rate=TEN, burst=10, max_in_flight=2)
    waits = [Share(both, pace=0.05).patience(place, now=NOW) for place in (8, 9, 110)]
    assert waits == [timedelta(0), 0.45 * SECOND, 10 * SECOND]
    assert Share(Limit("lane", "orders", max_in_flight=2)).patience(99, now=NOW) == timedelta(0)


def test_a_turn_is_as_far_as_slots_become_free_and_longer_while_none_does() -> None:
    share = Share(Limit("pool", "each", "a", max_in_flight=1), slots=1)
    assert share.turn(10, now=NOW) == timedelta(seconds=0.2)  # nothing is known
    share.take("orders", 1, NOW)
    assert share.turn(10, now=NOW + 3) == 30 * SECOND
    share.let_go(1, NOW + 1, out=False)
    assert share.turn(10, now=NOW + 3) == 5 * SECOND
