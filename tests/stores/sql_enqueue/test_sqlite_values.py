"""SQLite takes any type in any column: what is read as what, and what is refused."""

from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.stores.sql_enqueue.door import Door

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
OFFSETS = st.integers(-23 * 60 - 59, 23 * 60 + 59).map(lambda m: timezone(timedelta(minutes=m)))
TIMES = st.datetimes(datetime(1970, 1, 3), datetime(9998, 12, 29), timezones=OFFSETS)  # noqa: DTZ001


def us(time: datetime) -> int:
    return (time - EPOCH) // timedelta(microseconds=1)


@settings(max_examples=20)
@given(times=st.lists(TIMES, min_size=1, max_size=20), between=st.sampled_from("Tt "))
def test_a_time_is_kept_to_the_microsecond(sqlite: Door, times: list[datetime], between: str) -> None:
    lane = sqlite.lane()

    sqlite.insert_rows(["lane", "run_at"], [(lane, time.isoformat(between)) for time in times])

    assert [row[0] for row in sqlite.contexts(lane, "run_at")] == [us(time) for time in times]


@pytest.mark.parametrize(
    ("given", "text"),
    [
        ("2026-11-15T10:00:00Z", "2026-11-15T10:00:00+00:00"),
        ("2026-11-15t10:00:00z", "2026-11-15T10:00:00+00:00"),
        ("2026-11-15T10:00:00.5Z", "2026-11-15T10:00:00.500000+00:00"),
        ("2026-11-15T10:00:00.123456789-05:30", "2026-11-15T10:00:00.123456-05:30"),
        ("2024-02-29T23:59:59.999999+23:59", "2024-02-29T23:59:59.999999+23:59"),
        (1_794_736_800_000_000, "2026-11-15T10:00:00+00:00"),
        (1_794_736_800_000_000.0, "2026-11-15T10:00:00+00:00"),
        ("1794736800000000", "2026-11-15T10:00:00+00:00"),
    ],
)
def test_times_are_read_as_rfc_3339_or_microseconds(sqlite: Door, given: object, text: str) -> None:
    lane = sqlite.lane()

    sqlite.insert(lane=lane, run_at=given, start_by=given, finish_by=given)

    wanted = us(datetime.fromisoformat(text))
    assert sqlite.contexts(lane, "run_at", "start_by", "finish_by") == [(wanted,) * 3]


@pytest.mark.parametrize(
    "given",
    [
        *("2026-11-15T10:00:00", "2026-11-15 10:00:00", "2026-11-15", "10:00", "now", ""),
        *("2026-13-01T10:00:00Z", "2026-02-30T10:00:00Z", "2026-11-15T24:00:00Z", "2026-11-15T10:00:60Z"),
        *("2026-11-15T10:00:00.Z", "2026-11-15T10:00:00,5Z", "2026-11-15T10:00:00.5.5Z"),
        *("2026-11-15T10:00:00 Z", "2026-11-15T10:00Z"),
        *("2026-11-15T10:00:00+24:00", "2026-11-15T10:00:00+02:60", "2026-11-15T10:00:00+0200"),
        *("2026-11-15T10:00:00+02", "2026-11-15X10:00:00Z", "+2026-11-15T10:00:00Z", " 2026-11-15T10:00:00Z"),
        *(1_794_736_800, 1_794_736_800_000, 1_794_736_800_000_000_000, 0, -1, 1.5, 1e300),
        b"2026-11-15T10:00:00Z",
    ],
)  # fmt: skip
def test_what_may_be_meant_otherwise_is_refused(sqlite: Door, given: object) -> None:
    lane = sqlite.lane()

    for field in ("run_at", "start_by", "finish_by"):
        assert sqlite.refusal(lane=lane, **{field: given}).startswith(
            f"penstock: {field}: write a time of 1970 to 9998 with its offset, like 2026-11-15T10:00:00Z"
        )


@pytest.mark.parametrize("given", [7, 7.0, "7", "007"])
def test_a_number_is_a_number_however_the_driver_binds_it(sqlite: Door, given: object) -> None:
    lane = sqlite.lane()

    sqlite.insert(lane=lane, sequence=given, max_attempts=given)

    assert sqlite.contexts(lane, "sequence", "max_attempts") == [(7, 7)]


@pytest.mark.parametrize("given", [7.5, "7.5", "", " 7", "x", b"7", "9" * 30, 1e300])
def test_what_is_no_whole_number_is_refused(sqlite: Door, given: object) -> None:
    for field in ("sequence", "max_attempts"):
        refusal = sqlite.refusal(lane=sqlite.lane(), **{field: given})

        assert refusal.startswith(f"penstock: {field}: write a whole number")


def test_a_number_as_label_is_its_digits(sqlite: Door) -> None:
    lane = sqlite.lane()

    for _ in range(2):
        sqlite.insert(lane=lane, message_group=17, key=18, tenant=19, payload=20)
    sqlite.insert(lane=lane, key="18", payload="20")

    assert sqlite.contexts(lane, "message_group", "key", "tenant", "payload") == [("17", "18", "19", "20")]


@pytest.mark.parametrize(
    "field", ["payload", "message_group", "key", "tenant", "target", "entity", "correlation"]
)
@pytest.mark.parametrize(
    "raw",
    [
        "CAST(x'22e922' AS TEXT)",
        "CAST(x'229322' AS TEXT)",
        "CAST(x'22e28222' AS TEXT)",
        "'1' || char(0)",
        "x'31'",
        "1.5",
    ],
)
def test_what_no_reader_takes_for_text_is_refused(sqlite: Door, field: str, raw: str) -> None:
    lane = sqlite.lane()

    with pytest.raises(sqlite.sql.refusal, match=f"penstock: {field}: write it as text, in UTF-8"):
        sqlite.sql(f"INSERT INTO penstock.enqueue (lane, {field}) VALUES ('{lane}', {raw})")


@pytest.mark.parametrize("clause", ["OR IGNORE", "OR REPLACE", "OR FAIL", "OR ROLLBACK", "OR ABORT"])
def test_a_conflict_clause_changes_nothing(sqlite: Door, clause: str) -> None:
    lane, insert = sqlite.lane(mode="block_on_error"), f"INSERT {clause} INTO penstock.enqueue"
    for key in ("a", "b", "b"):
        sqlite.sql(f"{insert} (lane, message_group, key, payload) VALUES (?, 'g', ?, '1')", lane, key)
    [first, second] = sqlite.ids(lane)

    for column, value in [("key", "a"), ("id", first), ("sequence", -1)]:
        with pytest.raises(sqlite.sql.refusal, match=f"penstock: {column}: "):
            sqlite.sql(
                f"{insert} (lane, message_group, payload, {column}) VALUES (?, 'g', '2', ?)", lane, value
            )

    assert sqlite.ids(lane) == [first, second]
    assert sqlite.deliver(lane) == ["1", "1"]
