"""The suite would notice: each of these sources breaks one promise, and one case fails."""

import json
from collections.abc import Sequence
from datetime import timedelta

import pytest

from penstock.ports.clock import SystemClock
from penstock.ports.executor import ThreadExecutor
from penstock.ports.source import Incoming
from penstock.sources.posted import Posted, PostedSource
from penstock.testing.source_suite import SourceSuite, suite
from tests.sources.beds import PostedBed

ZERO = timedelta(0)


class WritesAnew(PostedSource):
    async def receive(self, limit: int) -> Sequence[Incoming]:
        return [one._replace(body=json.dumps(json.loads(one.body))) for one in await super().receive(limit)]


class GivesTooMuch(PostedSource):
    async def receive(self, limit: int) -> Sequence[Incoming]:
        return await super().receive(limit + 1)


class NeverAcknowledges(PostedSource):
    async def ack(self, messages: Sequence[Incoming]) -> None:
        await self.nack(messages, delay=timedelta(hours=1))


class LosesWhatIsSentBack(PostedSource):
    async def nack(self, messages: Sequence[Incoming], *, delay: timedelta) -> None:
        await (super().nack(messages, delay=delay) if delay else self.ack(messages))


class NeverCounts(PostedSource):
    async def receive(self, limit: int) -> Sequence[Incoming]:
        return [one._replace(receives=1) for one in await super().receive(limit)]


class Hurries(PostedSource):
    async def nack(self, messages: Sequence[Incoming], *, delay: timedelta) -> None:
        await super().nack(messages, delay=delay / 10)


class MixesGroups(PostedSource):
    def post(self, messages: Sequence[Posted]) -> None:
        super().post([posted._replace(group=None) for posted in messages])


class ExtendsNothing(PostedSource):
    async def extend(self, messages: Sequence[Incoming]) -> Sequence[Incoming]:
        return messages


class BuriesNowhere(PostedSource):
    async def bury(self, messages: Sequence[Incoming]) -> None:
        await self.ack(messages)


class GivesForGood(PostedSource):
    def __init__(self, clock: SystemClock, *, visibility: timedelta) -> None:
        super().__init__(clock, visibility=visibility * 1000)


SILENT = "test_what_its_holder_keeps_silent_about_comes_again"


@pytest.mark.parametrize(
    ("bent", "case"),
    [
        (WritesAnew, "test_messages_come_as_they_were_put_in"),
        (GivesTooMuch, "test_no_more_come_than_were_asked_for"),
        (NeverAcknowledges, "test_what_is_acknowledged_is_gone"),
        (LosesWhatIsSentBack, "test_what_is_sent_back_comes_again_and_is_counted"),
        (NeverCounts, "test_what_is_sent_back_comes_again_and_is_counted"),
        (Hurries, "test_a_delay_is_kept"),
        (MixesGroups, "test_groups_keep_their_order_whatever_comes_again"),
        (MixesGroups, "test_a_group_is_with_one_receiver_at_a_time"),
        (MixesGroups, "test_nothing_new_overtakes_a_message_that_is_put_off"),
        (ExtendsNothing, "test_what_is_held_is_nobody_elses"),
        (BuriesNowhere, "test_what_nobody_can_deliver_is_put_aside"),
        (GivesForGood, SILENT),
    ],
)
async def test_one_broken_promise_fails_one_case(
    bent: type[PostedSource], case: str, executor: ThreadExecutor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(suite, "PATIENCE_S", 1.0)
    bed = PostedBed(executor)
    bed.source = bent(SystemClock(), visibility=timedelta(seconds=1))
    with pytest.raises((AssertionError, TimeoutError)):
        await getattr(SourceSuite(), case)(bed)
