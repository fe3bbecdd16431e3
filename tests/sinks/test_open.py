"""Sinks by name."""

import io
import os
import re
import sys
import time
import tomllib
from datetime import UTC, datetime
from importlib.metadata import EntryPoint, EntryPoints
from pathlib import Path

import pytest

from penstock.domain.lanes import lane
from penstock.domain.outcomes import Accepted
from penstock.domain.ulid import Ulids
from penstock.ports.clock import SystemClock
from penstock.ports.executor import ThreadExecutor
from penstock.ports.sink import Envelope, OpenSink, Options, Sink, SinkUnavailable, Supplies
from penstock.sinks import open as opening
from penstock.sinks.console import ConsoleSink
from penstock.sinks.http import HttpSink
from penstock.sinks.open import kinds, make_open
from penstock.sinks.python import PythonSink
from penstock.stores.memory import MemoryStore
from penstock.testing.receiver import receiver


def opener(
    executor: ThreadExecutor, settings: dict[str, Options] | None = None, **supplies: object
) -> OpenSink:
    return make_open(
        settings or {},
        executor=executor,
        clock=SystemClock(),
        stream=io.StringIO(),
        **supplies,  # type: ignore[arg-type]
    )


async def failure(open_sink: OpenSink, name: str) -> str:
    with pytest.raises(SinkUnavailable) as caught:
        await open_sink(name)
    return str(caught.value)


async def test_a_kind_alone_is_its_default_connection(executor: ThreadExecutor) -> None:
    stream = io.StringIO()
    open_sink = make_open({}, executor=executor, clock=SystemClock(), stream=stream)

    console = await open_sink("console")
    assert await console.send([Envelope("01JOB", 1, "hello", 1, "{}")]) == [Accepted()]

    assert "hello 01JOB attempt=1 {}" in stream.getvalue()
    http = await open_sink("http")
    assert isinstance(http, HttpSink)
    await http.close()


async def test_without_a_stream_the_console_is_stdout(
    executor: ThreadExecutor, capsys: pytest.CaptureFixture[str]
) -> None:
    console = await make_open({}, executor=executor, clock=SystemClock())("console")
    await console.send([Envelope("01JOB", 1, "hello", 1)])

    assert "hello 01JOB" in capsys.readouterr().out


async def test_a_named_connection_has_its_own_settings(executor: ThreadExecutor, tmp_path: Path) -> None:
    secret = tmp_path / "token"
    secret.write_text("Bearer from-a-file\n", encoding="utf-8")
    async with receiver() as received:
        settings: dict[str, Options] = {
            "crm": {"kind": "http", "url": received.url, "authorization_FILE": str(secret)}
        }
        sink = await opener(executor, settings, allow_networks=["127.0.0.0/8"])("crm")
        assert await sink.send([Envelope("01JOB", 1, "hello", 1)]) == [Accepted("200")]
        await sink.close()

    assert received.requests[0].headers["authorization"] == "Bearer from-a-file"


async def test_a_name_may_stand_for_another_kind(executor: ThreadExecutor) -> None:
    """`[sinks.http] kind = "console"` is odd, but it is what it says."""
    assert isinstance(await opener(executor, {"http": {"kind": "console"}})("http"), ConsoleSink)


async def test_the_embedded_queue_is_the_stores(executor: ThreadExecutor) -> None:
    ids = Ulids(clock=lambda: time.time_ns() // 1_000_000, entropy=os.urandom)
    store = MemoryStore(clock=lambda: datetime.now(UTC), ids=ids)
    sink = await opener(executor, queue=store, endpoint="http://node/process")("embedded")
    await sink.send([Envelope("01JOB", 1, "hello", 1)])

    assert store.queued("hello", ["01JOB:1"]) == {"01JOB:1"}
    assert "no store with queues" in await failure(opener(executor), "embedded")


async def test_settings_that_are_wrong_name_the_connection(executor: ThreadExecutor, tmp_path: Path) -> None:
    settings: dict[str, Options] = {
        "crm": {"kind": "http", "connect_timeout": "soon"},
        "screen": {"kind": "console", "colour": "red"},
        "vault": {"kind": "http", "authorization_FILE": str(tmp_path / "missing")},
    }
    open_sink = opener(executor, settings)

    assert await failure(open_sink, "crm") == (
        "[sinks.crm] connect_timeout: 'soon' is not a duration: write 5s, 250ms, 1m, 2h or 7d"
    )
    assert await failure(open_sink, "screen") == '[sinks.screen] colour: unknown option "colour"; it has none'
    assert "authorization_FILE" in await failure(open_sink, "vault")


@pytest.mark.parametrize("kind", opening.LATER)
async def test_a_kind_of_a_later_version_says_so(executor: ThreadExecutor, kind: str) -> None:
    text = await failure(opener(executor), kind)

    assert text.startswith(f'the sink kind "{kind}" is not in this version yet: use ')
    assert "console, embedded, http" in text


async def test_an_unknown_name_gets_near_matches(executor: ThreadExecutor) -> None:
    open_sink = opener(executor, {"billing-queue": {"kind": "temporal"}, "odd": {"kind": "htpp"}})

    assert await failure(open_sink, "consle") == 'unknown sink "consle"; did you mean console?'
    assert (
        await failure(open_sink, "biling-queue") == 'unknown sink "biling-queue"; did you mean billing-queue?'
    )
    assert await failure(open_sink, "odd") == '[sinks.odd] unknown kind "htpp"; did you mean http?'
    text = await failure(open_sink, "xyz")
    assert text.startswith('unknown sink "xyz"; there are ')
    assert "console, embedded, http" in text
    assert text.endswith(", and [sinks.NAME] names more")
    assert "not in this version yet" in await failure(open_sink, "billing-queue")


async def open_mine(options: Options, supplies: Supplies) -> Sink:
    assert options == {"kind": "mine", "url": "mine://x"}
    assert supplies.writer("mine", format="full").kind == "mine"
    return PythonSink(lambda _: None)


@pytest.fixture
def others(monkeypatch: pytest.MonkeyPatch) -> None:
    """Other packages bring kinds: one works, one lacks its driver, one its own function."""
    points = EntryPoints(
        [
            EntryPoint("mine", f"{__name__}:open_mine", opening.GROUP),
            EntryPoint("temporal", "penstock_temporal_that_is_not_there:open", opening.GROUP),
            EntryPoint("other", "another_package_that_is_not_there:open", opening.GROUP),
            EntryPoint("empty", "io:open_nothing", opening.GROUP),
        ]
    )

    def found(*, group: str, **given: str) -> EntryPoints:
        return points.select(group=group, **given)

    monkeypatch.setattr(opening, "entry_points", found)


async def test_other_packages_bring_kinds(executor: ThreadExecutor, others: None) -> None:
    open_sink = opener(executor, {"m": {"kind": "mine", "url": "mine://x"}})

    assert set(kinds()) == {*opening.KINDS, "empty", "mine", "other", "temporal"}
    assert isinstance(await open_sink("m"), PythonSink)
    assert "did you mean mine" in await failure(open_sink, "mne")


async def test_a_kind_whose_driver_is_missing_names_the_extra(executor: ThreadExecutor, others: None) -> None:
    open_sink = opener(executor)

    assert 'pip install "penstock[temporal]"' in await failure(open_sink, "temporal")
    assert "pip install" not in await failure(open_sink, "other")
    assert "is broken" in await failure(open_sink, "empty")


async def test_a_kind_of_ours_whose_driver_is_missing_names_the_extra(
    executor: ThreadExecutor, monkeypatch: pytest.MonkeyPatch
) -> None:
    gone = ("aiobotocore.", "penstock.sinks.sqs", "penstock.brokers.sqs")
    monkeypatch.setitem(sys.modules, "aiobotocore", None)
    for module in [name for name in sys.modules if name.startswith(gone)]:
        monkeypatch.delitem(sys.modules, module)

    assert 'pip install "penstock[sqs]"' in await failure(opener(executor), "sqs")


PAGES = Path(__file__).parents[2] / "docs" / "reference" / "sinks"
TOML = re.compile(r"^```toml\n(?!# penstock.toml)(.*?)^```", re.MULTILINE | re.DOTALL)
EXAMPLES = [
    example
    for page in sorted(PAGES.glob("*.md"))
    for block in TOML.findall(page.read_text(encoding="utf-8"))
    if "sinks" in (example := tomllib.loads(block))
]


def test_every_kind_has_a_page_and_its_credentials_an_example() -> None:
    shown = {sink["kind"] for example in EXAMPLES for sink in example["sinks"].values()}

    assert {page.stem for page in PAGES.glob("*.md")} == {*opening.KINDS}
    assert shown == {*opening.KINDS} - {"console", "embedded", "http"}


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda e: next(iter(e["sinks"])))
async def test_the_examples_of_the_reference_are_right(
    executor: ThreadExecutor, tmp_path: Path, example: dict[str, dict[str, dict[str, str]]]
) -> None:
    """All that is wrong with them here is that there is no broker."""
    (secret := tmp_path / "secret").write_text("hush", encoding="utf-8")
    [(name, sink)] = example["sinks"].items()
    options = {option: str(secret) if option.endswith("_FILE") else value for option, value in sink.items()}
    schemes = {"kafka": "", "sqs": "http://", "router": "http://"}
    scheme = schemes.get(sink["kind"], sink.get("url", "").partition("://")[0] + "://")
    options["url"] = f"{scheme}127.0.0.1:1"
    text = await failure(opener(executor, {name: options}), name)

    assert re.search("cannot be reached|does not let us in|does not answer", text), text
    assert "hush" not in text
    for lane_name, settings in example["lanes"].items():
        assert lane(lane_name, **settings)["sink"] == name
