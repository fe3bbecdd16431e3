"""Limits as time passes: over any window no more is spent than the rate allows, on every store alike."""

import os
from collections.abc import Callable
from contextlib import closing
from datetime import UTC, datetime, timedelta
from itertools import accumulate

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.domain.rates import Rate, allowance
from penstock.domain.ulid import Ulids
from penstock.ports.flow import Limit, Need
from penstock.ports.store import Store
from penstock.stores.memory import MemoryStore
from penstock.stores.sqlite.store import SqliteStore
from tests.stores.places import Place

START = datetime(2026, 1, 1, tzinfo=UTC)
SECOND = timedelta(seconds=1)
TTL = timedelta(seconds=5)
NODES = 3
Clock = Callable[[], datetime]


def memory(clock: Clock) -> Store:
    return MemoryStore(clock, Ulids(lambda: 0, os.urandom))


def sqlite(clock: Clock) -> Store:
    store = SqliteStore(":memory:", clock=clock)
    store.migrate()
    return store


steps = st.lists(
    st.tuples(
        st.integers(0, NODES - 1),  # which node
        st.integers(0, 2),  # which key
        st.integers(0, 800_000),  # microseconds later
        st.integers(0, 30),  # tokens it would like to hold
        st.integers(0, 30),  # tokens it spends, as far as it has them
    ),
    max_size=25,
)


@pytest.mark.parametrize("make", [memory, sqlite])
@settings(max_examples=60)
@given(
    rate=st.builds(Rate, st.integers(1, 300), st.sampled_from([SECOND, 60 * SECOND])),
    burst=st.integers(1, 40),
    slots=st.integers(1, 10),
    steps=steps,
)
def test_no_window_holds_more_than_the_rate_allows(
    make: Callable[[Clock], Store], rate: Rate, burst: int, slots: int, steps: list[tuple[int, ...]]
) -> None:
    now = START
    limits = [Limit("pool", "web", key, rate, burst, slots) for key in ("", "a", "b")]
    held = {(node, key): (0, 0, START) for node in range(NODES) for key in range(3)}
    spent = dict.fromkeys(held, 0)
    calls: list[list[tuple[datetime, int]]] = [[], [], []]
    with closing(make(lambda: now)) as store:
        for node, key, later, want, spend in steps:
            now += timedelta(microseconds=later)
            for every in range(3):
                tokens, busy, until = held[node, every]
                paid = min(spend, tokens) if now < until and every == key else 0
                calls[every].append((now, paid))
                spent[node, every] += paid
                held[node, every] = (tokens - paid, busy, until)
            needs = [
                Need(
                    limit, tokens=want if at == key else held[node, at][0], spent=spent[node, at], slots=want
                )
                for at, limit in enumerate(limits)
            ]
            for at, grant in enumerate(store.permit(node, needs, ttl=TTL)):
                held[node, at], spent[node, at] = (grant.tokens, grant.slots, now + TTL), 0
                live = [held[other, at] for other in range(NODES) if now < held[other, at][2]]
                assert sum(tokens for tokens, _, _ in live) <= burst
                assert sum(taken for _, taken, _ in live) <= slots
    for made in calls:
        for first, (begin, _) in enumerate(made):
            totals = accumulate(count for _, count in made[first:])
            for (end, _), total in zip(made[first:], totals, strict=True):
                assert total <= allowance(rate, burst, window=end - begin)


def test_limits_that_are_full_again_are_forgotten(place: Place) -> None:
    with closing(place.open_store()) as store:
        store.migrate()
        fast = [Limit("pool", "fast", str(key), Rate(10**9, SECOND), 1) for key in range(50)]
        slow = Limit("pool", "slow", "", Rate(1, timedelta(hours=1)), 10)
        store.permit(1, [Need(limit, tokens=1) for limit in fast], ttl=-SECOND)
        store.permit(1, [Need(slow, tokens=3)], ttl=-SECOND)
        store.permit(2, [Need(fast[0], tokens=1)], ttl=60 * SECOND)
        store.retire(slice_rows=100)

        plain = place.plain()
        names = [row[0] for row in plain("SELECT name FROM penstock.limits ORDER BY name")]
        leases = plain("SELECT name, node FROM penstock.limit_leases")
        assert names == ["pool/fast/0", "pool/slow"]
        assert [tuple(row) for row in leases] == [("pool/fast/0", 2)]
