"""Targets that no node calls as it would: what the overview and the page of nodes show of them."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final

from penstock.domain.breakers import Target

TARGETS_SHOWN: Final = 6


def left_alone(targets: Mapping[str, Target], now: datetime) -> dict[str, Any]:
    """Return the targets that are left alone, or called less, open breakers first; and how many more."""
    known = [target.at(now) for target in targets.values()]
    found = sorted(
        (target for target in known if target.troubled),
        key=lambda one: (one.state == "closed", one.pause is not None, one.name),
    )
    return {"targets": found[:TARGETS_SHOWN], "more_targets": max(0, len(found) - TARGETS_SHOWN)}
