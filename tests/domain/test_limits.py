"""What a node may have of a limit: by example, and over any window by property."""

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from itertools import accumulate, count

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.domain.limits import Account, Grant, Lease, Limit, Need, permit
from penstock.domain.rates import GRAINS_PER_TOKEN, Bucket, Rate, allowance, full, slice_size, time_to_fill

NOW = datetime(2026, 1, 1, tzinfo=UTC)
SECOND = timedelta(seconds=1)
TTL = timedelta(seconds=5)
TEN = Rate(10, SECOND)
WEB = Limit("pool", "web", rate=TEN, burst=10)


def asked(account: Account, need: Need, *, node: int = 1, now: datetime = NOW) -> tuple[Account, Grant]:
    return permit(account, need, node=node, now=now, ttl=TTL)


def test_a_limit_is_known_by_one_text() -> None:
    assert (WEB.id, WEB.slot) == ("pool/web", "web")
    keyed = WEB._replace(key="acme")
    assert (keyed.id, keyed.slot) == ("pool/web/acme", "web/acme")
    assert Limit("lane", "web").id == "lane/web"
    assert [limit.limited for limit in (WEB, Limit("lane", "a", max_in_flight=1), Limit("lane", "a"))] == [
        True,
        True,
        False,
    ]


@pytest.mark.parametrize(
    ("rate", "burst", "filled_in"),
    [
        (TEN, 10, SECOND),
        (TEN, 1, timedelta(milliseconds=100)),
        (Rate(3, SECOND), 1, timedelta(microseconds=333_334)),
        (Rate(1, timedelta(hours=1)), 2, timedelta(hours=2)),
    ],
)
def test_a_bucket_is_full_after_a_while(rate: Rate, burst: int, filled_in: timedelta) -> None:
    assert time_to_fill(rate, burst) == filled_in


def test_an_account_may_be_forgotten_once_it_is_as_new() -> None:
    account, _ = asked(Account(), Need(WEB, tokens=10))
    assert account.idle_at == NOW + TTL + SECOND
    slots, _ = asked(Account(), Need(Limit("lane", "a", max_in_flight=1), slots=1))
    assert slots.idle_at == NOW + TTL
    endless = WEB._replace(rate=Rate(1, timedelta(hours=1)), burst=10**9)
    account, _ = asked(Account(), Need(endless, tokens=1))
    assert account.idle_at == NOW + TTL + timedelta(days=3650)


def test_tokens_move_between_bucket_and_lease() -> None:
    account, grant = asked(Account(), Need(WEB, tokens=6))
    assert grant == Grant(6, 0)
    assert account.leases == {1: Lease(6, 0, NOW + TTL)}
    assert account.bucket == Bucket(4 * GRAINS_PER_TOKEN, NOW)
    account, grant = asked(account, Need(WEB, tokens=5, spent=2))
    assert grant == Grant(5, 0)
    assert account.bucket == Bucket(3 * GRAINS_PER_TOKEN, NOW)
    account, grant = asked(account, Need(WEB, tokens=1))
    assert grant == Grant(1, 0)
    assert account.bucket == Bucket(7 * GRAINS_PER_TOKEN, NOW)
    account, grant = asked(account, Need(WEB))
    assert account.leases == {}
    assert account.bucket == Bucket(8 * GRAINS_PER_TOKEN, NOW)


def test_tokens_that_are_out_take_room_while_they_are_out() -> None:
    """Ten spent after a second make room then, not a second ago."""
    account, _ = asked(Account(), Need(WEB, tokens=10))
    account, grant = asked(account, Need(WEB, tokens=10, spent=10), now=NOW + SECOND)

    assert grant == Grant(0, 0, timedelta(milliseconds=100))
    _, grant = asked(account, Need(WEB, tokens=10), now=NOW + 2 * SECOND)
    assert grant.tokens == 10


def test_a_lease_that_is_over_loses_its_tokens_and_returns_its_room() -> None:
    account, _ = asked(Account(), Need(WEB._replace(max_in_flight=5), tokens=10, slots=5))
    assert asked(account, Need(WEB, tokens=10), node=2, now=NOW + TTL - SECOND)[1].tokens == 0
    account, grant = asked(account, Need(WEB, tokens=10), node=2, now=NOW + TTL)

    assert grant.tokens == 10  # what five seconds mint
    assert set(account.leases) == {2}


def test_the_next_token_is_foretold_unless_others_hold_them_all() -> None:
    account = Account(full(10, at=NOW), {2: Lease(9, 0, NOW + TTL)})
    account, grant = asked(account, Need(WEB, tokens=3))
    assert (grant.tokens, grant.ready_in) == (1, None)
    account = account._replace(leases={2: Lease(5, 0, NOW + TTL)}, bucket=Bucket(0, NOW))
    assert asked(account, Need(WEB, tokens=1))[1] == Grant(0, 0, timedelta(milliseconds=100))


def test_a_smaller_burst_takes_back_what_is_over() -> None:
    account = Account(full(10, at=NOW), {1: Lease(6, 0, NOW + TTL), 2: Lease(3, 0, NOW + TTL)})
    account, grant = asked(account, Need(WEB._replace(burst=4), tokens=6))
    assert grant.tokens == 1
    assert account.bucket == Bucket(0, NOW)


def test_a_call_that_was_overtaken_changes_nothing() -> None:
    account, _ = permit(Account(), Need(WEB, tokens=2, serial=2), node=1, now=NOW, ttl=TTL)

    late, grant = permit(account, Need(WEB, spent=2, serial=1), node=1, now=NOW, ttl=TTL)

    assert (late.bucket, late.leases) == (account.bucket, account.leases)
    assert grant == Grant(0, 0)


def test_a_call_that_comes_after_all_was_given_back_takes_nothing() -> None:
    """Its answer was lost, and so it may still be on its way."""
    held, _ = permit(Account(), Need(WEB, tokens=2, serial=1), node=1, now=NOW, ttl=TTL)
    given, _ = permit(held, Need(WEB, serial=3, lost=True), node=1, now=NOW, ttl=TTL)

    late, grant = permit(given, Need(WEB, tokens=5, serial=2), node=1, now=NOW, ttl=TTL)

    assert late.leases == {1: Lease(0, 0, NOW + TTL, 3)}
    assert grant == Grant(0, 0)


EIGHT = Limit("lane", "a", max_in_flight=8)


def test_a_node_borrows_what_nobody_else_lacks() -> None:
    account, grant = asked(Account(), Need(EIGHT, slots=8, part=4))
    assert (grant.slots, grant.surplus) == (8, 0)

    account, other = asked(account, Need(EIGHT, slots=2, part=4), node=2)
    assert other.slots == 0
    assert account.leases[2].lacks == 2
    account, grant = asked(account, Need(EIGHT, slots=8, busy=8, part=4))
    assert (grant.slots, grant.surplus) == (8, 2)  # those two go as their jobs end
    account, grant = asked(account, Need(EIGHT, slots=8, busy=5, part=4))
    assert (grant.slots, grant.surplus) == (6, 0)
    account, other = asked(account, Need(EIGHT, slots=2, part=4), node=2)
    assert (other.slots, account.leases[2].lacks) == (2, 0)


def test_of_its_part_a_node_is_deprived_by_nobody() -> None:
    lacking = Lease(0, 0, NOW + TTL, lacks=4)
    account = Account(leases=dict.fromkeys(range(2, 6), lacking))

    assert asked(account, Need(EIGHT, slots=8, part=4))[1].slots == 4
    assert asked(account, Need(EIGHT, slots=8, part=4), now=NOW + TTL)[1].slots == 8


def test_what_is_not_limited_leaves_no_trace() -> None:
    account, grant = asked(Account(), Need(Limit("lane", "a"), tokens=7, slots=2, busy=3))

    assert grant == Grant(7, 3)
    assert (account.bucket, account.leases) == (None, {})


@given(
    limit=st.integers(1, 20),
    open_=st.integers(0, 30),
    others=st.lists(st.integers(0, 20), max_size=3),
    want=st.integers(0, 30),
    busy=st.integers(0, 10),
)
def test_slots_are_never_more_than_there_are(
    limit: int, open_: int, others: list[int], want: int, busy: int
) -> None:
    leases = {node: Lease(0, slots, NOW + TTL) for node, slots in enumerate(others, start=2)}
    need = Need(Limit("lane", "a", max_in_flight=limit), slots=want, busy=busy)
    account, grant = asked(Account(None, leases, open_), need)

    assert grant.slots >= busy
    assert grant.slots <= max(busy, want)
    assert grant.slots == busy or grant.slots + open_ + sum(others) <= limit
    assert grant.surplus == max(0, grant.slots - max(0, limit - open_ - sum(others)))
    held = account.leases.get(1)
    assert (held.slots if held else 0) == grant.slots
    wanted_more = want > grant.slots >= busy
    assert not wanted_more or grant.slots + open_ + sum(others) >= limit


def test_small_slices_keep_the_rate() -> None:
    """Two nodes that renew slices of the advised size send what the rate allows, not half of it."""
    limit = Limit("pool", "web", rate=Rate(200, SECOND), burst=200)
    assert limit.rate is not None
    size = slice_size(limit.rate, limit.burst, nodes=2, ttl=TTL)
    account, held, sent, now = Account(), [0, 0], 0, NOW
    for _ in range(100):
        now += SECOND / 10
        for node, spent in enumerate(held):
            sent += spent
            account, grant = asked(account, Need(limit, tokens=size, spent=spent), node=node, now=now)
            held[node] = grant.tokens

    assert allowance(limit.rate, 0, window=now - NOW) * 0.95 <= sent
    assert sent <= allowance(limit.rate, limit.burst, window=now - NOW)


@dataclass
class Node:
    """What a node knows: what it holds until when, and what it has not told yet."""

    number: int
    tokens: int = 0
    spent: int = 0
    until: datetime = NOW
    calls: list[tuple[datetime, int]] = field(default_factory=list)


steps = st.lists(
    st.tuples(
        st.integers(0, 2),  # which node
        st.integers(0, 800_000),  # microseconds later
        st.integers(0, 30),  # tokens it would like to hold
        st.integers(0, 30),  # tokens it spends, as far as it has them
        st.sampled_from(["ask", "ask", "spend", "die", "lose the answer"]),
    ),
    max_size=40,
)


@given(
    rate=st.builds(Rate, st.integers(1, 300), st.sampled_from([SECOND, timedelta(minutes=1)])),
    burst=st.integers(1, 40),
    steps=steps,
)
def test_over_any_window_no_more_is_spent_than_the_rate_allows(
    rate: Rate, burst: int, steps: list[tuple[int, int, int, int, str]]
) -> None:
    limit = Limit("pool", "web", rate=rate, burst=burst)
    account, now, calls = Account(), NOW, list[tuple[datetime, int]]()
    numbers = count()
    nodes = [Node(next(numbers)) for _ in range(3)]
    for which, later, want, spend, deed in steps:
        node, now = nodes[which], now + timedelta(microseconds=later)
        if deed == "die":
            nodes[which] = Node(next(numbers))  # whoever comes in its place has a number of its own
            continue
        if now < node.until:
            paid = min(spend, node.tokens)
            calls.append((now, paid))
            node.tokens, node.spent = node.tokens - paid, node.spent + paid
        if deed == "spend":
            continue
        need = Need(limit, tokens=want, spent=node.spent)
        account, grant = permit(account, need, node=node.number, now=now, ttl=TTL)
        if deed == "lose the answer":
            node.tokens = 0  # nobody knows what it holds: nothing, then
            continue
        node.tokens, node.spent, node.until = grant.tokens, 0, now + TTL
        held = sum(lease.tokens for lease in account.leases.values())
        assert account.bucket is not None
        assert account.bucket.level + held * GRAINS_PER_TOKEN <= burst * GRAINS_PER_TOKEN
    for first, (begin, _) in enumerate(calls):
        totals = accumulate(number for _, number in calls[first:])
        for (end, _), total in zip(calls[first:], totals, strict=True):
            assert total <= allowance(rate, burst, window=end - begin)
