"""What went wrong, on one line, and the exit code that scripts rely on.

0 done, 1 refused, 2 wrong usage (click's own) or configuration, 3 no such thing, 4 no answer from the store.
"""

from collections.abc import Iterator
from contextlib import contextmanager

import click

from penstock.errors import InvalidConfig, NotFound, PenstockError, StoreUnavailable, UnknownLane


class Refused(click.ClickException):
    """Penstock will not do it."""

    exit_code = 1


class Misconfigured(click.ClickException):
    """The configuration is wrong."""

    exit_code = 2


class Missing(click.ClickException):
    """There is no such thing."""

    exit_code = 3


class Unreachable(click.ClickException):
    """The store does not answer; try again later."""

    exit_code = 4


@contextmanager
def reported() -> Iterator[None]:
    """End the command with the error's own words and its exit code; a bug stays a traceback."""
    try:
        yield
    except StoreUnavailable as error:
        raise Unreachable(str(error)) from error
    except InvalidConfig as error:
        raise Misconfigured(str(error)) from error
    except (NotFound, UnknownLane) as error:
        raise Missing(str(error)) from error
    except PenstockError as error:
        raise Refused(str(error)) from error
