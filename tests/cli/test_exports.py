"""All of a list into a file, one job to its end, targets that are left alone."""

import csv
import json
from datetime import UTC, datetime, timedelta

from penstock import Client
from tests.cli.conftest import Run, RunJson


def test_an_export_is_one_job_a_line(ready: Run) -> None:
    for n in range(3):
        ready("enqueue", "hello", json.dumps({"n": n}), "--group", f"g-{n}", "--at", "+1h")

    lines = [json.loads(line) for line in ready("jobs", "export", "lane:hello").stdout.splitlines()]
    assert {line["state"] for line in lines} == {"pending"}
    assert "payload" not in lines[0]
    whole = ready("jobs", "export", "payload.n:1", "--payloads").stdout.splitlines()
    assert [json.loads(line)["payload"] for line in whole] == [{"n": 1}]


def test_an_export_can_be_enqueued_again(ready: Run) -> None:
    ready("enqueue", "hello", '{"price":  1.50}', "--group", "g", "--at", "+1h", "--tenant", "acme")
    lines = ready("jobs", "export", "--enqueueable").stdout
    ready("enqueue", "hello", "-", stdin=lines)

    again = ready("jobs", "export", "--payloads").stdout.splitlines()
    assert len(again) == 2
    assert all('"payload":{"price":  1.50}' in line for line in again)  # byte for byte
    assert {json.loads(line)["tenant"] for line in again} == {"acme"}


def test_an_export_to_be_enqueued_keeps_the_order_of_a_group(ready: Run) -> None:
    """Also where a later one ended before an earlier one."""
    made = [ready("enqueue", "hello", str(n), "--group", "g", "--at", "+1h").stdout.strip() for n in range(4)]
    for job in (made[2], made[0]):
        ready("jobs", "cancel", job, "--reason", "a mistake", "--yes")
    lines = ready("jobs", "export", "--enqueueable").stdout
    ready("enqueue", "hello", "-", stdin=lines)

    assert [json.loads(line)["payload"] for line in lines.splitlines()] == [0, 1, 2, 3]
    pending = ready("jobs", "export", "state:pending", "--enqueueable").stdout
    assert [json.loads(line)["payload"] for line in pending.splitlines()] == [1, 3, 0, 1, 2, 3]


def test_what_is_exported_keeps_the_times_that_are_to_come(ready: Run) -> None:
    """What waits for tomorrow waits there too; what has ended goes at once, and so does what is due."""
    now = datetime.now(UTC)
    times = {
        name: now + timedelta(days=day) for day, name in enumerate(("run_at", "start_by", "finish_by"), 1)
    }
    with Client("sqlite:///penstock.db") as client:
        client.enqueue("hello", 1, **times)
        over = client.enqueue("hello", 2, **times).id
        client.enqueue("hello", 3, start_by=times["start_by"])
    ready("jobs", "cancel", over, "--reason", "a mistake", "--yes")
    waits, ended, due = map(json.loads, ready("jobs", "export", "--enqueueable").stdout.splitlines())

    assert {name: datetime.fromisoformat(waits[name]) for name in times} == times
    assert not times.keys() & ended.keys()
    assert times.keys() & due.keys() == {"start_by"}


def test_dead_jobs_that_have_keys_go_again_once(ready: Run) -> None:
    """Their own keys belong to the dead ones for ever; the same pipe, run twice, sends nothing twice."""
    ready("enqueue", "hello", "1", "--key", "order-7", "--at", "+1h")
    lines = ready("jobs", "export", "--enqueueable").stdout

    assert "1 enqueued, 0 already there" in ready("enqueue", "hello", "-", stdin=lines).stderr
    assert "0 enqueued, 1 already there" in ready("enqueue", "hello", "-", stdin=lines).stderr
    own = ready("jobs", "export", "key:order-7", "--enqueueable", "--keys").stdout
    assert "0 enqueued, 1 already there" in ready("enqueue", "hello", "-", stdin=own).stderr
    assert "--keys is for --enqueueable" in ready("jobs", "export", "--keys", code=2).stderr


def test_what_is_masked_is_said_and_is_not_enqueued(ready: Run) -> None:
    with Client("sqlite:///penstock.db") as client:
        client.enqueue("hello", 1, headers={"Authorization": "Bearer abc", "X-A": "***"})
    exported = ready("jobs", "export", "--enqueueable")

    assert "1 job with credentials in the headers, which are not shown" in exported.stderr
    refused = ready("enqueue", "hello", "-", stdin=exported.stdout, code=1)
    assert "0 enqueued, 0 already there, 1 refused" in refused.stderr
    assert "headers: Authorization is a mask" in refused.stdout + refused.stderr
    written = exported.stdout.replace('"Authorization":"***"', '"Authorization":"Bearer abc"').replace(
        '"Authorization": "***"', '"Authorization": "Bearer abc"'
    )
    assert "1 enqueued" in ready("enqueue", "hello", "-", stdin=written).stderr


def test_an_export_for_a_spreadsheet(ready: Run) -> None:
    ready("enqueue", "hello", "1", "--group", "a,b", "--key", "=1+1", "--at", "+1h")
    [row] = csv.DictReader(ready("jobs", "export", "--format", "csv").stdout.splitlines())

    assert (row["lane"], row["group"], row["state"], row["finished_at"]) == ("hello", "a,b", "pending", "")
    assert row["key"] == "'=1+1"  # no formula for whoever opens it
    assert 'unknown lane "nope"' in ready("jobs", "export", "lane:nope").stderr
    assert "leave out --format csv" in ready("jobs", "export", "--format", "csv", "--payloads", code=2).stderr


def test_a_job_is_watched_to_its_end(ready: Run) -> None:
    job = ready("enqueue", "hello", "1", "--at", "+1h").stdout.strip()
    ready("jobs", "cancel", job, "--reason", "a mistake", "--yes")

    lines = ready("jobs", "watch", job).stdout.splitlines()
    assert [line.split("\t")[1] for line in lines] == ["enqueued", "cancel", "cancelled"]
    assert json.loads(ready("jobs", "watch", job, "--json").stdout.splitlines()[0])["event"] == "enqueued"


def test_targets_that_are_left_alone_are_listed(ready: Run, read: RunJson) -> None:
    assert "every target answers" in ready("targets", "list").stderr
    with Client("sqlite:///penstock.db") as client:
        client.store.mark_target(
            "https://shop.example",
            failed=5,
            ok=0,
            trip_after=5,
            open_for=timedelta(minutes=5),
            slow_for=timedelta(0),
        )

    [target] = read("targets", "list")["targets"]
    assert (target["target"], target["state"], target["failures"]) == ("https://shop.example", "open", 5)
    assert "https://shop.example\topen\t5" in ready("targets", "list").stdout
    reset = ("targets", "reset", "https://shop.example/hook", "--reason", "they are back")
    assert "is called again" in ready(*reset).stderr
    assert "was not left alone" in ready(*reset).stderr


def test_a_target_is_paused_and_resumed(ready: Run, read: RunJson) -> None:
    pause = ("targets", "pause", "https://Shop.example/hook", "--reason", "they move")
    assert "https://shop.example is paused until" in ready(*pause, "--until", "+1h").stderr
    [found] = read("targets", "list")["targets"]
    assert (found["target"], found["pause"]["reason"]) == ("https://shop.example", "they move")
    assert "they move" in ready("targets", "list").stdout
    assert "is paused by" in ready("doctor").stdout
    assert ready("targets", "resume", "https://shop.example").stderr == "https://shop.example goes on\n"
    assert "was not paused" in ready("targets", "resume", "https://shop.example").stderr
    assert read("targets", "pause", "http://a", "--reason", "x")["pause"]["until"] is None
    assert "say scheme and host" in ready("targets", "pause", "shop", "--reason", "x", code=2).stderr


def test_a_node_is_drained_and_goes_on(ready: Run, read: RunJson) -> None:
    assert "penstock serve" in ready("nodes", "list").stderr
    with Client("sqlite:///penstock.db") as client:
        node = str(client.store.register_node("host-a"))
        assert "claims nothing more" in ready("nodes", "drain", node, "--reason", "a new machine").stderr
        assert f"{node}\thost-a" in ready("nodes", "list").stdout
        assert "drains" in ready("nodes", "list").stdout
        client.store.beat(int(node), '{"drains": 0}')
        assert "drained" in ready("nodes", "list").stdout
        assert "told by" in ready("doctor", code=1).stdout  # nobody leads
        [shown] = read("nodes", "list")["nodes"]
        assert (shown["drain"]["reason"], shown["claims_left"]) == ("a new machine", 0)
        client.store.beat(int(node), '{"stops": true}')
        assert "stops" in ready("nodes", "list").stdout
        client.store.beat(int(node), '{"stops": true, "gone": true}')
        assert "gone" in ready("nodes", "list").stdout
    assert ready("nodes", "resume", node).stderr == f"node {node} goes on\n"
    assert "no node" in ready("nodes", "drain", "77", "--reason", "x", code=3).stderr
