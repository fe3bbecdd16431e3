"""The words for what a sink answered, as events carry them."""

from typing import Final

# What a sink took is sent, whether or not it had it before.
SENT: Final = frozenset({"accepted", "duplicate"})
