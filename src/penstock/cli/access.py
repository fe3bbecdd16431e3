"""`penstock access`: API keys, with which programs come in."""

import os
from collections.abc import Sequence
from datetime import timedelta
from typing import Final

import click

from penstock.cli.options import actor, confirmed, json_option, note, reason_option, with_database, yes_option
from penstock.cli.render import ago, print_json, print_table
from penstock.cli.serve import Duration
from penstock.client import Client
from penstock.domain.access import ROLES, Scope, check_label, spelled, told
from penstock.granting import grant_key, key_object

role_option: Final = click.option(
    "--role", "roles", multiple=True, type=click.Choice(list(ROLES)), help="What it may do, by a name for it."
)
scope_option: Final = click.option(
    "--scope",
    "scopes",
    multiple=True,
    type=click.Choice([scope.value for scope in Scope]),
    help="What it may do, one by one; may be repeated, and adds to --role.",
)
tenant_option: Final = click.option(
    "--tenant", metavar="TENANT", help="Only this tenant's jobs are seen, acted on and enqueued."
)


@click.group()
def access() -> None:
    """Let programs in: make, list and revoke API keys.

    A node with `login = true` answers those only who show a key (`Authorization: Bearer pk_…`, or
    PENSTOCK_API_KEY for this command) or log in (penstock users). Of a key only a hash is kept. The keys that
    nodes sign with are in penstock keys.
    """


@access.command()
@click.argument("name")
@role_option
@scope_option
@tenant_option
@click.option("--expires", "lasts", type=Duration(), help="How long it is good for, like 90d. Default: ever.")
@json_option
@with_database
def create(
    client: Client,
    name: str,
    *,
    roles: Sequence[str],
    scopes: Sequence[str],
    tenant: str | None,
    lasts: timedelta | None,
    as_json: bool,
) -> None:
    """Make a key and print it, once: it cannot be shown again."""
    if not roles and not scopes:
        raise click.UsageError("Say what it may do: --role operator, or --scope enqueue.")
    made, key = grant_key(
        client.store,
        name,
        scopes,
        roles=roles,
        tenant=tenant,
        lasts=lasts,
        actor=actor(),
        entropy=os.urandom,
    )
    if as_json:
        print_json(key_object(made, made.created_at) | {"key": key})
        return
    click.echo(key)
    note(f"key {made.name} may {spelled(made.scopes)}; keep it now, it is not shown again")


@access.command("list")
@click.option("--all", "everything", is_flag=True, help="Those too that were revoked.")
@json_option
@with_database
def list_(client: Client, *, everything: bool, as_json: bool) -> None:
    """List keys: what they may do, until when, and when they were last used; never the keys themselves."""
    now = client.store.now()
    found = [key for key in client.store.api_keys() if everything or key.revoked_at is None]
    if as_json:
        print_json({"keys": [key_object(key, now) for key in found]})
        return
    rows = [
        (
            key.name,
            key.id,
            told(key.scopes),
            key.tenant,
            key.problem(now) or "valid",
            ago(key.expires_at, now),
            ago(key.used_at, now),
            key.created_by,
        )
        for key in found
    ]
    head = ["name", "id", "may", "tenant", "is", "expires", "used", "made by"]
    print_table(head, rows, empty="no keys yet\nTry: penstock access create ci --scope enqueue")


@access.command()
@click.argument("name", metavar="NAME|ID")
@reason_option
@yes_option
@json_option
@with_database
def revoke(client: Client, name: str, *, reason: str, yes: bool, as_json: bool) -> None:
    """Let a key open nothing from now on: within a second, on every node."""
    confirmed(f"Revoke the key {name}?", yes=yes)
    key = client.store.revoke_key(check_label(name), actor=actor(), reason=reason)
    if as_json:
        print_json(key_object(key, client.store.now()))
    else:
        note(f"key {key.name} ({key.id}) is revoked")
