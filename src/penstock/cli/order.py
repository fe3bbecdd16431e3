"""Order that was asked for and will not be kept: said at once, because nothing else would show it."""

from collections.abc import Mapping
from typing import Any, Final

from penstock.client import Client
from penstock.domain.ordering import Mode, unkept
from penstock.errors import PenstockError

_ORDERED: Final = " and ".join(mode.label for mode in Mode if mode.ordered)


def lost(client: Client, given: Mapping[str, Any]) -> str | None:
    """Return which field of a good enqueue object asks for order that its mode does not keep.

    Its job is in already: whoever may not see lanes, or cannot just now, is told nothing, not an error.
    """
    group, sequence = given.get("group"), given.get("sequence")
    if group is None and sequence is None:
        return None
    try:
        label: str = given.get("mode") or client.lane(given["lane"])["mode"]
    except PenstockError:
        return None
    return unkept(Mode[label.upper()], group, sequence)


def advice(lane: str) -> str:
    """Return what to do about it."""
    return (
        f"only {_ORDERED} keep order; give one to the job (--mode) or to its lane:"
        f" penstock lanes set {lane} mode=block_on_error"
    )
