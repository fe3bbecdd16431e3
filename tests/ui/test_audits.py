"""What the dashboard tells of a change."""

from penstock.domain.job import AuditEntry
from penstock.ports.clock import SystemClock
from penstock.ui.audits import changes, shown


def _told(action: str, after: str) -> list[tuple[str, str | None]]:
    entry = AuditEntry(1, SystemClock().now(), None, None, "ann", action, None, after, None)
    return [(change.name, change.after) for change in changes(entry)]


def test_a_lane_that_was_made_tells_what_is_not_as_usual() -> None:
    after = '{"rate": "5/s", "weight": 1, "max_in_flight": 200, "paused": false}'
    assert _told("lane.create", after) == [("rate", "5/s")]
    assert _told("pool.create", '{"max_in_flight": 200, "paused": false}') == [("max_in_flight", "200")]


def test_a_key_that_was_made_tells_what_it_says() -> None:
    assert _told("access.create", '{"scopes": "read,enqueue", "tenant": "acme"}') == [
        ("scopes", "read, enqueue"),
        ("tenant", "acme"),
    ]


def test_a_pool_is_named() -> None:
    at = SystemClock().now()
    paused = AuditEntry(1, at, None, None, "ann", "pool.update", '{"name": "web"}', '{"name": "web"}', None)
    gone = AuditEntry(2, at, None, None, "ann", "pool.delete", '{"name": "web"}', None, None)
    of_lane = AuditEntry(3, at, "pay", None, "ann", "lane.create", None, '{"name": "pay"}', None)

    assert [entry["named"] for entry in shown([paused, gone, of_lane])] == ["web", "web", None]


def test_a_target_is_named() -> None:
    said = '{"target": "https://api.example.org", "paused_until": null}'
    paused = AuditEntry(1, SystemClock().now(), None, None, "ann", "target.pause", None, said, "they move")

    assert [entry["named"] for entry in shown([paused])] == ["https://api.example.org"]


def test_an_operation_is_named_and_not_among_its_own_changes() -> None:
    said = '{"operation": "01K", "verb": "retry", "filter": "lane:pay"}'
    begun = AuditEntry(1, SystemClock().now(), None, None, "ann", "operation.start", None, said, "fixed")
    [row] = shown([begun])

    assert row["operation"] == "01K"
    assert [change.name for change in row["changes"]] == ["verb", "filter"]


def test_what_a_bulk_operation_did_has_its_reason_and_a_way_to_the_operation() -> None:
    def done(reason: str | None) -> tuple[str | None, str | None]:
        entry = AuditEntry(1, SystemClock().now(), "pay", "01K", "ann", "retry", "dead", "pending", reason)
        [row] = shown([entry])
        return row["reason"], row["part_of"]

    operation = "01M7PVV5922GQHHZE1JVBQFKXX"
    assert done(f"they are back (operation {operation})") == ("they are back", operation)
    assert done("they are back (operation two)") == ("they are back (operation two)", None)
    assert done(None) == (None, None)
