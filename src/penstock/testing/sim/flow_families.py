"""Scenarios that only an engine can pass: limits, changing settings, times, targets, stops and starts."""

import random
from collections.abc import Mapping
from datetime import timedelta
from types import MappingProxyType
from typing import Any, Final

from penstock.domain.ordering import Mode
from penstock.domain.states import Verb
from penstock.domain.targets import target_of
from penstock.testing.sim.actors import Meddling
from penstock.testing.sim.faults import CRASHES, ERRORS, PAUSES, CallFault, Disaster, SinkFault
from penstock.testing.sim.scenario import LANE, Family, Scenario, Sketch, Stop
from penstock.testing.sim.sink import Spell
from penstock.testing.sim.tuning import Tuning

POOL: Final = "web"
_TARGETS: Final = ("http://one.test/hook", "http://two.test:8080/hook")
_CLOCK: Final = (Disaster.STORE_CLOCK_STEP,)
_LOST: Final = (CallFault.TIMEOUT_BEFORE, CallFault.TIMEOUT_AFTER, CallFault.LATE_COMMIT, CallFault.LOCKED)
_STORE: Final = (*ERRORS, *_LOST, Disaster.CUT, Disaster.OUTAGE)


def pools(rng: random.Random) -> Scenario:
    """Lanes of several weights share a pool with a limit per key, and there is more than it lets through."""
    sketch = Sketch(rng)
    rate, slots = rng.choice((("4/s", None), ("10/s", 2), (None, 1), (None, 2), ("5/s", 1)))
    key = rng.choice((None, "tenant", "group", "target"))
    sketch.pool(POOL, rate=rate, burst=rng.choice((None, 1, 2, 4)), max_in_flight=slots, key=key)
    names = ("orders", "mail", "bulk")[: rng.randint(1, 3)]
    for name in names:
        sketch.lane(
            name,
            pool=POOL,
            weight=rng.choice((1, 1, 3)),
            batch_size=rng.choice((2, 4, 8)),
            lookahead=rng.choice(("0s", "0s", "2s")),
            rate=rng.choice((None, None, "6/s")),
            max_in_flight=rng.choice((200, 200, 2)),
            complete_on=rng.choice(("sent", "sent", "reported")),
        )
    jobs = [
        sketch.job(
            rng.choice(names),
            tenant=rng.choice((None, "a", "a", "b")),
            group=rng.choice("xy"),
            mode=rng.choice((Mode.IMMEDIATE, Mode.IMMEDIATE, Mode.NEXT_ON_ERROR)),
            target=rng.choice(_TARGETS),
        )
        for _ in range(rng.randint(10, 24))
    ]
    return sketch.scenario(
        sketch.offers(jobs, within=3, together=6), nodes=rng.choice((1, 2, 3)), sends={SinkFault.HANG: 0.05}
    )


def live_config(rng: random.Random) -> Scenario:
    """Somebody changes every setting, pauses this and that, pulls the kill switch, and lets all go again."""
    key = rng.choice((None, "tenant"))
    sketch = Sketch(rng).pool(POOL, rate=rng.choice((None, "8/s")), burst=3, max_in_flight=4, key=key)
    sketch.lane(pool=POOL, mode=rng.choice(("immediate", "block_on_error")))
    sketch.lane("mail", complete_on=rng.choice(("sent", "reported")), lookahead="2s")
    jobs = [
        sketch.job(
            rng.choice((LANE, "mail")),
            tenant=rng.choice((None, "a", "b")),
            group=rng.choice("xy"),
            mode=rng.choice((None, Mode.IMMEDIATE, Mode.NEXT_ON_ERROR)),
            run_at=sketch.later(rng.random() * 6) if rng.random() < 0.4 else None,
            pool=POOL if rng.random() < 0.1 else None,
        )
        for _ in range(rng.randint(10, 18))
    ]
    how = Tuning(
        every=timedelta(milliseconds=rng.choice((250, 600))),
        lanes=(LANE, "mail"),
        pools=(POOL,),
        groups=((LANE, "x"), ("mail", "y")),
    )
    return sketch.scenario(sketch.offers(jobs, within=5), nodes=rng.choice((1, 2, 3)), tuning=how)


def failover(rng: random.Random) -> Scenario:
    """Nodes are stopped and started under load, leaders are lost, whole fleets restart in haste."""
    slow = rng.random() < 0.4
    sketch = Sketch(rng).lane(
        lookahead=rng.choice(("0s", "3s")),
        timeout="5s" if slow else "800ms",
        lease="6s" if slow else "2s",
        complete_on=rng.choice(("sent", "reported")),
        on_unknown=rng.choice(("requeue", "requeue", "hold")),
    )
    jobs = [
        sketch.job(
            group=rng.choice("xyz"),
            mode=rng.choice((Mode.IMMEDIATE, Mode.IMMEDIATE, Mode.BLOCK_ON_ERROR)),
            run_at=sketch.later(rng.random() * 8) if rng.random() < 0.4 else None,
        )
        for _ in range(rng.randint(10, 18))
    ]
    nodes = rng.choice((2, 3))
    stops = [
        Stop(
            rng.uniform(0.3, 5),
            rng.choice("abc"[:nodes]),
            rng.choice((None, None, rng.uniform(0, 2))),
            rng.uniform(0.1, 2),
        )
        for _ in range(rng.randint(2, 5))
    ]
    return sketch.scenario(
        sketch.offers(jobs, within=5),
        nodes=nodes,
        stops=stops,
        sends={SinkFault.HANG: 0.2, SinkFault.TIMEOUT_AFTER_ACCEPT: 0.1},
        disasters=rng.choice(({}, {Disaster.CRASH: 0.3}, {Disaster.STORM: 0.15})),
        spared=rng.choice(((), (*_STORE, *CRASHES, *PAUSES, Disaster.PAUSE, Disaster.BUSY))),
        options={"standby": rng.random() < 0.3},
    )


def lookahead(rng: random.Random) -> Scenario:
    """What is due soon is claimed before its time and fired at its moment, never early."""
    sketch = Sketch(rng).lane(
        lookahead=rng.choice(("1s", "3s", "5s")),
        jitter=rng.choice(("0s", "0s", "300ms")),
        batch_size=rng.choice((4, 12)),
    )
    herd_at = sketch.later(rng.uniform(2, 5))
    jobs = [
        sketch.job(
            group=rng.choice("xyz"),
            mode=rng.choice((Mode.IMMEDIATE, Mode.IMMEDIATE, Mode.NEXT_ON_ERROR)),
            run_at=herd_at if rng.random() < 0.4 else sketch.later(rng.random() * 8),
        )
        for _ in range(rng.randint(10, 20))
    ]
    how = Meddling(
        every=timedelta(milliseconds=500), verbs=(Verb.CANCEL, Verb.HOLD, Verb.RELEASE, Verb.RETRY)
    )
    return sketch.scenario(
        sketch.offers(jobs, within=3),
        nodes=rng.choice((1, 2, 2)),
        duration=7.0,
        meddling=rng.choice((None, how)),
        spared=rng.choice(((), (*_CLOCK, *_STORE), _CLOCK)),
        sends=rng.choice(({}, {SinkFault.LATE: 0.5})),
    )


def deadlines(rng: random.Random) -> Scenario:
    """Jobs that are worth nothing after their time, in lanes that fall behind."""
    sketch = Sketch(rng).lane(
        rate=rng.choice((None, "3/s")),
        misfire=rng.choice(("send_now", "skip_after(1s)", "skip_after(2s)")),
        lookahead=rng.choice(("0s", "1s")),
        mode=rng.choice(("immediate", "block_on_error")),
    )
    jobs = []
    for _ in range(rng.randint(10, 18)):
        at = rng.random() * 5 if rng.random() < 0.5 else None
        by = (at or 0.0) + rng.uniform(0.2, 4) if rng.random() < 0.5 else None
        jobs.append(
            sketch.job(
                group=rng.choice("xyz"),
                run_at=None if at is None else sketch.later(at),
                start_by=None if by is None else sketch.later(by),
            )
        )
    spells = [Spell(None, 1.0, rng.uniform(1.5, 4), SinkFault.THROTTLE)] if rng.random() < 0.4 else []
    return sketch.scenario(
        sketch.offers(jobs, within=4),
        nodes=rng.choice((1, 2)),
        spells=spells,
        spared=rng.choice(((), _CLOCK)),
    )


def breakers(rng: random.Random) -> Scenario:
    """One target fails, or asks to be left alone, and comes back; the other one must not notice."""
    sketch = Sketch(rng).lane(
        retry='["0s","200ms","300ms","400ms","500ms","600ms","700ms","800ms"]', target=_TARGETS[0]
    )
    jobs = [
        sketch.job(
            group=rng.choice("xyz"),
            mode=rng.choice((Mode.IMMEDIATE, Mode.IMMEDIATE, Mode.NEXT_ON_ERROR)),
            target=rng.choice((None, *_TARGETS)),
        )
        for _ in range(rng.randint(12, 22))
    ]
    troubles = (SinkFault.ERROR, SinkFault.ERROR, SinkFault.THROTTLE, SinkFault.TIMEOUT_AFTER_ACCEPT, None)
    first = rng.uniform(0.2, 1.5)
    spells = [Spell(_TARGETS[0], first, first + rng.uniform(1, 5), rng.choice(troubles))]
    if rng.random() < 0.15:
        spells.append(Spell(None, 0.0, rng.uniform(0.5, 3), None))
    options: dict[str, Any] = {
        "trip_after": rng.choice((2, 4)),
        "open_for": timedelta(seconds=rng.choice((1, 3))),
    }
    return sketch.scenario(
        sketch.offers(jobs, within=5),
        nodes=rng.choice((1, 2, 3)),
        spells=spells,
        options=options,
        duration=7.0,
        spared=rng.choice(((), (*_CLOCK, *_STORE))),
    )


def holds(rng: random.Random) -> Scenario:
    """Work that must not repeat, with sinks that lose their answers and nodes that die in the middle."""
    sketch = Sketch(rng).lane(
        on_unknown="hold",
        complete_on=rng.choice(("sent", "reported")),
        lookahead=rng.choice(("0s", "1s")),
        max_recoveries=rng.choice((1, 3)),
    )
    jobs = [
        sketch.job(
            group=rng.choice("xy"),
            mode=rng.choice((Mode.IMMEDIATE, Mode.NEXT_ON_ERROR)),
            run_at=sketch.later(rng.random() * 5) if rng.random() < 0.3 else None,
        )
        for _ in range(rng.randint(8, 14))
    ]
    how = Meddling(every=timedelta(milliseconds=600), verbs=(Verb.RELEASE, Verb.RETRY, Verb.SETTLE_SUCCEEDED))
    return sketch.scenario(
        sketch.offers(jobs),
        nodes=rng.choice((2, 3)),
        meddling=rng.choice((None, how)),
        sends={SinkFault.TIMEOUT_AFTER_ACCEPT: 0.1, SinkFault.HANG: 0.1},
        disasters={Disaster.CRASH: 0.4},
    )


def crowd(rng: random.Random) -> Scenario:
    """A great many groups, most of them with nothing to do, some busy, one of them blocked."""
    sketch = Sketch(rng).lane(mode="block_on_error", batch_size=rng.choice((8, 16)), retry='["0s","300ms"]')
    names = [f"g{number:03}" for number in range(rng.randint(30, 60))]
    jobs = [sketch.job(group=name) for name in names]
    jobs += [sketch.job(group=rng.choice(names[:10])) for _ in range(10)]
    rng.shuffle(jobs)
    return sketch.scenario(
        sketch.offers(jobs, within=3, together=12),
        nodes=rng.choice((2, 3)),
        duration=5.0,
        sends={SinkFault.REFUSE: 0.03},
    )


def closures(rng: random.Random) -> Scenario:
    """Somebody closes targets and opens them again, and has nodes drain, now this one, now that."""
    sketch = Sketch(rng).lane(target=_TARGETS[0], mode=rng.choice(("immediate", "block_on_error")))
    jobs = [
        sketch.job(
            group=rng.choice("xyz"),
            mode=rng.choice((None, Mode.IMMEDIATE, Mode.NEXT_ON_ERROR)),
            target=rng.choice((None, *_TARGETS)),
            run_at=sketch.later(rng.random() * 6) if rng.random() < 0.3 else None,
        )
        for _ in range(rng.randint(10, 18))
    ]
    how = Tuning(
        every=timedelta(milliseconds=rng.choice((250, 600))),
        lanes=(LANE,),
        store=False,
        targets=[target_of(url) or "" for url in _TARGETS],
        drains=True,
    )
    return sketch.scenario(sketch.offers(jobs, within=5), nodes=rng.choice((1, 2, 3)), tuning=how)


def divided(rng: random.Random) -> Scenario:
    """Every node serves some of the lanes, which share a pool; the leader recovers them all."""
    sketch = Sketch(rng).pool(
        POOL,
        rate=rng.choice((None, None, "10/s")),
        max_in_flight=rng.choice((None, 2, 4)),
        key=rng.choice((None, "tenant", "target")),
    )
    lanes, nodes = ("orders", "mail", "bulk"), "abc"[: rng.choice((2, 3, 3))]
    for name in lanes:
        sketch.lane(
            name,
            sink=name,
            pool=rng.choice((None, POOL)),
            lookahead=rng.choice(("0s", "0s", "2s")),
            complete_on=rng.choice(("sent", "sent", "reported")),
            on_unknown=rng.choice(("requeue", "hold")),
        )
    served = {node: {rng.choice(lanes)} for node in nodes}
    for name in lanes:
        served[rng.choice(nodes)].add(name)
    jobs = [
        sketch.job(
            rng.choice(lanes),
            tenant=rng.choice((None, "a", "b")),
            group=rng.choice("xy"),
            mode=rng.choice((Mode.IMMEDIATE, Mode.IMMEDIATE, Mode.BLOCK_ON_ERROR)),
            target=rng.choice(_TARGETS),
            run_at=sketch.later(rng.random() * 6) if rng.random() < 0.3 else None,
            pool=POOL if rng.random() < 0.1 else None,
        )
        for _ in range(rng.randint(10, 20))
    ]
    return sketch.scenario(
        sketch.offers(jobs, within=4),
        nodes=len(nodes),
        served={node: sorted(names) for node, names in served.items()},
        spells=[Spell(None, rng.uniform(0, 3), rng.uniform(3, 6), None)] if rng.random() < 0.3 else [],
        sends={SinkFault.HANG: 0.1, SinkFault.TIMEOUT_AFTER_ACCEPT: 0.05},
        disasters=rng.choice(({}, {Disaster.CRASH: 0.3}, {Disaster.CRASH: 0.6})),
    )


def squeezed(rng: random.Random) -> Scenario:
    """A pool with few slots gets fewer, and more, while every node has more to send than it may.

    A step of the store's clock would end leases of slots that are in use: without it the count is exact.
    """
    sketch = Sketch(rng).pool(POOL, max_in_flight=rng.choice((2, 3, 4)), key=rng.choice((None, "tenant")))
    lanes = ("orders", "mail")[: rng.randint(1, 2)]
    for name in lanes:
        sketch.lane(name, pool=POOL, batch_size=rng.choice((4, 8)))
    jobs = [
        sketch.job(rng.choice(lanes), tenant=rng.choice((None, "a")), mode=Mode.IMMEDIATE)
        for _ in range(rng.randint(20, 40))
    ]
    how = Tuning(
        every=timedelta(seconds=rng.choice((1, 3))), lanes=lanes, pools=(POOL,), store=False, slots=(1, 2, 3)
    )
    return sketch.scenario(
        sketch.offers(jobs, within=3, together=8),
        nodes=rng.choice((2, 2, 3)),
        tuning=how,
        sends={SinkFault.LATE: 0.7},
        spared=rng.choice((_CLOCK, (*_CLOCK, *_STORE, *CRASHES))),
    )


def raised(rng: random.Random) -> Scenario:
    """A pool lets a key go every few seconds, so that jobs are put back, and then more often.

    A step of the store's clock, back and forth, would mint a token that nobody could account for.
    """
    key = rng.choice(("tenant", "target"))
    sketch = Sketch(rng).pool(POOL, rate=rng.choice(("10/m", "20/m")), burst=1, key=key)
    lanes = ("orders", "mail")[: rng.randint(1, 2)]
    for name in lanes:
        sketch.lane(name, pool=POOL, mode=rng.choice(("immediate", "immediate", "block_on_error")))
    jobs = [
        sketch.job(rng.choice(lanes), tenant=rng.choice("ab"), group=rng.choice("xyz"), target=_TARGETS[0])
        for _ in range(rng.randint(5, 10))
    ]
    how = Tuning(every=timedelta(seconds=rng.choice((1, 2))), lanes=lanes, pools=(POOL,), store=False)
    return sketch.scenario(
        sketch.offers(jobs, within=2, together=4), nodes=rng.choice((1, 2, 3)), tuning=how, spared=_CLOCK
    )


_ALL: Final = (
    pools, live_config, failover, lookahead, deadlines, breakers, holds, crowd, closures, divided, squeezed,
    raised,
)  # fmt: skip
FLOW_FAMILIES: Final[Mapping[str, Family]] = MappingProxyType({family.__name__: family for family in _ALL})
