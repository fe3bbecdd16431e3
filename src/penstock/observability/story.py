"""What a node's log tells: a line per batch, fewer when there is much to tell, every dead job by name.

Calls of a lane are summed until their batch is settled, and told once a second at most; `tell_waiting` tells
what no later batch did. At `debug` every move of a job is a line of its own. Everything that needs a person
is a warning and says what to do.
"""

import asyncio
import logging
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import timedelta
from threading import Lock
from typing import Any, Final

from penstock.domain.durations import format_duration
from penstock.domain.gates import because, until_then
from penstock.observability.deliveries import delivery_line
from penstock.observability.logs import FIELDS
from penstock.observability.words import SENT, spelled
from penstock.ports.events import (
    Called,
    Claimed,
    Event,
    Halted,
    Housekept,
    JobDied,
    LaneChanged,
    LaneFailed,
    LeaderChanged,
    LeaseLost,
    Move,
    NodeStarted,
    NodeStopped,
    Processed,
    Recalled,
    Recovered,
    ReturnedJobs,
    Routed,
    SettledBatch,
    SinkFailed,
    SourceFailed,
    StoreBack,
    StoreFailed,
    StoreGivenUp,
    TargetChanged,
)

EVERY_S: Final = 1.0
LOOK_S: Final = 0.25
MOST_REASONS: Final = 3
MOST_OF_AN_ERROR: Final = 100
TOLD: Final = {"retry": "to retry", "unknown": "of unknown fate", "not_called": "not sent"}


@dataclass(slots=True)
class _Lane:
    """What happened in a lane since its last line."""

    told_at: float
    calls: int = 0
    sent: int = 0
    others: Counter[str] = field(default_factory=Counter)
    returned: Counter[str] = field(default_factory=Counter)
    fenced: int = 0
    lag: float = 0.0
    took: float = 0.0
    sinks: set[str] = field(default_factory=set)
    error: str | None = None


class Story:
    """Subscribes to events and writes log lines."""

    def __init__(self, log: logging.Logger, monotonic: Callable[[], float]) -> None:
        self._log = log
        self._monotonic = monotonic
        self._lanes: dict[str, _Lane] = {}
        self._failures: dict[str, int] = {}  # by part: how many in a row were told
        self._lock = Lock()

    def __call__(self, event: Event) -> None:
        """Tell an event, or keep it for the lane's next line."""
        if isinstance(event, Claimed | SettledBatch | Recovered) and self._log.isEnabledFor(logging.DEBUG):
            for move in event.each():
                facts = {"event": "JobMoved", "lane": event.lane, **move._asdict()}
                self._log.debug("%s", _step(event.lane, move), extra={FIELDS: facts})
        match event:
            case Called() | SettledBatch() | ReturnedJobs():
                self._sum_up(event)
            case Claimed() | Housekept():
                self._say(logging.DEBUG, _detail(event), event)
            case JobDied():
                self._say(logging.WARNING, _obituary(event), event)
            case LaneFailed() | LeaseLost() | SinkFailed() | StoreFailed() | TargetChanged() | Recovered():
                self._trouble(event)
            case Processed() | Routed() | SourceFailed():
                self._say(*delivery_line(event), event)
            case StoreBack(part=part) | StoreGivenUp(part=part):
                self._failures.pop(part, None)
                self._say(logging.INFO, _news(event), event)
            case _:
                self._say(logging.INFO, _news(event), event)

    def tell_waiting(self, *, all: bool = False) -> None:  # noqa: A002 - the word for it
        """Write the lines whose time has come, or `all` there are."""
        with self._lock:
            before = self._monotonic() - EVERY_S
            ready = [name for name, lane in self._lanes.items() if all or lane.told_at <= before]
            lines = [line for name in ready if (line := self._line(name))]
            # A lane that has been silent is forgotten; its next batch is told at once.
            self._lanes = {name: lane for name, lane in self._lanes.items() if lane.told_at > before}
        for text, facts in lines:
            self._log.info(text, extra={FIELDS: facts})

    def _sum_up(self, event: Called | SettledBatch | ReturnedJobs) -> None:
        line = None
        with self._lock:
            lane = self._lanes.get(event.lane)
            if lane is None:
                lane = self._lanes[event.lane] = _Lane(self._monotonic() - EVERY_S)
            match event:
                case Called():
                    _add(lane, event)
                case ReturnedJobs(jobs=jobs, why=why):
                    lane.returned[why] += jobs
                case SettledBatch(refused=refused):
                    lane.fenced += refused
                    if self._monotonic() - lane.told_at >= EVERY_S:
                        line = self._line(event.lane)
        if line is not None:
            text, facts = line
            self._log.info(text, extra={FIELDS: facts})

    def _line(self, name: str) -> tuple[str, dict[str, Any]] | None:
        """Return the lane's line and begin a new one; None = nothing happened."""
        lane = self._lanes[name]
        parts = [f"{lane.sent} sent"] if lane.sent else []
        parts += [f"{number} {TOLD.get(word, word)}" for word, number in sorted(lane.others.items())]
        parts += [f"{number} given back ({why})" for why, number in lane.returned.most_common(MOST_REASONS)]
        parts += [f"{lane.fenced} refused: somebody else had taken over"] if lane.fenced else []
        if not parts:
            return None
        if lane.error:
            parts.append(f"first error: {lane.error[:MOST_OF_AN_ERROR]}")
        if lane.calls:
            parts.append(f"{'up to ' if lane.calls > 1 else ''}{_ms(lane.lag)} after due")
        facts = {
            "lane": name,
            "sent": lane.sent,
            **{TOLD.get(word, word).replace(" ", "_"): number for word, number in lane.others.items()},
            "returned": lane.returned.total(),
            "fenced": lane.fenced,
            "calls": lane.calls,
            "sinks": sorted(lane.sinks),
            "lag_ms": round(lane.lag * 1000, 1),
            "took_ms": round(lane.took * 1000, 1),
        }
        self._lanes[name] = _Lane(self._monotonic())
        return f"{name}: {', '.join(parts)}", facts

    def _trouble(
        self, event: LaneFailed | LeaseLost | SinkFailed | StoreFailed | TargetChanged | Recovered
    ) -> None:
        match event:
            case LaneFailed():
                self._say(logging.ERROR, _bug(event), event)
            case StoreFailed() if not self._worth_telling(event):
                self._say(logging.DEBUG, _news(event), event)
            case Recovered(fates=fates) if set(fates) == {"running"}:
                self._say(logging.DEBUG, f"{event.lane}: {_counts(fates)}, its time begins anew", event)
            case TargetChanged(state="closed", wait=None):
                self._say(logging.INFO, _news(event), event)
            case _:
                self._say(logging.WARNING, _news(event), event)

    def _worth_telling(self, event: StoreFailed) -> bool:
        """Say whether it is the 1st, 2nd, 4th, 8th ... in a row: an outage must not fill a disk.

        Many calls may make up one part, each of which counts for itself: they are told as one.
        """
        failures = event.failures
        if failures & (failures - 1) or failures <= self._failures.get(event.part, 0):
            return False
        self._failures[event.part] = failures
        return True

    def _say(self, level: int, text: str, event: Event) -> None:
        if self._log.isEnabledFor(level):
            self._log.log(level, "%s", text, extra={FIELDS: _facts(event)})


async def keep_telling(story: Story, stop: asyncio.Event) -> None:
    """Write the lines that wait when their time has come, until `stop`; and what is left then."""
    while not stop.is_set():
        with suppress(TimeoutError):
            async with asyncio.timeout(LOOK_S):
                await stop.wait()
        story.tell_waiting()
    story.tell_waiting(all=True)


def _add(lane: _Lane, call: Called) -> None:
    lane.calls += 1
    lane.sinks.add(call.sink)
    lane.lag = max(lane.lag, call.lag)
    lane.took = max(lane.took, call.took)
    lane.error = lane.error or call.error
    for word, number in call.outcomes.items():
        if word in SENT:
            lane.sent += number
        if word not in SENT or word == "duplicate":
            lane.others[spelled(word)] += number


def _step(lane: str, move: Move) -> str:
    group = f" of group {move.group}" if move.group is not None else ""
    why = f" ({move.why[:MOST_OF_AN_ERROR]})" if move.why else ""
    lost = ", not written: no longer ours" if move.refused else ""
    under = f"attempt {move.attempt}, epoch {move.epoch}, node {move.node}"
    return f"{lane}: job {move.job}{group} {spelled(move.to)}{why}{lost}; {under}"


def _obituary(event: JobDied) -> str:
    error = f" ({event.error})" if event.error else ""
    return (
        f"{event.lane}: job {event.job} is dead: {event.reason}{error};"
        f" what happened: penstock jobs timeline {event.job};"
        f' once that is fixed: penstock jobs retry {event.job} --reason "..."'
    )


def _bug(event: LaneFailed) -> str:
    return (
        f"{event.lane}: its pass failed: {event.error}; the lane pauses for {_time(event.pause)},"
        " others go on. This is a bug in Penstock or in a sink: please report it with the trace"
    )


def _detail(event: Claimed | Housekept) -> str:
    match event:
        case Claimed(lane=lane, jobs=jobs, epoch=epoch, took=took):
            return f"{lane}: claimed {jobs} under epoch {epoch} in {_ms(took)}"
        case Housekept(did=did):
            return f"housekeeping: {_counts(did) or 'nothing to do'}"


def _news(event: Event) -> str:
    match event:
        case NodeStarted(node=0, name=name, store=store):
            return f"{name} serves {store}"
        case NodeStarted(node=node, name=name, store=store):
            return f"node {node} ({name}) serves {store}"
        case NodeStopped(node=node, returned=returned):
            given_back = f"{returned} job{'s' * (returned != 1)}"
            return f"node {node} stopped; while it ran, {given_back} went back unsent"
        case LeaderChanged(node=node, term=term, leads=leads):
            return f"node {node} {'leads' if leads else 'no longer leads'} (term {term})"
        case StoreBack(part=part, after=after):
            return f"the store answers {part} again after {after:.1f} s"
        case StoreGivenUp(part=part):
            return f"{part} no longer waits for the store: there is nothing left for it to do there"
        case StoreFailed(part=part, error=error, failures=failures):
            times = "" if failures == 1 else f" {failures} times in a row"
            return f"the store failed {part}{times}: {error}; jobs wait, none is lost, it is tried again"
        case SinkFailed(lane=str(lane), sink=sink, error=error, pause=pause):
            return f"{lane}: sink {sink} took nothing: {error}; its jobs wait, next try in {_time(pause)}"
        case SinkFailed(sink=sink, error=error, pause=pause):
            return (
                f"sink {sink} cannot be opened: {error}; its lanes wait, next try in {_time(pause)}."
                " Look with penstock doctor"
            )
        case LaneChanged(lane=lane, version=version, stopped=stopped):
            return f"{lane}: version {version} of its settings is in force{', it is stopped' * stopped}"
        case _:
            return _more_news(event)


def _more_news(event: Event) -> str:
    match event:
        case LeaseLost(lane=lane, epoch=epoch, jobs=jobs):
            return (
                f"{lane}: lost the lease on claim {epoch}; {jobs} jobs with no outcome on record are left to"
                " its new holder. If this happens often, raise the lane's lease or look for a busy machine"
            )
        case Recalled(lane=lane, jobs=jobs):
            they = "job comes" if jobs == 1 else "jobs come"
            return f"{lane}: {jobs} {they} now: the pool that had put them back is set otherwise"
        case TargetChanged(target=target, state="closed", wait=None):
            return f"target {target} answers again; its jobs go on"
        case TargetChanged(target=target, state="closed", wait=wait):
            return f"target {target} asked to be left alone for {_time(wait)}; its jobs wait"
        case TargetChanged(target=target, state=state, failures=failures, wait=wait):
            until = f", next try in {_time(wait)}" if wait else ""
            return (
                f"target {target}: breaker {state} after {failures} failures in a row; its jobs wait{until}"
            )
        case Halted(node=node, by=None):
            return "the whole store goes on" if node is None else f"node {node} goes on"
        case Halted(node=None, by=by, reason=reason, until=until):
            what = f"the whole store is paused by {by}{because(reason)}{until_then(until)}"
            return f"{what}: nothing is sent; penstock resume-all lets it go"
        case Halted(node=node, by=by, reason=reason):
            what = f"node {node} was told to drain by {by}{because(reason)}"
            return f"{what}: it claims nothing more; penstock nodes resume {node} lets it go on"
        case Recovered(lane=lane, fates=fates):
            return f"{lane}: recovered what a node or an executor left: {_counts(fates)}"
        case _:
            return type(event).__name__


def _facts(event: Event) -> dict[str, Any]:
    names = [name for kind in type(event).__mro__ for name in getattr(kind, "__slots__", ())]
    facts = {name: getattr(event, name) for name in names if name != "each"}
    return {
        "event": type(event).__name__,
        **{
            name: fact.total_seconds() if isinstance(fact, timedelta) else fact
            for name, fact in facts.items()
        },
    }


def _counts(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{number} {TOLD.get(word, word)}" for word, number in sorted(counts.items()) if number)


def _ms(seconds: float) -> str:
    return f"{seconds * 1000:.0f} ms" if seconds < 10 else f"{seconds:.0f} s"


def _time(duration: timedelta | None) -> str:
    return "a while" if duration is None else format_duration(max(duration, timedelta(0)))
