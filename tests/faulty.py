"""A store that fails when it is told to, and else is the one it stands for."""

from collections.abc import Callable
from typing import Any

from penstock.ports.store import Store

Meant = Callable[..., bool]


def everything(*_: object, **__: object) -> bool:
    """Mean every call."""
    return True


class Faulty:
    """Wraps a store; what is in `errors` is raised by the method of that name, in calls that are `meant`."""

    def __init__(self, store: Store) -> None:
        self.errors: dict[str, Exception] = {}
        self.meant: Meant = everything
        self.calls: list[str] = []
        self._store = store

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401
        method = getattr(self._store, name)

        def call(*args: object, **kwargs: object) -> object:
            self.calls.append(name)
            if name in self.errors and self.meant(*args, **kwargs):
                raise self.errors[name]
            return method(*args, **kwargs)

        return call
