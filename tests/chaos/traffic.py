"""Producers: they offer jobs to whoever takes them, again and again until they are told yes, and remember it.

Every job has its id before it is first offered, so that an offer without an answer can be repeated.
"""

import asyncio
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from random import Random
from typing import Any

import aiohttp

from penstock import Client
from penstock.domain.intake import new_job
from penstock.domain.job import Enqueued, NewJob
from penstock.domain.payloads import Json
from penstock.domain.ulid import Ulids
from penstock.errors import PenstockError, StoreUnavailable
from penstock.ports.clock import SystemClock
from penstock.testing.invariants.facts import Ledger

ORDERS = "orders"
MAIL = "mail"


@dataclass(frozen=True, slots=True)
class Offer:
    """One job to be enqueued: its fields, its payload as the exact text, and what the ledger says of it."""

    fields: dict[str, Any]
    payload: str

    @property
    def job(self) -> NewJob:
        return new_job({**self.fields, "payload": Json(self.payload)})

    @property
    def text(self) -> str:
        """The enqueue object as it is posted; the payload keeps its bytes."""
        members = [f"{json.dumps(name)}: {json.dumps(value)}" for name, value in self.fields.items()]
        return "{" + ", ".join([*members, f'"payload": {self.payload}']) + "}"


def offers(rng: Random, *, groups: int, per_group: int, unordered: int, ahead: float = 12.0) -> list[Offer]:
    """Return jobs of ordered groups and others, mixed, each group in its order.

    Some are due up to so many seconds after now, some come with a lower sequence than the one before.
    """
    ids = new_ids(rng)
    now = SystemClock().now()
    line = [f"g{number % groups}" for number in range(groups * per_group)] + [None] * unordered
    rng.shuffle(line)
    found = []
    for number, group in enumerate(line):
        fields: dict[str, Any] = {"lane": MAIL if group is None else ORDERS, "id": ids()}
        if group is not None:
            fields["group"] = group
        if rng.random() < 0.5:
            fields["key"] = f"k{number}"
        if rng.random() < 0.05:
            fields["sequence"] = rng.randrange(90, 110)
        if rng.random() < 0.05:
            fields["run_at"] = _stamp(now + timedelta(seconds=ahead * rng.random()))
        found.append(Offer(fields, f'{{"n" : {number},\t"pad":"{"ü" * rng.randrange(40)}"}}'))
    return found


def new_ids(rng: Random) -> Ulids:
    """Return a source of ids."""
    return Ulids(lambda: int(SystemClock().now().timestamp() * 1000), rng.randbytes)


def _stamp(at: datetime) -> str:
    return at.isoformat()


@dataclass(slots=True)
class Producer:
    """Offers jobs, some through the API of a node, some through a client of the store."""

    ledger: Ledger
    client: Client
    urls: Callable[[], Sequence[str]]
    rng: Random
    over_api: float = 0.5
    refused: list[str] = field(default_factory=list)

    async def produce(
        self, jobs: Sequence[Offer], *, per_second: float, batch: int = 20, until: asyncio.Event | None = None
    ) -> Sequence[Offer]:
        """Offer all jobs at that pace, in order, or those whose turn comes until something happens."""
        loop = asyncio.get_running_loop()
        started = loop.time()
        async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=15)) as session:
            for begin in range(0, len(jobs), batch):
                await asyncio.sleep(started + begin / per_second - loop.time())
                if until is not None and until.is_set():
                    return jobs[:begin]
                await self._insist(session, jobs[begin : begin + batch])
        return jobs

    async def _insist(self, session: aiohttp.ClientSession, part: Sequence[Offer]) -> None:
        """Offer a batch until every job of it is taken."""
        asked_after = len(self.ledger)
        while part:
            answers = await self._offer(session, part)
            left = []
            for offer, answer in zip(part, answers, strict=True):
                if answer is None:
                    left.append(offer)
                else:
                    self.ledger.accept(answer, offer.job, asked_after=asked_after)
            if left:
                await asyncio.sleep(0.1)
            part = left

    async def _offer(self, session: aiohttp.ClientSession, part: Sequence[Offer]) -> Sequence[str | None]:
        """Return the id of each job that was taken; None = nobody knows."""
        urls = self.urls()
        if urls and self.rng.random() < self.over_api:
            return await self._post(session, self.rng.choice(urls), part)
        try:
            given = [{**offer.fields, "payload": Json(offer.payload)} for offer in part]
            answers = await asyncio.to_thread(self.client.enqueue_many, given)
        except StoreUnavailable as error:
            self.refused.append(str(error))
            return [None] * len(part)
        return [_taken(offer, answer) for offer, answer in zip(part, answers, strict=True)]

    async def _post(
        self, session: aiohttp.ClientSession, url: str, part: Sequence[Offer]
    ) -> Sequence[str | None]:
        body = '{"jobs": [' + ", ".join(offer.text for offer in part) + "]}"
        headers = {"Content-Type": "application/json"}
        try:
            async with session.post(f"{url}/api/jobs", data=body.encode(), headers=headers) as answer:
                said = await answer.json()
                if answer.status != 200:
                    self.refused.append(f"{answer.status} {said}")
                    return [None] * len(part)
        except (aiohttp.ClientError, TimeoutError, json.JSONDecodeError):
            return [None] * len(part)
        results = {result["index"]: result for result in said["results"]}
        return [_taken(offer, results[index]) for index, offer in enumerate(part)]


def _taken(offer: Offer, answer: Enqueued | PenstockError | dict[str, Any]) -> str:
    """Return the id of a job that is there: from this offer, or from one that got no answer."""
    if isinstance(answer, dict):
        error, id_ = answer.get("error"), answer.get("id")
    else:
        error, id_ = (str(answer), None) if isinstance(answer, PenstockError) else (None, answer.id)
    own = offer.fields["id"]
    assert own == id_ if error is None else error == f"id: there is a job {own} already", (offer, answer)
    return str(own)
