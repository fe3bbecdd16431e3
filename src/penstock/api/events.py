"""`/api/events`: what changes, as it changes, for whoever looks on.

One look at the store serves everybody who listens, at most twice a second and only for topics that somebody
listens to. A message says the few numbers that changed, or that something did: whoever wants more asks.
It has an id: a listener that comes back with the last one it saw (`Last-Event-ID`) gets what is newer.
Whoever is logged out, or has his key revoked, hears no more within a second, as of every other answer.
"""

import asyncio
import re
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Iterable, Mapping
from contextlib import suppress
from typing import Any, Final, NamedTuple

from litestar import Request, get
from litestar.handlers import HTTPRouteHandler
from litestar.response import Stream

from penstock.api.desk import Desk
from penstock.api.params import items_of, read_params, text
from penstock.api.problems import Problem
from penstock.api.scopes import needs, still_may
from penstock.api.stats import counted, most_at_work
from penstock.client import Client
from penstock.domain.access import Scope, Who
from penstock.domain.names import near
from penstock.errors import InvalidQuery, StoreError
from penstock.wire import encode, operation_object

EVERY_S: Final = 0.5
HEARTBEAT_S: Final = 15.0
MOST_LISTENERS: Final = 100
RECENT: Final = 20
PLACE: Final = re.compile("[0-9]{1,18}")
# One message goes to everybody, so it holds what whoever sees least may see.
LISTENER: Final = Who("events", frozenset({Scope.READ}))
HEADERS: Final = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}


class Message(NamedTuple):
    """What a topic last said, and its place among all messages of this process."""

    number: int
    topic: str
    data: str


def _lanes(client: Client) -> Mapping[str, Any]:
    found = counted(client)
    listed = most_at_work(found, found)
    # A change in a lane that is not listed is news as well: it changes what the others have together.
    others = [found[name] for name in found.keys() - {*listed}]
    return {"lanes": {name: found[name] for name in listed}, "more_lanes": len(others), "more": _sum(others)}


def _totals(client: Client) -> Mapping[str, Any]:
    return {"states": _sum(counted(client).values())}


def _sum(lanes: Iterable[Mapping[str, int]]) -> dict[str, int]:
    found: Counter[str] = Counter()
    for counts in lanes:
        found.update(counts)
    return dict(sorted(found.items()))


def _operations(client: Client) -> Mapping[str, Any]:
    return {"operations": [operation_object(one) for one in client.operations(limit=RECENT).operations]}


def _nodes(client: Client) -> Mapping[str, Any]:
    nodes = [{"id": node.id, "name": node.name} for node in client.store.nodes()]
    return {"nodes": nodes, "leader": client.store.leader()}


def _audit(client: Client) -> Mapping[str, Any]:
    entries = client.store.audit_log(limit=1).entries
    return {"last": entries[0].number if entries else 0}


def _groups(client: Client) -> Mapping[str, Any]:
    rows = client.store.list_groups(blocked=True, limit=RECENT).groups
    return {"blocked": [{"lane": row.lane, "group": row.group, "blocker": row.blocker} for row in rows]}


TOPICS: Final[Mapping[str, Callable[[Client], Mapping[str, Any]]]] = {
    "jobs": _totals,
    "lanes": _lanes,
    "operations": _operations,
    "groups": _groups,
    "nodes": _nodes,
    "audit": _audit,
}


class Feed:
    """The last message of every topic, renewed for whoever asks first."""

    def __init__(self, desk: Desk, monotonic: Callable[[], float], mark: str) -> None:
        self._desk, self._monotonic, self.mark = desk, monotonic, mark
        self._client = desk.client.acting(LISTENER)
        self._said: dict[str, Message] = {}
        self._looked: dict[str, float] = {}
        self._looking = asyncio.Lock()
        self._number = 0
        self.listeners = 0

    async def newer(self, topics: Collection[str], than: int) -> list[Message]:
        """Return what these topics said after a number, with a look at the store if the last one is old."""
        async with self._looking:
            now = self._monotonic()
            for topic in topics:
                if now - self._looked.get(topic, -EVERY_S) >= EVERY_S:
                    self._looked[topic] = now
                    with suppress(StoreError):  # a store that is away has no news; the listener stays
                        self._note(topic, encode(await self._desk.ask(TOPICS[topic], self._client)))
        found = [self._said[topic] for topic in topics if topic in self._said]
        return sorted(message for message in found if message.number > than)

    def _note(self, topic: str, data: str) -> None:
        before = self._said.get(topic)
        if before is None or before.data != data:
            self._number += 1
            self._said[topic] = Message(self._number, topic, data)

    def place(self, last_id: str | None) -> int:
        """Return the number that an id of ours names; 0 = everything is news."""
        mark, _, number = (last_id or "").partition("-")
        return int(number) if mark == self.mark and PLACE.fullmatch(number) else 0


def event_routes(
    desk: Desk, *, monotonic: Callable[[], float], mark: str, over: asyncio.Event
) -> list[HTTPRouteHandler]:
    """Return the handler of events; listeners are let go when `over` is set."""
    feed = Feed(desk, monotonic, mark)

    @get("/api/events", opt=needs(Scope.READ))
    async def events(request: Request[Any, Any, Any]) -> Stream:
        topics = _topics(read_params(items_of(request), {"topics": text}).get("topics"))
        if feed.listeners >= MOST_LISTENERS:
            hint = "close a page, or ask for the figures now and then: GET /api/stats"
            raise Problem(429, "too-many-listeners", "too many listen already", hint=hint)
        last = feed.place(request.headers.get("last-event-id"))
        told = _told(feed, topics, last, still=still_may(request), monotonic=monotonic, over=over)
        await anext(told)  # counts it before the next one is looked at: nothing is waited for until then
        return Stream(told, media_type="text/event-stream", headers=HEADERS)

    return [events]


async def _told(
    feed: Feed,
    topics: Collection[str],
    last: int,
    *,
    still: Callable[[], Awaitable[bool]],
    monotonic: Callable[[], float],
    over: asyncio.Event,
) -> AsyncIterator[str]:
    feed.listeners += 1
    try:
        yield ""  # let in; what follows is heard
        yield "retry: 2000\n\n"
        spoke = monotonic()
        while not over.is_set() and await still():
            for message in await feed.newer(topics, last):
                yield f"id: {feed.mark}-{message.number}\nevent: {message.topic}\ndata: {message.data}\n\n"
                last, spoke = message.number, monotonic()
            if monotonic() - spoke >= HEARTBEAT_S:
                yield ": still here\n\n"
                spoke = monotonic()
            with suppress(TimeoutError):
                async with asyncio.timeout(EVERY_S):
                    await over.wait()
    finally:
        feed.listeners -= 1


def _topics(given: str | None) -> list[str]:
    if given is None:
        return [*TOPICS]
    topics = list(dict.fromkeys(given.split(",")))
    for topic in topics:
        if topic not in TOPICS:
            close = near(topic, TOPICS)
            hint = f"did you mean {' or '.join(close)}?" if close else f"known are {', '.join(TOPICS)}"
            raise InvalidQuery("topics", f"there is no {topic!r}; {hint}")
    return topics
