"""How full pools are."""

from datetime import UTC, datetime, timedelta

import pytest

from penstock.domain.limits import Account, Lease, Limit
from penstock.domain.pools import pool
from penstock.domain.rates import Bucket
from penstock.domain.vitals import KeyUse, PoolUse, limit_of, pool_limits, pool_uses, put_back_s

NOW = datetime(2026, 11, 15, 12, tzinfo=UTC)
LATER, BEFORE = NOW + timedelta(seconds=5), NOW - timedelta(seconds=5)
POOLS = {"web": pool("web", max_in_flight=4), "mail": pool("mail", rate="10/s", key="tenant")}


def use(name: str, **accounts: Account) -> PoolUse:
    limits = {key: limit_of(POOLS[name], "" if key == "all" else key) for key in accounts}
    return pool_uses(POOLS, limits, accounts, NOW)[name]


def test_a_limit_has_the_settings_of_its_pool() -> None:
    assert limit_of(POOLS["web"], "") == Limit("pool", "web", max_in_flight=4)
    mail = limit_of(POOLS["mail"], "acme")
    assert (str(mail.rate), mail.burst, mail.key) == ("10/s", 10, "acme")
    assert limit_of(pool("x", rate="10/s", burst=3), "").burst == 3


def test_only_accounts_of_pools_that_are_there_count() -> None:
    found = pool_limits(POOLS, ["pool/web", "pool/mail/a/b", "pool/gone", "lane/web"])

    assert {id_: limit.key for id_, limit in found.items()} == {"pool/web": "", "pool/mail/a/b": "a/b"}


def test_a_pool_nobody_uses_is_empty() -> None:
    assert pool_uses(POOLS, {}, {}, NOW) == {"web": PoolUse(), "mail": PoolUse()}


def test_slots_on_lease_and_jobs_that_are_out_count_and_leases_that_ran_out_do_not() -> None:
    account = Account(leases={1: Lease(0, 1, LATER), 2: Lease(0, 3, BEFORE)}, open=1)

    assert use("web", all=account) == PoolUse(0.5, 2, 0, "")


def test_more_than_there_is_is_one() -> None:
    assert use("web", all=Account(open=9)).saturation == 1


@pytest.mark.parametrize(("taken", "full"), [(0, 0.0), (5, 0.5), (10, 1.0)])
def test_tokens_that_are_out_are_missing_from_the_bucket(taken: int, full: float) -> None:
    account = Account(leases={1: Lease(taken, 0, LATER)})

    assert use("mail", acme=account).saturation == pytest.approx(full)


def test_a_bucket_fills_up_again_and_the_fullest_key_is_named() -> None:
    empty = Account(Bucket(0, NOW))
    half = Account(Bucket(0, NOW - timedelta(milliseconds=500)))

    found = use("mail", a=half, b=empty, c=half)

    assert found[:6] == (1.0, 0, 3, "b", 0.0, 1)
    assert found.crowded == (KeyUse("b", 1.0, 0, 0.0), KeyUse("c", 0.5, 0, 5.0), KeyUse("a", 0.5, 0, 5.0))


def test_a_limit_is_reached_when_no_slot_is_free_or_no_whole_token_is_left() -> None:
    nearly = Account(Bucket(0, NOW - timedelta(milliseconds=99)))
    one = Account(Bucket(0, NOW - timedelta(milliseconds=100)))

    assert use("mail", a=nearly, b=one).at_limit == 1
    assert [use("web", all=Account(open=jobs)).at_limit for jobs in (0, 3, 4)] == [0, 0, 1]


def test_of_very_many_keys_the_fullest_are_named_and_those_at_rest_are_not() -> None:
    rests, busy = Account(), Account(Bucket(0, NOW))
    accounts = {f"k{n}": busy if n % 2 else rests for n in range(20)}
    found = use("mail", **accounts)

    assert (found.keys, found.at_limit) == (20, 10)
    assert [each.key for each in found.crowded] == ["k9", "k7", "k5", "k3", "k19"]
    assert [each.key for each in use("mail", k0=rests, k1=busy).crowded] == ["k1"]


def test_the_longest_wait_of_a_lane_counts() -> None:
    found = [("a", BEFORE), ("a", NOW), ("b", LATER), ("c", None)]

    assert put_back_s(found, NOW) == {"a": 5.0, "b": 0.0}
