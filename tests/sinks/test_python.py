"""Functions as sinks."""

import threading

import pytest

from penstock.domain.outcomes import Accepted, Receipt, Rejected, TryAgain, Unknown
from penstock.ports.executor import ThreadExecutor
from penstock.ports.sink import SUCCEEDED, UNKNOWN, Envelope, Probed
from penstock.sinks.python import Function, PythonSink

ENVELOPE = Envelope("01JOB", 1, "hello", 1)


def refuses(_: Envelope) -> Receipt:
    return Rejected("no")


def fails(_: Envelope) -> None:
    raise ValueError("not today\n")


async def waits(_: Envelope) -> None:
    return None


async def fails_later(_: Envelope) -> None:
    raise ValueError("not today")


@pytest.mark.parametrize(
    ("function", "receipt"),
    [
        (lambda _: None, Accepted()),
        (waits, Accepted()),
        (refuses, Rejected("no")),
        (lambda _: Unknown("cut"), Unknown("cut")),
        (fails, TryAgain("ValueError: not today")),
        (fails_later, TryAgain("ValueError: not today")),
        (lambda _: 200, TryAgain("the function returned int: return None or a receipt")),
    ],
    ids=["none", "async", "receipt", "unknown", "raises", "async raises", "nonsense"],
)
async def test_what_a_function_says(function: Function, receipt: Receipt, executor: ThreadExecutor) -> None:
    assert await PythonSink(function).send([ENVELOPE]) == [receipt]
    assert await PythonSink(function, executor=executor).send([ENVELOPE]) == [receipt]


async def test_a_function_that_blocks_runs_beside_the_loop(executor: ThreadExecutor) -> None:
    seen: list[int] = []
    sink = PythonSink(lambda _: seen.append(threading.get_ident()), executor=executor)

    await sink.send([ENVELOPE])

    assert seen != [threading.get_ident()]


async def test_it_can_be_asked(executor: ThreadExecutor) -> None:
    assert await PythonSink(refuses).probe([ENVELOPE]) == [Probed(UNKNOWN)]
    knows = PythonSink(refuses, probe=lambda _: Probed(SUCCEEDED), complete_on="reported", max_batch=7)

    assert await knows.probe([ENVELOPE]) == [Probed(SUCCEEDED)]
    assert (knows.max_batch, knows.complete_on, knows.format, knows.keeps_order) == (
        7,
        "reported",
        "payload",
        False,
    )
