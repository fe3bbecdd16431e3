"""`penstock keys`: the keys that nodes share, and their replacement."""

import os
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any, Final

import click

from penstock.cli.access import create, revoke
from penstock.cli.options import (
    actor,
    confirmed,
    json_option,
    maybe_reason_option,
    note,
    reason_option,
    with_database,
    yes_option,
)
from penstock.cli.render import print_facts, print_json, print_table
from penstock.client import Client
from penstock.domain.durations import format_duration
from penstock.domain.secrets import NAMES, TOKEN, WEBHOOK, new_secret
from penstock.errors import NotFound
from penstock.ports.secrets import Secret
from penstock.sinks.keys import CHANGE_OVER
from penstock.wire import stamp

MASKED: Final = "***"
MEANS: Final[Mapping[str, str]] = {
    WEBHOOK: "receivers must know it within a day: until then the one before signs along"
    " (penstock keys show webhook --reveal --reason TEXT)",
    TOKEN: "nobody else needs it; messages under way stay valid",
}
name_argument: Final = click.argument("name", type=click.Choice(NAMES))


@click.group()
def keys() -> None:
    """Look at the keys that nodes share, and replace them.

    `webhook` signs what is delivered over HTTP, `token` the pointers in queued messages. They are in the
    store, where the first `penstock migrate` made them; every node learns of a new one within ten seconds.

    API keys, with which programs come in, are another thing: penstock access lists, makes and revokes them.
    `create` and `revoke` here are the same as there.
    """


keys.add_command(create)
keys.add_command(revoke)


@keys.command("list")
@json_option
@with_database
def list_(client: Client, *, as_json: bool) -> None:
    """List keys that sign, their age and what they still do; never the keys themselves.

    API keys are in penstock access list.
    """
    now = client.store.now()
    found = [_facts(secret, now) for name in NAMES for secret in client.store.secrets(name)]
    if as_json:
        print_json({"keys": found})
        return
    rows = [tuple(one[column] for column in ("name", "kid", "is", "age", "created_at")) for one in found]
    head = ["name", "kid", "is", "age", "created"]
    print_table(head, rows, empty="no keys yet\nTry: penstock migrate")
    if client.store.api_keys():
        note("these sign; API keys are in penstock access list")


@keys.command()
@name_argument
@reason_option
@yes_option
@json_option
@with_database
def rotate(client: Client, name: str, *, reason: str, yes: bool, as_json: bool) -> None:
    """Make a new key, which signs from now on. The ones before still verify."""
    confirmed(f"Replace the key {name}?", yes=yes)
    kid = _next(client.store.secrets(name))
    client.store.add_secret(name, kid, new_secret(name, os.urandom), actor=actor(), reason=reason)
    if as_json:
        print_json({"name": name, "kid": kid})
        return
    click.echo(kid)
    note(f"key {kid} of {name} signs from now on; {MEANS[name]}")


@keys.command()
@name_argument
@click.option("--kid", metavar="KID", help="Which one. Default: the one that signs.")
@click.option("--reveal", is_flag=True, help="Print the key itself; audited, so say why.")
@maybe_reason_option
@json_option
@with_database
def show(
    client: Client, name: str, *, kid: str | None, reveal: bool, reason: str | None, as_json: bool
) -> None:
    """Show one key, masked unless you say --reveal."""
    secret = _found(client.store.secrets(name), name, kid)
    text = MASKED
    if reveal:
        if not reason:
            raise click.UsageError("--reveal needs --reason: who sees a key, and why, is kept in the audit.")
        text = client.store.show_secret(name, secret.kid, actor=actor(), reason=reason).secret
    facts = _facts(secret, client.store.now()) | {"secret": text}
    if as_json:
        print_json(facts)
    else:
        print_facts(facts.items())


def _facts(secret: Secret, now: datetime) -> dict[str, Any]:
    return {
        "name": secret.name,
        "kid": secret.kid,
        "is": _state(secret, now),
        "age": _age(now - secret.created_at),
        "created_at": stamp(secret.created_at),
        "retired_at": None if secret.retired_at is None else stamp(secret.retired_at),
    }


def _age(age: timedelta) -> str:
    """Return an age in whole days, or in whole seconds if it is less than one."""
    unit = timedelta(days=1) if age >= timedelta(days=1) else timedelta(seconds=1)
    return format_duration(max(age, timedelta(0)) // unit * unit)


def _state(secret: Secret, now: datetime) -> str:
    if secret.retired_at is None:
        return "signs"
    along = secret.name == WEBHOOK and now < secret.retired_at + CHANGE_OVER
    return "signs along" if along else "verifies" if secret.name == TOKEN else "retired"


def _next(known: list[Secret]) -> str:
    """Return a name that nobody has had: the next number."""
    return str(max((int(one.kid) for one in known if one.kid.isdecimal()), default=0) + 1)


def _found(known: list[Secret], name: str, kid: str | None) -> Secret:
    for secret in known:
        if kid is None or secret.kid == kid:
            return secret
    raise NotFound("key", name if kid is None else f"{name}/{kid}")
