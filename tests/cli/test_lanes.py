"""`penstock lanes` and `penstock pools`: looking, changing, stopping, and making them as a file says."""

import sqlite3
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

import pytest

from penstock.domain.lanes import SETTINGS
from tests.cli.conftest import Run, RunJson

FILE = """\
[pools.web]
rate = "200/s"
burst = 50

[lanes.orders]
sink = "http"
target = "http://127.0.0.1:9000/hook"
mode = "block_on_error"
pool = "web"
retry = ["0s", "1m"]
"""


@pytest.fixture
def file(tmp_path: Path) -> str:
    (tmp_path / "lanes.toml").write_text(FILE)
    return "lanes.toml"


def cells(run: Run, *arguments: str) -> list[list[str]]:
    return [line.split("\t") for line in run(*arguments).stdout.splitlines()]


def test_the_list_shows_where_jobs_wait(ready: Run, read: RunJson) -> None:
    ready("enqueue", "hello", "1")

    assert cells(ready, "lanes", "list") == [
        ["hello", "on", "console", "immediate", "-", "1", "0", "0", "0", "-"]
    ]
    [lane] = read("lanes", "list")["lanes"]
    assert (lane["name"], lane["counts"], lane["settings"]["batch_size"]) == ("hello", {"pending": 1}, 500)
    assert lane["settings"]["retry"] == ["0s", "1m", "5m", "15m", "1h"]


def test_show_has_every_setting_and_who_changed_it(ready: Run, read: RunJson) -> None:
    ready("lanes", "set", "hello", "rate=5/s", "enabled=false")

    rows = {row[0]: row[1:] for row in cells(ready, "lanes", "show", "hello")}
    assert set(rows) == set(SETTINGS)
    assert rows["rate"][:2] == ["5/s", "database"]
    assert rows["rate"][2].startswith("cli:")
    assert rows["enabled"][:2] == ["false", "database"]
    assert rows["batch_size"] == ["500", "default", "-"]
    assert rows["queue"] == ["-", "default", "-"]
    shown = read("lanes", "show", "hello")
    assert shown["changed"]["rate"]["actor"].startswith("cli:")
    assert "batch_size" not in shown["changed"]
    assert shown["version"] == 2
    ready("lanes", "set", "hello", "rate=")
    assert {row[0]: row[1:] for row in cells(ready, "lanes", "show", "hello")}["rate"][2].startswith("cli:")


def test_show_says_which_settings_a_file_made(ready: Run, read: RunJson, file: str) -> None:
    ready("lanes", "apply", file)
    ready("lanes", "set", "orders", "rate=5/s", "retry=0s,5m")

    shown = read("lanes", "show", "orders")
    rows = {row[0]: row[1:] for row in cells(ready, "lanes", "show", "orders")}
    for sources in (shown["sources"], {name: row[1] for name, row in rows.items()}):
        assert (sources["pool"], sources["target"]) == (Path(file).name, Path(file).name)
        assert (sources["rate"], sources["retry"], sources["batch_size"]) == (
            "database",
            "database",
            "default",
        )
        assert sources.keys() == SETTINGS.keys()
    of_pool = read("pools", "show", "web")["sources"]
    assert {*of_pool.values()} == {"set", "default"}, "the audit keeps no file of a pool"
    [entry] = [one for one in read("audit", "--lane", "orders")["entries"] if one["action"] == "lane.create"]
    assert entry["reason"] == f"applied from {Path(file).name}"


def test_the_name_of_any_file_can_be_kept(ready: Run, read: RunJson, file: str) -> None:
    odd = Path(file).with_name(f"\udcff\n{'x' * 150}.toml")
    Path(file).rename(odd)
    ready("lanes", "apply", str(odd))

    assert read("lanes", "show", "orders")["sources"]["pool"] == "??" + "x" * 98


@pytest.mark.parametrize("name", ["default", "database", "unknown"])
def test_a_file_is_not_taken_for_what_its_name_says(ready: Run, read: RunJson, file: str, name: str) -> None:
    ready("lanes", "apply", str(Path(file).rename(Path(file).with_name(name))))

    assert read("lanes", "show", "orders")["sources"]["pool"] == f"./{name}"


def test_set_changes_what_is_named_and_leaves_the_rest(ready: Run, read: RunJson) -> None:
    ready("lanes", "set", "hello", "rate=5/s", "retry=0s,1m", "batch_size=7")

    lane = read("lanes", "set", "hello", "rate=", 'retry={"first":"1s","factor":2,"max":"1m","attempts":3}')

    assert lane["settings"]["rate"] is None
    assert lane["settings"]["retry"] == {"first": "1s", "factor": 2, "max": "1m", "attempts": 3}
    assert lane["settings"]["batch_size"] == 7


def test_set_reads_values_as_a_file_has_them(ready: Run, read: RunJson) -> None:
    curve = 'retry={ first = "1s", factor = 2, max = "1m", attempts = 3 }'
    lane = read("lanes", "set", "hello", curve, 'retry_on="404,5xx"', "queue='a'")

    assert lane["settings"]["retry"] == {"first": "1s", "factor": 2, "max": "1m", "attempts": 3}
    assert (lane["settings"]["retry_on"], lane["settings"]["queue"]) == ("404,5xx", "a")
    assert read("lanes", "set", "hello", 'retry=["0s", "1m"]')["settings"]["retry"] == ["0s", "1m"]


def test_set_makes_a_lane_only_when_told_to(ready: Run) -> None:
    refused = ready("lanes", "set", "helo", "rate=5/s", code=3)
    assert 'no lane "helo"; did you mean hello?' in refused.stderr
    assert "penstock lanes set helo --create" in refused.stderr

    ready("lanes", "set", "helo", "rate=5/s", "--create")
    assert [row[0] for row in cells(ready, "lanes", "list")] == ["hello", "helo"]


@pytest.mark.parametrize(
    ("pair", "code", "problem"),
    [
        ("rat=5/s", 2, "rat: there is no such setting; did you mean rate"),
        ("rate", 2, "'rate': write NAME=VALUE"),
        ("=5", 2, "'=5': write NAME=VALUE"),
        ("rate=fast", 2, "rate: 'fast' is not a rate: write 200/s, 10/m or 5/h"),
        ("batch_size=0", 2, "batch_size: must be at least 1"),
        ("batch_size=many", 2, "batch_size: write a whole number"),
        ("enabled=yes", 2, "enabled: write true or false"),
        ("jitter=4", 2, "jitter: '4' is not a duration"),
        ("mode=fifo", 2, "mode: 'fifo' is none of immediate, next_on_error, block_on_error"),
        ("retry=0s,soon", 2, "retry: "),
        ("retry={first=", 2, "is not JSON, write"),
        ('batch_size="7"', 2, "batch_size: write a whole number"),
        ("retention=3d", 2, "retention: '3d' is none of 1d, 7d, 30d, 90d, 1y"),
    ],
)
def test_a_wrong_setting_is_refused_with_what_is_right(
    ready: Run, pair: str, code: int, problem: str
) -> None:
    result = ready("lanes", "set", "hello", pair, code=code)

    assert problem in result.stderr
    assert ready("lanes", "set", "hello", code=2).stderr.count("say what to change") == 1


def test_a_sink_nobody_knows_is_worth_a_warning(ready: Run) -> None:
    assert 'no sink "htpp" is known here; did you mean http?' in (
        ready("lanes", "set", "hello", "sink=htpp").stderr
    )


def test_a_lane_is_stopped_for_a_time_and_goes_on(ready: Run, read: RunJson) -> None:
    assert "Missing option '--reason'" in ready("lanes", "pause", "hello", code=2).stderr
    said = ready("lanes", "pause", "hello", "--reason", "their API is down", "--until", "+1h").stderr
    lane = read("lanes", "show", "hello")

    assert 'lane "hello" is paused until ' in said
    assert (lane["paused"], lane["pause_reason"]) == (True, "their API is down")
    assert datetime.fromisoformat(lane["paused_until"]) > datetime.now(UTC)
    assert cells(ready, "lanes", "list")[0][1] == "paused"
    assert "paused until " in ready("lanes", "show", "hello").stderr

    assert "goes on" in ready("lanes", "resume", "hello").stderr
    assert "was not paused" in ready("lanes", "resume", "hello").stderr
    assert read("lanes", "show", "hello")["paused"] is False
    assert "did you mean hello?" in ready("lanes", "pause", "helo", "--reason", "x", code=3).stderr


@pytest.mark.parametrize(("kind", "name"), [("lanes", "hello"), ("pools", "web")])
def test_a_pause_that_is_over_is_no_pause(
    ready: Run, read: RunJson, tmp_path: Path, kind: str, name: str
) -> None:
    ready("pools", "set", "web", "--create")
    ready(kind, "pause", name, "--reason", "lunch", "--until", "+1h")
    with closing(sqlite3.connect(tmp_path / "penstock.db", isolation_level=None)) as connection:
        connection.execute(f"UPDATE penstock_{kind} SET paused_until = 1 WHERE name = ?", (name,))

    shown, [listed] = read(kind, "show", name), read(kind, "list")[kind]
    for found in (shown, listed):
        assert (found["paused"], found["paused_until"]) == (False, None)
    assert "paused" not in ready(kind, "show", name).stderr
    assert "was not paused" in ready(kind, "resume", name).stderr


def test_a_lane_is_deleted_only_when_it_is_empty_and_somebody_said_yes(ready: Run, read: RunJson) -> None:
    id_ = ready("enqueue", "hello", "1").stdout.strip()
    delete = ("lanes", "delete", "hello", "--reason", "not needed")

    assert "say --yes" in ready(*delete, code=2).stderr
    assert "jobs" in ready(*delete, "--yes", code=1).stderr

    ready("jobs", "cancel", id_, "--reason", "x", "--yes")
    ready(*delete, "--yes")
    assert read("lanes", "list") == {"lanes": []}
    assert "penstock lanes set hello --create" in ready("lanes", "list").stderr


def test_diff_and_apply_do_what_the_file_says_once(ready: Run, read: RunJson, file: str) -> None:
    would = ready("lanes", "diff", file, code=1)
    assert would.stdout.splitlines() == [
        "+ pool web",
        "    rate: none -> 200/s",
        "    burst: none -> 50",
        "+ lane orders",
        "    mode: immediate -> block_on_error",
        "    sink: console -> http",
        "    target: none -> http://127.0.0.1:9000/hook",
        "    pool: none -> web",
        '    retry: ["0s","1m","5m","15m","1h"] -> ["0s","1m"]',
    ]
    assert "only in the store, left alone: lane hello" in would.stderr
    assert ready("lanes", "apply", file, "--dry-run").stdout == would.stdout
    assert [lane["name"] for lane in read("lanes", "list")["lanes"]] == ["hello"]

    assert ready("lanes", "apply", file).stdout == would.stdout
    ready("lanes", "pause", "orders", "--reason", "rest")
    version = read("lanes", "show", "orders")["version"]
    again = ready("lanes", "apply", file)

    assert (again.stdout, "0 changed, 2 as they should be" in again.stderr) == ("", True)
    assert ready("lanes", "diff", file).exit_code == 0
    lane = read("lanes", "show", "orders")
    assert (lane["version"], lane["paused"]) == (version, True)


def test_what_the_file_does_not_say_goes_back_to_its_default(ready: Run, read: RunJson, file: str) -> None:
    ready("lanes", "apply", file)
    ready("lanes", "set", "orders", "rate=1/s")

    diff = read("lanes", "diff", file, code=1)

    assert diff["changes"] == [
        {"kind": "pool", "name": "web", "action": "none", "settings": {}},
        {
            "kind": "lane",
            "name": "orders",
            "action": "update",
            "settings": {"rate": {"before": "1/s", "after": None}},
        },
    ]
    assert diff["left_alone"] == ["lane hello"]


def test_a_wrong_file_changes_nothing_and_names_every_line(ready: Run, read: RunJson, tmp_path: Path) -> None:
    (tmp_path / "bad.toml").write_text('[lanes.good]\n[lanes.bad]\nrat = "5/s"\nbatch_size = 0\n')

    for verb in ("apply", "diff"):
        said = ready("lanes", verb, "bad.toml", code=2).stderr
        assert "bad.toml:3: lanes.bad.rat: there is no such setting; did you mean rate" in said
        assert "bad.toml:4: lanes.bad.batch_size: must be at least 1" in said
    assert [lane["name"] for lane in read("lanes", "list")["lanes"]] == ["hello"]


def test_without_a_file_the_configuration_is_applied(ready: Run, tmp_path: Path) -> None:
    assert "name a file: there is no penstock.toml here" in ready("lanes", "apply", code=2).stderr

    (tmp_path / "penstock.toml").write_text("port = 1\n")
    assert "declares no lane and no pool" in ready("lanes", "apply", code=2).stderr

    (tmp_path / "other.toml").write_text('[lanes.other]\nsink = "htpp"\n')
    result = ready("lanes", "apply", "--config", "other.toml")
    assert result.stdout.startswith("+ lane other")
    assert 'other.toml:2: lanes.other.sink: no sink "htpp" is known here' in result.stderr


def test_connections_of_the_configuration_are_known_whichever_file_lanes_come_from(
    ready: Run, tmp_path: Path
) -> None:
    (tmp_path / "penstock.toml").write_text(
        '[sinks.billing]\nkind = "redis"\nurl = "redis://127.0.0.1:1/0"\n'
    )
    (tmp_path / "lanes.toml").write_text('[lanes.a]\nsink = "billing"\n[lanes.b]\nsink = "biling"\n')

    applied = ready("lanes", "apply", "lanes.toml").stderr
    assert "lanes.a.sink" not in applied
    assert 'lanes.b.sink: no sink "biling" is known here; did you mean billing?' in applied
    assert "known here" not in ready("lanes", "set", "c", "sink=billing", "--create").stderr


def test_pools_are_looked_at_and_changed_like_lanes(ready: Run, read: RunJson) -> None:
    assert "penstock pools set web rate=200/s --create" in ready("pools", "list").stderr
    ready("pools", "set", "web", "rate=200/s", "key=tenant", "--create")
    ready("lanes", "set", "hello", "pool=web")

    assert cells(ready, "pools", "list") == [["web", "on", "200/s", "200", "-", "tenant", "hello"]]
    assert read("pools", "list")["pools"][0]["lanes"] == ["hello"]
    assert read("pools", "set", "web", "burst=5", "key=")["settings"] == {
        "rate": "200/s",
        "burst": 5,
        "max_in_flight": None,
        "key": None,
    }
    rows = {row[0]: row[1:] for row in cells(ready, "pools", "show", "web")}
    assert rows["burst"][:2] == ["5", "set"]
    assert rows["burst"][2].startswith("cli:")
    assert read("pools", "show", "web")["changed"].keys() >= {"rate", "burst"}
    assert "did you mean web?" in ready("pools", "set", "wbe", "rate=1/s", code=3).stderr
    assert (
        "key: 'lane' is none of tenant, target, group"
        in ready("pools", "set", "web", "key=lane", code=2).stderr
    )


def test_a_pool_is_stopped_resumed_and_deleted(ready: Run, read: RunJson) -> None:
    ready("pools", "set", "web", "rate=200/s", "--create")
    ready("lanes", "set", "hello", "pool=web")
    ready("pools", "pause", "web", "--reason", "too many")
    assert cells(ready, "pools", "list")[0][1] == "paused"
    ready("pools", "resume", "web")
    assert cells(ready, "pools", "list")[0][1] == "on"

    delete = ("pools", "delete", "web", "--reason", "x", "--yes")
    assert "hello" in ready(*delete, code=1).stderr
    ready("lanes", "set", "hello", "pool=")
    ready(*delete)
    assert read("pools", "list") == {"pools": []}


def test_what_is_allowed_but_has_no_effect_is_told(ready: Run) -> None:
    assert "no effect without a rate" in ready("pools", "set", "web", "burst=5", "--create").stderr
    assert "no effect" not in ready("pools", "set", "web", "rate=5/s").stderr
    assert "each of its jobs has to name one" in ready("lanes", "set", "hello", "sink=http").stderr
    late = ("enqueue", "hello", "1", "--start-by", "2020-01-01T00:00:00Z", "--target", "http://127.0.0.1:1/")
    assert "--start-by is past already" in ready(*late).stderr
