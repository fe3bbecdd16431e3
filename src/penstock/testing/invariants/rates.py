"""Rates, from what arrived at the sink: for every limit and key, in every window.

Tokens are minted by the store's clock and spent when a node decides to send, a moment before the message
arrives. So in a window of length t there are at most rate·(t + that moment) + burst messages.
"""

from collections.abc import Sequence
from typing import Final

from penstock.testing.invariants.facts import Delivery, TooMany
from penstock.testing.invariants.settings import HEEDED_WITHIN_S, Settings, per_second

ROUNDING: Final = 0.001


def check_rates(deliveries: Sequence[Delivery], settings: Settings, *, moment: float) -> None:
    """Hold what arrived against the rates in force; `moment` is the longest from decision to arrival."""
    by_limit: dict[str, list[Delivery]] = {}
    for delivery in deliveries:
        for limit in delivery.limits if delivery.rested else ():
            by_limit.setdefault(limit, []).append(delivery)
    for limit, series in by_limit.items():
        check_rate(limit, series, settings, moment=moment)


def check_rate(limit: str, series: Sequence[Delivery], settings: Settings, *, moment: float) -> None:
    """Let a bucket leak as fast as the rate allows, and see that it never overflows."""
    level, burst = 0.0, 0
    before: Delivery | None = None
    for delivery in series:
        since = (delivery.at if before is None else before.at) - moment - HEEDED_WITHIN_S
        allowed = settings.allowed(limit, since=since, until=delivery.at)
        if allowed.rate is None:
            level, before = 0.0, None
            continue
        rate = per_second(allowed.rate)
        passed = 0.0 if before is None else max(delivery.minted - before.minted, delivery.at - before.at)
        shrunk = max(0, burst - allowed.burst)  # a bucket that got smaller has as little left, not less
        level, burst = max(0.0, level - shrunk - rate * passed) + 1, allowed.burst
        most = allowed.burst + rate * moment + ROUNDING
        if level > most:
            raise TooMany(
                f"{limit} lets {level:.1f} go at once, {most:.1f} is the most",
                allowed=allowed,
                last=[(one.job, one.at) for one in series[: series.index(delivery) + 1]][-12:],
            )
        before = delivery
