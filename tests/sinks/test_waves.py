"""Batches in waves."""

from collections.abc import Sequence

import pytest

from penstock.domain.envelopes import Unwritable
from penstock.domain.outcomes import (
    Accepted,
    Duplicate,
    Receipt,
    Rejected,
    Throttled,
    TryAgain,
    Unknown,
    Unsent,
)
from penstock.domain.states import Reason
from penstock.ports.sink import Envelope, SinkUnavailable
from penstock.sinks.waves import PAUSE, TooLarge, in_waves

BEHIND = Unsent("not sent: it is behind a failure in its group")


def batch(*names: str) -> list[Envelope]:
    """Return messages called `a1`, `b2`: the letter is the group, - is none."""
    return [Envelope(name, 1, "lane", 1, group=None if name[0] == "-" else name[0]) for name in names]


class Waves:
    """Receipts with what it is told, else with a yes."""

    def __init__(self, **answers: Receipt | Exception) -> None:
        self.answers = answers
        self.calls: list[list[str]] = []

    def prepare(self, envelope: Envelope) -> str:
        answer = self.answers.get(envelope.id)
        if isinstance(answer, Unwritable):
            raise answer
        return envelope.id

    async def send(self, names: Sequence[str]) -> Sequence[Receipt]:
        self.calls.append(list(names))
        for name in names:
            answer = self.answers.get(name)
            if isinstance(answer, Exception):
                raise answer
        return [self.answers.get(name, Accepted(name)) for name in names]  # type: ignore[misc]


async def test_a_wave_holds_one_message_of_a_group_and_all_that_have_none() -> None:
    waves = Waves()
    receipts = await in_waves(batch("a1", "-2", "a3", "b4", "-5", "a6"), waves.prepare, waves.send)

    assert waves.calls == [["a1", "-2", "b4", "-5"], ["a3"], ["a6"]]
    assert receipts == [Accepted(name) for name in ("a1", "-2", "a3", "b4", "-5", "a6")]


@pytest.mark.parametrize("answer", [TryAgain("no"), Throttled(PAUSE), Rejected("no"), Unknown("cut")])
async def test_nothing_goes_past_a_failure_in_its_group(answer: Receipt) -> None:
    waves = Waves(a1=answer, b1=Duplicate())
    receipts = await in_waves(batch("a1", "b1", "a2", "b2", "a3"), waves.prepare, waves.send)

    assert waves.calls == [["a1", "b1"], ["b2"]]
    assert receipts == [answer, Duplicate(), BEHIND, Accepted("b2"), BEHIND]


async def test_what_cannot_be_written_is_rejected_and_stops_its_group() -> None:
    waves = Waves(a1=Unwritable("bad"), b1=TooLarge(300 * 1024, 256 * 1024))
    receipts = await in_waves(batch("a1", "b1", "-1", "a2"), waves.prepare, waves.send)

    assert waves.calls == [["-1"]]
    assert receipts == [
        Rejected("bad"),
        Rejected(
            'the message has 307200 bytes, this sink takes 256KiB: send less, or format = "pointer"',
            Reason.TOO_LARGE,
        ),
        Accepted("-1"),
        BEHIND,
    ]


async def test_when_nothing_went_out_the_sink_is_unavailable() -> None:
    for answer in (Unsent("no queue"), SinkUnavailable("no queue")):
        waves = Waves(a1=answer)
        with pytest.raises(SinkUnavailable, match="no queue"):
            await in_waves(batch("a1", "a2"), waves.prepare, waves.send)
        assert waves.calls == [["a1"]]


async def test_what_did_not_go_out_beside_what_did_waits_and_costs_no_attempt() -> None:
    waves = Waves(a2=SinkUnavailable("gone"))
    receipts = await in_waves(batch("a1", "b1", "a2", "b2"), waves.prepare, waves.send)

    assert receipts == [Accepted("a1"), Accepted("b1"), Unsent("gone"), Unsent("gone")]
    assert await in_waves([], waves.prepare, waves.send) == []
