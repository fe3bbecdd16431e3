"""Several threads on the same groups: order holds and nothing is stranded."""

from collections import defaultdict
from functools import partial
from threading import Lock

from penstock.domain.job import Claim
from penstock.domain.outcomes import Dead, Failed, Outcome, Succeeded
from penstock.domain.states import Effect, Reason, Verb
from penstock.ports.store import Store
from penstock.testing.store_suite.factories import (
    LANE,
    ZERO,
    claim_groups,
    drain,
    enqueue,
    ids,
    operate,
    ordered,
    put_lane,
    settle,
    some,
    together,
)

ROUNDS = 20
DEAD = Dead(Reason.PERMANENT)


class GroupRaceTests:
    """Races about groups."""

    def test_claimers_never_share_a_group(self, store: Store) -> None:
        """One claim at a time per group, and each group's jobs in order, with failures in between."""
        put_lane(store)
        names = [f"g{i}" for i in range(8)]
        enqueue(store, *(ordered(name, payload=str(i)) for i in range(10) for name in names))
        watch = _Watch()

        def work(node: int) -> None:
            idle = 0
            while idle < 3:
                batch = claim_groups(store, node=node, limit=3, run=2)
                idle = 0 if batch else idle + 1
                if batch is not None:
                    outcomes = _fail_some(batch)
                    watch.begin(batch)
                    watch.end(batch, outcomes)
                    store.settle(batch, outcomes)

        together(*(partial(work, node) for node in range(4)))
        while batch := claim_groups(store, limit=100):
            watch.end(batch, dict.fromkeys((c.job.arrival for c in batch.jobs), Succeeded()))
            store.settle(batch)

        assert watch.shared == []
        assert watch.done == {name: list(range(10)) for name in names}

    def test_a_job_that_arrives_while_its_group_ends_is_not_stranded(self, store: Store) -> None:
        """Enqueue races the settle of the group's last job; the new one is found."""
        put_lane(store)
        for index in range(ROUNDS):
            group = f"g{index}"
            enqueue(store, ordered(group))
            batch = some(claim_groups(store))
            _, made = together(partial(store.settle, batch), partial(enqueue, store, ordered(group)))

            assert drain(store) == made

    def test_a_job_that_arrives_while_its_group_is_claimed_is_not_stranded(self, store: Store) -> None:
        """Enqueue races claims of the same group; all are sent in the end, in order."""
        put_lane(store)
        for index in range(ROUNDS):
            group = f"g{index}"
            first = enqueue(store, ordered(group, sequence=1))
            second, sent = together(
                partial(enqueue, store, ordered(group, sequence=2)), partial(_send_one, store)
            )

            assert sent + drain(store) == first + second

    def test_a_job_that_arrives_while_its_group_dies_is_blocked(self, store: Store) -> None:
        """It neither slips past the dead job nor is forgotten when that is resolved."""
        put_lane(store)
        for index in range(ROUNDS):
            group = f"g{index}"
            [head] = enqueue(store, ordered(group))
            batch = some(claim_groups(store))
            _, made = together(partial(settle, store, batch, DEAD), partial(enqueue, store, ordered(group)))

            assert claim_groups(store) is None
            operate(store, Verb.SKIP, head)
            assert drain(store) == made

    def test_a_job_that_arrives_while_its_group_is_unblocked_is_not_stranded(self, store: Store) -> None:
        """Enqueue races the decision about the dead job."""
        put_lane(store)
        for index in range(ROUNDS):
            group = f"g{index}"
            [head] = enqueue(store, ordered(group))
            settle(store, some(claim_groups(store)), DEAD)
            _, made = together(
                partial(operate, store, Verb.SKIP, head), partial(enqueue, store, ordered(group))
            )

            assert drain(store) == made

    def test_two_operators_resolve_a_dead_job_once(self, store: Store) -> None:
        """One of them is refused, and its group goes on."""
        put_lane(store)
        for index in range(ROUNDS):
            [head, tail] = enqueue(store, ordered(f"g{index}"), ordered(f"g{index}"))
            settle(store, some(claim_groups(store)), DEAD)
            done = together(*[partial(operate, store, Verb.SKIP, head)] * 2)

            assert sorted(each.effect for each in done) == [Effect.NOW, Effect.REFUSED]
            assert drain(store) == [tail]

    def test_a_pause_races_a_claim(self, store: Store) -> None:
        """Afterwards the group is paused, whether or not its head went before."""
        put_lane(store)
        for index in range(ROUNDS):
            group = f"g{index}"
            job_ids = enqueue(store, ordered(group), ordered(group))
            pause = partial(store.pause_group, LANE, group, actor="ops", reason="race")
            sent, _ = together(partial(_send_one, store), partial(pause, paused=True))

            assert claim_groups(store) is None
            pause(paused=False)
            assert sent + drain(store) == job_ids


class _Watch:
    """What the claimers of one test saw, kept under a lock."""

    def __init__(self) -> None:
        self.done: dict[str, list[int]] = defaultdict(list)
        self.shared: list[str] = []
        self._busy: set[str] = set()
        self._lock = Lock()

    def begin(self, batch: Claim) -> None:
        """Note whose groups are claimed now; a group that is claimed already is a violation."""
        groups = {claimed.job.grp or "" for claimed in batch.jobs}
        with self._lock:
            self.shared += groups & self._busy
            self._busy |= groups

    def end(self, batch: Claim, outcomes: dict[int, Outcome]) -> None:
        """Note what was done, in order, just before it is settled."""
        with self._lock:
            for claimed in batch.jobs:
                assert claimed.context is not None
                if isinstance(outcomes[claimed.job.arrival], Succeeded):
                    self.done[claimed.job.grp or ""].append(int(claimed.context.payload or ""))
                self._busy.discard(claimed.job.grp or "")


def _fail_some(batch: Claim) -> dict[int, Outcome]:
    """Let every third job fail the first time, and what follows it in its run with it."""
    outcomes: dict[int, Outcome] = {}
    broken: set[str | None] = set()
    for claimed in batch.jobs:
        row = claimed.job
        if row.arrival % 3 == 0 and row.attempt == 0:
            broken.add(row.grp)
        outcomes[row.arrival] = Failed("no", ZERO) if row.grp in broken else Succeeded()
    return outcomes


def _send_one(store: Store) -> list[str]:
    batch = claim_groups(store)
    if batch is None:
        return []
    store.settle(batch)
    return ids(batch)
