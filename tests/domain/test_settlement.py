"""Where jobs land: each outcome by example, and what holds for all of them by property."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.domain.job import Audit, Live
from penstock.domain.ordering import MAX_SEQUENCE, Mode, sent_ord, sequence_of
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
from penstock.domain.settlement import (
    Landing,
    key_taken,
    land,
    late,
    moved,
    occupied,
    recalled,
    still_asked,
    went,
)
from penstock.domain.states import IN_FLIGHT, LIVE, TERMINAL, VERBS, JobState, Move, Reason, Verb
from penstock.errors import IllegalTransition

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
MINUTE, HOUR = timedelta(minutes=1), timedelta(hours=1)
S = JobState
REQUESTS = [Verb.CANCEL, Verb.HOLD]


def row(state: JobState = S.CLAIMED, *, mode: Mode = Mode.BLOCK_ON_ERROR, **fields: object) -> Live:
    """Return a job claimed by node 3 under epoch 7, sent twice before with known fates."""
    base = Live(
        arrival=41,
        lane=2,
        keep=7,
        mode=mode,
        state=state,
        ord=sent_ord(5) if mode.ordered else 5,
        grp="g" if mode.ordered else None,
        tenant="acme",
        due_at=NOW - HOUR,
        attempt=2,
        send=2,
        holds=mode.ordered,
        epoch=7,
        node=3,
        claimed_at=NOW - MINUTE,
    )
    return base._replace(**fields)  # type: ignore[arg-type]


delays = st.timedeltas(timedelta(0), timedelta(days=1))
texts = st.none() | st.text(max_size=5)
outcomes: st.SearchStrategy[Outcome] = st.one_of(
    st.builds(Succeeded, texts, texts),
    st.builds(Dispatched, delays, texts, st.booleans(), texts),
    st.builds(Running, delays, texts),
    st.builds(Failed, texts, delays),
    st.builds(Dead, st.sampled_from(Reason), texts),
    st.builds(Deferred, delays, texts),
    st.builds(Returned, st.text(max_size=5), st.none() | delays, st.none() | st.text(max_size=5)),
    st.builds(Expired),
    st.builds(Held, st.just("context_missing")),
    st.builds(Lapsed, st.sampled_from([None, True, False]), st.booleans()),
    st.builds(LapsedTooOften, st.sampled_from([Reason.POISON, Reason.UNREPORTED])),
)
sequences = st.integers(0, MAX_SEQUENCE)
rows = st.builds(
    lambda state, mode, sequence, sends, is_open, passed: row(
        state,
        mode=mode,
        ord=sent_ord(sequence) if sends and mode.ordered else sequence,
        send=sends,
        open=is_open and sends > 0,
        holds=mode.ordered and not passed,
    ),
    st.sampled_from(sorted(IN_FLIGHT) * 3 + [S.PENDING, S.HELD]),
    st.sampled_from(Mode),
    sequences,
    st.integers(0, 3),
    st.booleans(),
    st.booleans(),
)
requests = st.none() | st.sampled_from(REQUESTS)


@st.composite
def legal(draw: st.DrawFn) -> tuple[Live, Outcome, Verb | None, Landing]:
    """Return a job, an outcome and a request that the machine lets happen, and where the job lands."""
    job, outcome = draw(st.tuples(rows, outcomes).filter(lambda both: landed(*both) is not None))
    request = draw(requests)
    return job, outcome, request, land(job, outcome, now=NOW, request=request)


def landed(job: Live, outcome: Outcome) -> Landing | None:
    """Return the landing; None where the machine has no such move."""
    try:
        return land(job, outcome, now=NOW)
    except IllegalTransition:
        return None


# -- by example


def test_success_ends_the_job_and_counts_the_attempt() -> None:
    landing = land(row(), Succeeded(result="r", receipt="202"), now=NOW)

    assert landing == Landing(
        row(S.SUCCEEDED, attempt=3, send=3, receipt="202"), error=None, result="r", attempt=None, audit=None
    )


def test_success_without_a_receipt_keeps_the_one_the_sink_gave() -> None:
    sent = row(S.DISPATCHED, send=3, open=True, receipt="m-1")

    assert land(sent, Succeeded(), now=NOW).job.receipt == "m-1"
    assert land(sent, Succeeded(receipt="w-1"), now=NOW).job.receipt == "w-1"


@pytest.mark.parametrize("passes", [False, True])
def test_a_dispatched_job_is_watched_and_holds_unless_it_passes(*, passes: bool) -> None:
    landing = land(row(), Dispatched(HOUR, receipt="m-1", passes=passes), now=NOW)

    assert landing == Landing(
        row(
            S.DISPATCHED,
            send=3,
            open=True,
            sent_at=NOW,
            deadline=NOW + HOUR,
            receipt="m-1",
            holds=not passes,
        )
    )


def test_an_immediate_job_never_holds() -> None:
    job = row(mode=Mode.IMMEDIATE)

    assert not land(job, Dispatched(HOUR), now=NOW).job.holds
    assert not land(job, Failed("no", HOUR), now=NOW).job.holds
    assert land(job, Dispatched(HOUR), now=NOW).job.ord == 5


def test_a_job_that_runs_started_once() -> None:
    first = land(row(), Running(MINUTE), now=NOW).job
    again = land(first, Running(HOUR), now=NOW + MINUTE).job

    assert (first.state, first.send, first.open) == (S.RUNNING, 3, True)
    assert (first.started_at, first.deadline) == (NOW, NOW + MINUTE)
    assert (again.started_at, again.deadline) == (NOW, NOW + MINUTE + HOUR)


def test_who_wants_to_be_alone_is_refused_while_another_may_be_at_it() -> None:
    alone = Running(HOUR, alone=True)
    first = land(row(S.DISPATCHED, open=True), alone, now=NOW).job

    with pytest.raises(IllegalTransition):
        land(first, alone, now=NOW + HOUR - timedelta(microseconds=1))
    beaten = land(first, Running(MINUTE), now=NOW + MINUTE).job  # a heartbeat is no new beginning
    second = land(beaten, alone, now=NOW + HOUR).job

    assert (first.started_at, second.started_at, second.deadline) == (NOW, NOW + HOUR, NOW + 2 * HOUR)


def test_a_failure_waits_and_forgets_its_claim() -> None:
    landing = land(row(), Failed("no", HOUR), now=NOW)

    assert landing.job == row(
        S.PENDING, due_at=NOW + HOUR, attempt=3, send=3, epoch=None, node=None, claimed_at=None
    )
    assert landing.error == "no"
    assert landing.attempt is not None
    assert landing.attempt._asdict() == {
        "arrival": 41,
        "keep": 7,
        "attempt": 3,
        "send": 3,
        "epoch": 7,
        "node": 3,
        "claimed_at": NOW - MINUTE,
        "ended_at": NOW,
        "outcome": "failed",
        "error": "no",
        "due_at": NOW + HOUR,
    }


def test_a_dead_job_says_why() -> None:
    landing = land(row(), Dead(Reason.EXHAUSTED, "no"), now=NOW)

    assert landing.job == row(S.DEAD, attempt=3, send=3, reason=Reason.EXHAUSTED)
    assert landing.error == "no"
    assert landing.attempt is not None
    assert (landing.attempt.outcome, landing.attempt.due_at) == ("exhausted", None)


def test_a_deferred_job_loses_no_attempt() -> None:
    landing = land(row(), Deferred(HOUR, "429"), now=NOW)

    assert (landing.job.attempt, landing.job.deferrals, landing.job.send) == (2, 1, 3)
    assert (landing.job.state, landing.job.due_at) == (S.PENDING, NOW + HOUR)
    assert landing.attempt is not None
    assert (landing.attempt.outcome, landing.attempt.error) == ("deferred", "429")


def test_a_returned_job_is_as_before_its_claim() -> None:
    landing = land(row(), Returned("no token"), now=NOW)

    assert landing.job == row(S.PENDING, epoch=None, node=None, claimed_at=None)
    assert landing.audit == Audit(NOW, 41, 2, "penstock", "return", "claimed", "pending", "no token")


@pytest.mark.parametrize(
    ("due_at", "expected"),
    [(NOW - HOUR, NOW + MINUTE), (NOW, NOW + MINUTE), (NOW + HOUR, NOW + HOUR)],
    ids=["late", "due", "ahead"],
)
def test_a_job_returned_for_a_while_waits_that_long_and_is_never_early(
    due_at: datetime, expected: datetime
) -> None:
    landing = land(row(due_at=due_at), Returned("no token", MINUTE), now=NOW)

    since = due_at if due_at < expected else None
    assert landing.job == row(S.PENDING, due_at=expected, since=since, epoch=None, node=None, claimed_at=None)


def test_a_job_that_its_pool_put_back_says_so_until_something_becomes_of_it() -> None:
    back = land(row(open=True), Returned("limit", MINUTE, "waits"), now=NOW).job

    assert (back.state, back.due_at, back.reason) == (S.PENDING, NOW + MINUTE, "waits")
    come = recalled(back, NOW)
    assert come.job == back._replace(due_at=NOW, reason=None)
    assert come.audit is not None
    assert (come.audit.action, come.audit.before, come.audit.after) == ("hurry", "pending", "pending")
    assert recalled(back._replace(due_at=NOW - HOUR), NOW).job.due_at == NOW - HOUR
    assert land(back, Succeeded(), now=NOW).job.reason is None
    assert land(back, Expired(), now=NOW).job.reason is None
    assert moved(back, Verb.CANCEL, Move.CANCEL, now=NOW).reason is None


@pytest.mark.parametrize(("verb", "reason"), [(Verb.CANCEL, None), (Verb.HOLD, "operator")])
def test_a_job_put_back_that_somebody_asked_for_waits_for_no_pool(verb: Verb, reason: str | None) -> None:
    asked = land(row(), Returned("limit", MINUTE, "waits"), now=NOW, request=verb).job

    assert (asked.reason, asked.due_at) == (reason, row().due_at)
    back = land(row(), Returned("limit", MINUTE, "waits"), now=NOW).job
    assert moved(back, Verb.HOLD, Move.HOLD, now=NOW).due_at == row().due_at
    assert moved(row(S.PENDING, due_at=NOW + HOUR), Verb.HOLD, Move.HOLD, now=NOW).due_at == NOW + HOUR


def test_a_job_occupies_its_slot_while_it_is_out() -> None:
    sent = land(row(), Dispatched(HOUR, slot="web"), now=NOW).job
    started = land(sent, Running(HOUR), now=NOW).job

    assert (sent.slot, started.slot) == ("web", "web")
    assert land(row(), Running(HOUR, slot="web"), now=NOW).job.slot == "web"
    assert land(started, Running(HOUR, slot="other"), now=NOW).job.slot == "web"


def test_a_job_that_is_back_or_has_ended_occupies_nothing() -> None:
    running = row(S.RUNNING, open=True, send=3, slot="web")
    for outcome in (Succeeded(), Failed("no", MINUTE), Dead(Reason.STOPPED), Deferred(MINUTE), Lapsed()):
        assert land(running, outcome, now=NOW).job.slot is None
    for verb, move in ((Verb.CANCEL, Move.CANCEL), (Verb.SETTLE_DEAD, Move.SETTLE_DEAD)):
        assert moved(running, verb, move, now=NOW).slot is None


def test_a_slot_named_after_the_executor_spoke_is_noted() -> None:
    running = row(S.RUNNING, open=True, send=3)
    named = Dispatched(HOUR, slot="web")

    assert occupied(running, 7, named) == running._replace(slot="web")
    assert occupied(running, 7, Running(HOUR, slot="web")) == running._replace(slot="web")
    assert occupied(running, 7, Dispatched(HOUR)) is None
    assert occupied(running, 7, Succeeded()) is None
    assert occupied(running, 8, named) is None
    assert occupied(running._replace(slot="other"), 7, named) is None
    assert occupied(row(S.PENDING), 7, named) is None


@pytest.mark.parametrize("state", [S.PENDING, S.CLAIMED])
def test_an_expired_job_was_not_sent(state: JobState) -> None:
    landing = land(row(state), Expired(), now=NOW)

    assert landing.job == row(S.EXPIRED)
    assert landing.audit == Audit(
        NOW, 41, 2, "penstock", "expire", state.label, "expired", "start_by has passed"
    )


def test_a_job_without_its_context_is_held() -> None:
    landing = land(row(), Held("context_missing"), now=NOW)

    assert landing.job == row(S.HELD, reason="context_missing", epoch=None, node=None, claimed_at=None)
    assert landing.audit is not None
    assert (landing.audit.action, landing.audit.reason) == ("hold", "context_missing")


@pytest.mark.parametrize("started", [None, True])
@pytest.mark.parametrize("hold", [False, True])
@pytest.mark.parametrize("state", sorted(IN_FLIGHT))
def test_a_lapse_in_doubt_leaves_the_send_open(state: JobState, *, hold: bool, started: bool | None) -> None:
    job = row(state, open=state is not S.CLAIMED)
    landing = land(job, Lapsed(started=started, hold=hold), now=NOW)

    assert (landing.job.state, landing.job.open) == (S.HELD if hold else S.PENDING, True)
    assert landing.job.send == job.current_send
    assert landing.job.reason == ("outcome_unknown" if hold else None)
    assert (landing.job.recoveries, landing.job.attempt, landing.job.due_at) == (1, 2, NOW)
    assert landing.attempt is not None
    assert (landing.attempt.outcome, landing.attempt.error) == ("lapsed", None)


def test_a_lapse_keeps_what_came_instead_of_an_answer() -> None:
    landing = land(row(), Lapsed(hold=True, error="no answer within 3 s"), now=NOW)

    assert landing.attempt is not None
    assert landing.error == landing.attempt.error == "no answer within 3 s"


@pytest.mark.parametrize("hold", [False, True])
def test_a_lapse_before_the_send_gives_the_number_back(*, hold: bool) -> None:
    for is_open in (False, True):
        landing = land(row(open=is_open), Lapsed(started=False, hold=hold), now=NOW)

        assert (landing.job.state, landing.job.send, landing.job.open) == (S.PENDING, 2, is_open)
        assert landing.job.reason is None
        assert landing.attempt is not None
        assert landing.attempt.outcome == "not_started"


def test_a_lapse_of_a_send_that_never_started_uses_the_number_up() -> None:
    landing = land(row(S.DISPATCHED, open=True), Lapsed(started=False), now=NOW)

    assert (landing.job.state, landing.job.send, landing.job.open) == (S.PENDING, 2, False)


def test_too_many_lapses_are_the_end() -> None:
    landing = land(row(S.RUNNING, open=True), LapsedTooOften(Reason.POISON), now=NOW)

    assert (landing.job.state, landing.job.reason) == (S.DEAD, Reason.POISON)
    assert (landing.job.recoveries, landing.job.attempt) == (1, 2)
    assert (landing.error, landing.attempt and landing.attempt.outcome) == ("poison", "poison")


def test_a_requested_cancel_ends_a_job_that_would_go_again() -> None:
    landing = land(row(), Failed("no", HOUR), now=NOW, request=Verb.CANCEL)

    assert (landing.job.state, landing.job.attempt, landing.error) == (S.CANCELLED, 3, "no")
    assert landing.attempt is not None
    assert landing.audit == Audit(
        NOW, 41, 2, "penstock", "cancel", "pending", "cancelled", "requested while in flight"
    )


def test_a_requested_hold_parks_a_job_that_would_go_again() -> None:
    landing = land(row(), Returned("hold"), now=NOW, request=Verb.HOLD)

    assert (landing.job.state, landing.job.reason) == (S.HELD, "operator")
    assert landing.audit == Audit(
        NOW, 41, 2, "penstock", "hold", "claimed", "held", "requested while in flight"
    )


@pytest.mark.parametrize("outcome", [Failed("no", HOUR), Failed("no", HOUR, known=False)])
def test_a_late_failure_does_not_release_what_somebody_holds(outcome: Failed) -> None:
    held = row(S.HELD, reason="operator", open=True)
    landing = land(held, outcome, now=NOW)

    assert (landing.job.state, landing.job.reason, landing.job.due_at) == (S.HELD, "operator", NOW + HOUR)
    assert landing.attempt is not None
    assert land(held, outcome, now=NOW, request=Verb.CANCEL).job.state == S.CANCELLED
    assert land(held._replace(reason="outcome_unknown"), outcome, now=NOW).job.state == S.PENDING


def test_a_late_word_leaves_the_state_alone() -> None:
    assert late(row(S.SUCCEEDED), 4, Succeeded(), now=NOW) == Audit(
        NOW, 41, 2, "penstock", "late", "succeeded", "succeeded", "send 4: succeeded"
    )


# -- by property

Case = tuple[Live, Outcome, Verb | None, Landing]


@given(legal())
def test_identity_and_place_never_change(case: Case) -> None:
    job, _, _, landing = case

    for name in ("arrival", "lane", "keep", "mode", "grp", "tenant", "start_by", "max_attempts", "revision"):
        assert getattr(landing.job, name) == getattr(job, name)
    assert sequence_of(landing.job.ord) == sequence_of(job.ord)
    assert landing.job.ord <= job.ord


@given(legal())
def test_send_numbers_go_up_by_at_most_one_and_never_back(case: Case) -> None:
    job, _, _, landing = case
    after = landing.job

    assert after.send in (job.send, job.current_send)
    assert after.current_send >= job.current_send
    if after.open and after.state not in TERMINAL:
        assert after.current_send == job.current_send


@given(legal())
def test_a_parked_job_belongs_to_no_claim_and_a_job_out_is_watched(case: Case) -> None:
    after = case[-1].job

    if after.state in (S.PENDING, S.HELD):
        assert (after.epoch, after.node, after.claimed_at, after.deadline, after.receipt) == (None,) * 5
        assert after.holds == Mode(after.mode).ordered
    elif after.state in LIVE:
        assert after.deadline is not None
        assert after.open


@given(legal())
def test_counters_only_grow_and_by_one_in_all(case: Case) -> None:
    job, _, _, landing = case
    counters = ("attempt", "deferrals", "recoveries")
    grown = [getattr(landing.job, name) - getattr(job, name) for name in counters]

    assert set(grown) <= {0, 1}
    assert sum(grown) <= 1


@given(legal())
def test_a_request_is_honoured_or_waits(case: Case) -> None:
    job, outcome, request, landing = case
    unasked = land(job, outcome, now=NOW)

    if request is None or unasked.job.state != S.PENDING:
        assert landing == unasked
    else:
        assert landing.job.state == (S.CANCELLED if request is Verb.CANCEL else S.HELD)
        assert not still_asked(request, landing.job)
        assert landing.attempt == unasked.attempt


@given(legal())
def test_what_leaves_the_happy_path_is_told(case: Case) -> None:
    landing = case[-1]
    happy = landing.job.state in (S.DISPATCHED, S.RUNNING, S.SUCCEEDED)

    assert happy == (landing.attempt is None and landing.audit is None)
    if landing.audit is not None:
        assert landing.audit.after == S(landing.job.state).label


@given(outcomes, st.sampled_from([S.PENDING, S.HELD]))
def test_parked_jobs_listen_only_while_their_send_is_open(outcome: Outcome, state: JobState) -> None:
    if not isinstance(outcome, Expired | Held):
        assert landed(row(state), outcome) is None


@pytest.mark.parametrize("state", JobState)
def test_a_request_is_over_with_the_job_or_once_it_is_held_as_asked(state: JobState) -> None:
    job = row(state)

    assert still_asked(Verb.CANCEL, job) == (state not in TERMINAL)
    assert still_asked(Verb.HOLD, job) == (state not in TERMINAL and state is not S.HELD)


# -- operators' verbs

ACTING = [
    (verb, state, answer.move)
    for verb, states in VERBS.items()
    for state, answer in states.items()
    if answer.move is not None
]


@pytest.mark.parametrize(("verb", "state", "move"), ACTING)
@pytest.mark.parametrize("mode", Mode)
def test_a_verb_moves_the_row_and_keeps_its_identity(
    verb: Verb, state: JobState, move: Move, mode: Mode
) -> None:
    job = row(state, mode=mode, reason="exhausted", open=True)
    after = moved(job, verb, move, now=NOW)

    assert after.state != job.state or move is Move.HURRY
    assert (after.arrival, after.send, after.grp) == (job.arrival, job.send, job.grp)
    assert sequence_of(after.ord) == 5
    assert after.reason == {Move.HOLD: "operator", Move.SETTLE_DEAD: "stopped"}.get(move)


def test_a_hurried_job_is_due_now_but_never_later_than_it_was() -> None:
    future, overdue = row(S.PENDING, due_at=NOW + HOUR), row(S.PENDING, due_at=NOW - HOUR)

    assert moved(future, Verb.RETRY, Move.HURRY, now=NOW).due_at == NOW
    assert moved(overdue, Verb.RETRY, Move.HURRY, now=NOW).due_at == NOW - HOUR


def test_a_released_job_keeps_its_time_and_a_retried_one_is_due_now() -> None:
    held = row(S.HELD, due_at=NOW + HOUR)

    assert moved(held, Verb.RELEASE, Move.UNHOLD, now=NOW).due_at == NOW + HOUR
    assert moved(held, Verb.RETRY, Move.UNHOLD, now=NOW).due_at == NOW


@pytest.mark.parametrize("mode", Mode)
@pytest.mark.parametrize("state", [S.DEAD, S.EXPIRED, S.CANCELLED])
def test_a_replayed_job_starts_over_but_for_its_send_number(state: JobState, mode: Mode) -> None:
    ended = row(state, mode=mode, recoveries=4, open=True, start_by=NOW - HOUR, receipt="m", deferrals=2)
    after = moved(ended, Verb.RETRY, Move.REPLAY, now=NOW)

    assert (after.state, after.attempt, after.recoveries, after.deferrals) == (S.PENDING, 0, 0, 2)
    assert (after.send, after.open, after.current_send) == (2, False, 3)
    assert (after.ord, after.holds, after.due_at) == (5, mode.ordered, NOW)
    assert (after.start_by, after.epoch, after.receipt) == (None, None, None)


def test_a_replay_that_is_refused_names_the_key_its_owner_and_the_way_out() -> None:
    said = key_taken("order-7", "01J")

    assert said == 'its key "order-7" belongs to job 01J now: enqueue it anew, under another key'


@pytest.mark.parametrize(
    ("verb", "move"),
    [(Verb.SETTLE_DEAD, Move.SETTLE_DEAD), (Verb.SETTLE_SUCCEEDED, Move.SETTLE_SUCCEEDED)],
)
def test_a_job_settled_by_hand_has_no_open_send(verb: Verb, move: Move) -> None:
    assert not moved(row(S.HELD, open=True), verb, move, now=NOW).open


def test_a_verb_the_machine_does_not_know_is_refused() -> None:
    with pytest.raises(IllegalTransition):
        moved(row(S.SUCCEEDED), Verb.RETRY, Move.REPLAY, now=NOW)


@pytest.mark.parametrize("state", JobState)
def test_a_job_went_when_it_was_sent_is_being_sent_or_is_done(state: JobState) -> None:
    assert went(row(state))
    assert went(row(state, ord=5)) == (state in (S.CLAIMED, S.SUCCEEDED))


def put_back(**fields: object) -> Live:
    """A job that came due an hour ago and is to come again in a minute."""
    return land(row(due_at=NOW - HOUR, **fields), Returned("limit", MINUTE, "waits"), now=NOW).job


def again(job: Live) -> Live:
    """The same, claimed once more."""
    return job._replace(state=S.CLAIMED, reason=None, epoch=9, node=1, claimed_at=NOW)


@pytest.mark.parametrize(
    "outcome",
    [Returned("limit", HOUR), Returned("the node stops"), Held("no context"), Lapsed(started=False)],
    ids=["for longer", "as it was", "held", "its node died"],
)
def test_a_job_that_does_not_go_has_been_due_since_it_first_was(outcome: Outcome) -> None:
    assert land(again(put_back()), outcome, now=NOW + MINUTE).job.due_since == NOW - HOUR
    fresh = land(row(due_at=NOW - HOUR), outcome, now=NOW).job
    assert fresh.due_since == NOW - HOUR


@pytest.mark.parametrize(
    "outcome",
    [Failed("no", MINUTE), Deferred(MINUTE), Lapsed()],
    ids=["failed", "deferred", "nobody knows"],
)
def test_a_job_that_went_is_due_when_its_next_try_is(outcome: Outcome) -> None:
    landed = land(again(put_back()), outcome, now=NOW + MINUTE).job

    assert (landed.since, landed.due_since) == (None, landed.due_at)


def test_who_holds_a_job_that_was_put_back_leaves_it_the_time_it_was_due() -> None:
    held = moved(put_back(), Verb.HOLD, Move.HOLD, now=NOW)

    assert (held.due_at, held.since, held.reason) == (NOW - HOUR, None, "operator")
    assert moved(held, Verb.RELEASE, Move.UNHOLD, now=NOW + MINUTE).due_at == NOW - HOUR


@pytest.mark.parametrize(
    ("verb", "move"), [(Verb.RETRY, Move.HURRY), (Verb.RETRY, Move.UNHOLD), (Verb.RETRY, Move.REPLAY)]
)
def test_a_job_that_somebody_sends_on_is_not_late(verb: Verb, move: Move) -> None:
    states = {Move.HURRY: S.PENDING, Move.UNHOLD: S.HELD, Move.REPLAY: S.DEAD}
    sent_on = moved(put_back()._replace(state=states[move]), verb, move, now=NOW)

    assert (sent_on.due_at, sent_on.since) == (NOW, None)


@pytest.mark.parametrize("ahead", [MINUTE, -MINUTE], ids=["before its time", "late"])
def test_a_job_that_need_not_wait_any_more_does_not_go_before_its_time(ahead: timedelta) -> None:
    back = land(row(due_at=NOW + ahead), Returned("limit", HOUR, "waits"), now=NOW).job

    assert recalled(back, NOW).job.due_at == max(NOW, NOW + ahead)
    assert recalled(back, NOW).job.due_since == NOW + ahead
