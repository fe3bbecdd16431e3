"""What a leader does under its term, and no longer."""

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from functools import partial
from typing import Final

import pytest

from penstock.domain.leases import Term
from penstock.domain.outcomes import Dispatched
from penstock.domain.states import JobState
from penstock.errors import TermOver
from penstock.ports.store import Store
from penstock.testing.store_suite.factories import (
    HOUR,
    PAST,
    claim,
    enqueue,
    job,
    put_lane,
    settle,
    some,
    state,
    together,
)

ROLE: Final = "leader"
TTL: Final = timedelta(seconds=15)
ROUNDS: Final = 15
Chore = Callable[[Store, Term | None], object]
CHORES: Final[dict[str, Chore]] = {
    "expire": lambda store, term: store.expire(10, under=term),
    "recall": lambda store, term: store.recall(10, under=term),
    "fold": lambda store, term: store.fold_counts(under=term),
    "retire": lambda store, term: store.retire(slice_rows=10, under=term),
    "takeover": lambda store, term: store.takeover(9, HOUR, 10, under=term),
    "lapse": lambda store, term: store.lapse(9, HOUR, 10, under=term),
}


def led(store: Store, *, ttl: timedelta = TTL) -> Term:
    """Return the term of a new node that leads from now on."""
    term = store.elect(ROLE, store.register_node("a"), ttl)
    assert term is not None
    return term


def left_over(store: Store) -> tuple[str, str, str]:
    """Leave something of everything a leader does: a job to expire, one to take over, one to probe."""
    [silent] = enqueue(store, job())
    settle(store, some(claim(store)), Dispatched(PAST))
    [lapsed] = enqueue(store, job())
    some(claim(store, lease=PAST))
    [late] = enqueue(store, job(start_by=store.now() + PAST, run_at=store.now() + 2 * PAST))
    return late, lapsed, silent


class FencingTests:
    """Housekeeping under a term."""

    def test_a_leader_does_its_chores_under_its_term(self, store: Store) -> None:
        """A term that was prolonged is the same term."""
        put_lane(store)
        left_over(store)
        term = led(store)
        assert term.role == ROLE
        longer = store.extend_term(ROLE, term, HOUR)

        assert longer is not None
        assert longer.role == ROLE
        assert store.expire(10, under=term) == 1
        assert len(store.takeover(9, HOUR, 10, under=longer)) == 1
        lapse = store.lapse(9, HOUR, 10, under=term)
        assert lapse is not None
        assert len(lapse.jobs) == 1
        store.fold_counts(under=term)
        store.retire(slice_rows=10, under=term)

    @pytest.mark.parametrize("chore", CHORES.values(), ids=CHORES)
    def test_once_somebody_else_leads_nothing_is_written(self, store: Store, chore: Chore) -> None:
        """Whoever was leader before is told so."""
        put_lane(store)
        late, lapsed, silent = left_over(store)
        before = store.find([late, lapsed, silent])
        term = led(store)
        store.resign(ROLE, term)
        successor = led(store)
        with pytest.raises(TermOver, match=f"term {term.number} is over"):
            chore(store, term)

        assert store.find([late, lapsed, silent]) == before
        chore(store, successor)

    @pytest.mark.parametrize("chore", CHORES.values(), ids=CHORES)
    def test_a_term_that_ran_out_is_over_though_nobody_else_leads(self, store: Store, chore: Chore) -> None:
        """The same number of another holder, or of another role, is another term."""
        put_lane(store)
        term = led(store)
        strangers = [
            replace(term, holder="4711"),
            replace(term, number=term.number + 1),
            replace(term, role="another role"),
        ]
        store.resign(ROLE, term)
        for stranger in (term, *strangers):
            with pytest.raises(TermOver):
                chore(store, stranger)

    def test_a_chore_races_the_next_election(self, store: Store) -> None:
        """It is done before, or not at all."""
        put_lane(store)
        for _ in range(ROUNDS):
            [late] = enqueue(store, job(start_by=store.now() + PAST, run_at=store.now() + 2 * PAST))
            term = led(store)

            def succeed(term: Term = term, late: str = late) -> tuple[Term, JobState]:
                store.resign(ROLE, term)
                return led(store), state(store, late)

            def expire(term: Term = term) -> int | None:
                try:
                    return store.expire(10, under=term)
                except TermOver:
                    return None

            (successor, seen), expired = together(succeed, expire)

            assert (expired, seen) in [(1, JobState.EXPIRED), (None, JobState.PENDING)]
            store.expire(10, under=successor)
            store.resign(ROLE, successor)

    def test_a_leader_prolongs_its_term_while_its_chores_run(self, store: Store) -> None:
        """Neither waits for the other to end."""
        put_lane(store)
        term = led(store)
        for _ in range(ROUNDS):
            *_, longer = together(
                partial(store.fold_counts, under=term),
                partial(store.retire, slice_rows=10, under=term),
                partial(store.extend_term, ROLE, term, TTL),
            )
            assert longer is not None
            assert longer.number == term.number
