"""R9: payloads that break readers are refused, or delivered byte for byte; their neighbours never care."""

import hashlib
import io
import json
import sqlite3
from collections import Counter
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

import aiohttp
import psycopg

from penstock.testing.invariants.received import read_lines
from tests.chaos.bench import Bench, bench
from tests.chaos.processes import Node

# What is posted as the payload: its exact bytes within an enqueue object.
POISON: dict[str, bytes] = {
    "NUL": rb'"a\u0000b"',
    "bare NUL": b'"a\x00b"',
    "lone surrogate": rb'"\ud800"',
    "surrogate in UTF-8": b'"\xed\xa0\x80"',
    "broken UTF-8": b'"\xc3("',
    "NaN": b"NaN",
    "infinity": b"-Infinity",
    "beyond any double": b"1e999",
    "nesting": b"[" * 100_000 + b"]" * 100_000,
    "nesting, closed late": b'{"a":' * 1000 + b"1" + b"}" * 1000,
    "5,000 digits": b"9" * 5000,
    "5,000 digits of fraction": b"0." + b"1" * 5000,
    "duplicate keys": b'{"a":1,"a":2}',
    "10 MB": b'"' + b"x" * 10_000_000 + b'"',
    "300 KB": b'"' + b"x" * 300_000 + b'"',
    "not JSON": b"{'a': 1}",
    "byte order mark": b'\xef\xbb\xbf"a"',
    "empty": b"",
    # What every reader can read goes as it is: no escape, blank or digit is changed on the way.
    "characters SQS refuses": b'"\xef\xbf\xbe\xef\xbf\xbf\xc2\x85"',
    "escaped control characters": rb'"\u0001\u001f\u007f"',
    "line separators": b'"\xe2\x80\xa8\xe2\x80\xa9"',
    "astral": rb'"\ud83d\udca7"' + b"",
    "negative zero": b"-0.0",
    "a long exponent": b"1.0000000000000000000001E+0",
    "blanks": b'{ "a" :\t1 ,\r\n"b":2 }',
    "script": b'"</script><script>alert(1)</script>"',
    "SQL": b'"\'; DROP TABLE penstock_jobs; --"',
    "headers": rb'"\r\nX-Evil: 1"',
    "64 deep": b"[" * 64 + b"]" * 64,
    "bytes of each length": '"aüड💧"'.encode(),
}


def enqueue_object(payload: bytes) -> bytes:
    return b'{"lane": "mail", "payload": ' + payload + b"}"


async def post(session: aiohttp.ClientSession, url: str, body: bytes) -> tuple[int, dict[str, object]]:
    headers = {"Content-Type": "application/json"}
    async with session.post(f"{url}/api/jobs", data=io.BytesIO(body), headers=headers) as answer:
        return answer.status, json.loads(await answer.read())


async def offer_alone(session: aiohttp.ClientSession, url: str) -> dict[str, str]:
    """Post each payload in a request of its own; return the ids of those that were taken."""
    taken = {}
    for name, payload in POISON.items():
        status, said = await post(session, url, enqueue_object(payload))
        assert status == 201 or 400 <= status < 500, (name, status, said)
        if status == 201:
            taken[name] = str(said["id"])
    return taken


async def offer_in_batches(session: aiohttp.ClientSession, url: str) -> tuple[dict[str, str], list[str]]:
    """Post each payload between two others; return the ids of what was taken, and of the neighbours."""
    taken, neighbours = {}, []
    for name, payload in POISON.items():
        jobs = b", ".join([enqueue_object(b"1"), enqueue_object(payload), enqueue_object(b"2")])
        status, said = await post(session, url, b'{"jobs": [' + jobs + b"]}")
        if status != 200:  # no list of jobs at all: then none was written
            assert 400 <= status < 500, (name, status, said)
            continue
        results = said["results"]
        assert isinstance(results, Sequence)
        assert "id" in results[0]
        assert "id" in results[2], (name, results)
        neighbours += [results[0]["id"], results[2]["id"]]
        if "id" in results[1]:
            taken[name] = results[1]["id"]
    return taken, neighbours


def insert_plainly(it: Bench, payloads: Sequence[str]) -> None:
    """Write jobs as any program may, past everything that Penstock checks."""
    url = it.cluster.store
    if url.startswith("sqlite"):
        with closing(sqlite3.connect(url.removeprefix("sqlite:///"))) as db, db:
            db.executemany(
                "INSERT INTO penstock_enqueue (lane, payload) VALUES ('mail', ?)", [[p] for p in payloads]
            )
        return
    with psycopg.connect(url) as connection, connection.cursor() as cursor:
        cursor.executemany(
            "INSERT INTO penstock.enqueue (lane, payload) VALUES ('mail', %s)", [[p] for p in payloads]
        )


async def test_poison_is_refused_or_delivered_byte_for_byte(tmp_path: Path, store_url: str) -> None:
    async with bench(tmp_path, store_url, seed=10) as it:
        node = await it.cluster.start("a")
        await _posted(it, node)
        await _inserted(it)
        assert node.process.alive
        assert it.cluster.troubles() == []


async def _posted(it: Bench, node: Node) -> None:
    """What the API takes arrives as it is."""
    async with aiohttp.ClientSession() as session:
        alone = await offer_alone(session, node.url)
        batched, neighbours = await offer_in_batches(session, node.url)
    await it.all_done(within=20)

    sent = {line["id"]: line["sha256"] for line in read_lines(it.listener.log)}
    assert alone.keys() == batched.keys()
    for taken in (alone, batched):
        wrong = [name for name, id_ in taken.items() if sent[id_] != _hash(POISON[name])]
        assert wrong == []
    assert set(sent) == {*alone.values(), *batched.values(), *neighbours}
    assert {"characters SQS refuses", "blanks", "5,000 digits of fraction", "64 deep"} <= alone.keys()
    assert not {"NUL", "lone surrogate", "NaN", "nesting", "duplicate keys", "10 MB"} & alone.keys()


async def _inserted(it: Bench) -> None:
    """What SQL lets through arrives as it is or becomes a dead letter; the jobs around it go."""
    before, counted = it.listener.arrived(), _counts(it)
    written = []
    for text in [payload.decode() for payload in POISON.values() if _is_text(payload)]:
        try:
            insert_plainly(it, ["1", text, "2"])
        except (sqlite3.Error, psycopg.Error):
            continue  # refused at once, all three
        written.append(text)
    await it.all_done(within=20)

    counts = _counts(it) - counted
    assert counts.keys() <= {"succeeded", "dead"}
    assert counts.total() == 3 * len(written) > 0
    sent = Counter(line["sha256"] for line in read_lines(it.listener.log)[before:])
    assert sent[_hash(b"1")] == sent[_hash(b"2")] == len(written)
    assert sent.keys() <= {_hash(text.encode()) for text in [*written, "1", "2"]}


def _counts(it: Bench) -> Counter[str]:
    return Counter({state.label: n for (_, state), n in it.client.counts().items() if n})


def _hash(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def _is_text(payload: bytes) -> bool:
    try:
        return "\0" not in payload.decode()
    except UnicodeDecodeError:
        return False
