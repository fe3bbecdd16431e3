"""Planting bugs, and hunting them: a small edit of the real code for as long as a `with` block lasts.

The edit is a replacement in the source of a function, in a statement or in a trigger; production code knows
nothing of it. One that no longer fits the code is an error.
"""

import importlib
import inspect
import sys
import textwrap
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from types import FunctionType, ModuleType
from typing import Any, NamedTuple

from penstock.testing.sim.bed import Bed
from penstock.testing.sim.families import FAMILIES, STORE_FAMILIES
from penstock.testing.sim.run import run_seed


class EditDoesNotFit(Exception):
    """The code has changed: what the edit replaces is no longer there, or more than once.

    Whoever changed it changes the bug with it: what would the same mistake look like now?
    """

    def __init__(self, edit: "Edit | TriggerEdit", times: int) -> None:
        super().__init__(f"found {times} times, fit testing/sim/bugs.py to the new code: {edit}")


@dataclass(frozen=True, slots=True)
class Edit:
    """One replacement in the source of a function or in a text of a module; `name` where several have it."""

    module: str
    old: str
    new: str
    name: str = ""


@dataclass(frozen=True, slots=True)
class TriggerEdit:
    """One replacement in a trigger of the database."""

    name: str
    old: str
    new: str


@dataclass(frozen=True, slots=True)
class Bug:
    """A mistake, and the family that finds it soonest as far as we know.

    One of the `engine` is hunted with the engine, the others with the reference dispatcher. A `rare` one
    takes hundreds of seeds.
    """

    name: str
    family: str
    edits: Sequence[Edit | TriggerEdit]
    engine: bool = False
    rare: bool = False


class Found(NamedTuple):
    """Where a bug showed: after how many runs, and as what."""

    family: str
    seed: int
    runs: int
    error: Exception

    @property
    def as_what(self) -> str:
        """The invariant it broke, or the error it ended in."""
        return getattr(self.error, "invariant", "") or type(self.error).__name__


def hunt(
    bug: Bug, seeds: Sequence[int], *, families: Sequence[str] = (), pauses: bool = True, blind: bool = False
) -> Found | None:
    """Run seeds with the bug planted until one fails; its own family first, then the others, seed by seed."""
    known = FAMILIES if bug.engine else STORE_FAMILIES
    order = families or [bug.family, *(name for name in known if name != bug.family)]
    runs = 0
    with planted(bug) as bed:
        for seed in seeds:
            for family in order:
                runs += 1
                try:
                    run_seed(family, seed, bed=bed, pauses=pauses, blind=blind, engine=bug.engine)
                except Exception as error:  # noqa: BLE001 - anything that goes wrong is a find
                    return Found(family, seed, runs, error)
    return None


@contextmanager
def planted(bug: Bug) -> Iterator[Bed]:
    """Plant the bug for a while; yields a bed of its own, for the database may be part of it."""
    bed = Bed()
    with ExitStack() as stack:
        for edit in bug.edits:
            if isinstance(edit, TriggerEdit):
                source = _replaced(bed.trigger(edit.name), edit)
                bed.script(f"DROP TRIGGER {edit.name};\n{source};\n")
            else:
                stack.enter_context(_edited(edit))
        yield bed


def _replaced(text: str, edit: Edit | TriggerEdit) -> str:
    if text.count(edit.old) != 1:
        raise EditDoesNotFit(edit, text.count(edit.old))
    return text.replace(edit.old, edit.new)


@contextmanager
def _edited(edit: Edit) -> Iterator[None]:
    module = importlib.import_module(edit.module)
    owner, name, before = _holder(module, edit)
    after = _replaced(before, edit) if isinstance(before, str) else _function(module, before, edit)
    # Whoever imported it by name has it too.
    owners = [owner, *(other for other in _modules() if other is not owner)]
    changed = [other for other in owners if other.__dict__.get(name) is before]
    for other in changed:
        setattr(other, name, after)
    try:
        yield
    finally:
        for other in changed:
            setattr(other, name, before)


def _modules() -> list[ModuleType]:
    return [module for name, module in list(sys.modules.items()) if name.startswith("penstock.")]


def _holder(module: ModuleType, edit: Edit) -> tuple[Any, str, Any]:
    """Return what has the place that the edit replaces, its name and whose it is."""
    classes = [kind for kind in vars(module).values() if inspect.isclass(kind)]
    owners = [module, *(kind for kind in classes if kind.__module__ == module.__name__)]
    found = [
        (owner, name, value)
        for owner in owners
        for name, value in vars(owner).items()
        if edit.name in ("", name) and edit.old in _source(value, module)
    ]
    if len(found) != 1:
        raise EditDoesNotFit(edit, len(found))
    return found[0]


def _source(value: object, module: ModuleType) -> str:
    if isinstance(value, str):
        return value
    try:
        own = isinstance(value, FunctionType) and value.__module__ == module.__name__
        return inspect.getsource(value) if own else ""  # type: ignore[arg-type]
    except OSError:  # made by a decorator
        return ""


def _function(module: ModuleType, function: FunctionType, edit: Edit) -> FunctionType:
    source = _replaced(textwrap.dedent(inspect.getsource(function)), edit)
    scope: dict[str, Any] = {}
    exec(compile(source, f"<bug in {function.__qualname__}>", "exec"), dict(vars(module)), scope)  # noqa: S102
    made: FunctionType = scope[function.__name__]
    # Its globals must be the module's own, or a second edit of the same bug would not be seen.
    own = FunctionType(made.__code__, vars(module), made.__name__, made.__defaults__, made.__closure__)
    own.__kwdefaults__ = made.__kwdefaults__
    own.__qualname__ = function.__qualname__
    return own
