"""Merging a change into payloads."""

import json

import pytest

from penstock.domain.operations import edit_of
from penstock.domain.patches import BadPatch, merged


@pytest.mark.parametrize(
    ("payload", "patch", "after"),
    [
        ('{"a": 1.10, "b": 2}', '{"b": 3}', '{"a": 1.10, "b": 3}'),
        ('{"a": 12345678901234567890123}', '{"b": "x"}', '{"a": 12345678901234567890123, "b": "x"}'),
        ('{"a": {"b": 1, "c": [1, null, "ü"]}}', '{"a": {"b": null}}', '{"a": {"c": [1, null, "ü"]}}'),
        ('{"a": 1}', '{"a": {"b": {"c": true}}}', '{"a": {"b": {"c": true}}}'),
        ('{"a": 1}', '{"x": null}', '{"a": 1}'),
    ],
)
def test_what_is_named_changes_and_the_rest_keeps_its_spelling(payload: str, patch: str, after: str) -> None:
    assert merged(payload, patch) == after


@pytest.mark.parametrize(
    ("payload", "patch", "problem"),
    [
        ("[1]", "{}", "no object"),
        ("{", "{}", "no JSON"),
        ("{}", "[]", "a merge is an object"),
        ("{}", '{"a":' * 70 + "1" + "}" * 70, "too deeply"),
    ],
)
def test_what_cannot_be_merged_is_refused(payload: str, patch: str, problem: str) -> None:
    with pytest.raises(BadPatch, match=problem):
        merged(payload, patch)


def test_a_job_without_a_payload_has_nothing_to_merge_into() -> None:
    assert edit_of(json.dumps({"merge": "{}"}), None, None) == "it has no payload to change"
