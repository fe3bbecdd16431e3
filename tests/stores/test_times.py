"""Times go into SQLite as whole microseconds and come back as they were."""

from datetime import UTC, datetime

from hypothesis import example, given
from hypothesis import strategies as st

from penstock.stores.sqlite.times import EPOCH, time_of, to_us

TIMES = st.datetimes(datetime(1970, 1, 1), datetime(9998, 12, 31), timezones=st.just(UTC))  # noqa: DTZ001 - Hypothesis adds the zone


@given(TIMES)
@example(EPOCH)
@example(datetime(2038, 1, 19, 3, 14, 7, 999999, tzinfo=UTC))
@example(datetime(2106, 2, 7, 6, 28, 15, 999999, tzinfo=UTC))
@example(datetime(2106, 2, 7, 6, 28, 16, tzinfo=UTC))
@example(datetime(2106, 2, 7, 6, 28, 16, 1, tzinfo=UTC))
def test_a_time_comes_back_as_it_was(at: datetime) -> None:
    back = time_of(to_us(at))

    assert back == at
    assert back.tzinfo is UTC


@given(st.integers(0, 2**32 * 1_000_000))
def test_a_number_comes_back_as_it_was(us: int) -> None:
    assert to_us(time_of(us)) == us
