"""What nodes do between the store and the sink, judged at the moment they do it.

The store's own calls are judged by `watch`; this is about what no call shows: whether a node may send what
it sends, and whether it keeps house under its own term. Somebody who sees both ends tells: `heard` what the
store carried out, `begins` and `ends` a call of a sink at its node, `arrives` a message at the sink.

A node that slept may find itself in the middle of a send: that is a zombie's doing, which nobody can prevent,
and it is excused. A node that was awake is not.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from math import inf
from typing import Final, NamedTuple

from penstock.domain.breakers import Target
from penstock.domain.durations import parse_duration
from penstock.domain.job import Live
from penstock.domain.states import JobState
from penstock.domain.targets import target_of
from penstock.ports.sink import Envelope
from penstock.testing.invariants.facts import (
    IllegalPath,
    Late,
    OldTerm,
    RequestIgnored,
    StoppedSent,
    TooEarly,
    TooLate,
    Untrusted,
    Wedged,
)
from penstock.testing.invariants.model import Model
from penstock.testing.invariants.occupancy import Occupancy
from penstock.testing.invariants.picture import Call
from penstock.testing.invariants.settings import Settings
from penstock.testing.invariants.sqlite import Tables

_HOUSEKEEPING: Final = frozenset({"takeover", "lapse", "expire", "fold_counts", "retire"})
_EXACT: Final = timedelta(microseconds=2)
_AGAIN_S: Final = 0.25
_LEASED: Final = timedelta(seconds=5)
_SOON: Final = timedelta(milliseconds=100)
_SLOT: Final = timedelta(milliseconds=20)
_DRIFT: Final = 0.011
_PLENTY: Final = 50
_KNOWN_WITHIN_S: Final = 0.7
"""A node looks at targets every half second, spread by a tenth, and tells of them five times a second."""


class Sender(NamedTuple):
    """The node that sends: since when it has been awake, and since when nothing befell it."""

    id: str
    awake_since: float
    well_since: float


class Clocks(NamedTuple):
    """The store's clock, the run's own, and when the former was last set."""

    store: Callable[[], datetime]
    time: Callable[[], float]
    set_at: Callable[[], float]


class Left(NamedTuple):
    """A target that is left alone: since when, and until when on the store's clock."""

    since: float
    until: datetime


@dataclass(slots=True)
class Conduct:
    """See the module. `leg` is the longest that one way to the store or the sink takes.

    What is wrong goes to `fail`: a node must not be able to swallow it. `taken_at` is when the sink took a
    send, `well_since` since when nothing has befallen a node (inf = it is not there any more), `serves`
    whether a node is to send the jobs of a lane.
    """

    tables: Tables
    model: Model
    settings: Settings
    clocks: Clocks
    leg: float
    fail: Callable[[Exception], None]
    taken_at: Callable[[str, int], float | None] = lambda *_: None
    well_since: Callable[[int], float] = lambda _: inf
    serves: Callable[[str, str], bool] = lambda *_: True
    occupancy: Occupancy = field(init=False)
    nodes: dict[int, str] = field(default_factory=dict)
    term: int = 0
    term_until: datetime | None = None
    claimed_at: dict[int, float] = field(default_factory=dict)
    taken_over: set[int] = field(default_factory=set)
    _used: set[int] = field(default_factory=set)
    _began: dict[tuple[str, str, int], float] = field(default_factory=dict)
    _left: dict[str, list[Left]] = field(default_factory=dict)
    _drained: dict[int, float] = field(default_factory=dict)
    _begun: dict[int, float] = field(default_factory=dict)
    _asked_at: dict[int, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.occupancy = Occupancy(self.settings, self.model, self.clocks.store, self.clocks.time)

    def heard(self, call: Call) -> None:
        """Take in what the store did."""
        match call.name:
            case "register_node":
                self.nodes[call.result] = call.args[0]
            case "permit":
                self._used.add(call.args[0])
            case "elect" | "extend_term" if call.result is not None:
                self.term = max(self.term, call.result.number)
                self.term_until = call.result.until
            case "mark_target":
                self._target(call.result, call.at)
            case "drain_node":
                self._drain(call.args[0], call.at, draining=call.result is not None)
            case "claim" | "claim_groups" if call.result is not None:
                self._check_drained(call.args[0].node, call.at)
                self.claimed_at[call.result.epoch] = call.at
            case "takeover":
                self._check_abandoned(call)
                self._note_beginnings(call)
                self.claimed_at |= {claim.epoch: call.at for claim in call.result}
                self.taken_over |= {claim.epoch for claim in call.result}
            case _:
                pass
        if call.name in _HOUSEKEEPING:
            self._check_term(call)
        if call.name == "settle" and call.args[0].epoch in self.taken_over:
            self._check_asked_first(call)
        for arrival in self.tables.requests:
            self._asked_at.setdefault(arrival, call.at)
        for arrival in [known for known in self._asked_at if known not in self.tables.requests]:
            del self._asked_at[arrival]
        self.occupancy.heard(call)

    def begins(self, sender: Sender, envelope: Envelope) -> None:
        """A node begins a call."""
        self._began[sender.id, envelope.id, envelope.number] = self.clocks.time()
        if not self.serves(sender.id, envelope.lane):
            self.fail(Untrusted(f"{sender.id} does not serve {envelope.lane}", envelope=envelope))
        sound = self.rested(sender, envelope)
        self.judged(lambda: self.occupancy.begins(self.number(sender.id), envelope, sound=sound))

    def ends(self, sender: Sender, envelope: Envelope) -> None:
        """The call is over, whatever came of it."""
        self._began.pop((sender.id, envelope.id, envelope.number), None)
        self.occupancy.ends(envelope)

    def rested(self, sender: Sender, envelope: Envelope) -> bool:
        """Say whether the node was awake since it looked at the store, until now."""
        began = self._began.get((sender.id, envelope.id, envelope.number), -inf)
        return sender.awake_since + 3 * self.leg < began

    def well(self, sender: Sender) -> bool:
        """Say whether nothing befell the node of late: after an error it waits a little before it goes on.

        A step of the store's clock ends leases of limits there that nodes still trust.
        """
        return sender.well_since + _AGAIN_S < self.clocks.time() and not self._clock_set_within(_LEASED)

    def number(self, name: str) -> int:
        """Return the number that a node goes by, 0 = none yet; it has others if answers were lost."""
        known = [number for number, other in self.nodes.items() if other == name]
        return next((number for number in known if number in self._used), known[0] if known else 0)

    def calling(self, job_id: str) -> bool:
        """Say whether some node is sending the job now."""
        return any(known == job_id for _, known, _ in self._began)

    def arrives(self, sender: Sender, envelope: Envelope) -> None:
        """Judge a message that arrives at the sink."""
        self.judged(lambda: self._check_arrival(sender, envelope))

    def judged(self, judge: Callable[[], None]) -> None:
        """Check something that happens in a node; what is wrong ends the run."""
        try:
            judge()
        except Exception as error:  # noqa: BLE001 - a mistake of ours must not look like the node's
            self.fail(error)

    def _check_arrival(self, sender: Sender, envelope: Envelope) -> None:
        spot = self.model.spots.get(self.model.arrivals[envelope.id])
        if spot is None or spot.job.epoch is None:
            return
        if spot.state is JobState.CLAIMED and spot.job.epoch == envelope.batch:
            self._check_marked(spot.job, envelope)
        if self.rested(sender, envelope):
            self._check_held(sender, spot.job, envelope)
            self._check_time(spot.job, envelope)
            self._check_punctual(sender, spot.job, envelope)
            self._check_stops(sender, envelope)
            if self._asked_at.get(spot.job.arrival, inf) < self.clocks.time() - 4 * self.leg - 0.01:
                raise RequestIgnored("sent though an operator had asked not to", job=spot.job)

    def _check_marked(self, job: Live, envelope: Envelope) -> None:
        claim = self.tables.claims.get(job.epoch or 0)
        hold = self.settings.lanes[envelope.lane]["on_unknown"] == "hold"
        if hold and claim is not None and not claim.sending:
            raise Untrusted("work that must not repeat is sent without a mark", job=job, envelope=envelope)

    def _check_held(self, sender: Sender, job: Live, envelope: Envelope) -> None:
        """Nobody took the claim over while its holder was awake.

        A clock that was set may have ended a lease; but whoever asked after that was told.
        """
        if job.epoch is None or job.epoch <= (envelope.batch or 0):
            return
        lease = parse_duration(self.settings.lanes[envelope.lane]["lease"]).total_seconds()
        began = self._began[sender.id, envelope.id, envelope.number]
        told = self.claimed_at.get(job.epoch, inf) + 4 * self.leg + 0.01 < began
        if told or self.clocks.set_at() < self.clocks.time() - lease:
            raise Untrusted("sent under a claim that somebody else has now", job=job, envelope=envelope)

    def _check_time(self, job: Live, envelope: Envelope) -> None:
        now, slack = self.clocks.store(), timedelta(seconds=4 * self.leg) + _EXACT
        if job.state != JobState.CLAIMED or job.epoch != envelope.batch or self._clock_set_within(slack):
            return
        if now + _EXACT < job.due_at:
            raise TooEarly(f"sent {job.due_at - now} before its time", job=job, envelope=envelope)
        if job.start_by is not None and now > job.start_by + slack:
            raise TooLate(f"sent {now - job.start_by} after start_by", job=job, envelope=envelope)
        misfire = self.settings.lanes[envelope.lane]["misfire"]
        if misfire != "send_now" and not job.attempt:
            latest = job.due_since + parse_duration(misfire[len("skip_after(") : -1])
            if now > latest + slack:
                raise TooLate(f"sent {now - latest} later than misfire allows", job=job, envelope=envelope)

    def _check_punctual(self, sender: Sender, job: Live, envelope: Envelope) -> None:
        """What was claimed ahead of its time goes at its time, unless something befell its node."""
        lane, now = self.settings.lanes[envelope.lane], self.clocks.time()
        claimed_at = self.claimed_at.get(envelope.batch or 0, -inf)
        waited = timedelta(seconds=now - claimed_at)
        late = self.clocks.store() - job.due_at
        if job.claimed_at is None or job.claimed_at + _SOON > job.due_at or job.epoch != envelope.batch:
            return
        limited = lane["rate"] or lane["pool"] or envelope.pool or lane["max_in_flight"] < _PLENTY
        if limited or lane["hold_until"] == "sent":
            return
        if max(sender.well_since, self.clocks.set_at(), self.settings.changed_at) >= claimed_at:
            return
        jitter, legs = parse_duration(lane["jitter"]), timedelta(seconds=8 * self.leg)
        if late > jitter + legs + _SLOT + waited * _DRIFT and envelope.target is None and not lane["target"]:
            raise Late(f"sent {late} after its time, though it was claimed before", job=job, now=now)

    def _clock_set_within(self, span: timedelta) -> bool:
        return self.clocks.set_at() >= self.clocks.time() - span.total_seconds()

    def _check_stops(self, sender: Sender, envelope: Envelope) -> None:
        now, clock, lane = self.clocks.time(), self.clocks.store(), self.settings.lanes[envelope.lane]
        known_since = now - _KNOWN_WITHIN_S - 10 * self.leg
        stop = self.settings.stopped(
            envelope.lane, lane["pool"], clock=clock, since=now - 4 * self.leg - 0.01
        )
        if envelope.pool not in (None, lane["pool"]) and sender.well_since < known_since - 1:
            own = self.settings.stopped(envelope.lane, envelope.pool, clock=clock, since=known_since)
            stop = stop or own
        if stop is not None and not self._clock_set_within(timedelta(seconds=4 * self.leg)):
            raise StoppedSent(f"sent while {stop.what}", stop=stop, now=now, envelope=envelope)
        target = target_of(envelope.target or lane["target"])
        shut = self.settings.stops.get(f"target/{target}")
        if (
            shut is not None
            and shut.since < known_since
            and shut.in_force(clock)
            and sender.well_since < known_since - 1
            and not self._clock_set_within(timedelta(seconds=5))
        ):
            raise StoppedSent(f"sent to {target}, which is paused", stop=shut, now=now, envelope=envelope)
        if sender.well_since > known_since - 1 or self._clock_set_within(timedelta(seconds=5)):
            return
        for left in self._left.get(target or "", ()):
            if left.since <= known_since and clock < left.until:
                raise StoppedSent(
                    f"sent to {target}, which is left alone", left=left, now=now, envelope=envelope
                )

    def _drain(self, node: int, at: float, *, draining: bool) -> None:
        if draining:
            self._drained.setdefault(node, at)
        else:
            self._drained.pop(node, None)

    def _check_drained(self, node: int, at: float) -> None:
        """A node that was told to drain claims nothing, once it has had the time to hear of it."""
        known_since = at - _KNOWN_WITHIN_S - 10 * self.leg
        if self._drained.get(node, inf) < known_since and self.well_since(node) < known_since - 1:
            raise StoppedSent(
                f"{self.nodes[node]} claims though it was told to drain", since=self._drained[node]
            )

    def _target(self, target: Target, at: float) -> None:
        ends = [at for at in (target.until if target.state == "open" else None, target.slow_until) if at]
        if not ends:
            self._left.pop(target.name, None)
            return
        # What prolongs it is not known to all at once: until then what they knew of holds.
        before = [left for left in self._left.get(target.name, ()) if left.until >= self.clocks.store()]
        # A call that was still out may have closed it meanwhile: then only what is asked for now counts.
        shortened = [left._replace(until=min(left.until, max(ends))) for left in before]
        self._left[target.name] = [*shortened, Left(at, max(ends))]

    def _check_abandoned(self, call: Call) -> None:
        """A node that is well renews what it holds: nothing is taken over from it."""
        for change in call.changes.values():
            before = change.before.job if change.before is not None else None
            if before is None or before.node is None or before.epoch not in self.claimed_at:
                continue
            claimed_at, well_since = self.claimed_at[before.epoch], self.well_since(before.node)
            lease = parse_duration(self.settings.lanes[self.settings.name_of(before.lane)]["lease"])
            in_time = 6 * self.leg < lease.total_seconds() / 2
            if in_time and max(well_since, self.clocks.set_at()) < claimed_at:
                raise change.broken(Wedged, f"a claim of {self.nodes[before.node]}, which is well, ran out")

    def _note_beginnings(self, call: Call) -> None:
        for change in call.changes.values():
            old = change.before.job.epoch if change.before is not None else None
            new = change.after.job.epoch if change.after is not None else None
            if old is not None and new is not None:
                self._begun[new] = self._begun.get(old, self.claimed_at.get(old, -inf))

    def _check_asked_first(self, call: Call) -> None:
        """What the sink took of a claim before it was taken over is not `not started`.

        What it took before the claim is another matter: an operator may have released that.
        """
        epoch = call.args[0].epoch
        begun, taken_over = self._begun.get(epoch, -inf), self.claimed_at[epoch]
        for arrival, change in call.changes.items():
            for row in change.attempts:
                taken = self.taken_at(self.model.facts[arrival].id, row.send)
                if row.outcome == "not_started" and taken is not None and begun <= taken < taken_over:
                    raise change.broken(IllegalPath, f"send {row.send} had begun: nobody asked the sink")

    def _check_term(self, call: Call) -> None:
        under = call.options.get("under")
        if under is None or under.number < self.term:
            raise OldTerm(f"{call.name} of term {under and under.number}", newest=self.term, call=call.name)
