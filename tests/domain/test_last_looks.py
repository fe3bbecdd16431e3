"""What is looked at once more before a job goes, and what stays of a payload that is dropped."""

from datetime import UTC, datetime

import pytest

from penstock.domain.intake import json_problem
from penstock.domain.job import Context
from penstock.domain.payloads import fingerprint

NOW = datetime(2026, 3, 1, tzinfo=UTC)
SAID = Context(
    id="01", message_group=None, sequence=99, run_at=NOW, created_at=NOW, payload='{"a": 1}', headers=None,
    target=None, pool=None, key=None, finish_by=None, entity=None, version=None, event=None, correlation=None,
)  # fmt: skip


def test_what_a_client_wrote_is_not_looked_at_again() -> None:
    assert json_problem(SAID._replace(payload="{not json")) is None


@pytest.mark.parametrize("field", ["payload", "headers", "event"])
def test_what_plain_sql_wrote_and_readers_would_not_agree_on_does_not_go(field: str) -> None:
    written = SAID._replace(unchecked=True)

    assert json_problem(written) is None
    assert str(json_problem(written._replace(**{field: '{"a": 1, "a": 2}'}))).startswith(f"{field}: ")


def test_no_payload_is_not_an_empty_one() -> None:
    assert len({fingerprint(None), fingerprint(""), fingerprint("null")}) == 3
