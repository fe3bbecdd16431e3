"""One call of a sink: within its time, and with an answer for every message whatever goes wrong."""

import asyncio
import traceback
from collections import Counter
from collections.abc import Sequence
from datetime import timedelta
from typing import Final, NamedTuple

from penstock.domain.job import Claimed
from penstock.domain.outcomes import Lapsed, Outcome, Receipt, Returned, Unknown
from penstock.ports.events import Called, LaneFailed
from penstock.ports.sink import Sink, SinkUnavailable
from penstock.scheduler.deck import Deck
from penstock.scheduler.ground import cancelled
from penstock.scheduler.plans import Plan
from penstock.scheduler.verdicts import unanswered, verdict

SINK_PAUSE: Final = timedelta(seconds=2)


class NotCalled(NamedTuple):
    """The sink could not be reached at all: nothing was sent."""

    error: str


Answer = Receipt | NotCalled


async def call_sink(deck: Deck, plan: Plan, sink: Sink, batch: Sequence[Claimed]) -> list[Answer]:
    """Send a batch and return one answer per message."""
    limit = plan.timeout.total_seconds()
    try:
        async with asyncio.timeout(limit):
            with deck.air.calling(batch, deck.ground.monotonic()):
                receipts: list[object] = list(await sink.send([plan.envelope(claimed) for claimed in batch]))
    except TimeoutError:
        return [Unknown(f"no answer within {limit:g} s")] * len(batch)
    except SinkUnavailable as error:
        deck.outlets.refuse(plan.name, plan.sink, str(error))
        return [NotCalled(f"sink {plan.sink}: {error}")] * len(batch)
    except asyncio.CancelledError as error:
        task = asyncio.current_task()
        if not cancelled():
            return _broken(deck, plan, error, len(batch))
        if not deck.hurry.is_set() or task is None:
            raise
        task.uncancel()  # we were told to wait no longer
        return [Unknown("the node stopped while it was being sent")] * len(batch)
    except Exception as error:  # noqa: BLE001 - a bug of one sink is not to hurt other lanes
        return _broken(deck, plan, error, len(batch))
    deck.outlets.answer(plan.name)
    if len(receipts) != len(batch):
        return [Unknown(f"sink {plan.sink} gave {len(receipts)} receipts for {len(batch)}")] * len(batch)
    no_receipt = Unknown(f"sink {plan.sink} gave something that is no receipt")
    return [receipt if isinstance(receipt, Receipt) else no_receipt for receipt in receipts]


def _broken(deck: Deck, plan: Plan, error: BaseException, jobs: int) -> list[Answer]:
    """Tell of a bug of a sink; what it says may hold what a message carries: the log alone has it whole."""
    text, trace = f"sink {plan.sink}: {type(error).__name__}", traceback.format_exc()
    deck.ground.emit(LaneFailed(lane=plan.name, error=text, trace=trace, pause=timedelta(0)))
    return [Unknown(f"{type(error).__name__}: {error}")] * jobs


def tell(
    deck: Deck, plan: Plan, batch: Sequence[Claimed], answers: Sequence[Answer], *, took: float, lag: float
) -> None:
    """Count what a call was answered, and tell of it."""
    kinds = Counter(type(answer).__name__.lower() for answer in answers)
    deck.count(kinds)
    deck.ground.emit(
        Called(
            lane=plan.name,
            sink=plan.sink,
            jobs=len(answers),
            outcomes=kinds,
            took=took,
            lag=lag,
            error=next((text for answer in answers if (text := getattr(answer, "error", None))), None),
            target=plan.aim(batch[0]) if len(batch) == 1 else None,
        )
    )


def outcome_of_answer(deck: Deck, plan: Plan, claimed: Claimed, answer: Answer) -> Outcome:
    """Return what an answer means for its job."""
    random = deck.ground.rng.random()
    match answer:
        case NotCalled(error=error):
            return Returned(error, SINK_PAUSE * (1 + random))
        case Unknown(error=error) if deck.hurry.is_set():
            return Lapsed(hold=plan.hold, error=error)
        case Unknown(error=error):
            return unanswered(plan, claimed, error, random=random)
        case _:
            return verdict(plan, claimed, answer, random=random)
