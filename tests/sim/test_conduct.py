"""The checks of what nodes do: each is shown something wrong and has to say so."""

import os
import subprocess
import sys
from datetime import UTC, datetime, timedelta

import pytest

from penstock.domain.gates import Explanation, Gate
from penstock.domain.job import Live
from penstock.domain.lanes import lane
from penstock.domain.pauses import Pause
from penstock.domain.pools import pool
from penstock.domain.states import JobState
from penstock.ports.flow import Limit, Need
from penstock.ports.sink import Envelope
from penstock.testing.invariants.facts import Delivery, TooMany, WordBroken
from penstock.testing.invariants.model import Fact, Model
from penstock.testing.invariants.moves import Spot
from penstock.testing.invariants.occupancy import Occupancy
from penstock.testing.invariants.picture import Call
from penstock.testing.invariants.rates import check_rates
from penstock.testing.invariants.settings import Settings
from penstock.testing.invariants.words import Words

NOW = datetime(2026, 3, 1, tzinfo=UTC)


def settings(**pool_settings: object) -> Settings:
    known = Settings()
    known.lane(lane("orders", pool="web"), 0.0)
    known.pool(pool("web", **pool_settings), 0.0)
    return known


def deliveries(known: Settings, *times: float, tenant: str = "a") -> list[Delivery]:
    envelope = Envelope(id="j", number=1, lane="orders", attempt=1, tenant=tenant)
    limits = known.limits_of(envelope)
    return [
        Delivery("j", 1, 1, "orders", None, 99, None, at, clock=NOW, minted=at, limits=limits) for at in times
    ]


def test_a_limit_is_known_by_its_pool_and_key() -> None:
    envelope = Envelope(
        id="j", number=1, lane="orders", attempt=1, tenant="a", group="g", target="http://x.test/y"
    )

    assert settings(rate="1/s").limits_of(envelope) == ("lane/orders", "pool/web")
    assert settings(rate="1/s", key="tenant").limits_of(envelope)[1] == "pool/web/a"
    assert settings(rate="1/s", key="group").limits_of(envelope)[1] == "pool/web/orders/g"
    assert settings(rate="1/s", key="target").limits_of(envelope)[1] == "pool/web/http://x.test"


def test_a_burst_and_what_the_rate_mints_are_allowed() -> None:
    known = settings(rate="10/s", burst=2)

    check_rates(deliveries(known, 5.0, 5.0, 5.1, 5.2, 5.3), known, moment=0.0)


def test_one_more_than_that_is_too_many() -> None:
    known = settings(rate="10/s", burst=2)

    with pytest.raises(TooMany, match="pool/web"):
        check_rates(deliveries(known, 5.0, 5.0, 5.1, 5.2, 5.25), known, moment=0.0)


def test_each_key_has_a_rate_of_its_own() -> None:
    known = settings(rate="10/s", burst=1, key="tenant")
    mixed = [*deliveries(known, 5.0), *deliveries(known, 5.0, tenant="b")]

    check_rates(mixed, known, moment=0.0)


def test_a_rate_that_was_lowered_is_heeded_within_two_seconds() -> None:
    known = settings(rate="10/s", burst=1)
    known.pool(pool("web", rate="1/s", burst=1), 5.0)

    check_rates(deliveries(known, 6.0, 6.1, 6.2), known, moment=0.0)
    with pytest.raises(TooMany):
        check_rates(deliveries(known, 8.0, 8.1, 8.2), known, moment=0.0)


def test_a_bucket_that_was_made_smaller_owes_nothing_of_what_it_held() -> None:
    known = settings(rate="1/s", burst=3)
    known.pool(pool("web", rate="1/s", burst=1), 5.0)

    check_rates(deliveries(known, 4.0, 4.0, 4.0, 5.0, 8.1, 9.1, 10.1), known, moment=0.0)
    with pytest.raises(TooMany):
        check_rates(deliveries(known, 4.0, 4.0, 4.0, 5.0, 8.1, 9.1, 9.9), known, moment=0.0)


def test_what_is_stopped_is_known_with_its_end() -> None:
    known = settings()
    until = NOW + timedelta(seconds=3)
    known.store_pause(Pause("ops", "why", NOW, until), 2.0)

    assert known.stopped("orders", "web", clock=NOW, since=2.0) is not None
    assert known.stopped("orders", "web", clock=NOW, since=1.0) is None
    assert known.stopped("orders", "web", clock=until, since=9.0) is None


class Slots:
    """Nodes that send jobs of a lane without limits through a pool with these settings."""

    def __init__(self, **pool_settings: object) -> None:
        self.settings, self.at = settings(**pool_settings), 10.0
        model = Model()
        model.arrivals = {str(number): number for number in range(10)}
        self.check = Occupancy(self.settings, model, self.now, lambda: self.at)
        self.settings.lane(lane("orders", pool="web", max_in_flight=100), 0.0)

    def now(self) -> datetime:
        return NOW + timedelta(seconds=self.at)

    def asks(self, node: int) -> None:
        needs = [Need(Limit("lane", "orders")), Need(Limit("pool", "web"))]
        ttl = {"ttl": timedelta(seconds=5)}
        self.check.heard(Call("permit", (node, needs), ttl, None, {}, self.now(), self.at))

    def sends(self, node: int, job: int) -> None:
        self.check.begins(node, Envelope(id=str(job), number=1, lane="orders", attempt=1), sound=True)


def test_more_in_flight_than_slots_are_noticed_on_whichever_node() -> None:
    slots = Slots(max_in_flight=2)
    slots.asks(1)
    slots.asks(2)

    slots.sends(1, 1)
    slots.sends(2, 2)
    with pytest.raises(TooMany, match="3 in flight of pool/web"):
        slots.sends(1, 3)


def test_a_node_that_sends_without_having_asked_of_late_is_noticed() -> None:
    slots = Slots(max_in_flight=2)
    with pytest.raises(TooMany, match="no slots of lane/orders"):
        slots.sends(1, 1)
    slots.asks(1)
    slots.sends(1, 1)

    slots.at += 5
    with pytest.raises(TooMany, match="no slots of lane/orders"):
        slots.sends(1, 2)


def test_a_call_whose_lease_ended_meanwhile_is_not_counted_and_the_next_one_is() -> None:
    slots = Slots(max_in_flight=1)
    slots.asks(1)
    slots.sends(1, 1)
    slots.at += 5
    slots.asks(2)
    slots.asks(1)

    slots.sends(2, 2)
    with pytest.raises(TooMany, match="2 in flight of pool/web"):
        slots.sends(1, 3)


def test_what_began_while_there_was_no_limit_is_not_counted() -> None:
    slots = Slots(max_in_flight=None)
    slots.asks(1)
    slots.sends(1, 1)
    slots.settings.pool(pool("web", max_in_flight=1), slots.at)
    slots.at += 3

    slots.sends(1, 2)
    with pytest.raises(TooMany, match="2 in flight of pool/web"):
        slots.sends(1, 3)


def picture(*names: str) -> Words:
    """Return a group of pending jobs in that order."""
    model = Model()
    for number, name in enumerate(names, start=1):
        row = Live(number, 0, 7, 1, JobState.PENDING, 99, "g", None, NOW)
        model.put(number, Spot(row), at=0.0)
        model.facts[number] = Fact(name, 0, None, None, None)
        model.arrivals[name] = number
    return Words(model, settings())


def said(gate: Gate, *, job: str | None = None, until: datetime | None = None) -> Explanation:
    return Explanation(JobState.PENDING, gate, "", job=job, until=until)


def test_an_explanation_that_is_true_is_taken() -> None:
    words = picture("first", "second")

    words.said("first", said(Gate.DUE), clock=NOW, at=1.0)
    words.said("second", said(Gate.GROUP, job="first"), clock=NOW, at=1.0)


@pytest.mark.parametrize(
    ("job", "found"),
    [
        ("first", said(Gate.GROUP, job="second")),
        ("first", said(Gate.STORE)),
        ("first", None),
        ("first", Explanation(JobState.CLAIMED, Gate.LEASE, "")),
        ("second", said(Gate.DUE)),
        ("second", said(Gate.GROUP)),
        ("first", said(Gate.DUE, until=NOW + timedelta(seconds=1))),
    ],
)
def test_an_explanation_that_is_not_is_noticed(job: str, found: Explanation | None) -> None:
    words = picture("first", "second")

    with pytest.raises(WordBroken):
        words.said(job, found, clock=NOW, at=1.0)


def test_a_run_of_the_engine_does_not_depend_on_how_strings_are_hashed() -> None:
    script = (
        "from penstock.testing.sim.run import run_seed;"
        "print(*[run_seed(family, 3, engine=True).trace for family in ('live_config', 'pools', 'failover')])"
    )

    def other_process(hash_seed: str) -> str:
        environment = {**os.environ, "PYTHONHASHSEED": hash_seed}
        command = [sys.executable, "-c", script]
        return subprocess.run(command, env=environment, check=True, capture_output=True, text=True).stdout

    assert other_process("1") == other_process("2")
