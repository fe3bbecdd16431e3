"""What `penstock top` draws on a terminal."""

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from penstock.cli.figures import HEAD, Figures, rows
from penstock.cli.render import printable


def screen(figures: Figures, *, problem: str = "") -> RenderableType:
    """Return the whole screen: who answers, the lanes, and what is wrong."""
    table = Table(box=None, pad_edge=False, expand=False)
    for name in HEAD:
        table.add_column(name, justify="left" if name in {"lane", "note"} else "right", no_wrap=True)
    for row in rows(figures):
        table.add_row(*map(_cell, HEAD, row))
    return Group(_head(figures), Text(), table, Text(), *_troubles(figures, problem))


def _cell(name: str, text: str) -> Text:
    if name == "dead" and text != "0":
        return Text(text, style="bold red")
    if name in {"held", "note"} and text not in {"0", ""}:
        return Text(text, style="yellow")
    return Text(text, style="bold" if name == "lane" else "dim" if text in {"0", "0.0", "-"} else "")


def _head(figures: Figures) -> Text:
    node = figures["node"]
    facts = [f"store {node['store']}"]
    if "id" in node:
        leads = "leads" if node["leads"] else "does not lead"
        facts = [f"node {node['id']} {node['name']}", leads, *facts, f"up {node['uptime_s']:.0f} s"]
    return Text.assemble(("Penstock", "bold"), "  ", printable("  ·  ".join(facts)))


def _troubles(figures: Figures, problem: str) -> list[Text]:
    found = [problem] if problem else []
    found += [f"the store does not answer: {figures['error']}"] if figures.get("error") else []
    found += [f"not ready: {one['part']}: {one['text']}" for one in figures.get("reasons", [])]
    found += [f"{one['kind']} {one['name']}: {one['text']}" for one in figures.get("troubles", [])]
    return [Text(printable(text), style="red") for text in found]
