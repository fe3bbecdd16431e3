"""The part of a store that says how it does: what metrics ask (a part of `Store`, ports/store.py)."""

from typing import Protocol

from penstock.domain.vitals import KeyUse, PoolUse, Vitals

__all__ = ["KeyUse", "PoolUse", "VitalSigns", "Vitals"]


class VitalSigns(Protocol):
    """How the store does."""

    def vitals(self) -> Vitals:
        """Return a few figures, at a cost that does not grow with the number of jobs."""
