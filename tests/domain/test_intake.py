"""Enqueue objects: what is right becomes a job, what is wrong is named with its field and a way out."""

from collections import OrderedDict
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from enum import IntEnum, StrEnum
from types import MappingProxyType
from typing import Any

import pytest

from penstock.domain.intake import MAX_HEADERS_BYTES, MAX_TEXT_BYTES, Fields, new_job
from penstock.domain.job import NewJob
from penstock.domain.ordering import Mode
from penstock.domain.payloads import Json
from penstock.errors import InvalidJob

NOON = datetime(2026, 11, 15, 12, tzinfo=UTC)
ID = "01ARZ3NDEKTSV4RRFFQ69G5FAV"
NAIVE = datetime(2026, 11, 15, 12)  # noqa: DTZ001 - what is to be refused


class Nowhere(tzinfo):
    """A time zone that does not know its offset."""

    def utcoffset(self, _: datetime | None) -> timedelta | None:
        return None


class Stamp(datetime):
    """What data frames have instead of datetimes."""


class Name(StrEnum):
    ORDERS = "orders"


class Number(IntEnum):
    FIVE = 5


def job(**fields: Any) -> NewJob:  # noqa: ANN401
    return new_job({"lane": "orders", **fields})


def problem(given: Any) -> InvalidJob:  # noqa: ANN401
    with pytest.raises(InvalidJob) as caught:
        new_job(given)
    return caught.value


class TestWhatIsRight:
    def test_a_lane_is_enough(self) -> None:
        assert new_job({"lane": "orders"}) == NewJob(lane="orders")

    def test_everything_there_is(self) -> None:
        assert job(
            payload={"n": 1},
            group="customer-7",
            sequence=5,
            mode="block_on_error",
            run_at=NOON,
            start_by=NOON + timedelta(hours=1),
            finish_by=NOON + timedelta(hours=2),
            key="order-7",
            tenant="acme",
            target="https://example.com/hook",
            headers={"X-Trace": "abc"},
            pool="web",
            max_attempts=3,
            id=ID.lower(),
            entity="order/7",
            version="12",
            event={"id": "e1", "type": "order.placed", "at": "2026-11-15T12:00:00Z", "subscription": "s1"},
            correlation="c1",
        ) == NewJob(
            lane="orders",
            payload='{"n":1}',
            group="customer-7",
            sequence=5,
            mode=Mode.BLOCK_ON_ERROR,
            run_at=NOON,
            start_by=NOON + timedelta(hours=1),
            finish_by=NOON + timedelta(hours=2),
            key="order-7",
            tenant="acme",
            target="https://example.com/hook",
            headers='{"X-Trace":"abc"}',
            pool="web",
            max_attempts=3,
            id=ID,
            entity="order/7",
            version="12",
            event='{"id":"e1","type":"order.placed","at":"2026-11-15T12:00:00Z","subscription":"s1"}',
            correlation="c1",
        )

    def test_none_is_not_said(self) -> None:
        assert job(payload=None, group=None, run_at=None, sequence=None) == NewJob(lane="orders")

    @pytest.mark.parametrize("kind", [OrderedDict, MappingProxyType])
    def test_any_mapping_will_do(self, kind: Any) -> None:  # noqa: ANN401
        assert new_job(kind({"lane": "orders"})) == NewJob(lane="orders")

    @pytest.mark.parametrize(
        "text", ["2026-11-15T12:00:00Z", "2026-11-15T13:00:00+01:00", "2026-11-15 12:00:00.000000-00:00"]
    )
    def test_times_are_kept_in_utc(self, text: str) -> None:
        assert job(run_at=text).run_at == NOON

    def test_a_datetime_may_have_any_offset(self) -> None:
        tokyo = NOON.astimezone(timezone(timedelta(hours=9)))

        at = job(run_at=tokyo).run_at

        assert at == NOON
        assert at is not None
        assert at.tzinfo is UTC

    def test_a_datetime_may_be_of_a_class_of_its_own(self) -> None:
        at = job(run_at=Stamp(2026, 11, 15, 12, tzinfo=UTC)).run_at

        assert at == NOON
        assert type(at) is datetime

    def test_texts_and_numbers_are_kept_as_plain_ones(self) -> None:
        made = new_job(
            {
                "lane": Name.ORDERS,
                "group": Name.ORDERS,
                "key": Name.ORDERS,
                "tenant": Name.ORDERS,
                "pool": Name.ORDERS,
                "target": Name.ORDERS,
                "sequence": Number.FIVE,
                "max_attempts": Number.FIVE,
            }
        )

        assert {type(value) for value in made if value is not None} == {str, int}
        assert (made.lane, made.group, made.sequence) == ("orders", "orders", 5)

    def test_a_mode_may_be_given_as_itself(self) -> None:
        assert job(mode=Mode.NEXT_ON_ERROR).mode is Mode.NEXT_ON_ERROR

    def test_a_version_may_be_a_number(self) -> None:
        assert job(version=12).version == "12"

    def test_deadlines_without_run_at_are_taken(self) -> None:
        assert job(start_by=NOON, finish_by=NOON).start_by == NOON

    def test_run_at_without_deadlines_is_taken(self) -> None:
        assert job(run_at=NOON).run_at == NOON

    def test_json_text_is_kept_as_it_is(self) -> None:
        made = job(payload=Json(' {"a" : 1.0}'), headers=Json('{ "A":"b" }'), event=Json('{ "id":"e" }'))

        assert (made.payload, made.headers, made.event) == (' {"a" : 1.0}', '{ "A":"b" }', '{ "id":"e" }')
        assert type(made.payload) is str

    def test_text_is_a_json_string_unless_it_says_otherwise(self) -> None:
        assert job(payload='{"a":1}').payload == r'"{\"a\":1}"'


def test_the_typed_fields_are_those_of_a_job() -> None:
    assert ("lane", "payload", *Fields.__annotations__) == NewJob._fields


class TestWhatIsMadeByHand:
    @pytest.mark.parametrize(
        "made",
        [
            NewJob(lane="orders"),
            NewJob(lane="orders", payload=' {"a" : 1} '),
            NewJob(
                lane="orders",
                payload="1",
                headers='{ "A":"b" }',
                event='{ "id":"e" }',
                sequence=0,
                run_at=NOON,
            ),
        ],
    )
    def test_is_kept_as_it_is(self, made: NewJob) -> None:
        assert new_job(made) == made

    @pytest.mark.parametrize(
        ("made", "field"),
        [
            (NewJob(lane="a b"), "lane"),
            (NewJob(lane=None), "lane"),  # type: ignore[arg-type]
            (NewJob(lane="orders", payload="nope"), "payload"),
            (NewJob(lane="orders", payload={"a": 1}), "payload"),  # type: ignore[arg-type]
            (NewJob(lane="orders", payload={"a": 1}, group="g"), "payload"),  # type: ignore[arg-type]
            (NewJob(lane="orders", group="g", payload='{"a":1,"a":2}'), "payload"),
            (NewJob(lane="orders", headers="[]"), "headers"),
            (NewJob(lane="orders", run_at=NAIVE), "run_at"),
            (NewJob(lane="orders", sequence=-1), "sequence"),
        ],
    )
    def test_is_checked_like_any_other(self, made: NewJob, field: str) -> None:
        assert problem(made).field == field


class TestWhatIsWrong:
    @pytest.mark.parametrize("given", [None, 5, "orders", ["orders"]])
    def test_something_that_is_no_object(self, given: object) -> None:
        assert str(problem(given)).startswith(f"job: is a {type(given).__name__}: write an object")

    @pytest.mark.parametrize("given", [{}, {"payload": 1}, {"lane": None}, {"lane": None, "payload": 1}])
    def test_no_lane(self, given: object) -> None:
        assert str(problem(given)) == "lane: name the lane the job belongs to"

    @pytest.mark.parametrize("value", [1, None])
    def test_an_unknown_field_with_what_was_probably_meant(self, value: object) -> None:
        assert str(problem({"lane": "orders", "paylod": value})) == (
            "paylod: there is no such field; did you mean payload?"
        )

    @pytest.mark.parametrize("name", ["zzz", 5])
    def test_an_unknown_field_with_all_there_are(self, name: object) -> None:
        assert str(problem({"lane": "orders", name: 1})).startswith(
            f"{name}: there is no such field; known are lane, payload, group,"
        )

    @pytest.mark.parametrize(
        ("field", "value", "fix"),
        [
            ("lane", "a b", "is not a lane: use 1 to 63 of"),
            ("lane", "x" * 64, "is not a lane: use 1 to 63 of"),
            ("lane", ["orders"], "is not a lane: write it as text"),
            ("payload", object(), "use dict, list, str"),
            ("payload", float("nan"), "send null or text"),
            ("payload", Json("{"), "is not JSON"),
            ("group", "", "leave it out"),
            ("group", "x" * 256, "use at most 255"),
            ("group", "a\0b", "remove the NUL"),
            ("group", "\ud800", "remove the lone surrogate"),
            ("group", 7, "write it as text"),
            ("tenant", "", "is not a tenant: leave it out"),
            ("key", 7, "is not a key: write it as text"),
            ("pool", "no pool", "is not a pool: use 1 to 63"),
            ("sequence", -1, "write a whole number from 0 to 2147483647"),
            ("sequence", 1 << 31, "write a whole number from 0 to 2147483647"),
            ("sequence", True, "write a whole number"),
            ("sequence", "1", "write a whole number"),
            ("max_attempts", 0, "write a whole number from 1 to 1000"),
            ("max_attempts", 1001, "write a whole number from 1 to 1000"),
            ("max_attempts", True, "write a whole number"),
            ("max_attempts", 1.5, "write a whole number"),
            ("mode", "blocked", "is none of immediate, next_on_error, block_on_error"),
            ("mode", ["immediate"], "is none of immediate"),
            ("run_at", NAIVE, "has no time zone: add an offset"),
            ("run_at", "2026-11-15T10:00:00", "has no time zone"),
            ("run_at", NAIVE.replace(tzinfo=Nowhere()), "has no time zone"),
            ("run_at", "tomorrow", "is not a time: write a time like"),
            ("run_at", 1_700_000_000, "write a time like"),
            (
                "run_at",
                datetime(9999, 12, 31, 23, tzinfo=timezone(-timedelta(hours=2))),
                "is not between the years 1970 and 9998",
            ),
            ("run_at", datetime(1, 1, 1, tzinfo=timezone(timedelta(hours=2))), "is not between the years"),
            ("run_at", "1969-12-31T23:59:59Z", "is not between the years"),
            ("start_by", NAIVE, "has no time zone"),
            ("finish_by", "x", "is not a time"),
            ("id", "42", "is not an id: write its 26 letters and digits"),
            ("id", 42, "is not an id"),
            ("target", "", "write a text that is not empty"),
            ("target", 5, "write a text"),
            ("target", "a\0", "holds a NUL character"),
            ("correlation", "\udfff", "holds a lone surrogate"),
            ("entity", "x" * (MAX_TEXT_BYTES + 1), "use at most 2048"),
            ("version", True, "write a text or a whole number"),
            ("version", 1.5, "write a text or a whole number"),
            ("headers", [], "write an object of texts"),
            ("headers", {"a": 1}, "write an object of texts"),
            ("headers", {"X-A": "1", "x-a": "2"}, "x-a stands twice"),
            (
                "headers",
                {"Authorization": "***"},
                "Authorization is a mask, which stands for what is not shown",
            ),
            ("headers", {"": "x"}, "is no header name"),
            ("headers", {"a:b": "x"}, "is no header name"),
            ("headers", {"ü": "x"}, "is no header name"),
            ("headers", {"a": "x\r\nInjected: y"}, "a holds a line break"),
            ("headers", {"a": "x" * MAX_HEADERS_BYTES}, "are longer than 16384 bytes"),
            ("headers", Json('{"a":"1","a":"2"}'), "stands twice"),
            ("event", {"kind": "x"}, "write an object with id, type, at, subscription"),
            ("event", "e1", "write an object with id"),
            ("event", {"id": 5}, "id write a text"),
        ],
    )
    def test_a_field(self, field: str, value: object, fix: str) -> None:
        refused = problem({"lane": "orders", field: value})

        assert refused.field == field
        assert fix in refused.problem

    @pytest.mark.parametrize("field", ["start_by", "finish_by"])
    def test_a_deadline_before_run_at(self, field: str) -> None:
        refused = problem({"lane": "orders", "run_at": NOON, field: NOON - timedelta(microseconds=1)})

        assert refused.field == field
        assert "is before run_at: the job could never" in refused.problem
