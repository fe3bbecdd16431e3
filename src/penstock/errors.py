"""Every error Penstock raises on purpose.

PenstockError
├── InvalidJob            a field of an enqueue object is wrong; nothing was written
│   └── LaneFull          the lane holds max_depth jobs; try again later
├── UnknownLane           no lane of that name; near matches are named
├── KeyConflict           the idempotency key belongs to a job with another payload
├── InvalidSetting        a lane or pool setting is wrong; nothing was written
├── InvalidConfig         a configuration file or variable is wrong; every problem, with its line
├── IllegalTransition     the machine has no such move from this state
├── Forbidden             whoever asks may not do this, or see this
├── NotFound              no job (lane, group …) of that name
├── TermOver              this node no longer leads; nothing was written
├── InUse                 a lane or pool cannot be deleted while something needs it
├── VersionChanged        a lane or pool is not as the caller last saw it; nothing was written
├── InvalidQuery          a filter of a list is wrong
│   └── InvalidFilter     a line of the filter language is wrong, at a place it names
├── InvalidCursor         a list cannot go on from there
└── StoreError
    ├── StoreUnavailable  the database cannot be reached now; try again later
    │   └── StoreClosed   it was closed by whoever opened it; trying again is no use
    └── SchemaMismatch    the tables are older or newer than this version of Penstock
"""

from collections.abc import Sequence
from typing import Final

RIGHTS: Final = "docs/howto/grant-rights.md lists what to grant"
NOWHERE: Final = "this is no place to go on from: "


class PenstockError(Exception):
    """Base of all errors below; `retryable` says whether the same call may succeed later."""

    retryable = False


class InvalidJob(PenstockError):
    """A field of an enqueue object is wrong; nothing was written."""

    def __init__(self, field: str, problem: str) -> None:
        super().__init__(f"{field}: {problem}")
        self.field = field
        self.problem = problem


class LaneFull(InvalidJob):
    """The lane holds as many jobs as it may; the same call may succeed later."""

    retryable = True

    def __init__(self, lane: str, max_depth: int) -> None:
        super().__init__("lane", f'"{lane}" is full: it holds max_depth = {max_depth} jobs; try again later')
        self.lane = lane
        self.max_depth = max_depth


class UnknownLane(PenstockError):
    """There is no lane of that name."""

    def __init__(self, lane: str, near: Sequence[str] = ()) -> None:
        hint = f"did you mean {', '.join(near)}?" if near else "penstock lanes list shows those there are"
        super().__init__(f'unknown lane "{lane}"; {hint}')
        self.lane = lane
        self.near = tuple(near)


class KeyConflict(PenstockError):
    """The idempotency key already belongs to a job with a different payload."""

    def __init__(self, key: str, job_id: str) -> None:
        whose = f'key "{key}" already belongs to job {job_id}, which has a different payload'
        super().__init__(f"{whose}: another payload needs another key")
        self.key = key
        self.job_id = job_id


class InvalidSetting(PenstockError):
    """A lane or pool setting is wrong; nothing was written."""

    def __init__(self, setting: str, problem: str) -> None:
        super().__init__(f"{setting}: {problem}")
        self.setting = setting
        self.problem = problem


class InvalidConfig(PenstockError):
    """A configuration file or a variable is wrong; each problem says where."""

    def __init__(self, problems: Sequence[str]) -> None:
        super().__init__("\n".join(problems))
        self.problems = tuple(problems)


class IllegalTransition(PenstockError):
    """The machine has no such move from this state."""

    def __init__(self, state: str, move: str) -> None:
        super().__init__(f"a job that is {state} cannot {move}")
        self.state = state
        self.move = move


class Forbidden(PenstockError):
    """Whoever asks may not do this."""

    def __init__(self, who: str, what: str) -> None:
        super().__init__(f"{who} may not {what}")
        self.who = who
        self.what = what


class NotFound(PenstockError):
    """There is nothing of that name."""

    def __init__(self, kind: str, name: str) -> None:
        super().__init__(f'no {kind} "{name}"')
        self.kind = kind
        self.name = name


class TermOver(PenstockError):
    """This node no longer leads; nothing was written."""

    def __init__(self, number: int) -> None:
        super().__init__(f"term {number} is over: another node leads now, or may")
        self.number = number


class InUse(PenstockError):
    """It cannot be deleted while something needs it."""

    def __init__(self, kind: str, name: str, needed: str) -> None:
        super().__init__(f'{kind} "{name}" {needed}')
        self.kind = kind
        self.name = name


class VersionChanged(PenstockError):
    """It is not as the caller last saw it; nothing was written."""

    def __init__(self, kind: str, name: str, version: int) -> None:
        now = f"is at version {version} now" if version else "is not there"
        super().__init__(f'{kind} "{name}" {now}: somebody changed it meanwhile')
        self.version = version


class InvalidQuery(PenstockError):
    """A filter of a list is wrong."""

    def __init__(self, field: str, problem: str) -> None:
        super().__init__(f"{field}: {problem}")
        self.field = field
        self.problem = problem


class InvalidFilter(InvalidQuery):
    """A line of the filter language cannot be read; `position` is the place, from 1."""

    def __init__(self, position: int, problem: str, fix: str) -> None:
        super().__init__("filter", f"at character {position}: {problem}; {fix}")
        self.position = position
        self.fix = fix


class InvalidCursor(PenstockError):
    """A list cannot go on from there."""

    def __init__(self, problem: str) -> None:
        super().__init__(f"{NOWHERE}{problem}")
        self.problem = problem


class StoreError(PenstockError):
    """Base of what can go wrong with the database."""


class StoreUnavailable(StoreError):
    """The database cannot be reached now; the same call may succeed later."""

    retryable = True

    def __init__(self, operation: str) -> None:
        super().__init__(f"store unavailable during {operation}")
        self.operation = operation


class StoreClosed(StoreUnavailable):
    """Whoever opened the store has closed it."""

    retryable = False

    def __init__(self, operation: str) -> None:
        super().__init__(f"{operation} (it was closed: open it again)")


class SchemaMismatch(StoreError):
    """The tables are not those of this version of Penstock."""

    def __init__(self, problem: str, fix: str) -> None:
        super().__init__(f"{problem}; {fix}")
        self.problem = problem
        self.fix = fix
