"""The embedded broker: order per group, visibility, fenced acknowledgements, duplicates."""

from collections import Counter
from datetime import timedelta
from functools import partial

from penstock.ports.queue import Delivery, Message
from penstock.ports.store import Store
from penstock.testing.store_suite.factories import HOUR, PAST, ZERO, together

QUEUE = "invoices"


def _push(store: Store, *messages: Message, queue: str = QUEUE) -> list[int]:
    """Queue messages that are all new."""
    numbers = store.push(queue, messages)
    assert None not in numbers, numbers
    return [number for number in numbers if number is not None]


def _receive(store: Store, limit: int = 100, *, visibility: timedelta = HOUR) -> list[Delivery]:
    return store.receive(QUEUE, limit, visibility=visibility)


def _bodies(deliveries: list[Delivery]) -> list[str]:
    return [delivery.body for delivery in deliveries]


class QueueTests:
    """Queues in the store."""

    def test_messages_are_received_in_the_order_they_came(self, store: Store) -> None:
        """Oldest first, each under the number that it got."""
        before = store.now()
        numbers = _push(store, Message("a"), Message("b"), Message("c", group="g"))

        received = _receive(store)

        assert numbers == sorted(set(numbers))
        assert [(d.id, d.body, d.group, d.receives) for d in received] == [
            (numbers[0], "a", None, 1),
            (numbers[1], "b", None, 1),
            (numbers[2], "c", "g", 1),
        ]
        assert all(before <= d.created_at <= store.now() for d in received)

    def test_a_message_is_kept_byte_for_byte(self, store: Store) -> None:
        """Whatever text it is."""
        bodies = ['{"a":  1.0}', "", "naïve ✓ 😀", 'quote " backslash \\ line\nbreak\ttab', "'; DROP TABLE x"]
        _push(store, *(Message(body) for body in bodies))

        assert _bodies(_receive(store)) == bodies

    def test_a_received_message_is_hidden_until_its_time_is_up(self, store: Store) -> None:
        """Then it is received again, and counted."""
        _push(store, Message("a"))
        assert _bodies(_receive(store)) == ["a"]
        assert _receive(store) == []

        _push(store, Message("b"))
        [first] = _receive(store, visibility=PAST)
        [second] = _receive(store)
        assert (first.id, first.receives, second.receives) == (second.id, 1, 2)

    def test_no_more_are_received_than_asked_for(self, store: Store) -> None:
        """The rest is there for the next."""
        _push(store, *(Message(str(n), group="g" if n == 1 else None) for n in range(5)))

        assert _bodies(_receive(store, 2)) == ["0", "1"]
        assert _bodies(_receive(store, 2)) == ["2", "3"]
        assert _bodies(_receive(store, 2)) == ["4"]
        assert _receive(store, 0) == []

    def test_queues_are_apart(self, store: Store) -> None:
        """Of the same group and dedup names, too."""
        _push(store, Message("a", "g", "d"))
        _push(store, Message("b", "g", "d"), queue="another")

        assert _bodies(_receive(store)) == ["a"]
        assert _bodies(store.receive("another", 10, visibility=HOUR)) == ["b"]
        assert store.receive("a third", 10, visibility=HOUR) == []

    def test_of_a_group_one_message_is_out_at_a_time(self, store: Store) -> None:
        """The next one follows the acknowledgement."""
        _push(store, *(Message(f"{group}{n}", group) for n in range(3) for group in "xy"))

        for n in range(3):
            received = _receive(store)
            assert _bodies(received) == [f"x{n}", f"y{n}"]
            assert _receive(store) == []
            assert store.ack(received) == 2
        assert _receive(store) == []

    def test_a_group_that_went_empty_begins_again(self, store: Store) -> None:
        """Nothing of it was left behind."""
        for n in range(3):
            _push(store, Message(f"{n}", "g"))
            received = _receive(store)
            assert _bodies(received) == [str(n)]
            store.ack(received)

    def test_what_is_pushed_behind_a_message_that_is_out_waits(self, store: Store) -> None:
        """Also when that one is not the first of its group any more."""
        _push(store, Message("1", "g"))
        first = _receive(store)
        _push(store, Message("2", "g"))
        assert _receive(store) == []
        store.ack(first)
        second = _receive(store)
        _push(store, Message("3", "g"))

        assert _bodies(second) == ["2"]
        assert _receive(store) == []

    def test_a_group_whose_receiver_fell_silent_goes_on_with_the_same_message(self, store: Store) -> None:
        """Nothing overtakes it."""
        _push(store, Message("1", "g"), Message("2", "g"))
        _receive(store, visibility=PAST)
        again = _receive(store)

        assert [(d.body, d.receives) for d in again] == [("1", 2)]
        assert _receive(store) == []
        store.ack(again)
        assert _bodies(_receive(store)) == ["2"]

    def test_an_acknowledgement_counts_until_the_message_is_received_again(self, store: Store) -> None:
        """After that it is for the new receiver to say."""
        _push(store, Message("a"), Message("b", "g"), Message("c", "g"))
        late = _receive(store, visibility=PAST)
        again = _receive(store)

        assert store.ack(late) == 0
        assert store.nack(late, delay=ZERO) == 0
        assert _receive(store) == []
        assert store.ack(again) == 2
        assert store.ack(again) == 0
        assert _bodies(_receive(store)) == ["c"]
        assert store.ack([]) == 0

    def test_an_acknowledgement_may_come_after_the_time_was_up(self, store: Store) -> None:
        """As long as nobody else has received it."""
        _push(store, Message("a"), Message("b", "g"))
        received = _receive(store, visibility=PAST)

        assert store.ack(received) == 2
        assert _receive(store) == []

    def test_a_message_that_was_not_dealt_with_comes_back_after_the_delay(self, store: Store) -> None:
        """At once, or not yet; of a group nothing overtakes it."""
        _push(store, Message("a"), Message("b", "g"), Message("c", "g"))
        received = _receive(store)
        assert store.nack(received, delay=ZERO) == 2
        again = _receive(store)
        assert [(d.body, d.receives) for d in again] == [("a", 2), ("b", 2)]

        assert store.nack(again, delay=HOUR) == 2
        assert _receive(store) == []
        assert store.nack([], delay=HOUR) == 0

    def test_a_message_at_work_can_be_hidden_for_longer(self, store: Store) -> None:
        """A nack with a delay is the way to say so."""
        _push(store, Message("a"), Message("b", "g"))
        received = _receive(store, visibility=PAST)

        assert store.nack(received, delay=HOUR) == 2
        assert _receive(store) == []
        assert store.ack(received) == 2

    def test_a_second_message_of_a_name_is_a_duplicate(self, store: Store) -> None:
        """In the same call, later, and while the first one is out."""
        first, second, third = store.push(
            QUEUE, [Message("a", dedup="d"), Message("b", dedup="d"), Message("c")]
        )
        assert first is not None
        assert second is None
        assert third is not None
        assert store.push(QUEUE, [Message("d", dedup="d")]) == [None]
        received = _receive(store)
        assert _bodies(received) == ["a", "c"]
        assert store.push(QUEUE, [Message("e", dedup="d")]) == [None]

    def test_a_name_is_remembered_after_its_message_was_acknowledged(self, store: Store) -> None:
        """A re-send after a crash is absorbed, and does not start a group."""
        _push(store, Message("a", "g", "d"))
        store.ack(_receive(store))

        assert store.push(QUEUE, [Message("a", "g", "d"), Message("b", "g", "e")])[0] is None
        assert _bodies(_receive(store)) == ["b"]
        assert store.push(QUEUE, [Message("a", "new", "d")]) == [None]
        assert _receive(store) == []

    def test_a_duplicate_does_not_shift_the_answers(self, store: Store) -> None:
        """Each message has its own, in order, with and without a name."""
        _push(store, Message("x", dedup="old"))
        store.ack(_receive(store))
        messages = [
            Message("0"),
            Message("1", dedup="old"),
            Message("2", dedup="new"),
            Message("3"),
            Message("4", dedup="new"),
            Message("5", "g", "last"),
        ]
        numbers = store.push(QUEUE, messages)

        assert [number is None for number in numbers] == [False, True, False, False, True, False]
        by_number = {d.id: d.body for d in _receive(store)}
        assert [by_number[n] for n in numbers if n is not None] == ["0", "2", "3", "5"]

    def test_who_is_still_queued_can_be_asked(self, store: Store) -> None:
        """Out with a receiver is still queued; acknowledged is not."""
        _push(store, Message("a", dedup="a"), Message("b", dedup="b"), Message("c", dedup="c"))
        received = _receive(store, 2)
        store.ack(received[:1])

        assert store.queued(QUEUE, ["a", "b", "c", "d"]) == {"b", "c"}
        assert store.queued("another", ["b"]) == frozenset()
        assert store.queued(QUEUE, []) == frozenset()

    def test_nothing_pushed_is_nothing_queued(self, store: Store) -> None:
        """An empty batch is no error."""
        assert store.push(QUEUE, []) == []
        assert _receive(store) == []


class QueueRaceTests:
    """Several at once."""

    def test_two_receivers_never_share_a_message(self, store: Store) -> None:
        """Nor a group."""
        _push(store, *(Message(str(n), f"g{n % 10}" if n % 2 else None) for n in range(100)))
        taken = together(*[lambda: _receive(store, 40)] * 4)

        received = [delivery for deliveries in taken for delivery in deliveries]
        assert max(Counter(d.id for d in received).values()) == 1
        assert max(Counter(d.group for d in received if d.group is not None).values()) == 1

    def test_of_two_that_push_a_name_one_is_first(self, store: Store) -> None:
        """However they meet."""
        for n in range(20):
            message = Message(str(n), "g", f"d{n}")
            push = partial(store.push, QUEUE, [message])
            numbers = [pushed[0] for pushed in together(push, push, push)]
            assert sum(number is not None for number in numbers) == 1
            store.ack(_receive(store))

    def test_a_name_stays_known_while_its_message_is_acknowledged(self, store: Store) -> None:
        """There is no moment in between."""
        for n in range(20):
            _push(store, message := Message(str(n), "g", f"d{n}"))
            received = _receive(store)
            acked, pushed = together(partial(store.ack, received), partial(store.push, QUEUE, [message]))
            assert (acked, pushed) == (1, [None])

    def test_a_group_is_not_forgotten_when_its_last_message_goes_as_another_comes(self, store: Store) -> None:
        """Whoever is first, the new message is received."""
        for n in range(20):
            _push(store, Message(f"a{n}", "g"))
            received = _receive(store)
            together(partial(store.ack, received), partial(_push, store, Message(f"b{n}", "g")))
            following = _receive(store)
            assert _bodies(following) == [f"b{n}"]
            store.ack(following)
