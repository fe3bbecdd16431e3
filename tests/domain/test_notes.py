"""What nodes say of themselves, and what is made of nonsense."""

from datetime import UTC, datetime, timedelta

import pytest

from penstock.domain.notes import ALIVE, Recovery, Said, alive, gist, read
from penstock.domain.standing import NodeRow

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)


def test_a_note_says_which_lanes_a_node_serves_and_what_it_waits_for() -> None:
    said = read(
        '{"lanes": ["a"], "sinks": {"billing": "cannot connect"}, "refused": {"a": "no queue"},'
        ' "limits": {"pool/web": "2026-03-01T12:00:00Z", "lane/a": null},'
        ' "calls": {"1": "2026-03-01T12:00:00Z"}, "waits": {"2": "2026-03-01T12:00:00Z"}}'
    )

    assert said.serves("a")
    assert not said.serves("b")
    assert said.sinks == {"billing": "cannot connect"}
    assert said.refused == {"a": "no queue"}
    assert said.limits == {"pool/web": NOW, "lane/a": None}
    assert (said.calls, said.waits) == ({"1": NOW}, {"2": NOW})


def test_only_what_is_new_is_worth_telling_and_a_later_time_is_not() -> None:
    note = (
        '{{"limits": {{"pool/web": "2026-03-01T12:00:{:02}Z"}}, "calls": {{"{}": "2026-03-01T12:00:00Z"}}}}'
    )

    assert gist(note.format(0, "a")) == gist(note.format(1, "a"))
    assert gist(note.format(0, "a")) != gist(note.format(0, "b"))


def test_figures_that_change_all_the_time_are_read_and_are_nothing_new() -> None:
    note = (
        '{{"claimed": {}, "skew_us": -{}, "memory": {}, "loop_delay_us": {},'
        ' "leads": {{"term": {}, "since": "{}"}}}}'
    )
    said = read(note.format(3, 1500, 2**20, 20, 7, NOW.isoformat()))

    assert (said.claimed, said.memory, said.term, said.led_since) == (3, 2**20, 7, NOW)
    assert (said.skew, said.loop_delay) == (timedelta(microseconds=-1500), timedelta(microseconds=20))
    again = note.format(4, 2, 3, 4, 7, (NOW + ALIVE).isoformat())
    assert gist(note.format(3, 1500, 2**20, 20, 7, NOW.isoformat())) == gist(again)
    assert gist(note.format(4, 2, 3, 4, 8, NOW.isoformat())) != gist(again)


def test_what_was_recovered_is_read_and_half_of_it_is_nothing() -> None:
    told = f'{{"at": "{NOW.isoformat()}", "lanes": ["a"], "fates": {{"unknown": 3, "failed": 0}}}}'
    note = f'{{"recovered": {told}}}'

    assert read(note).recovered == Recovery(NOW, {"unknown": 3}, ("a",))
    assert read(note.replace(NOW.isoformat(), "soon")).recovered is None
    assert read(note.replace("3", "-3")).recovered is None


@pytest.mark.parametrize("nonsense", ["1e400", '"1"', "-1" + "0" * 30, "[]", "null"])
def test_figures_that_are_none_are_unknown(nonsense: str) -> None:
    names = ("claimed", "skew_us", "memory", "loop_delay_us", "leads", "recovered")
    assert read("{" + ", ".join(f'"{name}": {nonsense}' for name in names) + "}") == Said()


@pytest.mark.parametrize(
    "note", [None, "", "{}", "nonsense", "[1]", "[" * 100_000, '{"lanes": 1, "sinks": [], "limits": "x"}']
)
def test_a_node_that_does_not_say_serves_every_lane(note: str | None) -> None:
    assert read(note) == Said()
    assert read(note).serves("any")


@pytest.mark.parametrize("at", ['"soon"', '"2026-03-01T12:00:00"', "17"])
def test_a_time_that_is_none_is_unknown(at: str) -> None:
    assert read(f'{{"limits": {{"pool/web": {at}}}}}').limits == {"pool/web": None}


def test_only_nodes_that_were_heard_of_just_now_are_alive() -> None:
    def node(ago: timedelta, note: str) -> NodeRow:
        return NodeRow(1, "a", "1", NOW - ago, NOW - ago, note)

    nodes = [node(timedelta(0), '{"lanes": ["a"]}'), node(ALIVE, '{"lanes": ["b"]}')]
    assert alive(nodes, NOW) == [Said(frozenset({"a"}), who="a (node 1)")]


def test_a_node_that_drains_serves_nothing_and_says_what_it_has_left() -> None:
    said = read('{"lanes": ["a"], "drains": 2}')
    assert (said.drains, said.serves("a"), said.names("a"), said.names("b")) == (2, False, True, False)
    assert read('{"drains": "many"}').drains is None
    assert (read('{"sent": 7, "failed": 2}').sent, read('{"sent": 7, "failed": 2}').failed) == (7, 2)
    assert (read('{"sent": -1, "failed": "x"}').sent, read("{}").sent, read("{}").failed) == (None, None, 0)
    assert gist('{"drains": 2}') != gist('{"drains": 0}')


def test_a_node_that_stops_serves_nothing() -> None:
    said = read('{"lanes": ["a"], "stops": true}')
    assert (said.stops, said.serves("a"), said.names("a"), said.sends) == (True, False, True, True)
    assert not read('{"stops": "soon"}').stops
    assert [read(note).fit for note in ('{"stops": true}', '{"drains": 0}', '{"lanes": []}')] == [False] * 3
    assert read('{"standby": ""}').fit
    assert gist('{"stops": true}') != gist("{}")


def test_a_node_on_standby_serves_nothing() -> None:
    said = read('{"lanes": ["a"], "standby": "redis: gone"}')
    assert (said.standby, said.serves("a"), said.names("a")) == ("redis: gone", False, True)
    assert gist('{"standby": ""}') != gist("{}")


def test_a_router_has_a_number_and_sends_nothing() -> None:
    assert not read('{"lanes": []}').sends
    assert not read('{"lanes": []}').serves("a")
    assert read(None).sends
