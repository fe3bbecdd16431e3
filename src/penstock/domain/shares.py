"""Dividing what there is among those who want it, by weight, without wasting any."""

from collections.abc import Mapping, MutableMapping


def divide(
    amount: int, wants: Mapping[str, int], weights: Mapping[str, int], owed: MutableMapping[str, float]
) -> dict[str, int]:
    """Return how many of `amount` each gets: in proportion to its weight, never more than it wants.

    `owed` carries what whole numbers cannot express from one call to the next, so that a share of a third
    is a third in the long run; who wants nothing more is owed nothing.
    """
    given = dict.fromkeys(wants, 0)
    hungry = sorted(name for name, wanted in wants.items() if wanted > 0)
    left = amount
    while left > 0 and hungry:
        total = sum(weights[name] for name in hungry)
        for name in hungry:
            owed[name] = owed.get(name, 0.0) + left * weights[name] / total
        parts = {name: max(0, min(int(owed[name]), wants[name] - given[name])) for name in hungry}
        if not any(parts.values()):  # fractions only: one goes to whoever is owed most
            parts[max(hungry, key=lambda name: owed[name])] = 1
        for name in hungry:
            part = min(parts[name], left)
            given[name] += part
            owed[name] -= part
            left -= part
        for name in [name for name in hungry if given[name] >= wants[name]]:
            hungry.remove(name)
            owed[name] = 0.0
    return given
