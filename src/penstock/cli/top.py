"""`penstock top`: what a node is doing, once a second."""

import os
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Final

import click

from penstock.api.stats import look_at, store_figures
from penstock.cli.ask import NodeUnreachable, NotLetIn, ask
from penstock.cli.errors import Refused, Unreachable, reported
from penstock.cli.figures import HEAD, Figures, more_lanes, rows
from penstock.cli.options import (
    Way,
    api_url,
    chosen_way,
    config_option,
    json_option,
    note,
    opened,
    profile_option,
    store_option,
)
from penstock.cli.render import on_terminal, print_json, print_table
from penstock.client import Client
from penstock.config.keys import masked
from penstock.config.settings import load
from penstock.errors import StoreUnavailable
from penstock.observability.live import Pace
from penstock.ports.clock import SystemClock
from penstock.stores.connect import file_of, is_api

EVERY_S: Final = 1.0


@click.command()
@click.option(
    "--url",
    "api",
    metavar="URL",
    callback=api_url,
    envvar="PENSTOCK_URL",
    show_envvar=True,
    help="The node to ask. Default: the one on this machine, if any.",
)
@click.option("--once", is_flag=True, help="Show it once and end.")
@json_option
@store_option
@profile_option
@config_option
def top(*, once: bool, as_json: bool, config: Path | None, **_ways: object) -> None:
    """Show lanes with their rates, lag and trouble, refreshed each second until Ctrl-C.

    A node on this machine that serves the same store is asked; without one the figures come straight from
    the store, and sent/s is then how many jobs succeeded. In a pipe, with --once and with --json it is shown
    once.

    \b
    penstock top
    penstock top --url http://127.0.0.1:7070
    """  # noqa: D301 - \b keeps click from filling the lines
    with reported():
        way = chosen_way()
        if is_api(way.url):
            _show(lambda: _asked(way.url, way.key), once=once, as_json=as_json)
            return
        port = load(config, os.environ)["port"]
        address = f"http://127.0.0.1:{port}"
        if _serves(address, way.url):
            _show(lambda: _asked(address), once=once, as_json=as_json)
            return
        note(f"no node on {address} serves this store: these figures come from the store itself")
        with opened(way) as client:
            _show(FromStore(client, str(masked("store", way.url))), once=once, as_json=as_json)


def _asked(node: str, key: str | None = None) -> Figures:
    try:
        found = ask(node, "/api/stats", key=key)
    except NotLetIn as error:
        raise Refused(str(error)) from error
    except NodeUnreachable as error:
        raise Unreachable(str(error)) from error
    if not isinstance(found.get("lanes"), list) or not isinstance(found.get("node"), dict):
        raise Unreachable(str(NodeUnreachable(node, "what answers there is no Penstock node")))
    return found


def _serves(address: str, url: str) -> bool:
    """Say whether the node there serves this store.

    A file may be named from the folder that each of us is in, so two of one name are the same only if the
    node is known in ours.
    """
    try:
        node = ask(address, "/api/stats")["node"]
        same, known_as = node["store"] == str(masked("store", url)), (node["id"], node["name"])
    except (NodeUnreachable, KeyError, TypeError):
        return False
    if not same or file_of(url) is None:
        return bool(same)
    with opened(Way(url)) as client:
        return known_as in {(each.id, each.name) for each in client.store.nodes()}


class FromStore:
    """The same figures without a node; rates are the difference to the look before."""

    def __init__(self, client: Client, store: str) -> None:
        self._client, self._store = client, store
        self._monotonic = SystemClock().monotonic
        self._before: tuple[float, dict[str, int]] | None = None

    def __call__(self) -> Figures:
        """Look at the store."""
        at, ended = self._monotonic(), self._ended()
        then, before = self._before or (at, ended)
        span = max(at - then, 0.001)
        paces = {
            lane: Pace(max(0, number - before.get(lane, 0)) / span, 0.0, None, None, 0)
            for lane, number in ended.items()
        }
        self._before = (at, ended)
        return {"node": {"store": self._store}, **store_figures(self._client, look_at(self._client, paces))}

    def _ended(self) -> dict[str, int]:
        found: dict[str, int] = {}
        for (lane, state), number in self._client.counts().items():
            if state.label == "succeeded":
                found[lane] = found.get(lane, 0) + number
        return found


def _show(look: Callable[[], Figures], *, once: bool, as_json: bool) -> None:
    figures = look()
    if as_json:
        print_json(figures)
    elif once or not on_terminal():
        print_table(HEAD, rows(figures), empty="no lane\nTry: penstock lanes set NAME --create")
        if figures.get("more_lanes"):
            note(more_lanes(figures))
    else:
        watch(look, figures)


def watch(look: Callable[[], Figures], figures: Figures) -> None:
    """Draw again each second until Ctrl-C; a node that does not answer may come back."""
    from rich.live import Live  # noqa: PLC0415 - only who watches pays for it

    from penstock.cli.screen import screen  # noqa: PLC0415

    pause, problem = threading.Event(), ""
    try:
        with Live(screen(figures), screen=True, auto_refresh=False) as shown:
            while not pause.wait(EVERY_S):
                try:
                    figures, problem = look(), ""
                except (Refused, Unreachable, StoreUnavailable) as error:
                    problem = str(error)
                shown.update(screen(figures, problem=problem), refresh=True)
    except KeyboardInterrupt:
        return
