"""What went wrong, on one line, and the exit code that scripts rely on.

0 done, 1 refused, 2 wrong usage (click's own), input or configuration, 3 no such thing, 4 the store cannot be
reached or used, 5 done but not printed. What is wrong whatever the store holds is 2; what the store's present
state does not allow is 1. docs/reference/cli.md has the table.
"""

import errno
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from io import UnsupportedOperation
from typing import Any, Final, TextIO

import click

from penstock.errors import (
    InvalidConfig,
    InvalidCursor,
    InvalidJob,
    InvalidQuery,
    InvalidSetting,
    LaneFull,
    NotFound,
    PenstockError,
    StoreError,
    UnknownLane,
)

NO_SERVER: Final = "\nStart the server, or name another store with --store or PENSTOCK_STORE."
UNPRINTED: Final = frozenset({errno.ENOSPC, errno.EIO, errno.EFBIG, errno.EDQUOT, errno.EPIPE})


class Refused(click.ClickException):
    """Penstock will not do it."""

    exit_code = 1


class Misconfigured(click.ClickException):
    """The input or the configuration is wrong."""

    exit_code = 2


class Missing(click.ClickException):
    """There is no such thing."""

    exit_code = 3


class Unreachable(click.ClickException):
    """The store does not answer, or cannot be used."""

    exit_code = 4


class Unprinted(click.ClickException):
    """It was done, but what there is to say about it could not be printed."""

    exit_code = 5

    def __init__(self, error: OSError, done: str = "") -> None:
        what = done or "what was asked for is done"
        super().__init__(f"{what}, but stdout does not take the answer ({error.strerror})")
        self._silent = not done and error.errno == errno.EPIPE  # `| head` has seen enough

    def show(self, file: Any = None) -> None:  # noqa: ANN401 - click's own
        """Say so, and keep Python from trying to print the rest on its way out."""
        if not self._silent:
            super().show(file)
        _forget(sys.stdout)


def _forget(stream: TextIO) -> None:
    with suppress(OSError, UnsupportedOperation):
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


@contextmanager
def printing(done: str) -> Iterator[None]:
    """Print; if stdout takes nothing, say on stderr what was done."""
    try:
        yield
    except OSError as error:
        if error.errno not in UNPRINTED:
            raise
        raise Unprinted(error, done) from error


@contextmanager
def reported() -> Iterator[None]:
    """End the command with the error's own words and its exit code; a bug stays a traceback."""
    try:
        yield
    except StoreError as error:
        raise Unreachable(f"{error}{NO_SERVER if 'connection failed' in str(error) else ''}") from error
    except LaneFull as error:
        raise Refused(str(error)) from error
    except (InvalidConfig, InvalidCursor, InvalidJob, InvalidQuery, InvalidSetting) as error:
        raise Misconfigured(str(error)) from error
    except UnknownLane as error:
        more = "\nTo see what there is: penstock lanes list" if error.near else ""
        raise Missing(f"{error}{more}") from error
    except NotFound as error:
        raise Missing(str(error)) from error
    except PenstockError as error:
        raise Refused(str(error)) from error
    except ExceptionGroup as group:  # parts of a node that ended together
        told, bugs = group.split(PenstockError)
        if told is None or bugs is not None:
            raise
        with reported():
            raise _first(told) from group
    except OSError as error:
        if error.errno not in UNPRINTED:
            raise
        raise Unprinted(error) from error


def _first(group: BaseExceptionGroup[PenstockError]) -> PenstockError:
    first = group.exceptions[0]
    return _first(first) if isinstance(first, BaseExceptionGroup) else first
