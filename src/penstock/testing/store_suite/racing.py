"""Several threads at once: however they interleave, the promises hold."""

from contextlib import suppress
from functools import partial

from penstock.domain.job import Enqueued
from penstock.domain.lanes import lane
from penstock.domain.operations import NewOperation
from penstock.domain.ordering import Mode
from penstock.domain.outcomes import Dispatched, Lapsed, Succeeded
from penstock.domain.pools import pool
from penstock.domain.states import Effect, JobState, Verb
from penstock.errors import InUse, VersionChanged
from penstock.ports.store import Report, Store
from penstock.testing.store_suite.factories import (
    HOUR,
    LANE,
    PAST,
    claim,
    claim_groups,
    drain,
    enqueue,
    find,
    ids,
    job,
    only,
    operate,
    ordered,
    put_lane,
    report,
    settle,
    some,
    state,
    together,
)

ROUNDS = 20


class RaceTests:
    """Races."""

    def test_claimers_never_share_a_job(self, store: Store) -> None:
        """Every due job goes to exactly one claimer."""
        put_lane(store)
        job_ids = enqueue(store, *(job(tenant=f"t{i % 3}") for i in range(120)))

        def take(node: int) -> list[str]:
            taken: list[str] = []
            while batch := claim(store, node=node, limit=7):
                taken += ids(batch)
            return taken

        taken = [job_id for mine in together(*(partial(take, node) for node in range(4))) for job_id in mine]

        # A claimer may give up early while another one holds the rows it looks at.
        assert sorted(taken + drain(store)) == sorted(job_ids)

    def test_one_key_said_by_many_at_once_is_one_job(self, store: Store) -> None:
        """One caller makes it, the others learn of it; what they say beside it is accepted."""
        put_lane(store)
        answers = together(*[partial(store.enqueue, [job(key="k", payload="1"), job()])] * 6)
        keyed = [answer[0] for answer in answers]
        [made] = {answer.id for answer in keyed if isinstance(answer, Enqueued)}

        assert sorted(keyed) == [Enqueued(made)] + [Enqueued(made, duplicate=True)] * 5
        assert store.counts() == {(LANE, JobState.PENDING): 7}

    def test_of_many_who_make_what_is_not_there_one_does(self, store: Store) -> None:
        """The others learn that it is there, and change nothing."""

        def make_lane(name: str, n: int) -> int:
            with suppress(VersionChanged):
                store.put_lane(lane(name, batch_size=n), actor="t", expect=0)
                return n
            return 0

        def make_pool(name: str, n: int) -> int:
            with suppress(VersionChanged):
                store.put_pool(pool(name, max_in_flight=n), actor="t", expect=0)
                return n
            return 0

        for name in (f"made-{each}" for each in range(ROUNDS // 4)):
            lanes = together(*(partial(make_lane, name, n) for n in range(1, 7)))
            pools = together(*(partial(make_pool, name, n) for n in range(1, 7)))
            assert [n for n in lanes if n] == [store.lanes()[name]["batch_size"]]
            assert [n for n in pools if n] == [store.pools()[name].settings["max_in_flight"]]

    def test_one_operation_begun_by_many_at_once_is_one(self, store: Store) -> None:
        """Whoever gives its key gets the same one."""
        put_lane(store)
        for each in range(ROUNDS // 4):
            new = NewOperation(verb=Verb.HOLD, filter="", actor="ops", reason="r", key=f"k{each}")
            assert len({found.id for found in together(*[partial(store.start_operation, new)] * 6)}) == 1
        assert len(store.open_operations()) == ROUNDS // 4

    def test_places_for_operations_are_not_given_twice(self, store: Store) -> None:
        """However many ask for the last ones at once: five of a tenant, twenty in all."""
        put_lane(store)

        def begin(tenant: str | None) -> bool:
            with suppress(InUse):
                new = NewOperation(verb=Verb.HOLD, filter="", actor="ops", reason="r", tenant=tenant)
                return bool(store.start_operation(new).id)
            return False

        assert sum(together(*[partial(begin, "acme")] * 8)) == 5
        assert sum(begin(None) for _ in range(12)) == 12
        assert sum(together(*[partial(begin, None)] * 8)) == 3

    def test_many_callers_at_once_lose_nothing(self, store: Store) -> None:
        """Every accepted job is there, once, with an arrival of its own."""
        put_lane(store)
        batch = [ordered(f"g{i}") for i in range(25)]
        answers = together(*[partial(enqueue, store, *batch)] * 4)
        job_ids = [job_id for answer in answers for job_id in answer]

        assert len({found.live.arrival for found in store.find(job_ids).values()}) == 100
        assert sorted(drain(store)) == sorted(job_ids)

    def test_a_settle_and_a_takeover_do_not_both_win(self, store: Store) -> None:
        """Either the holder was in time or it is fenced."""
        put_lane(store)
        for _ in range(ROUNDS):
            [job_id] = enqueue(store, ordered())
            batch = some(claim_groups(store, lease=PAST))
            settled, taken = together(partial(store.settle, batch), partial(store.takeover, 2, HOUR, 10))
            # Seen while the other one is at it, a claim may be passed over: then it is there the next time.
            taken = taken or store.takeover(2, HOUR, 10)

            assert bool(settled.applied) != bool(taken)
            for claimed in taken:
                store.settle(claimed)
            assert state(store, job_id) is JobState.SUCCEEDED
            assert find(store, job_id).live.attempt == 1

    def test_two_nodes_do_not_take_over_the_same_claim(self, store: Store) -> None:
        """Each lapsed claim has one new holder."""
        put_lane(store)
        enqueue(store, *(job() for _ in range(10)))
        while claim(store, limit=1, lease=PAST):
            pass
        first, second = together(*(partial(store.takeover, node, HOUR, 10) for node in (2, 3)))
        taken = [only(each).arrival for each in first + second + store.takeover(4, HOUR, 10)]

        assert len(taken) == len(set(taken)) == 10

    def test_a_report_and_a_settle_count_one_attempt(self, store: Store) -> None:
        """Whoever is first; the other one is told."""
        put_lane(store)
        for _ in range(ROUNDS):
            [job_id] = enqueue(store, job())
            batch = some(claim(store))
            settled, reported = together(
                partial(store.settle, batch), partial(report, store, job_id, 1, Succeeded())
            )

            assert bool(settled.applied) != reported.applied
            assert find(store, job_id).live.attempt == 1

    def test_a_report_is_not_lost_to_the_holders_own_word(self, store: Store) -> None:
        """A success that races `dispatched` is the job's end, in either order."""
        put_lane(store)
        for _ in range(ROUNDS):
            [job_id] = enqueue(store, ordered())
            batch = some(claim_groups(store))
            _, reported = together(
                partial(store.settle, batch, {only(batch).arrival: Dispatched(HOUR)}),
                partial(report, store, job_id, 1, Succeeded()),
            )

            assert reported.applied
            assert state(store, job_id) is JobState.SUCCEEDED

    def test_two_reports_of_one_send_count_once(self, store: Store) -> None:
        """The executor was not sure that it was heard."""
        put_lane(store)
        for _ in range(ROUNDS):
            [job_id] = enqueue(store, job())
            settle(store, some(claim(store)), Dispatched(HOUR))
            word = Report(id=job_id, send=1, outcome=Succeeded())
            [first], [second] = together(*[partial(store.report, [word])] * 2)

            assert first.applied != second.applied
            assert find(store, job_id).live.attempt == 1

    def test_a_cancel_races_a_claim(self, store: Store) -> None:
        """The job is cancelled, or its holder is asked; never both, never neither."""
        put_lane(store)
        for _ in range(ROUNDS):
            [job_id] = enqueue(store, job())
            batch, done = together(partial(claim, store), partial(operate, store, Verb.CANCEL, job_id))
            batch = batch or claim(store)
            if batch is None:
                assert (done.effect, state(store, job_id)) == (Effect.NOW, JobState.CANCELLED)
            else:
                assert (done.effect, done.state) == (Effect.REQUESTED, JobState.CLAIMED)
                assert store.confirm(batch).asked == {only(batch).arrival: Verb.CANCEL}
                store.settle(batch)

    def test_a_cancel_races_a_settle(self, store: Store) -> None:
        """Asked of its holder or once it is out, the request is there afterwards."""
        put_lane(store)
        for _ in range(ROUNDS):
            [job_id] = enqueue(store, job())
            batch = some(claim(store))
            together(
                partial(settle, store, batch, Dispatched(HOUR)), partial(operate, store, Verb.CANCEL, job_id)
            )

            assert (state(store, job_id), find(store, job_id).request) == (JobState.DISPATCHED, Verb.CANCEL)
            operate(store, Verb.SETTLE_SUCCEEDED, job_id)
            assert find(store, job_id).request is None

    def test_a_silent_job_is_probed_by_one_node(self, store: Store) -> None:
        """Two nodes look for lapses at once."""
        put_lane(store)
        enqueue(store, *(job() for _ in range(20)))
        settle(store, some(claim(store)), Dispatched(PAST))
        lapses = together(*(partial(store.lapse, node, HOUR, 12) for node in (2, 3)))
        lapses.append(store.lapse(4, HOUR, 20))
        rows = [row.job.arrival for lapse in lapses if lapse is not None for row in lapse.jobs]

        assert len(rows) == len(set(rows)) == 20

    def test_a_report_and_a_probe_do_not_both_win(self, store: Store) -> None:
        """A job ends once."""
        put_lane(store)
        for _ in range(ROUNDS):
            [job_id] = enqueue(store, job())
            settle(store, some(claim(store)), Dispatched(PAST))
            lapse = store.lapse(2, HOUR, 10)
            assert lapse is not None
            resolved, reported = together(
                partial(store.resolve, lapse, {lapse.jobs[0].job.arrival: Lapsed(started=False)}),
                partial(report, store, job_id, 1, Succeeded()),
            )

            assert bool(resolved.applied) != reported.applied
            drain(store)
            assert state(store, job_id) is JobState.SUCCEEDED

    def test_one_candidate_is_elected(self, store: Store) -> None:
        """However many ask at once; their numbers differ."""
        nodes = together(*[partial(store.register_node, "n")] * 5)
        terms = together(*(partial(store.elect, "role", node, HOUR) for node in nodes))

        assert len(set(nodes)) == 5
        assert len([term for term in terms if term is not None]) == 1

    def test_the_same_lane_put_by_many_at_once_is_one_lane(self, store: Store) -> None:
        """Nodes that start together apply the same file."""
        lanes = together(*[partial(put_lane, store, weight=2)] * 4)

        assert {lane.id for lane in lanes} == {store.lanes()[LANE].id}
        assert store.lanes()[LANE].version == 1

    def test_counts_are_exact_after_a_storm(self, store: Store) -> None:
        """Whatever happened at the same time."""
        put_lane(store)

        def storm(node: int) -> None:
            for _ in range(5):
                enqueue(store, job(), ordered(f"g{node}"))
                for batch in (claim(store, node=node, limit=3), claim_groups(store, node=node, limit=3)):
                    if batch is not None:
                        store.settle(batch)
                store.fold_counts()

        together(*(partial(storm, node) for node in range(4)))
        drain(store)

        assert store.counts() == {(LANE, JobState.SUCCEEDED): 40}

    def test_an_edit_races_a_claim(self, store: Store) -> None:
        """Whoever is first: what is sent is what the answer to the edit says."""
        put_lane(store)
        for mode in (Mode.IMMEDIATE, Mode.BLOCK_ON_ERROR):
            for _ in range(ROUNDS // 2):
                [job_id] = enqueue(store, job(payload="old", mode=mode))
                edit = partial(store.edit, job_id, payload="new", actor="ops", reason="because")
                take = partial(claim if mode is Mode.IMMEDIATE else claim_groups, store)
                done, batch = together(edit, take)
                batch = some(batch or take())  # it may have passed over a job that was just being edited
                context = batch.jobs[0].context

                assert context is not None
                assert context.payload == ("new" if done.effect is Effect.NOW else "old")
                store.settle(batch)
                assert find(store, job_id).context == context

    def test_an_edit_does_not_let_a_run_go_out_of_order(self, store: Store) -> None:
        """A row that is edited goes away and comes back: what stands behind it must wait for it."""
        put_lane(store)
        for _ in range(ROUNDS // 2):
            job_ids = enqueue(store, *(ordered(payload="old") for _ in range(3)))
            edit = partial(store.edit, job_ids[0], payload="new", actor="ops", reason="because")
            _, batch = together(edit, partial(claim_groups, store, run=3))
            sent = ids(batch)
            if batch is not None:
                store.settle(batch)

            assert sent + drain(store) == job_ids
