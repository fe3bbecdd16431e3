"""What may happen at the same time. A scenario prepares, yields its acts, and judges what came of them.

Whatever the scenario, a world checks by itself: nothing is in two places after any commit, no group in two
claims, no actor fails, the tables agree with each other before and after the rest is sent by one more worker,
every accepted job ends, and none ends twice.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any, Final

from penstock.domain.job import Claim, Enqueued, NewJob
from penstock.domain.lanes import lane as lane_of
from penstock.domain.ordering import Mode
from penstock.domain.outcomes import Dead, Dispatched, Failed, Lapsed, Outcome, Running, Succeeded
from penstock.domain.states import Effect, JobState, Reason, Verb
from penstock.errors import InUse, InvalidJob, StoreError
from penstock.ports.store import Done, Report, Reported
from penstock.stores.sql import housekeeping
from penstock.stores.sql.enqueue import enqueue
from penstock.stores.sql.store import SqlStore
from penstock.testing.store_suite.factories import HOUR, LANE, PAST, ZERO, by_id, drain, job, ordered, some
from tests.interleave.world import Act, RolledBackError, Scenario, World

G: Final = "g"
NEXT: Final = Mode.NEXT_ON_ERROR
DEAD: Final = Dead(Reason.PERMANENT, "boom")
Acts = Iterator[Sequence[Act]]


# -- acts


def named(name: str, act: Act) -> Act:
    act.__name__ = name
    return act


def settles(batch: Claim, outcomes: Mapping[str, Outcome] | None = None) -> Act:
    """Settle a claim: all succeeded, or what is said by id."""

    def act(world: World, store: SqlStore) -> None:
        world.settle(batch, None if outcomes is None else by_id(batch, dict(outcomes)), store=store)

    return named("settles", act)


def works(rounds: int = 2, *, run: int = 1, limit: int = 10, grouped: bool = True, node: int = 1) -> Act:
    """Claim and settle, as a node does."""

    def act(world: World, store: SqlStore) -> None:
        for _ in range(rounds):
            batch = world.claim(store, ordered=grouped, run=run, limit=limit, node=node)
            if batch is not None:
                world.settle(batch, store=store)

    return named("works", act)


def enqueues(*jobs: NewJob, rolls_back: bool = False) -> Act:
    """Enqueue in one transaction, which may come to nothing."""

    def act(world: World, store: SqlStore) -> None:
        if not rolls_back:
            world.enqueue(*jobs, store=store)
            return
        with suppress(RolledBackError):
            store.db.write(lambda tx: _enqueue_and_give_up(store, tx, jobs))

    return named("enqueues", act)


def _enqueue_and_give_up(store: SqlStore, tx: Any, jobs: Sequence[NewJob]) -> None:  # noqa: ANN401
    enqueue(tx, store.hot, jobs, store.ids)
    raise RolledBackError


def reports(id_: str, send: int, outcome: Outcome, heard: list[Reported]) -> Act:
    """Report an outcome; what was answered goes into `heard`."""

    def act(world: World, store: SqlStore) -> None:
        [answer] = store.report([Report(id=id_, send=send, outcome=outcome)])
        heard.append(answer)
        if answer.applied and isinstance(outcome, Succeeded):
            world.ends[id_] += 1

    return named("reports", act)


def operates(verb: Verb, id_: str, done: list[Any], *, force: bool = False) -> Act:
    """Carry out a verb; what it did goes into `done`."""

    def act(world: World, store: SqlStore) -> None:
        done.append(world.operate(verb, id_, store=store, force=force))

    return named(f"operates {verb}", act)


def takes_over(taken: list[Claim]) -> Act:
    """Take over what has lapsed and settle it."""

    def act(world: World, store: SqlStore) -> None:
        for batch in store.takeover(2, HOUR, 10):
            taken.append(batch)
            world.settle(batch, store=store)

    return named("takes over", act)


def calls(what: str, call: Callable[[SqlStore], object]) -> Act:
    """Do something that needs no line in the ledger."""

    def act(_: World, store: SqlStore) -> None:
        call(store)

    return named(what, act)


FOLDS: Final = calls("folds counts", lambda store: store.fold_counts())
DROPS_DEAD: Final = calls(
    "drops dead jobs", lambda store: store.db.write(lambda tx: housekeeping.drop_dead(tx, store.hot, 10))
)
DROPS_KEYS: Final = calls(
    "drops keys", lambda store: store.db.write(lambda tx: housekeeping.drop_keys(tx, 10))
)


def in_order(world: World, expected: Sequence[str]) -> None:
    assert [id_ for id_ in world.sent if id_ in expected] == list(expected)


# -- groups


def a_job_arrives_while_its_group_ends(world: World) -> Acts:
    """The settle of a group's last job drops the group; the job that comes meanwhile is found."""
    world.enqueue(ordered(G, id="a"))
    batch = some(world.claim())
    yield [settles(batch), enqueues(ordered(G, id="b")), works(1)]
    world.drain()
    in_order(world, ["a", "b"])


def jobs_arrive_in_a_new_group(world: World) -> Acts:
    """Two callers make the same group at once while others look for work."""
    yield [enqueues(ordered(G, id="a")), enqueues(ordered(G, id="b")), works(), works(node=2)]
    world.drain()
    assert sorted(world.sent) == ["a", "b"]


def a_lower_sequence_arrives(world: World) -> Acts:
    """It overtakes what is not claimed yet, if it was there when the claim began to look."""
    world.enqueue(ordered(G, id="b", sequence=10), ordered(G, id="c", sequence=20))
    batch = some(world.claim())
    yield [settles(batch), enqueues(ordered(G, id="a", sequence=5)), works(), works(1, node=2)]
    world.drain()
    in_order(world, ["b", "c"])
    if world.arrived["a"] < world.begun["c"]:
        in_order(world, ["a", "c"])


def a_call_gives_up_its_jobs(world: World) -> Acts:
    """What is rolled back leaves nothing behind and holds up nobody."""
    world.enqueue(ordered(G, id="a"))
    yield [
        enqueues(ordered(G, id="x", sequence=1), job(id="y"), rolls_back=True),
        enqueues(ordered(G, id="b")),
        works(),
    ]
    world.drain()
    in_order(world, ["a", "b"])
    assert world.plain.find(["x", "y"]) == {}


def claimers_meet_at_one_group(world: World) -> Acts:
    """One claim at a time, in order, whatever the length of the runs."""
    names = [f"j{i}" for i in range(5)]
    world.enqueue(*(ordered(G, id=name) for name in names))
    yield [works(run=2), works(run=1, node=2), works(run=3, node=3), FOLDS]
    world.drain()
    in_order(world, names)


def claimers_meet_while_jobs_arrive(world: World) -> Acts:
    """A wake for a group that is in a claim does not open it to others."""
    world.enqueue(ordered(G, id="a"))
    yield [works(), works(node=2), enqueues(ordered(G, id="b")), enqueues(ordered(G, id="c"))]
    world.drain()
    assert world.sent[0] == "a"  # the others go in the order in which claims saw them
    assert sorted(world.sent) == ["a", "b", "c"]


def a_group_is_emptied_behind_a_claim(world: World) -> Acts:
    """The wake that a cancel leaves finds nothing to send; the group is still in the claim."""
    world.enqueue(ordered(G, id="a"), ordered(G, id="b"))
    batch = some(world.claim())
    world.operate(Verb.CANCEL, "b")
    yield [works(), enqueues(ordered(G, id="c")), works(node=2), settles(batch)]
    world.drain()
    in_order(world, ["a", "c"])


def a_group_is_paused_during_a_claim(world: World) -> Acts:
    """Claims that begin after the pause find nothing; nothing is forgotten."""
    world.enqueue(ordered(G, id="a"), ordered(G, id="b"))
    paused: list[int] = []

    def pause(world: World, store: SqlStore) -> None:
        store.pause_group(LANE, G, paused=True, actor="ops", reason="because")
        paused.append(world.stage.step)

    yield [works(), named("pauses", pause), enqueues(ordered(G, id="c")), works(1, node=2)]
    assert all(world.begun[id_] < paused[0] for id_ in world.sent)
    assert world.claim() is None
    world.plain.pause_group(LANE, G, paused=False, actor="ops", reason="because")
    world.drain()
    in_order(world, ["a", "b", "c"])


# -- holders


def a_late_settle_meets_a_takeover(world: World) -> Acts:
    """Either the holder was in time or it is fenced, unless it never comes back; its groups go on."""
    world.enqueue(*(ordered(f"g{i}", id=f"{name}{i}") for name in "ab" for i in range(2)))
    batch = some(world.claim())
    world.plain.renew([batch.epoch], PAST)
    late = [settles(batch)] if world.rng.random() < 0.6 else []
    yield [*late, takes_over([]), works(2, node=3), works(1, node=4)]
    for lapsed in world.plain.takeover(5, HOUR, 10):
        world.settle(lapsed)
    world.drain()
    in_order(world, ["a0", "b0"])
    in_order(world, ["a1", "b1"])
    for id_, found in world.plain.find(world.known).items():
        assert (found.live.attempt, world.ends[id_]) == (1, 1)


def two_nodes_take_over(world: World) -> Acts:
    """One of them gets the claim, in parts settled before or not."""
    world.enqueue(*(ordered(f"g{i}", id=f"a{i}") for i in range(3)))
    batch = some(world.claim())
    world.plain.renew([batch.epoch], PAST)
    first: list[Claim] = []
    second: list[Claim] = []
    yield [takes_over(first), settles(batch, {"a1": Succeeded()}), takes_over(second), works(1)]
    assert len(first) + len(second) <= 1
    for lapsed in world.plain.takeover(4, HOUR, 10):
        world.settle(lapsed)


def a_report_meets_the_holders_word(world: World) -> Acts:
    """A success that races `dispatched` is the end of the job, and its group goes on."""
    world.enqueue(ordered(G, id="a"), ordered(G, id="b"), job(id="c"))
    heads, loose = some(world.claim()), some(world.claim(ordered=False))
    heard: list[Reported] = []
    yield [
        settles(heads, {"a": Dispatched(HOUR)}),
        reports("a", 1, Succeeded(), heard),
        settles(loose, {"c": Dispatched(HOUR)}),
        reports("c", 1, Succeeded(), heard),
        works(1, node=2),
    ]
    assert [answer.applied for answer in heard] == [True, True]
    assert world.state("a") is world.state("c") is JobState.SUCCEEDED


def a_report_meets_a_settle_as_a_whole(world: World) -> Acts:
    """Whoever is first; the other one is told, and one attempt is counted."""
    world.enqueue(ordered(G, id="a"), ordered(G, id="b"), ordered("h", id="c"))
    batch = some(world.claim())
    heard: list[Reported] = []
    yield [settles(batch), reports("a", 1, Succeeded(), heard), reports("a", 1, Succeeded(), heard), works(1)]
    world.drain()
    assert {found.live.attempt for found in world.plain.find(["a", "b", "c"]).values()} == {1}
    assert world.ends == {"a": 1, "b": 1, "c": 1}


def a_claim_is_settled_in_parts(world: World) -> Acts:
    """Parts, reports and a takeover between them: each job ends once."""
    world.enqueue(*(job(id=f"a{i}") for i in range(4)))
    batch = some(world.claim(ordered=False))
    world.plain.renew([batch.epoch], PAST)
    heard: list[Reported] = []
    yield [
        settles(batch, {"a0": Succeeded(), "a1": Failed("no", ZERO)}),
        reports("a2", 1, Succeeded(), heard),
        takes_over([]),
        settles(batch, {"a2": Succeeded(), "a3": Succeeded()}),
        works(grouped=False, node=2),
    ]
    for lapsed in world.plain.takeover(4, HOUR, 10):
        world.settle(lapsed)
    world.drain()
    assert set(world.ends.values()) == {1}


def a_probe_meets_a_report(world: World) -> Acts:
    """A silent job is probed by two nodes, reported by its executor and cancelled by an operator."""
    world.enqueue(ordered(G, id="a"), ordered(G, id="b"))
    world.plain.settle(some(world.claim()), by_id_of(world, {"a": Dispatched(PAST)}))
    heard: list[Reported] = []
    done: list[Any] = []

    def probe(world: World, store: SqlStore) -> None:
        lapse = store.lapse(2, HOUR, 10)
        if lapse is not None:
            store.resolve(lapse, {row.job.arrival: Lapsed(started=False) for row in lapse.jobs})

    yield [
        named("probes", probe),
        named("probes", probe),
        reports("a", 1, Succeeded(), heard),
        operates(Verb.CANCEL, "a", done, force=True),
        works(1),
    ]
    world.drain()
    found = world.plain.find(["a"])["a"]
    assert found.live.recoveries + found.live.attempt <= 2


def by_id_of(world: World, outcomes: dict[str, Outcome]) -> dict[int, Outcome]:
    return {world.plain.find([id_])[id_].live.arrival: outcome for id_, outcome in outcomes.items()}


# -- dead jobs and operators


def a_dead_head_is_resolved_while_another_job_dies(world: World) -> Acts:
    """Whoever waits for dead jobs goes when the last one is resolved, and not before."""
    world.enqueue(ordered(G, id="a"), ordered(G, id="b", mode=NEXT), ordered(G, id="c"), ordered(G, id="d"))
    world.settle(some(world.claim()), by_id_of(world, {"a": DEAD}))
    batch = some(world.claim())
    verb = world.rng.choice([Verb.CANCEL, Verb.SKIP, Verb.SETTLE_SUCCEEDED])
    yield [operates(verb, "a", []), settles(batch, {"b": DEAD}), works(1), enqueues(ordered(G, id="e"))]
    assert world.claim() is None
    assert "c" not in world.sent
    world.operate(Verb.SKIP, "b")
    world.drain()
    in_order(world, ["a", "b", "c", "d"])


def a_dead_head_is_dropped_while_another_job_dies(world: World) -> Acts:
    """Retention drops what blocks nobody; the group still knows who died meanwhile."""
    world.enqueue(ordered(G, id="a", mode=NEXT))
    world.settle(some(world.claim()), by_id_of(world, {"a": DEAD}))
    world.enqueue(ordered(G, id="b", mode=NEXT))
    batch = some(world.claim())
    yield [DROPS_DEAD, settles(batch, {"b": DEAD}), enqueues(ordered(G, id="c")), works(1)]
    world.known = ["c"]
    for id_ in world.plain.find(["a", "b"]):
        assert "c" not in world.sent
        assert world.claim() is None
        world.operate(Verb.SKIP, id_)
    world.drain()
    in_order(world, ["a", "b", "c"])


def a_dead_job_is_dropped_while_it_is_replayed(world: World) -> Acts:
    """It goes again with all that belongs to it, or it is gone with all that belongs to it."""
    world.enqueue(ordered(G, id="a", payload="1"), job(id="b", payload="1"))
    for grouped in (True, False):
        batch = some(world.claim(ordered=grouped))
        world.settle(batch, {batch.jobs[0].job.arrival: DEAD})
    world.sent.clear()
    yield [operates(Verb.RETRY, "a", []), DROPS_DEAD, operates(Verb.SKIP, "b", []), DROPS_DEAD, works(1)]
    left = world.plain.find(["a", "b"])
    world.known = list(left)
    assert [found.context.payload for found in left.values() if found.context] == ["1"] * len(left)
    world.drain()
    assert world.sent == (["a"] if "a" in left else [])


def a_dead_head_is_replayed(world: World) -> Acts:
    """Its place is its own again; two operators and a claimer agree on one outcome."""
    world.enqueue(ordered(G, id="a"), ordered(G, id="b"))
    world.settle(some(world.claim()), by_id_of(world, {"a": DEAD}))
    done: list[Any] = []
    yield [
        operates(Verb.RETRY, "a", done),
        operates(Verb.RETRY, "a", done),
        works(),
        enqueues(ordered(G, id="c")),
    ]
    assert done[0].effect is Effect.NOW
    world.drain()
    in_order(world, ["a", "a", "b", "c"])


def a_cancelled_job_is_replayed_by_two(world: World) -> Acts:
    """It comes back once, whoever was first."""
    world.enqueue(ordered(G, id="a"), job(id="b"))
    world.operate(Verb.CANCEL, "a")
    world.operate(Verb.CANCEL, "b")
    done: list[Any] = []
    yield [
        operates(Verb.RETRY, "a", done),
        operates(Verb.RETRY, "a", done),
        operates(Verb.RETRY, "b", done),
        operates(Verb.RETRY, "b", done),
        works(grouped=False),
    ]
    world.drain()
    assert sorted(world.sent) == ["a", "b"]


def a_replay_meets_a_claim_behind_it(world: World) -> Acts:
    """A job behind it that is being sent makes the replay refused, or it waits for the replay."""
    world.enqueue(ordered(G, id="a", mode=NEXT), ordered(G, id="b", mode=NEXT))
    world.settle(some(world.claim()), by_id_of(world, {"a": DEAD}))
    done: list[Any] = []
    yield [operates(Verb.RETRY, "a", done), works(), works(1, node=2)]
    if done[0].effect is Effect.NOW:
        world.drain()
        assert world.sent == ["a", "a", "b"]
    else:
        assert world.sent[:2] == ["a", "b"]


def an_operator_reaches_into_a_run(world: World) -> Acts:
    """A job that is held, hurried or skipped while it is claimed is claimed with its run or stops it."""
    world.enqueue(*(ordered(G, id=f"a{i}") for i in range(4)))
    verb = world.rng.choice([Verb.HOLD, Verb.RETRY, Verb.CANCEL])
    who = world.rng.choice(["a0", "a1"])
    done: list[Any] = []
    yield [operates(verb, who, done), works(2, run=4), works(1, run=2, node=2)]
    if world.state(who) is JobState.HELD:
        world.operate(Verb.RELEASE, who)
    world.drain()
    gone = {who} if world.state(who) is JobState.CANCELLED and who not in world.sent else set()
    in_order(world, [f"a{i}" for i in range(4) if f"a{i}" not in gone])


def a_late_start_reaches_into_a_run(world: World) -> Acts:
    """A job back from a lapse turns out to be running while it is claimed again: the run is not broken."""
    world.enqueue(*(ordered(G, id=f"a{i}") for i in range(3)))
    world.settle(some(world.claim()), by_id_of(world, {"a0": Lapsed()}))
    world.sent.clear()
    heard: list[Reported] = []
    yield [reports("a0", 1, Running(HOUR), heard), works(1, run=3)]
    if world.state("a0") is JobState.RUNNING:  # before the run was claimed, or as the first of it
        assert world.sent in ([], ["a0", "a1", "a2"])
        world.plain.report([Report(id="a0", send=1, outcome=Succeeded())])
    world.drain()
    in_order(world, ["a1", "a2"])
    assert "a0" not in world.sent[1:]


def a_job_expires_while_it_is_claimed(world: World) -> Acts:
    """It is sent or it expires, and what is behind it goes on."""
    past = world.plain.now() + PAST
    world.enqueue(ordered(G, id="a", start_by=past), ordered(G, id="b"), job(id="c", start_by=past))
    yield [
        calls("expires", lambda store: store.expire(10)),
        works(run=2),
        works(grouped=False, node=2),
        calls("expires", lambda store: store.expire(10)),
    ]
    world.drain()
    for id_ in ("a", "c"):
        assert (world.state(id_) is JobState.SUCCEEDED) == (id_ in world.sent)


def a_cancel_meets_a_claim(world: World) -> Acts:
    """The job is cancelled, or its holder is asked."""
    world.enqueue(ordered(G, id="a"), job(id="b"), ordered(G, id="c"))
    done: dict[str, list[Any]] = {"a": [], "b": []}
    yield [
        operates(Verb.CANCEL, "a", done["a"]),
        operates(Verb.CANCEL, "b", done["b"]),
        works(),
        works(grouped=False, node=2),
    ]
    for id_, answers in done.items():
        if answers[0].effect is Effect.NOW:
            assert (world.state(id_), id_ in world.sent) == (JobState.CANCELLED, False)


# -- keys and tenants


def two_callers_have_one_key(world: World) -> Acts:
    """One of them makes the job, also when the other one gives up."""
    gives_up = world.rng.random() < 0.5
    yield [
        enqueues(job(id="a", key="k"), rolls_back=gives_up),
        enqueues(job(id="b", key="k"), job(id="c", key="l")),
        enqueues(job(id="d", key="l"), job(id="e", key="k")),
        DROPS_KEYS,
    ]
    made = world.plain.find(["a", "b", "c", "d", "e"]).keys()
    assert len(made & {"a", "b", "e"}) == len(made & {"c", "d"}) == 1
    assert sorted(made) == sorted(world.known)
    assert "a" not in made or not gives_up


def a_caller_repeats_himself(world: World) -> Acts:
    """The reply is late and he says it all again, id and key; a third one took the id by mistake."""
    said = job(id="a", key="k", payload="1")
    answers: list[Any] = []

    def repeat(world: World, store: SqlStore) -> None:
        answers.extend(store.enqueue([said]))
        world.known = ["a"]

    wrong = job(id="a", key="l")
    third: list[Any] = []
    mistaken = calls("enqueues by mistake", lambda store: third.extend(store.enqueue([wrong])))
    yield [named("enqueues", repeat), named("enqueues again", repeat), mistaken]
    [kept] = world.plain.find(["a"]).values()
    assert kept.context is not None
    others = answers if kept.context.key == "l" else third
    assert [type(answer) for answer in others] == [InvalidJob] * len(others)
    if kept.context.key == "k":
        assert sorted(answers) == [Enqueued("a"), Enqueued("a", duplicate=True)]
    [free] = world.plain.enqueue([job(key="l" if kept.context.key == "k" else "k")])
    assert isinstance(free, Enqueued)
    assert not free.duplicate


def two_callers_find_a_key_free(world: World) -> Acts:
    """The time of a key is over: one of them has it now, the other learns of the new job."""
    world.enqueue(job(id="old", key="k"))
    world.drain()
    yield [enqueues(job(id="a", key="k")), enqueues(job(id="b", key="k")), DROPS_KEYS]
    assert len(world.plain.find(["a", "b"])) == 1


def tenants_are_served_by_two(world: World) -> Acts:
    """Fair shares, taken by several claimers at once, add up to everything once."""
    world.enqueue(*(job(id=f"{t}{i}", tenant=t) for i in range(4) for t in "xy"), job(id="n"))
    yield [
        works(2, grouped=False, limit=3),
        works(2, grouped=False, limit=4, node=2),
        enqueues(job(id="z", tenant="z"), job(id="m")),
        FOLDS,
    ]
    world.drain()
    assert len(world.sent) == len(set(world.sent)) == 11


def groups_of_tenants_are_served_by_two(world: World) -> Acts:
    """The same with groups: each keeps its order."""
    world.enqueue(
        *(ordered(f"{t}{g}", id=f"{t}{g}{i}", tenant=t) for i in range(2) for g in "pq" for t in "xy")
    )
    yield [works(2, limit=2), works(2, limit=3, node=2), enqueues(ordered("zp", id="zp0", tenant="z"))]
    world.drain()
    for group in ("xp", "xq", "yp", "yq"):
        in_order(world, [f"{group}0", f"{group}1"])


def a_lane_is_deleted_while_a_job_arrives(world: World) -> Acts:
    """Either the job is refused or the lane stays; so with a job that comes back."""
    world.plain.put_lane(lane_of("short"), actor="test")
    world.enqueue(NewJob(lane="short", id="old"))
    world.operate(Verb.CANCEL, "old")
    refused: list[Exception] = []

    def delete(_: World, store: SqlStore) -> None:
        try:
            store.delete_lane("short", actor="ops")
        except (InUse, StoreError) as error:
            refused.append(error)

    replayed: list[Done] = []
    yield [
        named("deletes the lane", delete),
        enqueues(NewJob(lane="short", id="a")),
        enqueues(NewJob(lane="short", id="b", mode=NEXT)),
        operates(Verb.RETRY, "old", replayed),
    ]
    back = {"old"} if replayed[0].effect is Effect.NOW else set()
    made = world.plain.find(["a", "b"]).keys() | back
    assert ("short" in world.plain.lanes()) == bool(refused)
    assert bool(refused) or not made
    if "short" in world.plain.lanes():
        assert sorted(drain(world.plain, "short")) == sorted(made)
        world.plain.delete_lane("short", actor="test")


SCENARIOS: Final[Sequence[Scenario]] = (
    a_job_arrives_while_its_group_ends,
    jobs_arrive_in_a_new_group,
    a_lower_sequence_arrives,
    a_call_gives_up_its_jobs,
    claimers_meet_at_one_group,
    claimers_meet_while_jobs_arrive,
    a_group_is_emptied_behind_a_claim,
    a_group_is_paused_during_a_claim,
    a_late_settle_meets_a_takeover,
    two_nodes_take_over,
    a_report_meets_the_holders_word,
    a_report_meets_a_settle_as_a_whole,
    a_claim_is_settled_in_parts,
    a_probe_meets_a_report,
    a_dead_head_is_resolved_while_another_job_dies,
    a_dead_head_is_dropped_while_another_job_dies,
    a_dead_job_is_dropped_while_it_is_replayed,
    a_dead_head_is_replayed,
    a_cancelled_job_is_replayed_by_two,
    a_replay_meets_a_claim_behind_it,
    an_operator_reaches_into_a_run,
    a_late_start_reaches_into_a_run,
    a_job_expires_while_it_is_claimed,
    a_cancel_meets_a_claim,
    two_callers_have_one_key,
    a_caller_repeats_himself,
    two_callers_find_a_key_free,
    a_lane_is_deleted_while_a_job_arrives,
    tenants_are_served_by_two,
    groups_of_tenants_are_served_by_two,
)
assert len({scenario.__name__ for scenario in SCENARIOS}) == len(SCENARIOS)
