"""`penstock audit`: who did what, and why."""

import json
from typing import Final

import click

from penstock.cli.options import json_option, note, with_client
from penstock.cli.render import ago, cell, on_terminal, print_json, print_table
from penstock.client import Client
from penstock.domain.filters import MAX_PAGE
from penstock.domain.job import AuditEntry
from penstock.wire import audit_entry_object

MOST_PAGES: Final = 100  # that are looked through for entries that match


@click.command()
@click.option("--lane", metavar="NAME", help="Only of this lane and its jobs.")
@click.option("--people", is_flag=True, help="Only what people did, not what nodes did by themselves.")
@click.option("--actor", metavar="TEXT", help="Only by whom this is a part of the name.")
@click.option("--action", metavar="TEXT", help="Only what begins so: lane, pool.pause, cancel ...")
@click.option("--limit", metavar="N", type=click.IntRange(min=1), default=50, show_default=True)
@click.option("--after", metavar="CURSOR", help="Go on where a page ended: its `next`.")
@json_option
@with_client
def audit(
    client: Client,
    *,
    lane: str | None,
    people: bool,
    actor: str | None,
    action: str | None,
    limit: int,
    after: str | None,
    as_json: bool,
) -> None:
    """List who did what, to which job or lane, with the values before and after and the reason given.

    The newest come first. What nodes did by themselves off the normal path is there too, unless you ask for
    --people; it goes with the job it is about, what people did stays.

    With --json the answer is {"entries": [...], "next": CURSOR}; next is null at the end.
    """
    if lane is not None:
        client.lane(lane)
    shown: list[AuditEntry] = []
    for _ in range(MOST_PAGES):
        page = client.store.audit_log(lane=lane, people=people, limit=min(limit, MAX_PAGE), after=after)
        shown += [entry for entry in page.entries if _wanted(entry, actor, action)]
        after = page.next
        if after is None or len(shown) >= limit:
            break
    if as_json:
        print_json({"entries": [audit_entry_object(entry) for entry in shown], "next": after})
        return
    now = client.store.now()
    head = ("at", "actor", "action", "lane", "job", "change", "reason")
    rows = [
        (
            ago(entry.at, now) if on_terminal() else entry.at,
            entry.actor,
            entry.action,
            entry.lane,
            entry.job,
            _change(entry),
            entry.reason,
        )
        for entry in shown
    ]
    print_table(head, rows, empty="nothing is on record")
    if after is not None:
        note(f"there are more: add --after {after}")


def _wanted(entry: AuditEntry, actor: str | None, action: str | None) -> bool:
    return (actor is None or actor in entry.actor) and (action is None or entry.action.startswith(action))


def _change(entry: AuditEntry) -> str | None:
    """Return what changed in few words: members that differ, else both texts; a pool is named first."""
    was, now = _members(entry.before), _members(entry.after)
    if was is None or now is None:
        return " → ".join(text for text in (entry.before, entry.after) if text) or None
    named = (now or was).get("name") if entry.lane is None else None
    made = entry.before is None and bool(now)  # all of it is new: no need to say so
    names = [] if made else [name for name in {**was, **now} if was.get(name) != now.get(name)]
    changes = ", ".join(f"{name}: {cell(was.get(name))} → {cell(now.get(name))}" for name in names)
    return ": ".join(cell(text) for text in (named, changes) if text) or None


def _members(text: str | None) -> dict[str, object] | None:
    try:
        found = json.loads(text) if text else {}
    except ValueError:
        return None
    return found if isinstance(found, dict) else None
