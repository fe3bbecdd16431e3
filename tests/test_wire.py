"""Jobs as JSON: the names are fixed, and a payload's text survives both ways."""

import json
from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.domain.gates import Explanation, Gate
from penstock.domain.groups import GroupRow
from penstock.domain.job import Attempt, Audit, Context, Enqueued, Job, Live
from penstock.domain.ordering import Mode
from penstock.domain.pauses import Pause
from penstock.domain.payloads import Json
from penstock.domain.states import Effect, JobState
from penstock.errors import InvalidJob, KeyConflict, UnknownLane
from penstock.ports.store import Done, Timeline
from penstock.wire import (
    batch_object,
    done_object,
    encode,
    enqueue_object,
    enqueued_object,
    explanation_object,
    group_object,
    job_object,
    pause_object,
    raw,
    stamp,
    timeline_object,
)

T = datetime(2026, 11, 15, 10, 0, tzinfo=UTC)
NAMES = (
    "id lane group sequence mode state reason run_at start_by finish_by attempt max_attempts recoveries"
    " send tenant key target pool headers entity version event correlation last_error result receipt batch"
    " node lease_until cancel_requested created_at claimed_at sent_at started_at finished_at duration_ms"
    " updated_at payload"
)


def job(payload: str | None = '{"a": 1.10}', **live: object) -> Job:
    row = Live(arrival=1, lane=1, keep=7, mode=2, state=10, ord=99, grp="g", tenant=None, due_at=T)
    context = Context(
        id="01J",
        message_group="g",
        sequence=99,
        run_at=T,
        created_at=T - timedelta(seconds=5),
        payload=payload,
        headers='{"X-A":"b"}',
        target=None,
        pool=None,
        key="k",
        finish_by=None,
        entity=None,
        version=None,
        event=None,
        correlation=None,
    )
    return Job("01J", "pay", JobState.SUCCEEDED, Mode.BLOCK_ON_ERROR, row._replace(**live), context)


def shown(job: Job) -> dict[str, object]:
    found = json.loads(encode(job_object(job)))
    assert isinstance(found, dict)
    return found


def test_the_names_of_a_job_are_fixed() -> None:
    assert " ".join(shown(job())) == NAMES
    assert " ".join(job_object(job(), payload=False)) == NAMES.removesuffix(" payload")


def test_a_job_shows_its_times_in_utc_and_how_long_it_took() -> None:
    ended = job(started_at=T, claimed_at=T - timedelta(seconds=1))._replace(
        finished_at=T.astimezone(timezone(timedelta(hours=2))) + timedelta(milliseconds=1500)
    )

    found = shown(ended)

    assert (found["run_at"], found["duration_ms"]) == ("2026-11-15T10:00:00Z", 1500)
    assert found["finished_at"] == found["updated_at"] == "2026-11-15T10:00:01.500000Z"


def test_a_job_that_took_no_time_took_none() -> None:
    assert shown(job(started_at=T, claimed_at=T)._replace(finished_at=T))["duration_ms"] == 0


def test_a_job_without_its_context_can_be_shown() -> None:
    found = shown(job()._replace(context=None))

    assert (found["payload"], found["key"], found["updated_at"]) == (None, None, None)


def test_a_payload_goes_out_as_it_came() -> None:
    text = '{"a" : 1.10,\n "big":123456789012345678901234567890, "u":"\\u00e9"}'

    assert encode(job_object(job(text))).endswith(f'"payload":{text.replace(chr(10), " ")}}}')


@pytest.mark.parametrize("text", ["not json", "NaN", "[" * 100_000, ""])
def test_what_plain_sql_wrote_and_is_no_json_is_shown_as_text(text: str) -> None:
    assert shown(job(text))["payload"] == text
    assert raw(None) is None


def test_an_enqueue_object_keeps_the_text_of_its_payload() -> None:
    found = enqueue_object('  {"payload" : {"a" : 1.10, "b":[ ]} , "key":"k", "\\u0067roup":"g"}\r')

    assert found == {"payload": '{"a" : 1.10, "b":[ ]}', "key": "k", "group": "g"}
    assert type(found["payload"]) is Json
    assert enqueue_object("{ }") == {}
    assert enqueue_object('{"payload":null}') == {"payload": None}


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "object: is not JSON: Expecting value at character 1"),
        ("nul", "object: is not JSON: Expecting value at character 1"),
        ("[]", 'object: is no object: write {"payload": …} and other fields of a job'),
        ("{", "object: is not JSON: Expecting a name in double quotes and ':' at character 2"),
        ('{"a":}', "object: is not JSON: Expecting value at character 6"),
        ('{"a":1,}', "object: is not JSON: Expecting a name in double quotes and ':' at character 8"),
        ('{"a":1 "b":2}', "object: is not JSON: Expecting ',' or '}' at character 7"),
        ('{"a":1} x', "object: is not JSON: Extra data at character 8"),
        ('{"a":1,"a":2}', "a: stands twice in one object: name each field once"),
        (
            '{"headers":{"A":"1","A":"2"}}',
            "headers: the key 'A' stands twice in one object: name each key once",
        ),
        (
            '{"event":{"id":"1","id":"2"}}',
            "event: the key 'id' stands twice in one object: name each key once",
        ),
        ('{"a":' + "[" * 100_000, "object: is nested too deeply: flatten it, or send the inner part as text"),
        ('{"a":' + "1" * 5000 + "}", None),
    ],
)
def test_what_is_no_enqueue_object_says_where(text: str, problem: str | None) -> None:
    with pytest.raises(InvalidJob) as caught:
        enqueue_object(text)

    assert problem in {None, str(caught.value)}


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@given(st.dictionaries(st.text(), VALUES, max_size=5), st.sampled_from([None, 1]))
def test_taking_an_object_apart_finds_what_a_json_reader_finds(
    given: dict[str, object], indent: int | None
) -> None:
    given.pop("payload", None)
    found = enqueue_object(json.dumps(given | {"payload": given}, indent=indent))

    assert json.loads(found.pop("payload")) == given == found


def test_answers_say_what_became_of_each() -> None:
    answers = [
        Enqueued("01J"),
        Enqueued("01K", duplicate=True),
        InvalidJob("key", "too long"),
        KeyConflict("k", "01L"),
        UnknownLane("order", ["orders"]),
    ]

    assert batch_object(answers)["results"] == [
        {"index": 0, "id": "01J"},
        {"index": 1, "id": "01K", "duplicate": True},
        {"index": 2, "error": "key: too long", "field": "key"},
        {"index": 3, "error": str(answers[3]), "field": "key"},
        {"index": 4, "error": 'unknown lane "order"; did you mean orders?', "field": "lane"},
    ]
    assert enqueued_object(answers[0]) == {"id": "01J"}


def test_a_verb_says_what_it_did() -> None:
    assert done_object("01J", Done(Effect.REFUSED, None, "no such job")) == {
        "id": "01J",
        "effect": "refused",
        "state": None,
        "text": "no such job",
    }


def test_a_timeline_is_everything_in_the_order_of_time() -> None:
    ended = job(
        claimed_at=T + timedelta(seconds=2), sent_at=T + timedelta(seconds=3), node=4, epoch=9, send=2
    )
    attempt = Attempt(
        1, 7, 1, 1, 8, 4, T, T + timedelta(seconds=1), "retry", "boom", T + timedelta(seconds=2)
    )
    moved = Audit(T + timedelta(milliseconds=500), 1, 1, "ann", "hold", '"pending"', None, "because")

    found = timeline_object(
        ended._replace(finished_at=T + timedelta(seconds=4)), Timeline([attempt], [moved])
    )

    assert [event["event"] for event in found["events"]] == [
        "enqueued",
        "hold",
        "retry",
        "claimed",
        "sent",
        "succeeded",
    ]
    assert json.loads(encode(found["events"][2])) == {
        "at": "2026-11-15T10:00:01Z",
        "event": "retry",
        "attempt": 1,
        "send": 1,
        "error": "boom",
        "next": "2026-11-15T10:00:02Z",
        "node": 4,
        "batch": 8,
        "claimed_at": "2026-11-15T10:00:00Z",
    }
    assert found["events"][1]["actor"] == "ann"


def test_times_are_no_finer_than_they_need_to_be() -> None:
    assert stamp(T) == "2026-11-15T10:00:00Z"
    assert stamp(T + timedelta(microseconds=1)) == "2026-11-15T10:00:00.000001Z"


def test_an_explanation_has_its_fixed_names() -> None:
    found = Explanation(JobState.PENDING, Gate.GROUP, "waits", until=T, job="01J")

    assert encode(explanation_object(found)) == (
        '{"state":"pending","gate":"group","text":"waits","since":null,"until":"2026-11-15T10:00:00Z",'
        '"by":null,"job":"01J","eta":null}'
    )


def test_a_group_has_its_fixed_names() -> None:
    row = GroupRow("orders", "A-1", "blocked", "01K", "01J", T, 3, T, T)

    assert encode(group_object(row)) == (
        '{"lane":"orders","group":"A-1","state":"blocked","head":"01K","blocker":"01J",'
        '"since":"2026-11-15T10:00:00Z","behind":3,"next_at":"2026-11-15T10:00:00Z",'
        '"until":"2026-11-15T10:00:00Z"}'
    )


def test_a_pause_says_who_and_until_when() -> None:
    assert pause_object(Pause("ops", "upgrade", T)) == {
        "by": "ops",
        "reason": "upgrade",
        "since": T,
        "until": None,
    }


def test_a_number_that_nobody_can_read_is_refused_in_our_own_words() -> None:
    with pytest.raises(InvalidJob, match="a number too long for any reader") as refused:
        enqueue_object(f'{{"lane": "a", "payload": {{"n": {"1" * 10_000}}}}}')
    assert "sys." not in str(refused.value)
