"""`penstock users`: people, who log in."""

import os
import sys
from collections.abc import Sequence
from typing import Final

import click

from penstock.cli.access import role_option, scope_option, tenant_option
from penstock.cli.options import actor, confirmed, json_option, note, reason_option, with_database, yes_option
from penstock.cli.render import ago, print_json, print_table
from penstock.client import Client
from penstock.domain.access import check_label, spelled, told
from penstock.errors import NotFound
from penstock.granting import grant_login, user_object
from penstock.ports.access import User, known_user

password_option: Final = click.option(
    "--password-stdin", is_flag=True, help="Read the password from standard input instead of asking."
)


@click.group()
def users() -> None:
    """Let people in: add and remove users, change what they may do and their passwords."""


@users.command()
@click.argument("name")
@role_option
@scope_option
@tenant_option
@password_option
@json_option
@with_database
def add(
    client: Client,
    name: str,
    *,
    roles: Sequence[str],
    scopes: Sequence[str],
    tenant: str | None,
    password_stdin: bool,
    as_json: bool,
) -> None:
    """Add somebody who logs in at /login; the password is asked for, or read with --password-stdin."""
    if not roles and not scopes:
        raise click.UsageError("Say what they may do: --role viewer, operator or admin.")
    if client.store.user(check_label(name)) is not None:
        raise known_user(name)
    made = grant_login(
        client.store,
        name,
        password=_password(stdin=password_stdin),
        scopes=scopes,
        roles=roles,
        tenant=tenant,
        actor=actor(),
        entropy=os.urandom,
        new=True,
    )
    _say(made, f"user {made.name} may {spelled(made.scopes)}", as_json=as_json)


@users.command("set")
@click.argument("name")
@role_option
@scope_option
@tenant_option
@click.option("--no-tenant", is_flag=True, help="Bound to no tenant any more.")
@json_option
@with_database
def set_(
    client: Client,
    name: str,
    *,
    roles: Sequence[str],
    scopes: Sequence[str],
    tenant: str | None,
    no_tenant: bool,
    as_json: bool,
) -> None:
    """Change what somebody may do; all of his sessions end."""
    changed = grant_login(
        client.store,
        name,
        password=None,
        scopes=scopes,
        roles=roles,
        tenant=tenant or (None if no_tenant else ...),
        actor=actor(),
        entropy=os.urandom,
    )
    _say(changed, f"user {changed.name} may {spelled(changed.scopes)}", as_json=as_json)


@users.command()
@click.argument("name")
@password_option
@json_option
@with_database
def password(client: Client, name: str, *, password_stdin: bool, as_json: bool) -> None:
    """Give somebody another password; all of his sessions end."""
    if client.store.user(check_label(name)) is None:
        raise NotFound("user", name)
    secret = _password(stdin=password_stdin)
    changed = grant_login(client.store, name, password=secret, actor=actor(), entropy=os.urandom)
    _say(changed, f"the password of {changed.name} is changed", as_json=as_json)


@users.command("list")
@json_option
@with_database
def list_(client: Client, *, as_json: bool) -> None:
    """List people: what they may do, and when they last logged in."""
    found, now = client.store.users(), client.store.now()
    if as_json:
        print_json({"users": [user_object(user) for user in found]})
        return
    rows = [(user.name, told(user.scopes), user.tenant, ago(user.seen_at, now)) for user in found]
    print_table(
        ["name", "may", "tenant", "logged in"],
        rows,
        empty="nobody yet\nTry: penstock users add NAME --role admin",
    )


@users.command()
@click.argument("name")
@reason_option
@yes_option
@json_option
@with_database
def remove(client: Client, name: str, *, reason: str, yes: bool, as_json: bool) -> None:
    """Let somebody in no more; his sessions end within a second."""
    confirmed(f"Remove the user {name}?", yes=yes)
    client.store.remove_user(check_label(name), actor=actor(), reason=reason)
    if as_json:
        print_json({"name": name, "removed": True})
    else:
        note(f"user {name} is removed")


def _password(*, stdin: bool) -> str:
    if stdin:
        return sys.stdin.readline().rstrip("\r\n") if sys.stdin else ""
    if not sys.stdin or not sys.stdin.isatty():
        raise click.UsageError("Nobody is there to be asked for a password: say --password-stdin.")
    return str(click.prompt("Password", hide_input=True, confirmation_prompt=True, err=True))


def _say(user: User, text: str, *, as_json: bool) -> None:
    if as_json:
        print_json(user_object(user))
    else:
        note(text)
