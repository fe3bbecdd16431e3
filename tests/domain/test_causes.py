"""What dead letters died of."""

from datetime import timedelta

from penstock.domain.causes import causes
from penstock.domain.states import JobState
from tests.domain.jobs import NOW, job

MINUTE = timedelta(minutes=1)


def test_errors_that_differ_in_particulars_have_one_cause_and_the_most_frequent_comes_first() -> None:
    dead = JobState.DEAD
    last, middle, first = (
        job(dead, id="c", error="HTTP 404", reason="permanent", at=NOW),
        job(dead, id="b", error="HTTP 503 from http://a/1", reason="exhausted", at=NOW - MINUTE),
        job(dead, id="a", error="HTTP 503 from http://b/2", reason="exhausted", at=NOW - 2 * MINUTE),
    )

    many, one = causes([last, middle, first])

    assert (many.jobs, many.error, many.reason, many.sample) == (2, "HTTP 503 from <url>", "exhausted", "b")
    assert (many.first, many.last) == (NOW - 2 * MINUTE, NOW - MINUTE)
    assert (one.jobs, one.first, one.last) == (1, NOW, NOW)
    assert one.as_object()["lane"] == "orders"


def test_a_status_is_no_particular() -> None:
    errors = (
        "HTTP 404: no order 7",
        "HTTP 503: busy for 9 s",
        "HTTP 404: no order 8",
        "refused with code 404",
    )

    assert {cause.error: cause.jobs for cause in causes([job(JobState.DEAD, error=e) for e in errors])} == {
        "HTTP 404: no order N": 2,
        "HTTP 503: busy for N s": 1,
        "refused with code 404": 1,
    }


def test_each_lane_has_causes_of_its_own() -> None:
    found = causes([job(JobState.DEAD, lane=lane, error="down") for lane in ("orders", "mail")])

    assert [cause.lane for cause in found] == ["orders", "mail"]
