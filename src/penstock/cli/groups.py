"""`penstock groups`: which ordered groups there are, which are stuck, and what to do about it."""

from collections.abc import Iterator, Sequence
from contextlib import suppress
from datetime import datetime
from typing import Final

import click

from penstock.cli.errors import Refused
from penstock.cli.job_verbs import each
from penstock.cli.options import (
    actor,
    json_option,
    note,
    paged,
    reason_option,
    until_option,
    why_option,
    with_client,
    yes_option,
)
from penstock.cli.render import ago, cell, on_terminal, print_json, print_table
from penstock.cli.times import HELP, time_option
from penstock.client import Client
from penstock.domain.arguments import check_group
from penstock.domain.filters import MAX_PAGE
from penstock.errors import Forbidden
from penstock.ports.insight import GroupRow
from penstock.wire import group_object

NAMES: Final = click.argument("groups", metavar="GROUP...", nargs=-1, required=True)
HEAD: Final = ("lane", "group", "state", "since", "behind", "head", "blocker", "until")


@click.group()
def groups() -> None:
    """Look at ordered groups, and help those that are stuck.

    A group is blocked while its next job waits for one that is dead or held.

    \b
    penstock groups blocked
    penstock jobs explain ID
    penstock groups retry orders A-1 --reason "the address is fixed"
    """  # noqa: D301 - \b keeps click from filling the lines


@groups.command("list")
@paged
@json_option
@with_client
def list_(
    client: Client, *, lane: str | None, limit: int, after: str | None, everything: bool, as_json: bool
) -> None:
    """List groups by lane and name: what each is doing, since when, and how many of its jobs wait.

    busy: a job is in flight. blocked: it waits for a dead or held job. paused: somebody stopped it. waiting:
    for its first job to be due, or to be sent. idle: nothing is left but dead jobs that nobody waits for.

    With --json the answer is {"groups": [...], "next": CURSOR}; next is null at the end.
    """
    wanted = None if everything else limit
    _print(Pages(client, lane, blocked=False, limit=wanted, after=after), as_json=as_json)


@groups.command()
@paged
@json_option
@with_client
def blocked(
    client: Client, *, lane: str | None, limit: int, after: str | None, everything: bool, as_json: bool
) -> None:
    """List groups that wait for a dead or held job, which is named as their blocker."""
    wanted = None if everything else limit
    _print(Pages(client, lane, blocked=True, limit=wanted, after=after), as_json=as_json)


@groups.command()
@click.argument("lane")
@NAMES
@reason_option
@yes_option
@json_option
@with_client
def skip(client: Client, lane: str, groups: Sequence[str], *, reason: str, yes: bool, as_json: bool) -> None:
    """Pass over the job that blocks a group; the group goes on. It cannot be undone."""
    ids = _blockers(client, lane, groups)
    each(ids, lambda id_: client.skip(id_, reason=reason), as_json=as_json, ask="Skip", yes=yes)


@groups.command()
@click.argument("lane")
@NAMES
@reason_option
@json_option
@with_client
def retry(client: Client, lane: str, groups: Sequence[str], *, reason: str, as_json: bool) -> None:
    """Send the job that blocks a group again; the group follows when it is done."""
    ids = _blockers(client, lane, groups)
    each(ids, lambda id_: client.retry(id_, reason=reason), as_json=as_json)


@groups.command(epilog=HELP)
@click.argument("lane")
@click.argument("group")
@reason_option
@until_option
@json_option
@with_client
def pause(client: Client, lane: str, group: str, *, reason: str, until: str | None, as_json: bool) -> None:
    """Stop one ordered group; its jobs wait, other groups go on."""
    at = time_option("--until", until, client.store.now(), future=True)
    who = {"actor": actor(), "reason": reason}
    client.store.pause_group(_known(client, lane), check_group(group), paused=True, until=at, **who)
    if as_json:
        print_json({"lane": lane, "group": group, "paused": True, "until": at})
    else:
        note(f'group "{group}" is paused' + (f" until {cell(at)}" if at else ""))


@groups.command()
@click.argument("lane")
@click.argument("group")
@why_option
@json_option
@with_client
def resume(client: Client, lane: str, group: str, *, reason: str, as_json: bool) -> None:
    """Let a paused group go on."""
    name = check_group(group)
    client.store.pause_group(_known(client, lane), name, paused=False, actor=actor(), reason=reason)
    client.store.wake([lane])
    if as_json:
        print_json({"lane": lane, "group": group, "paused": False, "until": None})
    else:
        note(f'group "{group}" goes on')


def _known(client: Client, lane: str) -> str:
    """Return the name of a lane that is there; whoever may stop its groups and not look: the node looks."""
    with suppress(Forbidden):
        client.lane(lane)
    return lane


def _blockers(client: Client, lane: str, groups: Sequence[str]) -> list[str]:
    """Return the jobs that block these groups; nothing is done if one of them is not blocked."""
    rows = [client.group(lane, name) for name in dict.fromkeys(groups)]
    for row in rows:
        if row.blocker is None:
            raise Refused(f'group "{row.group}" is not blocked, it is {row.state}')
    return [row.blocker for row in rows if row.blocker is not None]


class Pages:
    """The groups of a list, page after page; `next` is where it goes on once they were all taken."""

    def __init__(
        self, client: Client, lane: str | None, *, blocked: bool, limit: int | None, after: str | None
    ) -> None:
        self.lane = None if lane is None else client.lane(lane).name
        self.blocked, self.next, self.now = blocked, after, client.store.now()
        self._client, self._left = client, limit

    def __iter__(self) -> Iterator[GroupRow]:
        while self._left != 0:
            size = MAX_PAGE if self._left is None else min(MAX_PAGE, self._left)
            page = self._client.groups(lane=self.lane, blocked=self.blocked, limit=size, after=self.next)
            yield from page.groups
            self.next = page.next
            if self._left is not None:
                self._left -= len(page.groups)
            if page.next is None:
                return


def _print(pages: Pages, *, as_json: bool) -> None:
    rows = list(pages)
    if as_json:
        print_json({"groups": [group_object(row) for row in rows], "next": pages.next})
        return
    empty = "no group is blocked" if pages.blocked else "no ordered group has jobs"
    shown = len(HEAD) - pages.blocked  # a pause is not what they wait for
    print_table(HEAD[:shown], [_row(row, pages.now)[:shown] for row in rows], empty=empty)
    if pages.next is not None:
        note(f"there are more: add --after {pages.next}")


def _row(row: GroupRow, now: datetime) -> tuple[object, ...]:
    since, until = (ago(at, now) if on_terminal() else at for at in (row.since, row.until))
    return row.lane, row.group, row.state, since, row.behind, row.head, row.blocker, until
