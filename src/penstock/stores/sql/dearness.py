"""Whether an index is dear to read from its left end: then such reads rest for a while.

Time is all there is to measure, and a machine that was slow for a moment looks just the same. So it takes
several whole looks in a row, at the price of the cheapest, and it ends with the first look that began further
right and was hardly cheaper. What such looks pass over is seen again after MOST_REST_S at the latest.
"""

from collections import deque
from typing import Final

DEAR_S: Final = 0.05
LOOKS: Final = 3
REST_S: Final = 0.25
REST_FACTOR: Final = 20
MOST_REST_S: Final = 5.0
WORTH: Final = 2  # times cheaper than a whole look


class Dearness:
    """What the last whole looks at one index cost."""

    __slots__ = ("_costs", "_until")

    def __init__(self) -> None:
        self._costs: deque[float] = deque(maxlen=LOOKS)
        self._until = 0.0

    @property
    def price(self) -> float:
        """What a whole look costs for sure, in seconds; 0 = nobody knows yet."""
        return min(self._costs) if len(self._costs) == LOOKS else 0.0

    def whole(self, cost: float, *, at: float) -> None:
        """Note what a look from the left end cost, beyond what it found."""
        self._costs.append(cost)
        self._until = at + min(MOST_REST_S, max(REST_S, REST_FACTOR * self.price))

    def part(self, cost: float) -> None:
        """Note what a look that began further right cost."""
        if cost * WORTH > self.price:
            self._costs.clear()

    def rests(self, at: float, *, above: float = DEAR_S) -> bool:
        """Say whether looks should begin further right for now: whole ones cost more than that."""
        return self.price > above and at < self._until
