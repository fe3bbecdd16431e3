"""Order that was asked for and will not be kept: said at once, because nothing else would show it."""

from collections.abc import Mapping
from typing import Any, Final

from penstock.client import Client
from penstock.domain.ordering import Mode, unkept

_ORDERED: Final = " and ".join(mode.label for mode in Mode if mode.ordered)


def lost(client: Client, given: Mapping[str, Any]) -> str | None:
    """Return which field of a good enqueue object asks for order that its mode does not keep."""
    group, sequence = given.get("group"), given.get("sequence")
    if group is None and sequence is None:
        return None
    label: str = given.get("mode") or client.lane(given["lane"])["mode"]
    return unkept(Mode[label.upper()], group, sequence)


def advice(lane: str) -> str:
    """Return what to do about it."""
    return (
        f"only {_ORDERED} keep order; give one to the job (--mode) or to its lane:"
        f" penstock lanes set {lane} mode=block_on_error"
    )
