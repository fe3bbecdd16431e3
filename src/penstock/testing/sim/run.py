"""One seed, one run: a family's scenario, its faults, then calm, and all has to have come out right."""

import asyncio
import random
from collections import Counter
from collections.abc import Callable, Sequence
from contextvars import Context
from dataclasses import dataclass, field, replace
from datetime import timedelta
from functools import partial
from math import inf
from typing import Final

from penstock.domain.gates import Explanation
from penstock.domain.job import Live, NewJob
from penstock.domain.ulid import Ulids
from penstock.explain import explain
from penstock.ports.store import Store
from penstock.testing.invariants.afterwards import check_afterwards
from penstock.testing.invariants.conduct import Clocks, Conduct
from penstock.testing.invariants.facts import Ledger, Log, Stuck
from penstock.testing.invariants.model import Model
from penstock.testing.invariants.rates import check_rates
from penstock.testing.invariants.watch import Watch
from penstock.testing.invariants.words import Words
from penstock.testing.sim.actors import Executors, LateWriter, Offer, commit_late, meddle, produce
from penstock.testing.sim.asking import ask
from penstock.testing.sim.bed import Bed, shared_bed
from penstock.testing.sim.dispatcher import Dispatcher
from penstock.testing.sim.engine import OPTIONS, Engine
from penstock.testing.sim.families import FAMILIES, STORE_FAMILIES
from penstock.testing.sim.faults import PAUSES, Disaster, FaultPlan, Port
from penstock.testing.sim.node import NodeEnv
from penstock.testing.sim.patrol import Patrol
from penstock.testing.sim.recovery import Recovery
from penstock.testing.sim.scenario import Scenario, Stop, draw_plan
from penstock.testing.sim.sink import Message, SimSink
from penstock.testing.sim.tuning import tune
from penstock.testing.sim.world import START, Main, Overdue, World

RECOVER_EVERY: Final = timedelta(seconds=1.5)
CALM: Final = timedelta(seconds=60)
REST: Final = timedelta(seconds=180)  # an executor that went silent is waited for, or a pool that is slow
DRIFT: Final = timedelta(milliseconds=100)
FAR: Final = timedelta(seconds=90)
LOOK_EVERY_S: Final = 0.5
SETTLED_S: Final = 2.0
SLOT_S: Final = 0.01
NODES: Final = "abcde"
ASKED: Final = 0.3
MAX_SPIN: Final = 10_000


@dataclass(frozen=True, slots=True)
class Result:
    """What a run that held all promises was like; calls are those made while there were faults."""

    family: str
    seed: int
    trace: str
    jobs: int
    deliveries: int
    stale: int
    store_calls: int
    network_calls: int
    steps: int


@dataclass(slots=True)
class Run:
    """Everything of one run."""

    world: World
    scenario: Scenario
    watch: Watch
    conduct: Conduct
    patrol: Patrol
    words: Words
    bed: Bed
    store: Store
    ledger: Ledger
    log: Log
    sink: SimSink
    engine: bool = False
    calls: Counter[Port] = field(default_factory=Counter)

    def start(self) -> None:
        """Start all nodes."""
        for name in NODES[: self.scenario.nodes]:
            self.world.spawn_node(name, self._node)
        for number, offers in enumerate(self.scenario.producers):
            self.world.spawn_node(f"producer{number}", self._producer(offers))
        if self.scenario.late:
            self.world.spawn_node("late", self._late_producer)
        if self.sink.reported:
            self.world.spawn_node("executors", self._executors)
        if self.scenario.meddling is not None:
            self.world.spawn_node("operators", self._operators)
        if self.scenario.tuning is not None:
            self.world.spawn_node("tuners", self._tuners)
        for at, step in self.scenario.steps:
            self.world.loop.call_later(at, self.world.step_clock, None, step)
        for stop in self.scenario.stops:
            self.world.loop.call_later(stop.at, self._ask_to_stop, stop)
        if self.engine:
            self.watch.listeners.append(self.conduct.heard)
            self._look_around()
            if self.world.stream("asking").random() < ASKED:
                self.watch.listeners.append(self.words.heard)
                self.world.spawn_node("curious", self._curious)

    def finish(self) -> None:
        """Run through the troubles, then until all is quiet, and judge."""
        self.world.run(until=timedelta(seconds=self.scenario.duration))
        self.calls = self.world.calls.copy()
        self.world.stop_faults()
        self.sink.calm, self.patrol.calm_since = True, self.world.loop.time()
        try:
            self.world.run_until(self.quiet, timeout=REST, every=timedelta(milliseconds=500))
        except Overdue as error:
            raise Stuck("not at rest long after the last fault", jobs=self._restless()) from error
        self.watch.check_whole()
        known = self.watch.model.arrivals
        dropped = {id_ for id_, arrival in known.items() if arrival not in self.watch.tables.facts}
        # A clock that was set back makes what was claimed in time arrive early.
        slack = CALM if Disaster.STORE_CLOCK_STEP in self.world.plan.disasters else DRIFT
        retries = self.watch.settings.retries
        check_afterwards(
            self.ledger, self.log, self.store, ids=known, dropped=dropped, slack=slack, retries=retries
        )
        if self.engine:
            check_rates(self.log.deliveries, self.watch.settings, moment=5 * self.conduct.leg + SLOT_S)

    def quiet(self) -> bool:
        """Say whether all is answered and every job has ended or may stay where it is."""
        self.patrol.check_nothing_waits()
        early = all(offer.answered for offers in self.scenario.producers for offer in offers)
        return early and all(offer.answered for offer in self.scenario.late) and not self._restless()

    def _restless(self) -> list[Live]:
        model, horizon = self.watch.model, self.world.store_clock.now() + FAR
        live = (spot for spot in model.spots.values() if spot.finished_at is None)
        return [spot.job for spot in live if not model.parked(spot, horizon=horizon)]

    def _look_around(self) -> None:
        """Check now and then what has to hold at any time."""
        try:
            self.patrol.round()
            if self.patrol.calm_since is not None:
                ask, quiet, clock = (
                    partial(explain, self.store),
                    self.patrol.quiet_since,
                    self.world.store_clock.now(),
                )
                self.words.check_kept(ask, quiet_since=quiet + SETTLED_S, clock=clock)
        except Exception as error:  # noqa: BLE001 - raised by `run`
            self.world.fail(error)
        self.world.loop.call_later(LOOK_EVERY_S, self._look_around, context=Context())

    async def _node(self, env: NodeEnv) -> None:
        if self.engine:
            housekeeping = self.scenario.housekeeping or OPTIONS.housekeep_every
            options = replace(OPTIONS, name=env.id, housekeep_every=housekeeping, **self.scenario.options)
            if env.name in self.scenario.served:
                options = replace(options, lanes=self.scenario.lanes_of(env.name))
            await Engine(self.watch.store, self.sink, self._row, self.conduct, options).run(env)
            self.conduct.judged(lambda: self.patrol.check_left(env, grace=options.grace))
            return
        node = Dispatcher(env, self.watch.store, self.sink, self.scenario.terms)
        recovery = Recovery(node, RECOVER_EVERY, self.scenario.housekeeping)
        async with asyncio.TaskGroup() as tasks:
            await node.dispatch(tasks)
            await recovery.run(tasks)

    def _ask_to_stop(self, stop: Stop) -> None:
        if stop.node in self.world.up():
            self.world.ask_to_stop(stop.node)
            env = self.world.node(stop.node)
            if stop.again_after is not None:
                self.world.loop.call_later(stop.again_after, self._insist, env)
            self._start_again(env, stop)

    def _insist(self, env: NodeEnv) -> None:
        if self.world.find(env.id) is env:
            self.world.ask_to_stop(env.name)

    def _start_again(self, env: NodeEnv, stop: Stop) -> None:
        """Start the node again some time after it has left; one that crashed comes back by itself."""
        if self.world.find(env.id) is env:
            self.world.loop.call_later(LOOK_EVERY_S, self._start_again, env, stop)
        else:
            self.world.loop.call_later(stop.back_after, self._bring_back, env)

    def _bring_back(self, env: NodeEnv) -> None:
        """Start the node anew, unless somebody else has, or will: it may have been asked to stop twice."""
        if self.world.node(env.name) is env and not self.world.returns(env.name):
            self.world.restart(env.name)

    async def _late_producer(self, env: NodeEnv) -> None:
        def write(arrival: int, job: NewJob) -> object:
            return self.watch.around("enqueue", lambda _: self.bed.write_late(arrival, job), ([job],), {})

        writer = LateWriter(self.bed.reserve, write)
        await commit_late(env, writer, self.ledger, self.scenario.late)

    async def _executors(self, env: NodeEnv) -> None:
        await Executors(env, self.watch.store, self.sink, self.scenario.terms, self._row).run()

    async def _operators(self, env: NodeEnv) -> None:
        how, until = self.scenario.meddling, self.scenario.duration
        assert how is not None
        await meddle(env, self.watch.store, lambda: list(self.ledger.accepted), how, until=until)

    async def _tuners(self, env: NodeEnv) -> None:
        assert self.scenario.tuning is not None
        await tune(env, self.watch.store, self.scenario.tuning, until=self.scenario.duration)

    async def _curious(self, env: NodeEnv) -> None:
        def heard(job_id: str, found: Explanation | None) -> None:
            now, at = self.world.store_clock.now(), self.world.loop.time()
            self.conduct.judged(lambda: self.words.said(job_id, found, clock=now, at=at))

        await ask(env, self.store, lambda: list(self.ledger.accepted), heard)

    def _producer(self, offers: Sequence[Offer]) -> Main:
        return lambda env: produce(env, self.watch.store, self.ledger, offers)

    def _row(self, job_id: str) -> Live | None:
        spot = self.watch.model.spots.get(self.watch.model.arrivals.get(job_id, 0))
        return spot.job if spot is not None else None


def run_seed(
    family: str,
    seed: int,
    *,
    bed: Bed | None = None,
    pauses: bool = True,
    blind: bool = False,
    engine: bool = False,
) -> Result:
    """Run one seed of a family; raise what went wrong, with the world's report attached.

    Nodes are the small reference dispatcher, which strains the store, or the real `engine`.

    Without `pauses` no node is ever frozen: there are errors and crashes, but no zombies. A `blind` run is
    judged from outside alone: ledger, log, the store's port, and whether it comes to rest.
    """
    if not engine and family not in STORE_FAMILIES:
        raise ValueError(f"{family} is about the engine: run it without --reference")
    rng = random.Random(f"{family}/{seed}")  # noqa: S311 - it has to be repeatable
    scenario = FAMILIES[family](rng)
    plan = draw_plan(rng, scenario)
    plan = plan if pauses else plan.without(*PAUSES, Disaster.PAUSE, Disaster.BUSY)
    return run_scenario(family, seed, scenario, plan, bed or shared_bed(), blind=blind, engine=engine)


def run_scenario(
    family: str,
    seed: int,
    scenario: Scenario,
    plan: FaultPlan,
    bed: Bed,
    *,
    blind: bool = False,
    engine: bool = False,
) -> Result:
    """Run a scenario under a plan."""
    with World(seed, plan, max_spin=MAX_SPIN) as world:
        run = prepare(world, scenario, bed, blind=blind)
        run.engine = engine
        run.start()
        try:
            run.finish()
        except Exception as error:
            if not getattr(error, "__notes__", None):
                error.add_note(world.report())
            raise
        return Result(
            family,
            seed,
            world.trace_hash,
            len(run.ledger),
            len(run.log.deliveries),
            sum(delivery.stale for delivery in run.log.deliveries),
            run.calls[Port.STORE],
            run.calls[Port.NETWORK],
            world.loop.steps,
        )


def command(family: str, seed: int, *, engine: bool = False) -> str:
    """Return what runs a seed again."""
    return f"penstock sim --seed {seed} --family {family}{'' if engine else ' --reference'}"


def prepare(world: World, scenario: Scenario, bed: Bed, *, blind: bool = False) -> Run:
    """Put a scenario's parts together."""
    ids = _ids(world)
    clock = world.store_clock.now
    store = bed.fresh(scenario.lanes, scenario.pools, clock=clock, ids=ids, refuses=world.refuses)
    watch = Watch(store, clock=clock, time=world.loop.time, fail=world.fail, blind=blind)
    log = Log()
    reported = frozenset(name for name, terms in scenario.terms.items() if terms.policy.ack is not None)
    sink = SimSink(world, log, _stale(watch.model), reported, scenario.spells)
    clocks = Clocks(clock, world.loop.time, lambda: world.store_clock.set_at)
    leg = world.plan.latency.high
    conduct = Conduct(watch.tables, watch.model, watch.settings, clocks, leg, world.fail, sink.taken_at)
    conduct.occupancy.alive = lambda number: _env(world, conduct, number) is not None
    conduct.well_since = lambda number: getattr(_env(world, conduct, number), "troubled_until", inf)
    conduct.serves = lambda node, lane: lane in scenario.lanes_of(node.partition(".")[0])
    patrol = Patrol(world, watch, conduct)
    words = Words(watch.model, watch.settings)
    return Run(world, scenario, watch, conduct, patrol, words, bed, store, Ledger(), log, sink)


def _env(world: World, conduct: Conduct, number: int) -> NodeEnv | None:
    return world.find(conduct.nodes.get(number, ""))


def _ids(world: World) -> Ulids:
    rng = world.stream("ids")
    return Ulids(lambda: int((START.timestamp() + world.loop.time()) * 1000), rng.randbytes)


def _stale(model: Model) -> Callable[[Message], bool]:
    def stale(message: Message) -> bool:
        spot = model.spots.get(model.arrivals[message.job])
        return spot is None or spot.state.label != "claimed" or spot.job.epoch != message.epoch

    return stale
