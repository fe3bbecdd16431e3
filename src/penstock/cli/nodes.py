"""`penstock nodes`: who is alive, who leads, and a way to empty one before it is stopped."""

import re

import click

from penstock.cli.options import actor, json_option, note, reason_option, why_option, with_client
from penstock.cli.render import ago, cell, on_terminal, print_json, print_table
from penstock.client import Client
from penstock.domain.notes import is_alive, read
from penstock.domain.pauses import Pause
from penstock.domain.standing import NodeRow
from penstock.wire import node_object, pause_object


class NodeNumber(click.ParamType[int]):
    """The number of a node."""

    name = "node"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """Return it."""
        text = str(value)
        if not re.fullmatch("[0-9]{1,9}", text) or not int(text):
            self.fail(f"{text!r} is no node: write the number that `penstock nodes list` shows", param, ctx)
        return int(text)


@click.group()
def nodes() -> None:
    """Look at running nodes, and drain one before it is stopped.

    \b
    penstock nodes list
    penstock nodes drain 7 --reason "the machine is replaced"
    penstock nodes resume 7
    """  # noqa: D301 - \b keeps click from filling the lines


@nodes.command("list")
@json_option
@with_client
def list_(client: Client, *, as_json: bool) -> None:
    """List the nodes seen within the hour, newest first: alive or not, who leads, which drain."""
    now, found, leader = client.store.now(), client.store.nodes(), client.store.leader()
    if as_json:
        print_json({"nodes": [node_object(node, now, leader) for node in found], "leader": leader})
        return
    rows = [
        (
            node.id,
            node.name,
            node.version,
            _is(node, alive=is_alive(node, now)),
            "leads" if node.id == leader else None,
            ago(node.seen_at, now) if on_terminal() else node.seen_at,
            f"{node.drain.actor}: {node.drain.reason}" if node.drain else None,
        )
        for node in found
    ]
    head = ("node", "name", "version", "is", "leads", "seen", "drained by")
    print_table(head, rows, empty="no node was seen within the hour\nTry: penstock serve")


@nodes.command()
@click.argument("node", type=NodeNumber())
@reason_option
@json_option
@with_client
def drain(client: Client, node: int, *, reason: str, as_json: bool) -> None:
    """Have a node claim nothing more and finish what it has; then it can be stopped.

    `penstock nodes list` says `drained` once it has nothing left. Other nodes take over its lanes at once. A
    node that is started anew is another one, and claims.
    """
    _print(client.store.drain_node(node, draining=True, actor=actor(), reason=reason), node, as_json=as_json)


@nodes.command()
@click.argument("node", type=NodeNumber())
@why_option
@json_option
@with_client
def resume(client: Client, node: int, *, reason: str, as_json: bool) -> None:
    """Let a drained node claim again."""
    _print(client.store.drain_node(node, draining=False, actor=actor(), reason=reason), node, as_json=as_json)


def _print(drain: Pause | None, node: int, *, as_json: bool) -> None:
    if as_json:
        print_json({"node": node, "drain": pause_object(drain)})
    elif drain is None:
        note(f"node {node} goes on")
    else:
        note(f"node {node} claims nothing more since {cell(drain.at)}: see penstock nodes list")


def _is(node: NodeRow, *, alive: bool) -> str:
    said = read(node.note)
    if not alive:
        return "gone"
    if said.stops:
        return "stops"
    if node.drain is None:
        return "alive"
    return "drained" if said.drains == 0 else "drains"
