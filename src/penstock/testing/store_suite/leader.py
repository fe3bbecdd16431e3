"""Nodes, terms of leadership, and the figures of a pass."""

from dataclasses import replace
from datetime import timedelta

import pytest

from penstock.domain.leases import Term
from penstock.errors import NotFound
from penstock.ports.store import Store, Tick
from penstock.testing.store_suite.factories import HOUR, LANE, put_lane

ROLE = "housekeeping"
TTL = timedelta(seconds=15)


def _elect(store: Store, node: int) -> Term:
    term = store.elect(ROLE, node, TTL)
    assert term is not None
    return term


class LeaderTests:
    """Nodes and the leader."""

    def test_every_start_is_a_node_of_its_own(self, store: Store) -> None:
        """The same name twice is two nodes, numbered upwards."""
        numbers = [store.register_node("host-1") for _ in range(3)]

        assert numbers == sorted(set(numbers))
        for node in numbers:
            store.beat(node)

    def test_a_forgotten_node_enters_again_under_its_number(self, store: Store) -> None:
        """What is known of it by that number stays true, and nobody else gets it."""
        number = store.register_node("a") + 1
        with pytest.raises(NotFound):
            store.beat(number)

        assert store.register_node("b", number) == number
        store.beat(number)
        assert ("b", number) in [(node.name, node.id) for node in store.nodes()]
        assert store.register_node("b", number) == number

    def test_the_first_candidate_leads(self, store: Store) -> None:
        """For the time it asked for, by the store's clock."""
        node = store.register_node("a")
        before = store.now()
        term = _elect(store, node)

        assert term.holder == str(node)
        assert term.number >= 1
        assert before + TTL <= term.until <= store.now() + TTL

    def test_nobody_else_is_elected_during_a_term(self, store: Store) -> None:
        """One leader at a time, per role."""
        a, b = store.register_node("a"), store.register_node("b")
        _elect(store, a)

        assert store.elect(ROLE, b, TTL) is None
        assert store.elect("another role", b, TTL) is not None

    def test_each_election_has_a_higher_number(self, store: Store) -> None:
        """Also when the leader asks again: what it began before is fenced."""
        a, b = store.register_node("a"), store.register_node("b")
        first = _elect(store, a)
        second = _elect(store, a)
        store.resign(ROLE, second)
        third = _elect(store, b)

        assert first.number < second.number < third.number
        assert third.holder == str(b)

    def test_a_term_is_prolonged_by_its_holder(self, store: Store) -> None:
        """Same number, later end."""
        term = _elect(store, store.register_node("a"))
        longer = store.extend_term(ROLE, term, HOUR)

        assert longer is not None
        assert (longer.number, longer.holder) == (term.number, term.holder)
        assert longer.until > term.until

    def test_an_older_term_is_not_prolonged(self, store: Store) -> None:
        """Number and holder must both be those of now."""
        a, b = store.register_node("a"), store.register_node("b")
        old = _elect(store, a)
        store.resign(ROLE, old)
        current = _elect(store, b)

        assert store.extend_term(ROLE, old, HOUR) is None
        assert store.extend_term(ROLE, replace(current, holder=str(a)), HOUR) is None
        assert store.extend_term(ROLE, replace(current, number=old.number), HOUR) is None
        assert store.extend_term("another role", current, HOUR) is None
        assert store.elect(ROLE, a, TTL) is None

    def test_a_term_that_is_over_is_not_prolonged(self, store: Store) -> None:
        """Also when nobody has led since."""
        term = _elect(store, store.register_node("a"))

        assert store.resign(ROLE, term)
        assert store.extend_term(ROLE, term, HOUR) is None

    def test_a_leader_that_resigns_is_followed_at_once(self, store: Store) -> None:
        """Nobody waits for the end of a term that was given up."""
        a, b = store.register_node("a"), store.register_node("b")
        term = _elect(store, a)

        assert store.resign(ROLE, term)
        assert _elect(store, b).number > term.number

    def test_nobody_resigns_for_another(self, store: Store) -> None:
        """An old leader does not end its successor's term."""
        a, b = store.register_node("a"), store.register_node("b")
        old = _elect(store, a)
        store.resign(ROLE, old)
        current = _elect(store, b)

        assert not store.resign(ROLE, old)
        assert not store.resign(ROLE, replace(current, holder=str(a)))
        assert not store.resign("another role", current)
        assert store.extend_term(ROLE, current, TTL) is not None

    def test_a_pass_leaves_its_figures(self, store: Store) -> None:
        """With and without a lane."""
        put_lane(store)
        node = store.register_node("a")
        passes = Tick(node=node, lane=LANE, claimed=3, settled=2, phases={"claim": 0.01})
        store.record_ticks([passes, Tick(node=node, lane=None)])
        store.record_ticks([])
