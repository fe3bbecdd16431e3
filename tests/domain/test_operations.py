"""Bulk operations: what they are about, and how they get on."""

import json
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from penstock.domain.edits import Edit
from penstock.domain.lanes import lane as lane_of
from penstock.domain.operations import (
    COLLECT,
    MOST_JOBS,
    MOST_REFUSALS,
    SLICE,
    STATES,
    Meant,
    NewOperation,
    Operation,
    OperationState,
    begun,
    check_room,
    check_same,
    collected,
    edit_of,
    facts,
    meant,
    place_of,
    query_of,
    slice_of,
    worked,
)
from penstock.domain.states import Effect, JobState, Verb
from penstock.errors import InUse, InvalidQuery
from tests.domain.jobs import NOW, job, said

LAST = Meant(1, "A-1", 99, 7, "01K")


def operation(**fields: Any) -> Operation:  # noqa: ANN401
    new = NewOperation(verb=Verb.RETRY, filter="lane:pay", actor="ops", reason="fixed")
    return begun(new, id="01OP", now=NOW)._replace(**fields)


def test_an_operation_begins_by_collecting() -> None:
    fresh = operation()

    assert (fresh.state, fresh.created_at, fresh.next_at, fresh.matched) == ("collecting", NOW, NOW, None)
    assert place_of(fresh) == (-1, "", -1, -1)


@pytest.mark.parametrize("verb", STATES)
def test_a_verb_is_about_the_states_in_which_it_does_something(verb: Verb) -> None:
    query = query_of(verb, "lane:pay", now=NOW, tenant="acme")

    assert (query.states, query.lane, query.tenant, query.limit) == (STATES[verb], "pay", "acme", COLLECT)


def test_a_filter_that_names_a_state_is_taken_at_its_word() -> None:
    assert query_of(Verb.RETRY, "state:cancelled", now=NOW).states == {JobState.CANCELLED}


def test_a_verb_that_is_not_for_many_is_refused() -> None:
    with pytest.raises(InvalidQuery, match="settle_dead is none of"):
        query_of(Verb.SETTLE_DEAD, "", now=NOW)


def test_a_job_has_its_place_in_the_work_by_group_and_sequence() -> None:
    assert meant(job()) == Meant(1, "A-1", 99, 7, "01K")
    assert meant(job(grp=None)).grp == ""


def test_it_collects_page_after_page_and_then_works() -> None:
    page = collected(operation(), 500, "next", 500, NOW)
    assert (page.state, page.found, page.place) == (OperationState.COLLECTING, 500, "next")

    last = collected(page, 20, None, 520, NOW)
    assert (last.state, last.found, last.matched, last.place) == (OperationState.WORKING, 520, 520, None)


def test_one_that_finds_too_many_jobs_does_nothing() -> None:
    after = collected(operation(found=MOST_JOBS), 1, "next", 0, NOW)

    assert (after.state, after.finished_at) == (OperationState.FAILED, NOW)
    assert "narrow the filter" in (after.problem or "")


def test_a_slice_counts_what_became_of_its_jobs() -> None:
    answers = [
        (Effect.NOW, ""),
        (Effect.REQUESTED, ""),
        (Effect.REFUSED, "it has ended"),
        (Effect.REFUSED, ""),
    ]
    after = worked(operation(rate=2), answers, LAST, now=NOW)

    assert (after.done, after.requested, after.refused) == (1, 1, 2)
    assert json.loads(after.refusals) == {"it has ended": 1, "refused": 1}
    assert (place_of(after), after.next_at) == ((1, "A-1", 99, 7), NOW + timedelta(seconds=2))
    assert worked(operation(), answers, LAST, now=NOW).next_at == NOW


@pytest.mark.parametrize(("late", "next_in"), [(0, 0.25), (0.6, -0.35), (30, -0.75)])
def test_a_rate_of_many_slices_a_second_makes_up_for_a_look_per_second(late: float, next_in: float) -> None:
    answers = [(Effect.NOW, "")] * SLICE
    due = operation(rate=4 * SLICE)._replace(next_at=NOW - timedelta(seconds=late))

    assert worked(due, answers, LAST, now=NOW).next_at == NOW + timedelta(seconds=next_in)


def test_of_many_reasons_the_first_are_kept() -> None:
    answers = [(Effect.REFUSED, f"reason {n}") for n in range(MOST_REFUSALS + 5)]
    found = json.loads(worked(operation(), answers, LAST, now=NOW).refusals)

    assert (len(found), found["other reasons"]) == (MOST_REFUSALS + 1, 5)


def test_when_no_job_is_left_it_is_done() -> None:
    after = worked(operation(), [], None, now=NOW)

    assert (after.state, after.finished_at) == (OperationState.DONE, NOW)


@pytest.mark.parametrize(("rate", "size"), [(None, SLICE), (5, 5), (10_000, SLICE)])
def test_a_slice_is_no_more_than_a_seconds_worth(rate: int | None, size: int) -> None:
    assert slice_of(operation(rate=rate)) == size


@pytest.mark.parametrize(
    ("change", "payload", "edit"),
    [
        (None, "1", Edit()),
        ('{"payload": "2", "target": "http://a/"}', "1", Edit(payload="2", target="http://a/")),
        ('{"merge": "{\\"a\\": 2}"}', '{"a": 1, "b": 1}', Edit(payload='{"a": 2, "b": 1}')),
        ('{"merge": "{}"}', None, "it has no payload to change"),
        ('{"merge": "{}"}', "[1]", "its payload is no object, there is nothing to merge into"),
    ],
)
def test_an_edit_is_made_for_each_job(change: str | None, payload: str | None, edit: Edit | str) -> None:
    assert edit_of(change, said(payload=payload), lane_of("pay")) == edit


LARGE = "x" * 60


@pytest.mark.parametrize("change", [{"merge": f'{{"a": "{LARGE}"}}'}, {"payload": f'"{LARGE}"'}])
def test_an_edit_is_held_to_what_the_lane_takes(change: dict[str, str]) -> None:
    small = lane_of("pay", max_payload="50B")
    found = edit_of(json.dumps(change), said(payload='{"b": 1}'), small)
    assert isinstance(found, str)
    assert "more than the lane's max_payload of 50B" in found
    assert isinstance(edit_of(json.dumps(change), said(payload='{"b": 1}'), None), Edit)
    assert isinstance(edit_of('{"payload": null}', said(payload='{"b": 1}'), small), Edit)


def test_the_audit_says_what_there_is_to_say() -> None:
    assert json.loads(facts(operation())) == {
        "operation": "01OP",
        "verb": "retry",
        "filter": "lane:pay",
        "state": "collecting",
        "done": 0,
        "refused": 0,
    }


def test_who_finds_no_place_is_told_what_he_can_do() -> None:
    new = NewOperation(verb=Verb.HOLD, filter="lane:a", actor="ada", reason="x")
    of_a = replace(new, tenant="a")
    others: list[str | None] = [f"t{n}" for n in range(20)]

    check_room(new, others[:19])
    check_room(of_a, ["a"] * 4 + others[:15])
    for asked, taken, why in (
        (of_a, ["a"] * 5, "5 of this tenant are open, as many as it may have; stop one or try later"),
        (of_a, ["a", *others[:19]], "20 are open, as many as there may be; stop one or try later"),
        (of_a, others, "20 are open, as many as there may be; try later"),
        (new, others, "20 are open, as many as there may be; stop one or try later"),
    ):
        with pytest.raises(InUse) as refused:
            check_room(asked, taken)
        assert str(refused.value) == f'operation "lane:a" was not begun: {why}'


def test_a_key_given_again_is_for_the_same_operation() -> None:
    first = NewOperation(verb=Verb.RETRY, filter="lane:a", actor="ada", reason="x", key="k")
    known = begun(first, id="01OP", now=NOW)
    check_same(known, first)
    with pytest.raises(InUse, match="another operation"):
        check_same(known, replace(first, filter="lane:b"))
