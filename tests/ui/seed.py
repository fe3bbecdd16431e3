"""A store in which every screen has something to show."""

from datetime import timedelta

from penstock import Client
from penstock.domain.lanes import lane
from penstock.domain.pools import pool
from penstock.ports.insight import LEADER
from penstock.ports.store import Ask, Store

MARKUP = "<img src=x onerror=alert(1)>"
ERRORS = ("HTTP 422: sku is recalled", "HTTP 500: the provider is having a bad day", "connection refused")


def seed(client: Client) -> dict[str, str]:
    """Fill the store; return ids by what they are."""
    store = client.store
    _lanes(store)
    node = store.register_node("host-a:11")
    store.beat(node)
    store.beat(
        store.register_node("host-b:12"), '{"lanes": ["mail"], "sinks": {"billing": "cannot connect"}}'
    )
    store.elect(LEADER, node, timedelta(hours=1))
    first = _blocked_group(client, node)
    dead = _dead(client, node)
    _succeeded(client, node)
    held = client.enqueue("pay", {"amount": 12, "iban": "DE00"}, key="k-1", tenant="acme").id
    client.hold(held, reason="looks like a fraud")
    later = store.now() + timedelta(hours=1)
    client.enqueue_many({"lane": "pay", "payload": {"amount": n}, "run_at": later} for n in range(70))
    edited = client.enqueue("pay", {"amount": 1}, run_at=later).id
    client.edit(edited, reason="a typo", payload={"amount": 100})
    store.pause_lane("mail", paused=True, actor="ann", reason="their API is down")
    store.put_lane(lane("pay", sink="http", target="https://pay.example/hook", rate="50/s"), actor="bob")
    for _ in range(3):
        store.mark_target(
            "https://mail.example", failed=5, ok=0, trip_after=3, open_for=timedelta(hours=1),
            slow_for=timedelta(0),
        )  # fmt: skip
    store.fold_counts()
    return {"blocker": first, "dead": dead, "held": held, "edited": edited}


def _lanes(store: Store) -> None:
    web = {"sink": "http", "target": "https://shop.example/hook"}
    store.put_pool(pool("web", rate="200/s", max_in_flight=50, key="tenant"), actor="ann")
    store.put_lane(lane("orders", mode="block_on_error", pool="web", **web), actor="ann")
    store.put_lane(lane("mail", retry=["0s", "5s", "1m"], **web), actor="ann")
    store.put_lane(lane("pay", **web), actor="ann")


def _blocked_group(client: Client, node: int) -> str:
    """A group whose first job is dead, under a name that means no good."""
    made = [client.enqueue("orders", {"n": n}, group=MARKUP).id for n in range(4)]
    client.store.claim_groups(Ask(lane="orders", node=node))
    client.report(made[0], 1, "failed", error=f"HTTP 500: {MARKUP}", retryable=False)
    client.enqueue("orders", {"n": 9}, group="busy")
    client.store.claim_groups(Ask(lane="orders", node=node, lease=timedelta(hours=1)))
    return made[0]


def _dead(client: Client, node: int) -> str:
    made = [client.enqueue("mail", {"n": n, "to": "ann@example"}).id for n in range(12)]
    client.store.claim(Ask(lane="mail", node=node))
    for number, job in enumerate(made):
        error = f"{ERRORS[number % 3]} {number}"
        client.report(job, 1, "failed", error=error, retryable=False)
    return made[0]


def _succeeded(client: Client, node: int) -> None:
    made = [client.enqueue("pay", {"amount": n}).id for n in range(20)]
    client.store.claim(Ask(lane="pay", node=node))
    for job in made:
        client.report(job, 1, "succeeded")
