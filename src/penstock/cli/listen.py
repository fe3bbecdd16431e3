"""`penstock listen`: a receiver to try things with, which says what arrives and what is odd about it."""

import asyncio
import errno
import re
import signal
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, nullcontext
from datetime import timedelta
from pathlib import Path
from random import Random
from typing import Final

import click

from penstock.brokers.words import said
from penstock.cli.errors import Refused, reported
from penstock.cli.options import json_option
from penstock.cli.render import print_json, printable, styled
from penstock.domain.durations import BadDuration, parse_duration
from penstock.domain.texts import shown
from penstock.domain.webhooks import BadSecret, secret_bytes
from penstock.ports.clock import SystemClock
from penstock.receiver.ledger import Summary
from penstock.receiver.log import RequestLog
from penstock.receiver.requests import Request
from penstock.receiver.server import Receiver, failing, ignore, serving
from penstock.stores.connect import connect, reach

SHOWN: Final = 200
_PERCENT: Final = re.compile(r"([0-9]{1,3}(?:\.[0-9]{1,6})?)%")


def _share(_: click.Context, option: click.Parameter, value: str) -> float:
    match = _PERCENT.fullmatch(value)
    if match is None or float(match[1]) > 100:
        raise click.BadParameter(f"{value!r} is no share: write 10%, for example", param=option)
    return float(match[1]) / 100


def _duration(_: click.Context, option: click.Parameter, value: str) -> timedelta:
    try:
        return parse_duration(value)
    except BadDuration as error:
        raise click.BadParameter(str(error), param=option) from error


def _secrets(_: click.Context, option: click.Parameter, value: tuple[str, ...]) -> tuple[str, ...]:
    try:
        for secret in value:
            secret_bytes(secret)
    except BadSecret as error:
        raise click.BadParameter(str(error), param=option) from error
    return value


@click.command()
@click.option("--port", type=click.IntRange(0, 65535), default=9000, show_default=True, help="0 = any free.")
@click.option("--host", default="127.0.0.1", show_default=True, help="The address to listen on.")
@click.option(
    "--fail", "share", metavar="10%", default="0%", callback=_share, help="Answer so many with 500."
)
@click.option("--delay", metavar="200ms", default="0s", callback=_duration, help="Wait before every answer.")
@click.option("--seed", type=int, default=0, show_default=True, help="Which requests --fail picks.")
@click.option(
    "--secret",
    "secrets",
    metavar="whsec_…",
    multiple=True,
    callback=_secrets,
    help="Check signatures with this; may be given several times. Answers 401 to what is not genuine.",
)
@click.option("--store", "url", metavar="URL", help="Check signatures with the secrets of this store.")
@click.option(
    "--log",
    "log",
    metavar="FILE",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Append a line of JSON per request, on disk before it is answered.",
)
@click.option("--quiet", is_flag=True, help="Print only the beginning and the summary; for load tests.")
@json_option
def listen(
    *,
    port: int,
    host: str,
    share: float,
    delay: timedelta,
    seed: int,
    secrets: tuple[str, ...],
    url: str | None,
    log: Path | None,
    quiet: bool,
    as_json: bool,
) -> None:
    """Receive what Penstock sends to http targets, and say what arrives, until Ctrl-C.

    Names retries, duplicates (and whether the send number was the same), requests that are out of order
    within their group, and bad signatures.

    Order is checked by sequence: a job of an ordered group whose first request comes after that of a job with
    a higher one is out of order, unless its id is newer than that request. Jobs of the same sequence (99
    unless set) are not compared: they go in the order in which the store took them, which no request tells.
    Give them sequences that rise to have it checked.

    `penstock dev` may send to this machine; `penstock serve` only when `http.allow_networks` says so.
    """
    with reported():
        if not secrets and url is not None:
            secrets = _secrets_of(url)
        receiver = Receiver(
            clock=SystemClock(),
            decide=failing(share, rng=Random(seed), delay=delay),  # noqa: S311 - which requests fail
            tell=ignore if quiet else _print_json if as_json else _print_line,
            secrets=secrets,
        )
        asyncio.run(_listen(receiver, host=host, port=port, log=log, as_json=as_json))
        _print_summary(receiver.ledger.summary, as_json=as_json)


async def _listen(receiver: Receiver, *, host: str, port: int, log: Path | None, as_json: bool) -> None:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stop.set)
    with nullcontext() if log is None else _log(log) as receiver.log:
        async with _serving(receiver, host, port) as url:
            if as_json:
                print_json({"listening": url})
            else:
                checks = "checked" if receiver.secrets else "not checked: give --secret or --store"
                click.echo(f"Listening on {url} (signatures {checks}). Ctrl-C ends it.")
            await stop.wait()


def _log(path: Path) -> RequestLog:
    try:
        return RequestLog(path)
    except OSError as error:
        raise Refused(f"cannot write the log {path}: {error.strerror}: name another with --log") from error


@asynccontextmanager
async def _serving(receiver: Receiver, host: str, port: int) -> AsyncIterator[str]:
    async with AsyncExitStack() as stack:
        try:
            url = await stack.enter_async_context(serving(receiver, host=host, port=port))
        except OSError as error:
            taken = error.errno == errno.EADDRINUSE
            why = "somebody else does: stop that, or choose another with --port" if taken else said(error)
            raise Refused(f"cannot listen on {host} port {port}: {why}") from error
        yield url


def _secrets_of(url: str) -> tuple[str, ...]:
    reach(url)
    store = connect(url)
    try:
        return tuple(secret.secret for secret in store.secrets("webhook"))
    finally:
        store.close()


def _print_json(request: Request) -> None:
    body = request.body.decode(errors="replace")
    print_json(request.facts() | {"body": body if len(body) <= SHOWN else body[:SHOWN] + "…"})


def _print_line(request: Request) -> None:
    ok = request.answer.status < 300
    status = styled(str(request.answer.status), fg="green" if ok else "red")
    place = [printable(request.lane or f"{request.method} {request.path}")]
    if request.group is not None:
        place.append(f"{shown(request.group, SHOWN)}#{request.sequence}")
    if request.id is not None:
        place.append(f"{printable(request.id)} attempt={request.attempt} send={request.send}")
    body = shown(request.body.decode(errors="replace"), SHOWN) or "-"
    time = request.at.astimezone().strftime("%H:%M:%S.%f")[:-3]
    notes = "".join(f" {styled(note, fg='yellow', bold=True)}" for note in odd(request))
    click.echo(f"{time} {status} {' '.join(place)} {body}{notes}")


def odd(request: Request) -> Sequence[str]:
    """Return what is worth saying about a request besides that it came."""
    notes = []
    if request.bad_signature:
        notes.append(f"BAD SIGNATURE ({request.signature})")
    if request.after is not None:
        notes.append(f"OUT OF ORDER (after sequence {request.after})")
    if request.repeat == "retry":
        notes.append("retry")
    if request.repeat == "duplicate":
        notes.append(f"DUPLICATE ({'same' if request.same_send else 'new'} send)")
    return notes


def _print_summary(summary: Summary, *, as_json: bool) -> None:
    if as_json:
        print_json({"summary": summary.counts()})
        return
    counts = [f"{name.replace('_', ' ')} {count}" for name, count in summary.counts().items() if count]
    click.echo(f"\n{', '.join(counts) or 'nothing arrived'}")
