"""Some settings of a lane or pool are changed, and others stay, whoever changes those at the same time."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, Generic, TypeVar

from penstock.domain.lanes import Lane
from penstock.domain.lanes import lane as lane_of
from penstock.domain.pools import Pool
from penstock.domain.pools import pool as pool_of
from penstock.errors import VersionChanged
from penstock.ports.store import Store

TRIES: Final = 20
ANY: Final = -1  # whatever is there, but something
Named = TypeVar("Named", Lane, Pool)


@dataclass(frozen=True, slots=True)
class Kind(Generic[Named]):
    """Lanes or pools, and how a store keeps them."""

    word: str
    make: Callable[..., Named]
    all: Callable[[Store], Mapping[str, Named]]
    put: Callable[..., Named]

    def change(
        self,
        store: Store,
        name: str,
        given: Mapping[str, Any],
        *,
        actor: str,
        expect: int | None = None,
        bound: Callable[[str, str, Named | None], None] | None = None,
        **why: str,
    ) -> tuple[Named, bool]:
        """Change these settings, or make it with them; return it and whether it is new.

        `expect` is the version that the caller saw (0 = none, ANY): raise VersionChanged when it is another
        one. Who expects nothing changes what is there, also if others just did. Of a lane `reason` is kept.
        `bound` is asked about what is there, with its kind and name, and raises VersionChanged itself.
        """
        for tried in range(TRIES):
            before = self.all(store).get(name)
            seen = 0 if before is None else before.version
            if expect not in (None, seen) and not (expect == ANY and seen):
                raise VersionChanged(self.word, name, seen)
            if bound is not None:
                bound(self.word, name, before)
            wanted = self.make(name, **{**({} if before is None else before.settings), **given})
            try:
                return self.put(store, wanted, actor=actor, expect=seen, **why), before is None
            except VersionChanged:
                if expect not in (None, ANY) or tried == TRIES - 1:
                    raise
        raise AssertionError("the last try returns or raises")


LANE: Final = Kind(
    "lane", lane_of, lambda store: store.lanes(), lambda store, *a, **k: store.put_lane(*a, **k)
)
POOL: Final = Kind(
    "pool", pool_of, lambda store: store.pools(), lambda store, *a, **k: store.put_pool(*a, **k)
)
