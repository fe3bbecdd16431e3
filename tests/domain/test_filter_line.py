"""The filter language: what a line means, and what is said of one that means nothing."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.domain.filter_line import NAMES, quoted, read_filter, without
from penstock.domain.filters import Span
from penstock.domain.fingerprints import coarse_fingerprint_of, fingerprint_of, is_coarse, pattern_of
from penstock.domain.predicates import Op, Predicate, compared, member
from penstock.domain.states import JobState
from penstock.errors import InvalidFilter

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
HOUR = timedelta(hours=1)
US = timedelta(microseconds=1)
ID = "01K9Z3Y8V6J3T5R2Q1P0N9M8K7"


def read(line: str) -> dict[str, object]:
    return {**read_filter(line, now=lambda: NOW)}


def test_the_line_of_the_manual() -> None:
    found = read("lane:pay state:pending run<1h payload.amount>100 error:timeout batch:7")
    assert found == {
        "lane": "pay",
        "state": frozenset({JobState.PENDING}),
        "run": Span(until=NOW + HOUR),
        "where": (
            Predicate("payload", Op.GT, (100,), ("amount",)),
            Predicate("error", Op.HAS, ("timeout",)),
            Predicate("batch", Op.IS, (7,)),
        ),
    }


@pytest.mark.parametrize(
    ("line", "name", "span"),
    [
        ("run<1h", "run", Span(until=NOW + HOUR)),
        ("run<=1h", "run", Span(until=NOW + HOUR + US)),
        ("run<-1h", "run", Span(until=NOW - HOUR)),
        ("run>=0s run<1h", "run", Span(NOW, NOW + HOUR)),
        ("created<1h", "created", Span(since=NOW - HOUR + US)),
        ("created_at>1h", "created", Span(until=NOW - HOUR)),
        ("finished>=2026-03-01T12:00:00Z", "finished", Span(since=NOW)),
        ("finished<2026-03-01T13:00:00+01:00", "finished", Span(until=NOW)),
        ("run<1h run<2h", "run", Span(until=NOW + HOUR)),
    ],
)
def test_times(line: str, name: str, span: Span) -> None:
    assert read(line) == {name: span}


def test_now_is_not_asked_for_nothing() -> None:
    def now() -> datetime:
        raise AssertionError

    assert read_filter("lane:a finished<2026-03-01T12:00:00Z", now=now)


@pytest.mark.parametrize(
    ("line", "predicate"),
    [
        ("payload.a.b:x", Predicate("payload", Op.IS, ("x",), ("a", "b"))),
        ('payload.a:"1"', Predicate("payload", Op.IS, ("1",), ("a",))),
        ("payload.a:18446744073709551615", Predicate("payload", Op.IS, (2**64 - 1,), ("a",))),
        (f"payload.a>={'9' * 3000}", Predicate("payload", Op.GE, (10**3000 - 1,), ("a",))),
        ("payload.a:0.1234567890123456789", Predicate("payload", Op.IS, (0.1234567890123456789,), ("a",))),
        ("payload.a=true,null,1.5", Predicate("payload", Op.IS, (True, None, 1.5), ("a",))),
        ('error:"no \\"route\\", a\\\\b"', Predicate("error", Op.HAS, ('no "route", a\\b',))),
        ("lane:a,b", Predicate("lane", Op.IS, ("a", "b"))),
        ("lane!=a", Predicate("lane", Op.NOT, ("a",))),
        ("payload:word", Predicate("payload", Op.HAS, ("word",))),
        ("attempts>=3", Predicate("attempt", Op.GE, (3,))),
    ],
)
def test_predicates(line: str, predicate: Predicate) -> None:
    assert read(line) == {"where": (predicate,)}


@pytest.mark.parametrize("value", ['"q"', "a\\b", '\\"', "a,b c", "", 'x" lane:"y'])
def test_what_is_quoted_is_read_as_it_was(value: str) -> None:
    assert read(f"group:{quoted(value)}") == {"group": value}


def test_ids_and_states() -> None:
    assert read(f"id:{ID},{ID.lower()}") == {"ids": (ID,)}
    assert read("state!=dead state!=held")["state"] == frozenset(JobState) - {JobState.DEAD, JobState.HELD}


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("lnae:pay", "at character 1: there is no 'lnae'; did you mean lane?"),
        ("lane:a  xyz:1", "at character 9: there is no 'xyz'; known are lane, state"),
        ("state:daed", "there is no state 'daed'; did you mean dead?"),
        ("state:what", "there is no state 'what'; known are pending"),
        ("state:dead state:held", "at character 12: no state is left; write state:dead,held"),
        ("dead", "'dead' is no term; did you mean state:dead"),
        ("timeout", "'timeout' is no term; write name:value, for example error:timeout"),
        (
            "lane:a OR lane:b",
            "at character 8: 'OR' is no term; all terms must hold: write lane:a,b for either",
        ),
        ("(lane:a)", "there is no '(lane'; all terms must hold"),
        ("-lane:a", "there is no '-lane'; all terms must hold: write lane:a,b for either, lane!=a for not"),
        (ID, f"did you mean id:{ID}"),
        ("lane:", "at character 6: there is no value after lane:"),
        ("lane:a,", "at character 8: there is no value after the comma"),
        ('lane:"a', "at character 6: this quote is not closed"),
        ('lane:"a"b', "at character 9: two terms stand together"),
        (":a", "at character 1: a term cannot begin with :"),
        ("lane:a lane:b", "lane stands twice; write lane:a,b for either"),
        ("lane<a", "lane cannot be compared by <; use lane: lane!= lane~"),
        ("run:1h", "run cannot be compared by :; use run< run<= run> run>="),
        ("run<1x", "'1x' is no time; write a duration like run<1h"),
        ("run<2026-03-01T12:00:00", "is no time; write a duration like run<1h, or a time like run<2026"),
        ("run<0001-01-01T00:00:00Z", "is not between the years 1970 and 9998; write a time that every store"),
        ("created<=9999-12-31T23:59:59.999999Z", "is not between the years 1970 and 9998; write a time"),
        ("run<1h,2h", "run< takes one value"),
        ("attempt>x", "'x' is no whole number; write attempt>3"),
        ("batch:99999999999999999999", "no job has batch 99999999999999999999; write a number up to"),
        ("batch:9223372036854775808", "no job has batch 9223372036854775808; write a number up to"),
        ("attempt:32768", "no job has attempt 32768; write a number up to 32767"),
        ("send>2147483648", "write a number up to 2147483647"),
        ("sequence<-2147483649", "no job has sequence -2147483649"),
        ("payload.>1", "names nothing in a payload"),
        ("id:1", "'1' is no id of a job; an id has 26"),
        (f"id:{ID} id:{ID}", "id stands twice"),
        ("lane:a\0", "at character 7: there is a character that no text has"),
        ("lane:a " * 41, "too many terms"),
        ("attempt:" + ",".join("1" * 101), "too many values"),
        ("x" * 4001, "the line is too long"),
    ],
)
def test_what_is_wrong_is_named_with_its_place_and_the_fix(line: str, problem: str) -> None:
    with pytest.raises(InvalidFilter) as caught:
        read(line)
    assert problem in str(caught.value)
    assert caught.value.position >= 1


def refused_at(line: str) -> int:
    try:
        read(line)
    except InvalidFilter as error:
        return error.position
    return 1


pieces = st.lists(st.sampled_from([*'ab:=<>~!",. 1h-', *NAMES]), max_size=30).map("".join)


@given(st.text(max_size=80) | pieces)
def test_a_line_is_read_or_refused(line: str) -> None:
    assert 1 <= refused_at(line) <= len(line) + 1


@given(st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), min_size=1, max_size=60))
def test_any_text_can_be_asked_for_in_quotes(text: str) -> None:
    quoted = text.replace("\\", "\\\\").replace('"', '\\"')
    assert read(f'group:"{quoted}"') == {"group": text}


@pytest.mark.parametrize(
    ("found", "op", "value", "holds"),
    [
        (7, Op.IS, 7, True),
        ("7", Op.IS, 7, True),
        (7.0, Op.IS, 7, True),
        (True, Op.IS, 1, False),
        (None, Op.IS, None, True),
        (0, Op.IS, None, False),
        (7, Op.GT, 3, True),
        ("7", Op.GT, 3, False),
        ("b", Op.GT, "a", True),
        (True, Op.GT, 0, False),
        ([1, "Ab"], Op.HAS, "aB", True),
        (None, Op.HAS, "x", False),
        (None, Op.NOT, "x", True),
    ],
)
def test_comparisons(found: object, op: Op, value: str, *, holds: bool) -> None:
    assert compared(found, op, (value,)) is holds


def test_members_of_payloads() -> None:
    assert member('{"a": [1, {"b": null}]}', ("a", "1", "b")) is None
    for payload in (None, "[]", "{", "{}", "[" * 100_000):
        assert member(payload, ("a",)) is ...


def test_errors_that_differ_in_particulars_have_one_fingerprint() -> None:
    one = fingerprint_of("exhausted", "HTTP 503 from https://a.example/x?id=1: 'busy' after 1.5 s\ntrace")
    two = fingerprint_of("exhausted", "HTTP 503 from https://b.example/y: 'gone' after 20 s")
    assert one == two
    assert one != fingerprint_of("exhausted", "HTTP 500 from https://b.example/y: 'gone' after 20 s")
    assert one != fingerprint_of("permanent", "HTTP 503 from https://a.example/x: 'busy' after 1.5 s")
    assert pattern_of("job 01K9Z3Y8V6J3T5R2Q1P0N9M8K7 failed 3 times") == "job <id> failed N times"
    assert pattern_of(None) == pattern_of("  \n") == ""


def test_terms_are_taken_out_by_their_names_and_the_others_stay_as_they_were() -> None:
    line = '  lane:a  run_at<1h error:"created<1h, or so" Created>=2h state:dead,held  '
    assert without(line, "run", "created") == 'lane:a error:"created<1h, or so" state:dead,held'
    assert without(line) == 'lane:a run_at<1h error:"created<1h, or so" Created>=2h state:dead,held'
    assert without("", "run") == ""
    with pytest.raises(InvalidFilter):
        without('error:"', "run")


def test_a_coarse_fingerprint_tells_nothing_of_the_words_of_others() -> None:
    ann, bob = (f"HTTP 422: {name} has no money" for name in ("Ann", "Bob"))
    assert fingerprint_of("permanent", ann) != fingerprint_of("permanent", bob)
    coarse = coarse_fingerprint_of("permanent", ann)
    assert coarse == coarse_fingerprint_of("permanent", bob) != coarse_fingerprint_of("permanent", "HTTP 500")
    assert (is_coarse(coarse), is_coarse(fingerprint_of("permanent", ann))) == (True, False)
