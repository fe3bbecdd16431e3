"""Order inside a group, against a slow model that follows the design's sentences one by one."""

from datetime import UTC, datetime, timedelta
from itertools import pairwise

from hypothesis import example, given
from hypothesis import strategies as st

from penstock.domain.ordering import (
    MAX_SEQUENCE,
    SENT_OFFSET,
    Gate,
    Mode,
    Place,
    Standing,
    gate,
    in_order,
    place_of,
    run,
    sent_ord,
    sequence_of,
    waits_for_dead,
)
from penstock.domain.states import LIVE, JobState

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
HOUR = timedelta(hours=1)
PENDING = JobState.PENDING
NEXT, BLOCK = Mode.NEXT_ON_ERROR, Mode.BLOCK_ON_ERROR

sequences = st.integers(0, MAX_SEQUENCE)
small = st.integers(0, 5)


def standing(
    order: int = 99,
    arrival: int = 1,
    mode: Mode = BLOCK,
    state: JobState = PENDING,
    due_at: datetime = NOW,
) -> Standing:
    return Standing(order, arrival, mode, state, due_at)


standings = st.builds(
    standing,
    order=st.builds(lambda sequence, sent: sequence - SENT_OFFSET * sent, small, st.booleans()),
    arrival=st.integers(1, 20),
    mode=st.sampled_from([NEXT, BLOCK]),
    state=st.sampled_from([PENDING] * 6 + sorted(LIVE)),
    due_at=st.sampled_from([NOW - HOUR, NOW, NOW + HOUR]),
)
groups = st.lists(standings, max_size=8, unique_by=lambda s: s.arrival)
places = st.none() | st.builds(Place, small, st.integers(1, 20))


@given(sequences)
@example(0)
@example(MAX_SEQUENCE)
def test_a_sent_job_keeps_its_sequence(sequence: int) -> None:
    sent = sent_ord(sequence)

    assert sent < 0
    assert sequence_of(sent) == sequence_of(sequence) == sequence
    assert sent_ord(sent) == sent
    assert sent >= -SENT_OFFSET


@given(sequences, sequences)
def test_a_sent_job_stands_before_every_unsent_one(one: int, other: int) -> None:
    assert sent_ord(one) < other
    assert (sent_ord(one) < sent_ord(other)) == (one < other)


@given(sequences, st.integers(1, 1 << 60))
def test_a_place_is_the_same_sent_or_not(sequence: int, arrival: int) -> None:
    for order in (sequence, sent_ord(sequence)):
        assert place_of(standing(order, arrival)) == Place(sequence, arrival)


@given(groups)
def test_the_order_is_total(group: list[Standing]) -> None:
    ordered = in_order(reversed(group))

    assert ordered == in_order(group)
    assert sorted(ordered) == sorted(group)
    for before, behind in pairwise(ordered):
        was_sent, is_sent = before.ord < 0, behind.ord < 0
        assert was_sent or not is_sent
        if was_sent == is_sent:
            assert place_of(before) < place_of(behind)


@given(standings, places)
def test_only_block_on_error_waits_and_only_for_earlier_dead(job: Standing, dead: Place | None) -> None:
    expected = job.mode is BLOCK and dead is not None and dead < place_of(job)

    assert waits_for_dead(job, dead) is expected


@given(groups, places, st.sampled_from([NOW - 2 * HOUR, NOW, NOW + HOUR]))
def test_a_run_is_the_longest_prefix_that_may_go(
    group: list[Standing], dead: Place | None, until: datetime
) -> None:
    first = in_order(group)
    length = run(first, until=until, earliest_dead=dead)

    def may_go(job: Standing) -> bool:
        return job.state is PENDING and job.due_at <= until and not waits_for_dead(job, dead)

    assert all(may_go(job) for job in first[:length])
    assert length == len(first) or not may_go(first[length])


@given(groups, places)
def test_the_gate_opens_exactly_when_a_run_begins(group: list[Standing], dead: Place | None) -> None:
    first = in_order(group)
    opens = gate(first[0] if first else None, dead)

    for until in (NOW - HOUR, NOW, NOW + HOUR):
        goes = run(first[:1], until=until, earliest_dead=dead) == 1
        assert goes == (opens.due_at is not None and opens.due_at <= until and not opens.blocked)


def test_a_group_without_jobs_has_no_gate() -> None:
    assert gate(None, Place(0, 1)) == Gate(None, blocked=False)


def test_a_head_that_is_not_pending_holds_without_being_blocked() -> None:
    for state in LIVE - {PENDING}:
        assert gate(standing(state=state), Place(0, 0)) == Gate(None, blocked=False)


def test_a_blocked_head_keeps_its_time() -> None:
    head = standing(due_at=NOW + HOUR)

    assert gate(head, Place(1, 1)) == Gate(NOW + HOUR, blocked=True)
    assert gate(head, Place(99, 1)) == Gate(NOW + HOUR, blocked=False)


def test_modes_have_names_and_only_immediate_is_unordered() -> None:
    assert [mode.label for mode in Mode] == ["immediate", "next_on_error", "block_on_error"]
    assert [mode.ordered for mode in Mode] == [False, True, True]
    assert [mode.value for mode in Mode] == [0, 1, 2]
