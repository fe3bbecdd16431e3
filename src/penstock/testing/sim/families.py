"""Scenarios by family: small worlds, each drawn from a seed, that between them use all of the port.

A family fixes what is at stake (one hot group, executors that report, operators that meddle); the seed draws
the rest: how many jobs and nodes, sequences, modes, tenants, times. Those here are about the store and run on
the reference dispatcher and on the engine; `flow_families` has those that only an engine can pass.
"""

import random
from collections.abc import Mapping
from datetime import timedelta
from types import MappingProxyType
from typing import Final

from penstock.domain.ordering import Mode
from penstock.domain.states import Verb
from penstock.testing.sim.actors import LateOffer, Meddling
from penstock.testing.sim.faults import CallFault, Disaster, SinkFault
from penstock.testing.sim.flow_families import FLOW_FAMILIES
from penstock.testing.sim.scenario import LANE, Family, Scenario, Sketch

RARELY: Final = 1 / 50
THOUSANDS: Final = (2000, 2000, 3000, 10_000)
FAR_S: Final = 3600


def steady(rng: random.Random) -> Scenario:
    """Jobs without order, some of the future, of several tenants, from two producers."""
    sketch = Sketch(rng).lane(ordered=False, lookahead=rng.choice(("0s", "600ms")))
    jobs = [
        sketch.job(
            tenant=rng.choice((None, "a", "b", "c")),
            run_at=sketch.later(rng.random() * 6) if rng.random() < 0.3 else None,
            max_attempts=rng.choice((None, 1, 2)),
        )
        for _ in range(rng.randint(8, 16))
    ]
    half = len(jobs) // 2
    return sketch.scenario(
        sketch.offers(jobs[:half]), sketch.offers(jobs[half:]), nodes=rng.choice((2, 2, 3))
    )


def hot_group(rng: random.Random) -> Scenario:
    """One group that everything waits for, fed by two producers with sequences that overtake."""
    sketch = Sketch(rng).lane(loose=False, mode="block_on_error")
    mode = rng.choice((Mode.BLOCK_ON_ERROR, Mode.NEXT_ON_ERROR, None))
    jobs = [
        sketch.job(group="hot", sequence=rng.choice((99, 99, 50, rng.randint(1, 99))), mode=mode)
        for _ in range(rng.randint(6, 10))
    ]
    half = len(jobs) // 2
    return sketch.scenario(
        sketch.offers(jobs[:half]), sketch.offers(jobs[half:]), nodes=rng.choice((2, 2, 3))
    )


def late_commits(rng: random.Random) -> Scenario:
    """Jobs become visible long after they took their place in the order: others have gone by then, or not."""
    sketch = Sketch(rng).lane(loose=False, mode="block_on_error")
    mode = rng.choice((Mode.BLOCK_ON_ERROR, Mode.NEXT_ON_ERROR))
    jobs = [sketch.job(group=rng.choice("xy"), mode=mode) for _ in range(rng.randint(5, 8))]
    late = [
        LateOffer(
            rng.random() * 3,
            sketch.job(group=rng.choice("xy"), mode=mode, id=sketch.id(), sequence=rng.choice((99, 99, 50))),
            rng.random() * 3,
        )
        for _ in range(rng.randint(2, 5))
    ]
    return sketch.scenario(sketch.offers(jobs), late=late)


def recovery_probe(rng: random.Random) -> Scenario:
    """Work that is out for a while, probed when its holder or executor falls silent, let go by hand."""
    sketch = Sketch(rng).lane(
        complete_on="reported",
        on_unknown=rng.choice(("requeue", "hold")),
        max_recoveries=rng.choice((1, 3)),
    )
    jobs = [
        sketch.job(group=rng.choice("xy"), mode=rng.choice((Mode.BLOCK_ON_ERROR, Mode.IMMEDIATE)))
        for _ in range(rng.randint(6, 10))
    ]
    how = Meddling(every=timedelta(milliseconds=500), verbs=(Verb.RELEASE, Verb.RETRY), edits=0.5)
    return sketch.scenario(sketch.offers(jobs), nodes=rng.choice((2, 2, 3)), meddling=rng.choice((None, how)))


def herd(rng: random.Random) -> Scenario:
    """All is due in the same moment, and there is more of it than a claim takes."""
    sketch = Sketch(rng).lane(ordered=rng.random() < 0.5, batch_size=3)
    at = sketch.later(2)
    jobs = [
        sketch.job(
            run_at=at,
            tenant=rng.choice((None, "a", "b")),
            group=rng.choice("pqrst"),
            mode=rng.choice((Mode.IMMEDIATE, Mode.NEXT_ON_ERROR)) if sketch.ordered() else Mode.IMMEDIATE,
        )
        for _ in range(rng.randint(12, 20))
    ]
    return sketch.scenario(sketch.offers(jobs, within=1.5, together=6), nodes=3, duration=5.0)


def many_groups(rng: random.Random) -> Scenario:
    """Many groups, now and then thousands, most of them blocked, paused or of the future, and one free."""
    sketch = Sketch(rng).lane(loose=False, mode="block_on_error", retry='["0s"]', batch_size=2)
    names = [f"g{number:02}" for number in range(rng.randint(6, 12))]
    jobs = []
    for name in names:
        run_at = sketch.later(rng.random() * 5) if rng.random() < 0.3 else None
        jobs += [sketch.job(group=name, run_at=run_at, tenant=rng.choice((None, "a", "b")))]
        jobs += [sketch.job(group=name) for _ in range(rng.randint(0, 2))]
    rng.shuffle(jobs)
    crowd = []  # thousands at times, each with a head of the future, and some with what is due behind it
    for number in range(rng.choice(THOUSANDS) if rng.random() < RARELY else 0):
        crowd.append(sketch.job(group=f"far{number:04}", run_at=sketch.later(FAR_S)))
        crowd += [sketch.job(group=f"far{number:04}")] if rng.random() < 0.1 else []
    return sketch.scenario(
        sketch.offers(jobs, together=4),
        sketch.offers(crowd, within=0.5, together=2000),
        sends={SinkFault.REFUSE: 0.2},
        meddling=Meddling(every=timedelta(seconds=1), verbs=(Verb.SKIP,), groups=[(LANE, n) for n in names]),
    )


def mode_mix(rng: random.Random) -> Scenario:
    """Jobs of all three modes share groups; some die, and who waits for them depends on who waits."""
    sketch = Sketch(rng).lane(retry=rng.choice(('["0s"]', '["0s","300ms"]')))
    jobs = [
        sketch.job(
            group=rng.choice(("x", "x", "y", None)),
            mode=rng.choice(list(Mode)),
            sequence=rng.choice((99, 99, rng.randint(0, 200))),
            run_at=sketch.later(rng.random() * 5) if rng.random() < 0.2 else None,
        )
        for _ in range(rng.randint(8, 14))
    ]
    half = len(jobs) // 2
    return sketch.scenario(
        sketch.offers(jobs[:half]), sketch.offers(jobs[half:]), sends={SinkFault.REFUSE: 0.15}
    )


def runs(rng: random.Random) -> Scenario:
    """A sink that keeps order itself: runs of a group are claimed together, sent in order, partly settled."""
    sketch = Sketch(rng).lane(
        loose=False,
        mode="block_on_error",
        hold_until="sent",
        complete_on=rng.choice(("sent", "reported")),
        retry='["0s","300ms"]',
    )
    modes = rng.choice(((None,), (Mode.NEXT_ON_ERROR,), (Mode.NEXT_ON_ERROR, Mode.BLOCK_ON_ERROR)))
    jobs = [
        sketch.job(
            group=rng.choice("xxy"),
            sequence=rng.choice((99, 99, 99, rng.randint(90, 110))),
            mode=rng.choice(modes),
        )
        for _ in range(rng.randint(8, 14))
    ]
    faults = {SinkFault.ERROR: 0.1, SinkFault.REFUSE: 0.05}
    return sketch.scenario(sketch.offers(jobs, within=4), sends=faults)


def zombies(rng: random.Random) -> Scenario:
    """Nodes sleep through their leases and wake up in the middle of what they were doing."""
    sketch = Sketch(rng).lane(
        complete_on=rng.choice(("sent", "reported")),
        on_unknown=rng.choice(("requeue", "hold")),
        ack_timeout="1s",
    )
    jobs = [
        sketch.job(group=rng.choice("xyz"), mode=rng.choice((Mode.NEXT_ON_ERROR, Mode.IMMEDIATE)))
        for _ in range(rng.randint(6, 10))
    ]
    return sketch.scenario(
        sketch.offers(jobs),
        nodes=3,
        calls={CallFault.PAUSE_BEFORE: 0.02, CallFault.PAUSE_AFTER: 0.03},
        disasters={Disaster.PAUSE: 0.5},
    )


def reports(rng: random.Random) -> Scenario:
    """Executors report early, late, twice or never, while nodes settle the same jobs."""
    sketch = Sketch(rng).lane(complete_on="reported", max_recoveries=rng.choice((0, 2)), ack_timeout="1s")
    jobs = [
        sketch.job(group=rng.choice("xyz"), mode=rng.choice((Mode.NEXT_ON_ERROR, Mode.IMMEDIATE)))
        for _ in range(rng.randint(8, 12))
    ]
    return sketch.scenario(sketch.offers(jobs), sends={SinkFault.HANG: 0.15})


def keys(rng: random.Random) -> Scenario:
    """Producers use the same few keys, for the same payload or another, while jobs end and keys expire."""
    sketch = Sketch(rng).lane(ordered=False, key_ttl=rng.choice(("500ms", "3s")))
    producers = []
    for _ in range(3):
        jobs = []
        for _ in range(rng.randint(3, 6)):
            key = rng.choice((None, "k1", "k2", "k3"))
            own = {"id": sketch.id()} if rng.random() < 0.3 else {}
            same = {"payload": f'{{"for": "{key}"}}'} if key and rng.random() < 0.7 else {}
            jobs.append(sketch.job(key=key, **own, **same))
        producers.append(sketch.offers(jobs, together=2))
    return sketch.scenario(*producers, housekeeping=timedelta(seconds=1))


def verbs(rng: random.Random) -> Scenario:
    """Operators do everything to every job at any time."""
    sketch = Sketch(rng).lane(
        complete_on=rng.choice(("sent", "reported")), on_unknown=rng.choice(("requeue", "hold"))
    )
    jobs = [
        sketch.job(group=rng.choice("xy"), mode=rng.choice(list(Mode)), sequence=rng.choice((50, 99)))
        for _ in range(rng.randint(6, 10))
    ]
    groups = [(LANE, "x"), (LANE, "y")]
    how = Meddling(every=timedelta(milliseconds=300), edits=0.25, groups=groups)
    return sketch.scenario(sketch.offers(jobs, within=3), sends={SinkFault.REFUSE: 0.1}, meddling=how)


def dead_letters(rng: random.Random) -> Scenario:
    """Many jobs die; operators replay, skip, cancel and settle them while their groups wait."""
    sketch = Sketch(rng).lane(
        loose=False, mode="block_on_error", retry=rng.choice(('["0s"]', '["0s","200ms"]'))
    )
    jobs = [sketch.job(group=rng.choice("xyz")) for _ in range(rng.randint(6, 12))]
    how = Meddling(
        every=timedelta(milliseconds=400),
        verbs=(Verb.RETRY, Verb.RETRY, Verb.SKIP, Verb.CANCEL, Verb.SETTLE_SUCCEEDED),
        edits=0.2,
    )
    faults = {SinkFault.REFUSE: 0.25, SinkFault.ERROR: 0.15}
    return sketch.scenario(sketch.offers(jobs, within=4), sends=faults, meddling=how)


def retention(rng: random.Random) -> Scenario:
    """Deadlines pass, days pass, and housekeeping drops what is over while the rest goes on."""
    sketch = Sketch(rng).lane(
        dead_retention=rng.choice(("1s", "4s")), key_ttl="1s", retention="1d", retry='["0s","300ms"]'
    )
    jobs = [
        sketch.job(
            group=rng.choice("xy"),
            mode=rng.choice(list(Mode)),
            start_by=sketch.later(rng.random() * 5) if rng.random() < 0.5 else None,
            key=rng.choice((None, "k1", "k2")),
        )
        for _ in range(rng.randint(8, 12))
    ]
    days = [(rng.uniform(2, 5), timedelta(hours=rng.choice((1, 23, 30)))) for _ in range(rng.randint(0, 2))]
    return sketch.scenario(
        sketch.offers(jobs),
        sends={SinkFault.REFUSE: 0.2},
        housekeeping=timedelta(milliseconds=500),
        steps=days,
    )


_ALL: Final = (
    steady, herd, hot_group, late_commits, many_groups, mode_mix, runs, recovery_probe, zombies, reports,
    keys, verbs, dead_letters, retention,
)  # fmt: skip
STORE_FAMILIES: Final[Mapping[str, Family]] = MappingProxyType({family.__name__: family for family in _ALL})
FAMILIES: Final[Mapping[str, Family]] = MappingProxyType({**STORE_FAMILIES, **FLOW_FAMILIES})
