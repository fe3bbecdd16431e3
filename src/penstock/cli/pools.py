"""`penstock pools`: limits that lanes share."""

from collections.abc import Sequence

import click

from penstock.cli import named
from penstock.cli.named import POOL
from penstock.cli.options import json_option, note, with_client
from penstock.cli.render import print_json, print_table
from penstock.client import Client
from penstock.wire import pool_object


@click.group()
def pools() -> None:
    """Look at pools, change one, or stop one.

    A pool limits how fast (rate, burst) and how many at once (max_in_flight) over all lanes that name it;
    with key = tenant, target or group it is one limit for each. `penstock lanes apply` does it from a file.

    \b
    penstock pools set web rate=200/s max_in_flight=50 key=tenant --create
    penstock lanes set orders pool=web
    """  # noqa: D301 - \b keeps click from filling the lines


@pools.command("list")
@json_option
@with_client
def list_(client: Client, *, as_json: bool) -> None:
    """List pools, their limits and the lanes that share them."""
    now, lanes = client.store.now(), client.store.lanes()
    found = sorted(client.store.pools().values(), key=lambda pool: pool.name)
    users = {
        pool.name: sorted(lane.name for lane in lanes.values() if lane["pool"] == pool.name) for pool in found
    }
    if as_json:
        print_json({"pools": [{**pool_object(pool, now), "lanes": users[pool.name]} for pool in found]})
        return
    rows = [
        (
            p.name,
            "paused" if p.stopped(now) else "on",
            p.rate,
            p.bucket,
            p.max_in_flight,
            p.key,
            users[p.name],
        )
        for p in found
    ]
    head = ["pool", "is", "rate", "burst", "max in flight", "key", "lanes"]
    print_table(head, rows, empty="no pool yet\nTry: penstock pools set web rate=200/s --create")


@pools.command()
@click.argument("name")
@json_option
@with_client
def show(client: Client, name: str, *, as_json: bool) -> None:
    """Show every setting of a pool, whether it is the default, and who changed it last."""
    named.show(POOL, client, name, as_json=as_json)


@pools.command("set")
@click.argument("name")
@click.argument("settings", nargs=-1, metavar="[SETTING=VALUE]...")
@click.option("--create", is_flag=True, help="Make the pool if there is none of that name.")
@json_option
@with_client
def set_(client: Client, name: str, settings: Sequence[str], *, create: bool, as_json: bool) -> None:
    """Change settings of a pool: rate, burst, max_in_flight, key. SETTING= takes a limit away."""
    pool = named.put(POOL, client, name, settings, create=create, as_json=as_json)
    if pool.burst is not None and pool.rate is None:
        note("note: burst has no effect without a rate", fg="yellow")


for command in named.verbs(
    POOL,
    stop="Stop sending from every lane that shares the pool.",
    drop="Delete a pool; refused while a lane names it. Jobs that name it are their lane's pool's then.",
):
    pools.add_command(command)
