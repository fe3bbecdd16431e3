"""How a batch goes to a broker: in waves with at most one message per group, and none past a failure.

Brokers refuse messages of a batch one by one. If two of one group went together, the second could get in
where the first did not, and the group would be out of order.
"""

from collections.abc import Awaitable, Callable, Sequence
from datetime import timedelta
from typing import Final, TypeVar

from penstock.domain.durations import format_size
from penstock.domain.envelopes import Envelope, Unwritable
from penstock.domain.outcomes import Accepted, Duplicate, Receipt, Rejected, Unsent
from penstock.domain.states import Reason
from penstock.ports.sink import SinkUnavailable

PAUSE: Final = timedelta(seconds=2)
Message = TypeVar("Message")


class TooLarge(Unwritable):
    """The broker takes no message of this size."""

    def __init__(self, size: int, limit: int) -> None:
        super().__init__(
            f"the message has {size} bytes, this sink takes {format_size(limit)}: "
            f'send less, or format = "pointer"'
        )


async def in_waves(
    batch: Sequence[Envelope],
    prepare: Callable[[Envelope], Message],
    send: Callable[[Sequence[Message]], Awaitable[Sequence[Receipt]]],
) -> Sequence[Receipt]:
    """Send the batch and return its receipts.

    `prepare` makes a message or raises Unwritable; `send` answers for each message of a wave, or raises
    SinkUnavailable when none of them went out. When nothing of the whole batch went out that is raised here.
    """
    answers: dict[int, Receipt] = {}
    stopped: set[str] = set()
    left = list(range(len(batch)))
    while left:
        wave: dict[int, Message] = {}
        groups: set[str] = set()
        later: list[int] = []
        for index in left:
            group = batch[index].ordered_group
            if group is not None and group in stopped:
                answers[index] = Unsent("not sent: it is behind a failure in its group")
            elif group is not None and group in groups:
                later.append(index)
            else:
                try:
                    wave[index] = prepare(batch[index])
                except Unwritable as error:
                    reason = Reason.TOO_LARGE if isinstance(error, TooLarge) else Reason.PERMANENT
                    answers[index] = Rejected(str(error), reason)
                    _stop(stopped, group)
                else:
                    _stop(groups, group)
        if wave:
            answers |= zip(wave, await _sent(list(wave.values()), send), strict=True)
        for index in wave:
            if not isinstance(answers[index], Accepted | Duplicate):
                _stop(stopped, batch[index].ordered_group)
        left = later
    return _receipts([answers[index] for index in range(len(batch))])


def _stop(groups: set[str], group: str | None) -> None:
    if group is not None:
        groups.add(group)


async def _sent(
    wave: Sequence[Message], send: Callable[[Sequence[Message]], Awaitable[Sequence[Receipt]]]
) -> Sequence[Receipt]:
    try:
        return await send(wave)
    except SinkUnavailable as error:
        return [Unsent(str(error))] * len(wave)


def _receipts(answers: Sequence[Receipt]) -> Sequence[Receipt]:
    unsent = [answer for answer in answers if isinstance(answer, Unsent)]
    if unsent and len(unsent) == len(answers):
        raise SinkUnavailable(unsent[0].error)
    return answers
