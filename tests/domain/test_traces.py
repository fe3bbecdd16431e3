"""Trace context among a job's headers."""

import json

import pytest

from penstock.domain.traces import traceparent_of, well_formed, with_traceparent

GOOD = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
OTHER = "00-1af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00"


@pytest.mark.parametrize(
    "text",
    [
        None,
        "",
        "nonsense",
        GOOD.upper(),
        f"{GOOD}-more",
        "ff-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
        "00-00000000000000000000000000000000-b7ad6b7169203331-01",
        "00-0af7651916cd43dd8448eb211c80319c-0000000000000000-01",
    ],
)
def test_what_is_no_trace_context_is_dropped(text: str | None) -> None:
    assert well_formed(text) is None
    assert well_formed(GOOD) == GOOD


@pytest.mark.parametrize(
    ("headers", "expected"),
    [
        (None, None),
        ('{"X-A":"1"}', None),
        (f'{{"traceparent":"{GOOD}"}}', GOOD),
        (f'{{"X-A":"1","Traceparent":"{GOOD}"}}', GOOD),
        ('{"traceparent":7}', None),
        ('{"traceparent":"x"}', None),
        ('["traceparent"]', None),
        ("traceparent, but no JSON", None),
    ],
)
def test_it_is_found_among_headers_that_anybody_wrote(headers: str | None, expected: str | None) -> None:
    assert traceparent_of(headers) == expected


@pytest.mark.parametrize("headers", [None, "{}", '{"X-A":"1"}', f'{{"TraceParent":"{OTHER}","X-A":"1"}}'])
def test_it_takes_the_place_of_another(headers: str | None) -> None:
    carried = with_traceparent(headers, GOOD)

    assert traceparent_of(carried) == GOOD
    assert set(json.loads(carried)) - {"X-A"} == {"traceparent"}


@pytest.mark.parametrize("headers", ["no JSON", "[1]"])
def test_headers_that_are_none_stay_for_the_sink_to_refuse(headers: str) -> None:
    assert with_traceparent(headers, GOOD) == headers
