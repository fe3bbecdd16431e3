"""What `penstock top` draws on a terminal."""

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from penstock.cli.figures import HEAD, Figures, more_lanes, rows, span
from penstock.cli.render import printable


def screen(figures: Figures, *, problem: str = "") -> RenderableType:
    """Return the whole screen: who answers, the lanes, and what is wrong."""
    *names, _ = HEAD  # the note would take the room of the numbers: it is told below
    table = Table(box=None, pad_edge=False, padding=(0, 1))
    for name in names:
        table.add_column(name, justify="left" if name == "lane" else "right", no_wrap=name != "lane")
    for row in rows(figures):
        table.add_row(*map(_cell, names, row))
    more = [Text(more_lanes(figures), style="dim")] if figures.get("more_lanes") else []
    return Group(_head(figures), Text(), table, *more, Text(), *_troubles(figures, problem))


def _cell(name: str, text: str) -> Text:
    if name == "dead" and text != "0":
        return Text(text, style="bold red")
    if name == "held" and text != "0":
        return Text(text, style="yellow")
    return Text(text, style="bold" if name == "lane" else "dim" if text in {"0", "0.0", "-"} else "")


def _head(figures: Figures) -> Text:
    node = figures["node"]
    facts = [f"store {node['store']}"]
    if "id" in node:
        facts = [f"node {node['id']} {node['name']}", *facts, f"up {span(node['uptime_s'])}"]
    leader = figures.get("leader")
    facts.append("no leader" if leader is None else f"node {leader} leads")
    facts.append(f"{len(figures.get('nodes', []))} nodes")
    return Text.assemble(("Penstock", "bold"), "  ", printable("  ·  ".join(facts)))


def _troubles(figures: Figures, problem: str) -> list[Text]:
    found = [problem] if problem else []
    found += [f"the store does not answer: {figures['error']}"] if figures.get("error") else []
    found += [figures["paused"]] if figures.get("paused") else []
    found += [f"not ready: {one['part']}: {one['text']}" for one in figures.get("reasons", [])]
    found += [f"{one['kind']} {one['name']}: {one['text']}" for one in figures.get("troubles", [])]
    found += [f"{one['lane']} is {one['stopped']}" for one in figures["lanes"] if one["stopped"]]
    found += [
        f"{one['lane']} / {one['group']} is blocked by {one['blocker']}, {one['behind']} wait"
        for one in figures.get("blocked", [])
    ]
    return [Text(printable(text), style="red") for text in found]
