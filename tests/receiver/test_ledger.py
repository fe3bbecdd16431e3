"""What a receiver makes of what came before."""

from datetime import UTC, datetime

from penstock.domain.ulid import new
from penstock.receiver.ledger import Ledger
from penstock.receiver.requests import Answer, Request

AT = datetime(2026, 3, 1, 12, tzinfo=UTC)


def request(job: str | None, send: int = 1, **said: object) -> Request:
    facts: dict[str, object] = {"id": job, "send": send, "lane": "orders", **said}
    return Request(at=AT, method="POST", path="/", headers={}, body=b"", **facts)  # type: ignore[arg-type]


def arrive(ledger: Ledger, message: Request, status: int = 200) -> Request:
    compared = ledger.compare(message)
    ledger.answered(compared, Answer(status=status))
    return compared


def test_a_first_request_is_nothing_special() -> None:
    first = arrive(Ledger(), request("a"))

    assert (first.repeat, first.same_send, first.after) == (None, False, None)


def test_after_a_refusal_it_is_a_retry() -> None:
    ledger = Ledger()
    arrive(ledger, request("a"), status=500)
    second = arrive(ledger, request("a", send=2), status=503)
    third = arrive(ledger, request("a", send=3))

    assert [(r.repeat, r.same_send) for r in (second, third)] == [("retry", False), ("retry", False)]
    assert (ledger.summary.retries, ledger.summary.duplicates) == (2, 0)


def test_after_a_yes_it_is_a_duplicate_and_the_send_number_tells_which_kind() -> None:
    ledger = Ledger()
    arrive(ledger, request("a"))
    same = arrive(ledger, request("a"))
    other = arrive(ledger, request("a", send=2))

    assert (same.repeat, same.same_send) == ("duplicate", True)
    assert (other.repeat, other.same_send) == ("duplicate", False)
    assert (ledger.summary.duplicates, ledger.summary.duplicates_of_the_same_send) == (2, 1)


def test_while_the_first_is_not_answered_a_second_is_a_duplicate() -> None:
    ledger = Ledger()
    ledger.compare(request("a"))

    assert ledger.compare(request("a")).repeat == "duplicate"


def test_order_is_by_sequence_within_a_group_and_a_lane() -> None:
    ledger = Ledger()
    arrive(ledger, request("a", group="g", sequence=1))
    arrive(ledger, request("c", group="g", sequence=3))
    late = arrive(ledger, request("b", group="g", sequence=2))
    equal = arrive(ledger, request("d", group="g", sequence=3))
    other = arrive(ledger, request("e", group="h", sequence=1))
    elsewhere = arrive(ledger, request("f", group="g", sequence=1, lane="sms"))

    assert [r.after for r in (late, equal, other, elsewhere)] == [3, None, None, None]
    assert (ledger.summary.out_of_order, ledger.summary.groups) == (1, 3)


def test_a_job_that_was_made_after_a_higher_one_came_is_not_out_of_order() -> None:
    ledger = Ledger()
    arrive(ledger, request("a", group="g", sequence=99))
    before, after = (new(int(AT.timestamp() * 1000) + ms, bytes(10)) for ms in (-1, 1))
    late = arrive(ledger, request(before, group="g", sequence=1))
    made_later = arrive(ledger, request(after, group="g", sequence=1))

    assert (late.after, made_later.after) == (99, None)
    assert ledger.summary.out_of_order == 1


def test_order_is_only_about_first_requests_and_ordered_jobs() -> None:
    ledger = Ledger()
    arrive(ledger, request("a", group="g", sequence=1))
    arrive(ledger, request("b", group="g", sequence=2))
    again = arrive(ledger, request("a", group="g", sequence=1))
    free = arrive(ledger, request("c", group="g", sequence=1, mode="immediate"))

    assert (again.after, free.after) == (None, None)


def test_strangers_are_counted_and_not_compared() -> None:
    ledger = Ledger()
    arrive(ledger, request(None), status=404)
    stranger = arrive(ledger, request(None, signature="no signature matches"))

    assert stranger.repeat is None
    assert ledger.summary.counts() == {
        "requests": 2,
        "jobs": 0,
        "groups": 0,
        "taken": 1,
        "turned_down": 1,
        "retries": 0,
        "duplicates": 0,
        "duplicates_of_the_same_send": 0,
        "out_of_order": 0,
        "bad_signatures": 1,
    }


def test_what_is_remembered_is_bounded() -> None:
    ledger = Ledger(remembered=2)
    for job in "abc":
        arrive(ledger, request(job, group=job, sequence=5))

    assert arrive(ledger, request("c")).repeat == "duplicate"
    assert arrive(ledger, request("a")).repeat is None
    assert arrive(ledger, request("x", group="a", sequence=1)).after is None
