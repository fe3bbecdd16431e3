"""Sends as the engine does, through trouble, and judges what came out at the other end."""

import asyncio
from collections import Counter, deque
from collections.abc import Mapping, Sequence
from contextlib import AbstractAsyncContextManager, nullcontext
from dataclasses import dataclass, field

from penstock.domain.outcomes import Accepted, Duplicate, Receipt, Unknown, Unsent
from penstock.ports.sink import Envelope, Sink, SinkUnavailable

PAUSE_S = 0.02
PATIENCE_S = 60.0
Trouble = AbstractAsyncContextManager[None]


def messages(groups: int, per_group: int, *, queue: str | None = None) -> list[Envelope]:
    """Return messages of so many groups, those of a group in order."""
    return [
        Envelope(
            f"01CARRIED{group:08}{number:09}", 1, "carried", 1, f'{{"n":{number}}}',
            group=f"group-{group}", sequence=number, queue=queue, mode="block_on_error", format="full",
        )
        for number in range(per_group)
        for group in range(groups)
    ]  # fmt: skip


@dataclass
class Carrier:
    """One message of a group at a time; the next when this one was taken.

    A send of unknown fate is repeated under its number, and its id is in `doubtful`; one that failed goes
    again under the next. `said` counts the receipts.
    """

    sink: Sink
    doubtful: set[str] = field(default_factory=set)
    said: Counter[str] = field(default_factory=Counter)

    async def carry(self, given: Sequence[Envelope], troubles: Mapping[int, Trouble] | None = None) -> None:
        """Send everything; `troubles` are what happens during the n-th call."""
        waiting: dict[str | None, deque[Envelope]] = {}
        for message in given:
            waiting.setdefault(message.group, deque()).append(message)
        left = dict(troubles or {})
        calls = 0
        async with asyncio.timeout(PATIENCE_S):
            while waiting:
                heads = [(group, queue[0]) for group, queue in waiting.items()][: self.sink.max_batch]
                calls += 1
                async with left.pop(calls, None) or nullcontext():
                    receipts = await self._send([head for _, head in heads])
                for (group, head), receipt in zip(heads, receipts, strict=True):
                    self._note(waiting, group, head, receipt)
                if not any(isinstance(receipt, Accepted | Duplicate) for receipt in receipts):
                    await asyncio.sleep(PAUSE_S)
        assert not left, "not every trouble came"

    async def _send(self, batch: Sequence[Envelope]) -> Sequence[Receipt | None]:
        try:
            return await self.sink.send(batch)
        except SinkUnavailable:
            self.said["Unsent"] += len(batch)
            return [None] * len(batch)

    def _note(
        self,
        waiting: dict[str | None, deque[Envelope]],
        group: str | None,
        head: Envelope,
        receipt: Receipt | None,
    ) -> None:
        if receipt is None:
            return
        self.said[type(receipt).__name__] += 1
        match receipt:
            case Accepted() | Duplicate():
                waiting[group].popleft()
                if not waiting[group]:
                    del waiting[group]
            case Unknown():
                self.doubtful.add(head.id)
            case Unsent():
                pass
            case _:
                waiting[group][0] = head._replace(number=head.number + 1)

    def judge(self, given: Sequence[Envelope], came: Sequence[str], *, dedups: bool) -> None:
        """Nothing is lost, every group is in order, and only sends in doubt came twice, or none."""
        assert set(came) == {message.id for message in given}
        twice = {id_ for id_, times in Counter(came).items() if times > 1}
        assert twice <= (set() if dedups else self.doubtful)
        first = list(dict.fromkeys(came))
        for group in {message.group for message in given}:
            wanted = [message.id for message in given if message.group == group]
            assert [id_ for id_ in first if id_ in set(wanted)] == wanted
