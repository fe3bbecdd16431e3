"""Limits over the whole cluster: tokens and slots on lease."""

from datetime import timedelta
from functools import partial

import pytest

from penstock.domain.job import Claim
from penstock.domain.outcomes import Dispatched, Running, Succeeded
from penstock.domain.rates import Rate
from penstock.domain.states import Verb
from penstock.ports.flow import Grant, Limit, Need
from penstock.ports.store import Store
from penstock.testing.store_suite.factories import (
    HOUR,
    LANE,
    PAST,
    ZERO,
    claim,
    enqueue,
    find,
    job,
    operate,
    ordered,
    put_lane,
    report,
    settle,
    some,
    together,
)
from penstock.testing.store_suite.pools import put_pool

SLOW = Rate(1, timedelta(hours=1))
TTL = timedelta(seconds=30)
WEB = Limit("pool", "web", rate=SLOW, burst=10)
FEW = Limit("pool", "web", max_in_flight=5)
ROUNDS = 20


def permit(store: Store, need: Need, *, node: int = 1, ttl: timedelta = TTL) -> Grant:
    """Ask for one limit."""
    [grant] = store.permit(node, [need], ttl=ttl)
    return grant


def out(store: Store, number: int = 1, *, slot: str | None = "web", lane: str = LANE) -> list[str]:
    """Have so many jobs out."""
    job_ids = enqueue(store, *(job(lane) for _ in range(number)))
    settle(store, some(claim(store, lane)), Dispatched(HOUR, slot=slot))
    return job_ids


class TokenTests:
    """Rates."""

    def test_a_bucket_nobody_drew_from_is_full(self, store: Store) -> None:
        """And gives no more than it has, whoever asks."""
        assert permit(store, Need(WEB, tokens=4)) == Grant(4, 0)
        assert permit(store, Need(WEB, tokens=100), node=2).tokens == 6
        empty = permit(store, Need(WEB, tokens=1), node=3)
        assert (empty.tokens, empty.slots) == (0, 0)

    def test_a_node_is_told_when_the_next_token_comes(self, store: Store) -> None:
        """Not when others hold them all: that depends on them."""
        permit(store, Need(WEB, tokens=10))
        assert permit(store, Need(WEB, tokens=1), node=2).ready_in is None
        wait = permit(store, Need(WEB, tokens=1, spent=10)).ready_in

        assert wait is not None
        assert timedelta(minutes=59) < wait <= HOUR

    def test_what_is_spent_is_gone_and_what_is_not_wanted_returns(self, store: Store) -> None:
        """A node asks for what it would like to hold in all."""
        assert permit(store, Need(WEB, tokens=8)).tokens == 8
        assert permit(store, Need(WEB, tokens=8)).tokens == 8
        assert permit(store, Need(WEB, tokens=4, spent=2)).tokens == 4
        assert permit(store, Need(WEB, tokens=10), node=2).tokens == 4
        assert permit(store, Need(WEB, tokens=10, spent=4)).tokens == 0

    def test_a_lease_that_is_over_is_void_and_its_room_returns(self, store: Store) -> None:
        """Nobody knows what became of its tokens; the bucket fills again at its rate."""
        assert permit(store, Need(WEB, tokens=10), ttl=PAST).tokens == 10

        assert permit(store, Need(WEB, tokens=10), node=2).tokens == 0
        assert permit(store, Need(WEB, tokens=10)).tokens == 0

    def test_tokens_that_were_not_spent_are_given_back_at_the_end(self, store: Store) -> None:
        """A node that stops leaves nothing behind."""
        permit(store, Need(WEB, tokens=10))
        assert permit(store, Need(WEB, spent=3)).tokens == 0

        assert permit(store, Need(WEB, tokens=10), node=2).tokens == 7

    def test_a_call_that_was_overtaken_takes_nothing(self, store: Store) -> None:
        """Also where all was given back meanwhile, by a node that does not know what became of that call."""
        permit(store, Need(WEB, tokens=3, serial=1))
        assert permit(store, Need(WEB, serial=3, lost=True)).tokens == 0

        assert permit(store, Need(WEB, tokens=5, serial=2)).tokens == 0
        assert permit(store, Need(WEB, tokens=10), node=2).tokens == 10

    def test_limits_are_apart(self, store: Store) -> None:
        """By scope, by name and by key; a key may be any text."""
        limits = [
            WEB,
            WEB._replace(scope="lane"),
            WEB._replace(name="other"),
            WEB._replace(key="a"),
            WEB._replace(key="a/b"),
            WEB._replace(key="ü\"'\\ %"),
        ]
        grants = store.permit(1, [Need(limit, tokens=10) for limit in limits], ttl=TTL)

        assert [grant.tokens for grant in grants] == [10] * len(limits)
        assert permit(store, Need(WEB._replace(key="b"), tokens=10), node=2).tokens == 10
        assert permit(store, Need(WEB._replace(key="a"), tokens=10), node=2).tokens == 0

    def test_one_call_may_name_a_limit_twice(self, store: Store) -> None:
        """The second asks after the first."""
        grants = store.permit(1, [Need(WEB, tokens=6), Need(WEB, tokens=8, spent=6)], ttl=TTL)

        assert [grant.tokens for grant in grants] == [6, 4]

    def test_what_is_not_limited_is_had_for_the_asking(self, store: Store) -> None:
        """Nothing is kept of it."""
        free = Limit("lane", LANE)
        grants = store.permit(1, [Need(free, tokens=7, slots=9, busy=2), Need(WEB, slots=3)], ttl=TTL)

        assert grants == [Grant(7, 9), Grant(0, 3)]
        assert store.permit(1, [], ttl=TTL) == []

    def test_a_changed_limit_counts_at_once(self, store: Store) -> None:
        """A smaller burst takes back what is over; a larger one fills at the rate."""
        permit(store, Need(WEB, tokens=10))
        small = WEB._replace(burst=4)
        assert permit(store, Need(small, tokens=10)).tokens == 4
        assert permit(store, Need(small, tokens=10), node=2).tokens == 0
        assert permit(store, Need(WEB, tokens=10)).tokens == 4
        assert permit(store, Need(WEB._replace(rate=None), tokens=99)).tokens == 99

    def test_a_deleted_pool_begins_anew(self, store: Store) -> None:
        """With all its keys; others are left alone."""
        put_pool(store)
        limits = [WEB, WEB._replace(key="a"), WEB._replace(name="web0"), WEB._replace(name="web-1", key="a")]
        store.permit(1, [Need(limit, tokens=10, spent=0) for limit in limits], ttl=TTL)
        store.delete_pool("web", actor="ops")
        again = store.permit(2, [Need(limit, tokens=10) for limit in limits], ttl=TTL)

        assert [grant.tokens for grant in again] == [10, 10, 0, 0]

    def test_limits_nobody_uses_are_forgotten(self, store: Store) -> None:
        """Once they are full; those in use are not."""
        fast = Limit("pool", "fast", rate=Rate(1_000_000_000, timedelta(seconds=1)), burst=1)
        keys = [fast._replace(key=str(number)) for number in range(50)]
        long_ago = -1000 * HOUR
        store.permit(1, [Need(limit, tokens=1) for limit in keys], ttl=long_ago)
        permit(store, Need(WEB, tokens=9))
        permit(store, Need(WEB._replace(key="a"), tokens=10), ttl=PAST)
        store.retire(slice_rows=100)

        assert permit(store, Need(WEB, tokens=10), node=2).tokens == 1
        assert permit(store, Need(WEB._replace(key="a"), tokens=10)).tokens == 0

    def test_many_keys_cost_one_call(self, store: Store) -> None:
        """All are answered, in order."""
        needs = [Need(WEB._replace(key=str(n), burst=n + 1), tokens=1_000, slots=n) for n in range(500)]
        for _ in range(2):
            grants = store.permit(1, needs, ttl=TTL)
            assert [grant.tokens for grant in grants] == [n + 1 for n in range(500)]

    def test_nodes_that_ask_at_once_never_get_more_than_there_is(self, store: Store) -> None:
        """Also for a limit that none of them had before, and in whatever order they name several."""
        for number in range(ROUNDS):
            limits = [WEB._replace(key=f"{number}/{key}") for key in "abc"]
            needs = [Need(limit, tokens=7) for limit in limits]
            calls = [
                partial(store.permit, node, needs if node % 2 else needs[::-1], ttl=TTL)
                for node in range(1, 5)
            ]
            answers = together(*calls)

            for key in range(3):
                grants = [
                    answer[key] if node % 2 else answer[-1 - key]
                    for node, answer in enumerate(answers, start=1)
                ]
                assert sorted(grant.tokens for grant in grants) == [0, 0, 3, 7]


class SlotTests:
    """In-flight limits."""

    def test_a_call_that_comes_after_a_later_one_is_not_heeded(self, store: Store) -> None:
        """It was lost on its way, its node has long asked again and uses what it got."""
        assert permit(store, Need(FEW, slots=3, busy=3, serial=2)).slots == 3

        assert permit(store, Need(FEW, slots=0, serial=1)) == Grant(0, 0)
        assert permit(store, Need(FEW, slots=5), node=2).slots == 2
        assert permit(store, Need(FEW, slots=0, serial=3)).slots == 0
        assert permit(store, Need(FEW, slots=5), node=2).slots == 5

    def test_slots_are_shared_out_until_there_are_none(self, store: Store) -> None:
        """What a node gives up another may have."""
        assert permit(store, Need(FEW, slots=3)) == Grant(0, 3)
        assert permit(store, Need(FEW, slots=9), node=2).slots == 2
        assert permit(store, Need(FEW, slots=9), node=3).slots == 0
        assert permit(store, Need(FEW, slots=1)).slots == 1
        assert permit(store, Need(FEW, slots=9), node=3).slots == 2
        permit(store, Need(FEW), node=2)
        assert permit(store, Need(FEW, slots=9)).slots == 3

    def test_a_node_keeps_the_slots_that_are_in_use(self, store: Store) -> None:
        """Also when the limit was made smaller meanwhile."""
        permit(store, Need(FEW, slots=5))
        less = FEW._replace(max_in_flight=2)

        assert permit(store, Need(less, slots=5, busy=4)) == Grant(0, 4, surplus=2)
        assert permit(store, Need(less, slots=5), node=2).slots == 0

    def test_a_node_that_slept_through_its_lease_is_told_what_another_has(self, store: Store) -> None:
        """It is still sending; when it is done, that slot is not its own any more."""
        one = FEW._replace(max_in_flight=1)
        permit(store, Need(one, slots=1), ttl=PAST)
        permit(store, Need(one, slots=1, busy=1), node=2)

        assert permit(store, Need(one, slots=1, busy=1)) == Grant(0, 1, surplus=1)
        assert permit(store, Need(one, slots=1, busy=1), node=2) == Grant(0, 1, surplus=1)
        assert permit(store, Need(one)) == Grant(0, 0)
        assert permit(store, Need(one, slots=1, busy=1), node=2) == Grant(0, 1)

    def test_slots_of_a_lease_that_is_over_return(self, store: Store) -> None:
        """Its node is not there any more."""
        permit(store, Need(FEW, slots=5), ttl=PAST)

        assert permit(store, Need(FEW, slots=5), node=2).slots == 5

    def test_jobs_that_are_out_take_slots_of_their_pool(self, store: Store) -> None:
        """Until they are back, whichever way."""
        put_lane(store)
        [a, b, c, d] = out(store, 4)
        assert permit(store, Need(FEW, slots=5)) == Grant(0, 1, open=4)
        report(store, a, 1, Running(HOUR))
        assert permit(store, Need(FEW, slots=5)).open == 4
        report(store, a, 1, Succeeded())
        operate(store, Verb.CANCEL, b, force=True)
        operate(store, Verb.SETTLE_DEAD, c)

        assert permit(store, Need(FEW, slots=5)) == Grant(0, 4, open=1)
        assert [find(store, job_id).live.slot for job_id in (a, b, c, d)] == [None, None, None, "web"]

    def test_each_key_of_a_pool_has_its_own(self, store: Store) -> None:
        """And jobs without a slot occupy no pool."""
        put_lane(store)
        keyed = [FEW._replace(key=key) for key in ("a", "b", "")]
        out(store, 2, slot="web/a")
        out(store, 1, slot="web")
        out(store, 3, slot=None)
        grants = store.permit(1, [Need(limit, slots=9) for limit in keyed], ttl=TTL)

        assert grants == [Grant(0, 3, open=2), Grant(0, 5), Grant(0, 4, open=1)]

    def test_jobs_that_are_out_take_slots_of_their_lane(self, store: Store) -> None:
        """With a pool's slot or without; jobs of other lanes and other states do not."""
        put_lane(store)
        put_lane(store, "other")
        out(store, 2)
        out(store, 1, slot=None)
        out(store, 1, lane="other")
        enqueue(store, job(), ordered())
        some(claim(store))
        lanes = [Limit("lane", name, max_in_flight=5) for name in (LANE, "other", "nowhere")]
        grants = store.permit(1, [Need(limit, slots=9) for limit in lanes], ttl=TTL)

        assert grants == [Grant(0, 2, open=3), Grant(0, 4, open=1), Grant(0, 5)]

    def test_what_is_out_is_counted_as_far_as_it_matters(self, store: Store) -> None:
        """A thousand jobs too many are not looked at."""
        put_lane(store)
        out(store, 9)

        assert permit(store, Need(FEW, slots=2)) == Grant(0, 0, open=5)
        lane = Limit("lane", LANE, max_in_flight=7)
        grants = store.permit(1, [Need(FEW, slots=2), Need(lane, slots=2)], ttl=TTL)
        assert [grant.open for grant in grants] == [5, 7]

    def test_a_job_whose_executor_spoke_first_still_takes_its_slot(self, store: Store) -> None:
        """Its report overtook the sender's settle, which alone knows the pool."""
        put_lane(store)
        [a, b] = enqueue(store, job(), job())
        batch = some(claim(store))
        for job_id in (a, b):
            report(store, job_id, 1, Running(HOUR))
        report(store, b, 1, Succeeded())
        arrivals = [claimed.job.arrival for claimed in batch.jobs]
        settled = store.settle(batch, dict.fromkeys(arrivals, Dispatched(HOUR, slot="web")))

        assert settled.refused == frozenset(arrivals)
        assert [find(store, job_id).live.slot for job_id in (a, b)] == ["web", None]
        assert permit(store, Need(FEW, slots=9)).open == 1

    def test_a_job_that_runs_from_the_start_may_name_its_slot(self, store: Store) -> None:
        """Recovery learns from a probe that a claimed job runs."""
        put_lane(store)
        enqueue(store, job())
        settle(store, some(claim(store)), Running(HOUR, slot="web"))

        assert permit(store, Need(FEW, slots=9)).open == 1

    @pytest.mark.parametrize("slots", [1, 3], ids=["one", "three"])
    def test_nodes_that_ask_at_once_never_get_more_slots_than_there_are(
        self, store: Store, slots: int
    ) -> None:
        """With a job that goes out at the same moment."""
        put_lane(store)
        for number in range(ROUNDS):
            limit = Limit("pool", f"web{number}", max_in_flight=4)
            permit(store, Need(limit, slots=1, busy=1))
            enqueue(store, job())
            batch = some(claim(store))

            def send(limit: Limit = limit, batch: Claim = batch) -> Grant:
                settle(store, batch, Dispatched(HOUR, slot=limit.slot))
                return permit(store, Need(limit))

            calls = [partial(permit, store, Need(limit, slots=slots), node=node) for node in range(2, 6)]
            [_, *grants] = together(send, *calls)

            assert 1 + sum(grant.slots for grant in grants) <= 4
            left = permit(store, Need(limit, slots=9), node=9)
            assert 1 + sum(grant.slots for grant in [*grants, left]) == 4
            assert left.open == 1

    def test_slots_and_tokens_of_one_limit_go_together(self, store: Store) -> None:
        """Each as far as it reaches."""
        both = WEB._replace(max_in_flight=3, burst=2)

        assert permit(store, Need(both, tokens=5, slots=5))[:2] == (2, 3)
        assert permit(store, Need(both, tokens=5, slots=5), node=2)[:2] == (0, 0)
        assert permit(store, Need(both, tokens=5, spent=2, slots=1, busy=1))[:2] == (0, 1)
        assert permit(store, Need(both, tokens=5, slots=5), node=2)[:2] == (0, 2)
        assert permit(store, Need(both, tokens=0, slots=0))[:2] == (0, 0)
        assert ZERO < (permit(store, Need(both, tokens=1)).ready_in or ZERO) <= HOUR
