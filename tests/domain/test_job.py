"""What a job says of itself beside its row and its context."""

from datetime import UTC, datetime

import pytest

from penstock.domain.job import Context, Job, Live
from penstock.domain.ordering import Mode, unkept
from penstock.domain.predicates import Op, Predicate, holds
from penstock.domain.states import JobState

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
LIVE = Live(1, 1, 1, 0, JobState.PENDING, 99, None, None, NOW)


def job(*, group: str | None = None, grp: str | None = None, payload: str | None = None) -> Job:
    said = Context("", group, 99, NOW, NOW, payload, *[None] * 9)
    return Job("", "orders", JobState.PENDING, Mode.IMMEDIATE, LIVE._replace(grp=grp), said)


def test_the_group_is_what_the_caller_named() -> None:
    assert job(group="g").group == "g"
    assert job(grp="default").group == "default"
    assert job()._replace(context=None).group is None


def test_the_payload_is_a_value() -> None:
    assert job(payload='{"n": [1, null]}').payload == {"n": [1, None]}
    assert job().payload is None
    assert job()._replace(context=None).payload is None


@pytest.mark.parametrize(
    ("mode", "group", "sequence", "lost"),
    [
        (Mode.IMMEDIATE, None, None, None),
        (Mode.IMMEDIATE, None, 99, None),
        (Mode.IMMEDIATE, None, 1, "sequence"),
        (Mode.IMMEDIATE, "g", 1, "group"),
        (Mode.NEXT_ON_ERROR, "g", 1, None),
    ],
)
def test_only_ordered_modes_keep_what_is_said_about_order(
    mode: Mode, group: str | None, sequence: int | None, lost: str | None
) -> None:
    assert unkept(mode, group, sequence) == lost


def test_by_its_group_an_ordered_job_is_found_and_by_a_part_of_it_any() -> None:
    immediate, ordered = job(group="g"), job(group="g", grp="g")

    assert [holds(Predicate("group", Op.IS, ("g",)), one) for one in (immediate, ordered)] == [False, True]
    assert [holds(Predicate("group", Op.HAS, ("g",)), one) for one in (immediate, ordered)] == [True, True]
    assert [holds(Predicate("group", Op.NOT, ("g",)), one) for one in (immediate, ordered)] == [False, False]
