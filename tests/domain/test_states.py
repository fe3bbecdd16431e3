"""The machine says what the design says: every move, every verb, and nothing else."""

import pytest

from penstock.domain.states import (
    IN_FLIGHT,
    LIVE,
    RULES,
    TERMINAL,
    VERBS,
    Answer,
    Count,
    Effect,
    JobState,
    Move,
    Reason,
    Verb,
    after,
    allowed,
    answer,
    does_nothing,
    overtaken,
)
from penstock.errors import IllegalTransition

S = JobState

# move: the states it leaves, those it also leaves while the send is open, where it leads to
MOVES: dict[Move, tuple[set[JobState], set[JobState], JobState]] = {
    Move.RELEASE: ({S.WAITING}, set(), S.PENDING),
    Move.CLAIM: ({S.PENDING}, set(), S.CLAIMED),
    Move.RETURN: ({S.CLAIMED}, set(), S.PENDING),
    Move.SENT: ({S.CLAIMED}, set(), S.DISPATCHED),
    Move.DEFER: ({S.CLAIMED, S.DISPATCHED, S.RUNNING}, set(), S.PENDING),
    Move.RETRY: ({S.CLAIMED, S.DISPATCHED, S.RUNNING}, {S.PENDING, S.HELD}, S.PENDING),
    Move.FAIL: ({S.CLAIMED, S.DISPATCHED, S.RUNNING}, {S.PENDING, S.HELD}, S.DEAD),
    Move.START: ({S.CLAIMED, S.DISPATCHED, S.RUNNING}, {S.PENDING}, S.RUNNING),
    Move.SUCCEED: ({S.CLAIMED, S.DISPATCHED, S.RUNNING}, {S.PENDING, S.HELD}, S.SUCCEEDED),
    Move.LAPSE: ({S.CLAIMED, S.DISPATCHED, S.RUNNING}, set(), S.PENDING),
    Move.LAPSE_HOLD: ({S.CLAIMED, S.DISPATCHED, S.RUNNING}, set(), S.HELD),
    Move.LAPSE_DEAD: ({S.CLAIMED, S.DISPATCHED, S.RUNNING}, set(), S.DEAD),
    Move.EXPIRE: ({S.PENDING, S.CLAIMED}, set(), S.EXPIRED),
    Move.CANCEL: (
        {S.WAITING, S.PENDING, S.HELD, S.DEAD, S.CLAIMED, S.DISPATCHED, S.RUNNING},
        set(),
        S.CANCELLED,
    ),
    Move.SKIP: ({S.WAITING, S.PENDING, S.HELD, S.DEAD}, set(), S.SKIPPED),
    Move.HOLD: ({S.WAITING, S.PENDING, S.CLAIMED}, set(), S.HELD),
    Move.UNHOLD: ({S.HELD}, set(), S.PENDING),
    Move.HURRY: ({S.PENDING}, set(), S.PENDING),
    Move.REPLAY: ({S.DEAD, S.EXPIRED, S.CANCELLED}, set(), S.PENDING),
    Move.SETTLE_SUCCEEDED: ({S.DISPATCHED, S.RUNNING, S.HELD, S.DEAD}, set(), S.SUCCEEDED),
    Move.SETTLE_DEAD: ({S.DISPATCHED, S.RUNNING, S.HELD}, set(), S.DEAD),
}
COUNTS: dict[Move, Count] = {
    Move.CLAIM: Count.EPOCH,
    Move.DEFER: Count.DEFERRALS,
    Move.RETRY: Count.ATTEMPT,
    Move.FAIL: Count.ATTEMPT,
    Move.SUCCEED: Count.ATTEMPT,
    Move.LAPSE: Count.RECOVERIES,
    Move.LAPSE_HOLD: Count.RECOVERIES,
    Move.LAPSE_DEAD: Count.RECOVERIES,
    Move.REPLAY: Count.RESET,
}

NOW, ASK = "now", "requested"
# verb: what it does in each state; a state that is not listed refuses it
ANSWERS: dict[Verb, dict[JobState, str]] = {
    Verb.CANCEL: {
        S.WAITING: NOW,
        S.PENDING: NOW,
        S.CLAIMED: ASK,
        S.DISPATCHED: ASK,
        S.RUNNING: ASK,
        S.HELD: NOW,
        S.DEAD: NOW,
    },
    Verb.SKIP: {S.WAITING: NOW, S.PENDING: NOW, S.HELD: NOW, S.DEAD: NOW},
    Verb.HOLD: {S.WAITING: NOW, S.PENDING: NOW, S.CLAIMED: ASK},
    Verb.RELEASE: {S.HELD: NOW},
    Verb.RETRY: {S.PENDING: NOW, S.HELD: NOW, S.DEAD: NOW, S.EXPIRED: NOW, S.CANCELLED: NOW},
    Verb.SETTLE_SUCCEEDED: {S.DISPATCHED: NOW, S.RUNNING: NOW, S.HELD: NOW, S.DEAD: NOW},
    Verb.SETTLE_DEAD: {S.DISPATCHED: NOW, S.RUNNING: NOW, S.HELD: NOW},
    Verb.EDIT: {S.WAITING: NOW, S.PENDING: NOW, S.HELD: NOW, S.DEAD: NOW, S.EXPIRED: NOW, S.CANCELLED: NOW},
}


def test_every_move_is_in_the_design() -> None:
    assert set(RULES) == set(Move) == set(MOVES)


@pytest.mark.parametrize("send_open", [False, True])
@pytest.mark.parametrize("state", JobState)
@pytest.mark.parametrize("move", Move)
def test_a_move_leaves_exactly_the_states_of_the_design(
    move: Move, state: JobState, *, send_open: bool
) -> None:
    leaves, while_open, to = MOVES[move]
    may = state in leaves or (send_open and state in while_open)

    assert allowed(state, move, send_open=send_open) is may
    if may:
        assert after(state, move, send_open=send_open) is to
    else:
        with pytest.raises(IllegalTransition) as caught:
            after(state, move, send_open=send_open)
        assert (caught.value.state, caught.value.move) == (state.label, move)


@pytest.mark.parametrize("move", Move)
def test_a_move_counts_what_the_design_counts(move: Move) -> None:
    counted = COUNTS.get(move)

    assert RULES[move].counts == (frozenset() if counted is None else {counted})


def test_a_refused_move_names_state_and_move() -> None:
    with pytest.raises(IllegalTransition, match="a job that is succeeded cannot claim"):
        after(S.SUCCEEDED, Move.CLAIM)


def test_terminal_states_are_left_by_operators_only() -> None:
    leaving = {move for move, rule in RULES.items() if (rule.leaves | rule.while_open) & TERMINAL}

    assert leaving == {Move.REPLAY, Move.CANCEL, Move.SKIP, Move.SETTLE_SUCCEEDED}


def test_succeeded_and_skipped_are_for_ever() -> None:
    for rule in RULES.values():
        assert not {S.SUCCEEDED, S.SKIPPED} & (rule.leaves | rule.while_open)


def test_every_state_is_live_or_terminal() -> None:
    assert set(JobState) == LIVE | TERMINAL
    assert not LIVE & TERMINAL
    assert {S.CLAIMED, S.DISPATCHED, S.RUNNING} == IN_FLIGHT <= LIVE


def test_every_live_state_can_end_and_can_be_reached() -> None:
    reached = {S.PENDING, S.WAITING}
    while more := {r.to for r in RULES.values() if r.leaves & reached} - reached:
        reached |= more
    assert reached == set(JobState)

    ends = set(TERMINAL)
    while more := {s for r in RULES.values() if r.to in ends for s in r.leaves} - ends:
        ends |= more
    assert ends == set(JobState)


@pytest.mark.parametrize("state", JobState)
@pytest.mark.parametrize("verb", Verb)
def test_a_verb_does_in_each_state_what_the_design_says(verb: Verb, state: JobState) -> None:
    expected = ANSWERS[verb].get(state, "refused")

    assert answer(verb, state).effect == expected
    if verb is not Verb.CANCEL:
        assert answer(verb, state, force=True) == answer(verb, state)


def test_force_cancels_what_is_already_out_and_nothing_else() -> None:
    for state in JobState:
        forced = answer(Verb.CANCEL, state, force=True)
        if state in (S.DISPATCHED, S.RUNNING):
            assert forced == Answer(Effect.NOW, Move.CANCEL)
        else:
            assert forced == answer(Verb.CANCEL, state)


def test_a_refusal_says_what_helps() -> None:
    assert does_nothing(Verb.EDIT, S.CLAIMED) == "edit does nothing to a job that is claimed; hold it first"
    assert does_nothing(Verb.EDIT, S.RUNNING) == "edit does nothing to a job that is running"
    assert overtaken(1).startswith("1 job behind it in its group went already; ")
    assert overtaken(2).startswith("2 jobs behind it")
    assert "--out-of-order" in overtaken(2)


def test_a_verbs_move_is_one_the_machine_knows() -> None:
    for states in VERBS.values():
        for state, given in states.items():
            assert given.move is None or allowed(state, given.move)
            assert given.effect is Effect.NOW or given.move is None


def test_only_edits_in_place_act_without_a_move() -> None:
    in_place = {
        (verb, state)
        for verb, states in VERBS.items()
        for state, given in states.items()
        if given.effect is Effect.NOW and given.move is None
    }

    assert in_place == {(Verb.EDIT, S.WAITING), (Verb.EDIT, S.PENDING), (Verb.EDIT, S.HELD)}


def test_stored_numbers_and_words_never_change() -> None:
    assert {state.name: state.value for state in JobState} == {
        "PENDING": 1,
        "CLAIMED": 2,
        "DISPATCHED": 3,
        "RUNNING": 4,
        "HELD": 5,
        "WAITING": 6,
        "SUCCEEDED": 10,
        "SKIPPED": 11,
        "CANCELLED": 12,
        "EXPIRED": 13,
        "DEAD": 14,
    }
    assert [state.label for state in (S.PENDING, S.DEAD)] == ["pending", "dead"]
    assert [str(S.PENDING), f"{S.DEAD:>5}"] == ["pending", " dead"]
    assert " ".join(Reason) == (
        "exhausted permanent too_large stopped not_runnable child_failed poison unreported"
    )
