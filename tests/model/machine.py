"""The same operations on every store at once, in an order that Hypothesis chooses.

After each rule the answers are equal, and so are - after every one, or every few where time is short - all
jobs and counters, and the timelines and groups of the first jobs that the rule was about. At the end of an
example everything is compared, and the tables are held to their invariants.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, Final, NamedTuple

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule

from penstock.domain.edits import Changed
from penstock.domain.filters import JobQuery, Order
from penstock.domain.job import Claim, NewJob
from penstock.domain.lanes import lane as lane_of
from penstock.domain.ordering import DEFAULT_GROUP, Mode
from penstock.domain.outcomes import (
    Dead,
    Deferred,
    Dispatched,
    Expired,
    Failed,
    Held,
    Lapsed,
    LapsedTooOften,
    Outcome,
    Returned,
    Running,
    Succeeded,
)
from penstock.domain.states import JobState, Reason, Verb
from penstock.ports.store import Ask, Lapse, Report, Store
from penstock.stores.sql.store import SqlStore
from tests.model.invariants import broken
from tests.model.views import HOUR, View, agreed

ZERO: Final = timedelta(0)
PLAIN, FAIR, STRICT = "plain", "fair", "strict"
# No tenants where a claim may be smaller than what is due: whose turn it is, is each store's own business.
LANES: Final = (
    lane_of(PLAIN),
    lane_of(FAIR, mode="next_on_error", dead_retention="0s"),
    lane_of(STRICT, mode="block_on_error", key_ttl="0s", dead_retention="0s"),
)
GROUPS: Final = ("a", "b", DEFAULT_GROUP)
ALL: Final = 500
WINDOW: Final = 12
LOOKS: Final = 2

OUTCOMES: Final = (
    Succeeded(),
    Succeeded(result="done", receipt="r1"),
    Dispatched(HOUR),
    Dispatched(-HOUR, receipt="r2"),
    Dispatched(HOUR, passes=True),
    Dispatched(-HOUR, passes=True),
    Running(HOUR),
    Running(-HOUR),
    Failed("no", ZERO),
    Failed("not yet", 2 * HOUR),
    Failed("no answer", ZERO, known=False),
    Dead(Reason.PERMANENT, "boom"),
    Dead(Reason.EXHAUSTED),
    Deferred(ZERO),
    Deferred(HOUR, "busy"),
    Returned("stopping"),
    Expired(),
    Held("context_missing"),
    Lapsed(),
    Lapsed(started=False),
    Lapsed(hold=True),
    LapsedTooOften(Reason.POISON),
)

lanes = st.sampled_from([STRICT, STRICT, FAIR, PLAIN])
groups = st.sampled_from(["a", "a", "a", "b", None])
picks = st.integers(0, 40)
outcomes_ = st.sampled_from(OUTCOMES)
some_outcomes = st.lists(outcomes_ | st.none(), min_size=1, max_size=4)
leases = st.sampled_from([HOUR, -HOUR])
aheads = st.sampled_from([ZERO, ZERO, 4 * HOUR])
nodes = st.sampled_from([1, 2])
seldom = st.sampled_from([False] * 19 + [True])


class Draft(NamedTuple):
    """A job to enqueue; times are hours from the start."""

    lane: str
    mode: Mode | None
    group: str | None
    sequence: int
    tenant: str | None
    key: str | None
    payload: str | None
    run_at: int | None
    start_by: int | None
    max_attempts: int | None
    wrong: str | None


drafts = st.builds(
    Draft,
    lane=lanes,
    mode=st.sampled_from([None, None, *Mode]),
    group=groups,
    sequence=st.sampled_from([99, 99, 5, 1]),
    tenant=st.sampled_from([None, "t1", "t2"]),
    key=st.sampled_from([None, None, None, "k1", "k2"]),
    payload=st.sampled_from(["1", "1", "2", None]),
    run_at=st.sampled_from([None, None, -3, -2, 2]),
    start_by=st.sampled_from([None, None, None, -1, 3]),
    max_attempts=st.sampled_from([None, 1, 3]),
    wrong=st.sampled_from([None] * 12 + ["lane", "sequence", "id"]),
)


@dataclass
class Handle:
    """What one claim or lapse is in each store."""

    name: str
    ids: tuple[str, ...]
    parts: dict[str, Any] = field(default_factory=dict)


class StoreMachine(RuleBasedStateMachine):
    """The rules; `open_stores` gives empty stores with LANES for one example, the oracle first.

    All jobs are looked at after every so many calls.
    """

    def __init__(self, open_stores: Callable[[], Mapping[str, Store]], *, look_every: int = 1) -> None:
        super().__init__()
        self.look_every = look_every
        start = datetime.now(UTC)
        self.start = start
        self.views = [View(name, store, start) for name, store in open_stores().items()]
        self.ids: list[str] = []
        self.claims: list[Handle] = []
        self.lapses: list[Handle] = []
        self.calls = 0
        self.sound = True

    # -- the way in

    @initialize(
        batch=st.lists(drafts, min_size=5, max_size=8),
        passes=st.lists(
            st.tuples(lanes, st.booleans(), st.integers(1, 3), some_outcomes), min_size=2, max_size=5
        ),
    )
    def begin(self, batch: list[Draft], passes: list[tuple[str, bool, int, list[Outcome | None]]]) -> None:
        """Start with jobs that have been through something."""
        self.enqueue(batch)
        for lane, ordered, run, outcomes in passes:
            self.one_pass(lane, ordered=ordered, run=run, ahead=ZERO, outcomes=outcomes)

    @rule(batch=st.lists(drafts, min_size=1, max_size=4))
    def enqueue(self, batch: list[Draft]) -> None:
        new = [self._new_job(draft) for draft in batch]
        ids = [job.id for job in new if job.id is not None]
        self._play("enqueue", lambda view: view.answers(view.store.enqueue(new)), ids=ids)

    def _new_job(self, draft: Draft) -> NewJob:
        fields = draft._asdict()
        match fields.pop("wrong"):
            case "id" if self.ids:
                fields["id"] = self.ids[-1]
            case "lane":
                fields["lane"] = "stric"
            case "sequence":
                fields["sequence"] = -1
        if "id" not in fields:
            fields["id"] = f"job-{len(self.ids) + 1}"
            self.ids.append(fields["id"])
        if draft.lane == PLAIN:
            fields["tenant"] = None
        return NewJob(**fields | {"run_at": self._at(draft.run_at), "start_by": self._at(draft.start_by)})

    def _at(self, hours: int | None) -> datetime | None:
        return None if hours is None else self.start + hours * HOUR

    # -- dispatch

    @rule(lane=lanes, node=nodes, lease=leases, ahead=aheads, few=st.integers(0, 3))
    def claim(self, lane: str, node: int, lease: timedelta, ahead: timedelta, few: int) -> None:
        limit = few if few and lane == PLAIN else ALL
        self._claim(Ask(lane=lane, node=node, limit=limit, lease=lease, ahead=ahead), ordered=False)

    @rule(lane=lanes, node=nodes, lease=leases, ahead=aheads, run=st.integers(1, 3))
    def claim_groups(self, lane: str, node: int, lease: timedelta, ahead: timedelta, run: int) -> None:
        ask = Ask(lane=lane, node=node, limit=ALL, lease=lease, ahead=ahead, run=run)
        self._claim(ask, ordered=True)

    @rule(lane=lanes, ordered=st.booleans(), run=st.integers(1, 3), ahead=aheads, outcomes=some_outcomes)
    def one_pass(
        self, lane: str, *, ordered: bool, run: int, ahead: timedelta, outcomes: list[Outcome | None]
    ) -> None:
        """What a node does all day."""
        if self._claim(Ask(lane=lane, node=1, lease=HOUR, ahead=ahead, run=run), ordered=ordered):
            self.settle(0, outcomes)

    def _claim(self, ask: Ask, *, ordered: bool) -> bool:
        what = "claim_groups" if ordered else "claim"
        name = self._name(what)
        handle = Handle(name, ())

        def look(view: View) -> object:
            store = view.store
            handle.parts[view.name] = taken = store.claim_groups(ask) if ordered else store.claim(ask)
            return view.claim(taken, name)

        claimed = self._play(what, look, ids=[])
        if claimed is None:
            return False
        self._keep(handle, claimed)
        return True

    def _keep(self, handle: Handle, claimed: Mapping[str, Any]) -> None:
        handle.ids = tuple(id_ for run in claimed["jobs"].values() for id_, _ in run)
        self.claims.append(handle)

    @precondition(lambda self: self.claims)
    @rule(pick=picks, outcomes=some_outcomes)
    def settle(self, pick: int, outcomes: list[Outcome | None]) -> None:
        """Some jobs of a claim, or all; often of a claim that is settled or lost already."""
        handle = self._pick(self.claims, pick)
        named = self._outcomes(handle, outcomes)
        self._play(
            "settle",
            lambda view: view.settled(view.store.settle(handle.parts[view.name], view.by_arrival(named))),
            ids=handle.ids,
        )

    @precondition(lambda self: self.claims)
    @rule(pick=picks)
    def settle_succeeded(self, pick: int) -> None:
        handle = self._pick(self.claims, pick)
        self._play("settle", lambda v: v.settled(v.store.settle(handle.parts[v.name])), ids=handle.ids)

    @precondition(lambda self: self.claims)
    @rule(some=st.lists(picks, min_size=1, max_size=3), lease=leases, renew=st.booleans())
    def hold_on(self, some: list[int], lease: timedelta, *, renew: bool) -> None:
        """Renew claims, or confirm one and mark it as being sent."""
        handles = [self._pick(self.claims, pick) for pick in some]

        def renewed(view: View) -> object:
            epochs = [handle.parts[view.name].epoch for handle in handles]
            return {view.name_of(epoch) for epoch in view.store.renew(epochs, lease)}

        def confirmed(view: View) -> object:
            claim = handles[0].parts[view.name]
            told = view.store.confirm(claim)
            asked = {view.id_of(arrival): verb for arrival, verb in told.asked.items()}
            return told.ours, told.stopped, asked, view.store.mark_sending(claim.epoch)

        self._play("renew" if renew else "confirm", renewed if renew else confirmed, ids=handles[0].ids)

    # -- recovery

    @precondition(lambda self: self.claims)
    @rule(node=nodes, lease=leases, limit=st.sampled_from([1, 100]))
    def takeover(self, node: int, lease: timedelta, limit: int) -> None:
        name = self._name("takeover")
        taken: dict[str, list[Claim]] = {}

        def look(view: View) -> object:
            taken[view.name] = claims = view.store.takeover(node, lease, limit)
            return [view.claim(claim, f"{name}.{i}") for i, claim in enumerate(claims)]

        for i, claim in enumerate(self._play("takeover", look, ids=[])):
            self._keep(Handle(name, (), {view: claims[i] for view, claims in taken.items()}), claim)

    @precondition(lambda self: self.claims)
    @rule(node=nodes, lease=leases, limit=st.sampled_from([1, 100]), outcomes=some_outcomes)
    def lapse(self, node: int, lease: timedelta, limit: int, outcomes: list[Outcome | None]) -> None:
        """Lease what fell silent and resolve it, or leave that for later."""
        name = self._name("lapse")
        found: dict[str, Lapse | None] = {}

        def look(view: View) -> object:
            found[view.name] = lapsed = view.store.lapse(node, lease, limit)
            return view.lapse(lapsed, name)

        rows = self._play("lapse", look, ids=[])
        if rows is not None:
            self.lapses.append(Handle(name, tuple(id_ for id_, _ in rows), found))
            if outcomes[0] is not None:
                self.resolve(0, outcomes)

    @precondition(lambda self: self.lapses)
    @rule(pick=picks, outcomes=some_outcomes)
    def resolve(self, pick: int, outcomes: list[Outcome | None]) -> None:
        handle = self._pick(self.lapses, pick)
        named = self._outcomes(handle, outcomes)
        self._play(
            "resolve",
            lambda view: view.settled(view.store.resolve(handle.parts[view.name], view.by_arrival(named))),
            ids=handle.ids,
        )

    def _outcomes(self, handle: Handle, outcomes: Sequence[Outcome | None]) -> dict[str, Outcome]:
        chosen = {id_: outcomes[i % len(outcomes)] for i, id_ in enumerate(handle.ids)}
        return {id_: outcome for id_, outcome in chosen.items() if outcome is not None}

    # -- executors and operators

    @precondition(lambda self: self.ids)
    @rule(
        words=st.lists(st.tuples(picks, st.sampled_from([0, 0, 0, -1, 1]), outcomes_), min_size=1, max_size=3)
    )
    def report(self, words: list[tuple[int, int, Outcome]]) -> None:
        """Words on the present send, the one before or one that never was; a job may be named twice."""
        ids = [self._pick(self.ids, pick) for pick, _, _ in words]
        known = self.views[0].store.find(ids)
        sends = {id_: known[id_].live.current_send if id_ in known else 1 for id_ in ids}
        reports = [
            Report(id=id_, send=sends[id_] + off, outcome=outcome)
            for id_, (_, off, outcome) in zip(ids, words, strict=True)
        ]
        self._play("report", lambda view: view.store.report(reports), ids=ids)

    @precondition(lambda self: self.ids)
    @rule(
        verb=st.sampled_from(list(Verb)),
        some=st.lists(picks, min_size=1, max_size=3),
        force=st.booleans(),
        stranger=seldom,
    )
    def operate(self, verb: Verb, some: list[int], *, force: bool, stranger: bool) -> None:
        ids = [self._pick(self.ids, pick) for pick in some] + ["nobody"] * stranger
        self._play(
            f"operate {verb}",
            lambda view: view.store.operate(verb, ids, actor="ops", reason="because", force=force),
            ids=ids,
        )

    @precondition(lambda self: self.ids)
    @rule(
        pick=picks,
        payload=st.sampled_from(["3", None, ...]),
        run_at=st.sampled_from([None, None, -4, 5]),
        replay=st.booleans(),
        force=st.booleans(),
    )
    def edit(self, pick: int, payload: Changed, run_at: int | None, *, replay: bool, force: bool) -> None:
        id_ = self._pick(self.ids, pick)
        said = {"payload": payload, "run_at": self._at(run_at), "replay": replay, "force": force}
        self._play(
            "edit", lambda view: view.store.edit(id_, actor="ops", reason="because", **said), ids=[id_]
        )

    @rule(lane=lanes, group=st.sampled_from(GROUPS), paused=st.sampled_from([False, False, True]))
    def pause_group(self, lane: str, group: str, *, paused: bool) -> None:
        self._play(
            "pause_group",
            lambda view: view.store.pause_group(lane, group, paused=paused, actor="ops", reason="because"),
            ids=[],
        )
        self._look_at_group(lane, group)

    # -- housekeeping

    @rule(what=st.sampled_from(["expire", "fold_counts", "retire"]), limit=st.sampled_from([1, 100]))
    def housekeeping(self, what: str, limit: int) -> None:
        match what:
            case "expire":
                self._play("expire", lambda view: view.store.expire(limit), ids=[])
            case "retire":
                self._play("retire", lambda view: view.store.retire(slice_rows=1000), ids=[])
            case _:  # how many deltas there were is each store's own business
                self._play("fold_counts", lambda view: view.store.fold_counts() < 0, ids=[])

    # -- looking

    @rule(
        lane=st.none() | lanes,
        states=st.frozensets(st.sampled_from(list(JobState)), max_size=2),
        group=st.sampled_from([None, None, "a"]),
        tenant=st.sampled_from([None, None, "t1"]),
        key=st.sampled_from([None, None, "k1"]),
        order=st.sampled_from([Order.NEWEST, Order.OLDEST]),
        limit=st.integers(1, 4),
    )
    def list_jobs(self, limit: int, **fields: Any) -> None:  # noqa: ANN401
        """Every page of a list, the newest or the oldest first."""
        query = JobQuery(limit=limit, **fields)
        agreed(self.views, f"the list {query}", lambda view: view.pages(query))

    def _play(self, what: str, look: Callable[[View], Any], *, ids: Sequence[str]) -> Any:  # noqa: ANN401
        """Make the same call on every store; then look at what came of it."""
        self.sound = False
        self.calls += 1
        answer = agreed(self.views, f"the answer of {what}", look)
        if self.calls % self.look_every == 0:
            self._look_around(what, list(dict.fromkeys(ids))[:LOOKS])
        self.sound = True
        return answer

    def _look_around(self, what: str, ids: Sequence[str]) -> None:
        jobs = agreed(self.views, f"jobs after {what}", lambda view: view.jobs(self.ids))
        agreed(self.views, f"counts after {what}", View.counts)
        self._look_at(ids)
        groups = {(jobs[id_]["lane"], jobs[id_]["group"]) for id_ in ids if id_ in jobs}
        for lane, group in sorted(pair for pair in groups if pair[1] is not None):
            self._look_at_group(lane, group)

    def _look_at(self, ids: Sequence[str]) -> None:
        for id_ in ids:
            agreed(self.views, f"timeline of {id_}", lambda view, id_=id_: view.timeline(id_))
            agreed(self.views, f"standing of {id_}", lambda view, id_=id_: view.standing(id_))

    def _look_at_group(self, lane: str, group: str) -> None:
        agreed(self.views, f"group {group} of {lane}", lambda view: view.group(lane, group))
        agreed(self.views, f"row of {group} of {lane}", lambda view: view.group_row(lane, group))

    def _name(self, what: str) -> str:
        return f"{what} {self.calls}"

    def _pick(self, things: Sequence[Any], pick: int) -> Any:  # noqa: ANN401
        """One of the last few: what is long over is of little interest."""
        window = things[-WINDOW:]
        return window[-1 - pick % len(window)]

    def teardown(self) -> None:
        if not self.sound:
            return
        self._look_around("everything", self.ids)
        for lane in LANES:
            for group in GROUPS:
                self._look_at_group(lane.name, group)
            agreed(self.views, f"depth of {lane.name}", lambda view, name=lane.name: view.store.depth(name))
        for blocked in (False, True):
            agreed(self.views, "groups", lambda view, blocked=blocked: view.groups(blocked=blocked))
        for id_ in self.ids:
            agreed(self.views, f"versions of {id_}", lambda view, id_=id_: view.versions(id_))
        for view in self.views:
            if isinstance(view.store, SqlStore):
                assert broken(view.store) == [], view.name
