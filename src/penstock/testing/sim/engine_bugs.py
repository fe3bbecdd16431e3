"""The bug bank of the engine: mistakes that were made, or are easily made, in a dispatcher.

As in `bugs`, each is an edit of a line or two, and names the family that finds it: most within a few seeds,
the rare ones within two thousand. Those of `MADE` were in the engine once, and simulation found them.
"""

from typing import Final

from penstock.testing.sim.plant import Bug, Edit

_FLIGHT: Final = "penstock.scheduler.flight"
_LIMITS: Final = "penstock.scheduler.limits"
_SHARE: Final = "penstock.scheduler.share"
_CALLING: Final = "penstock.scheduler.calling"
_RECOVERY: Final = "penstock.scheduler.recovery"
_NODE: Final = "penstock.scheduler.node"
_WEEDING: Final = "penstock.scheduler.weeding"
_PLANS: Final = "penstock.scheduler.plans"
_BREAKERS: Final = "penstock.scheduler.breakers"
_BOARD: Final = "penstock.scheduler.board"
_HOLDING: Final = "penstock.scheduler.holding"
_SCOUTING: Final = "penstock.scheduler.scouting"

_ASKS: Final = "confirmed = await ground.call(ground.store.confirm, self._claim)"
_ASSUMES: Final = "confirmed = Confirmed(self._deck.time.now(ground.monotonic()), True, None, {})"
_EARLY: Final = "if outcome is None and claimed.job.due_at > confirmed.now:"
_MOMENT: Final = "return self._deck.time.now(now).timestamp()"
_WALL: Final = "return self._deck.ground.clock.now().timestamp()"
_CALLS: Final = "answers = await call_sink(self._deck, plan, self._sink, batch)"
_SETTLES_FIRST: Final = (
    f"self._decide({{claimed.job.arrival: Succeeded() for claimed in batch}})\n    {_CALLS}\n    return"
)
_UNCANCEL: Final = "task.uncancel()  # we were told to wait no longer"


OFTEN, RARE = False, True


def _bug(name: str, family: str, rare: bool, *edits: Edit) -> Bug:  # noqa: FBT001
    return Bug(name, family, edits, engine=True, rare=rare)


SENDING: Final = (
    _bug("jobs are settled before they are sent", "steady", OFTEN, Edit(_FLIGHT, _CALLS, _SETTLES_FIRST)),
    _bug(
        "a claim is kept while its sink cannot be reached",
        "divided",
        OFTEN,
        Edit(_CALLING, "deck.outlets.refuse(plan.name, plan.sink, str(error))", "await asyncio.sleep(300)"),
    ),
    _bug("a batch is sent without a last look", "live_config", OFTEN, Edit(_FLIGHT, _ASKS, _ASSUMES)),
    _bug(
        "a stop since the claim is not heeded",
        "live_config",
        OFTEN,
        Edit(_FLIGHT, "if confirmed.stopped is not None:", "if not confirmed.ours:"),
    ),
    _bug(
        "a request of an operator is not heeded",
        "lookahead",
        OFTEN,
        Edit(_WEEDING, "if job.arrival in confirmed.asked:", "if job.arrival in ():"),
    ),
    _bug(
        "a target that somebody paused is called",
        "closures",
        OFTEN,
        Edit(
            _BREAKERS,
            "if (rest := known.rest(now)) is not None:",
            "if (rest := known._replace(pause=None).rest(now)) is not None:",
        ),
    ),
    _bug(
        "a node that was told to drain claims on",
        "closures",
        OFTEN,
        Edit(
            _NODE,
            "if self.deck.board.drain is not None or self.deck.board.blind:",
            "if self.deck.board.blind:",
        ),
    ),
    _bug(
        "work that must not repeat is not marked",
        "holds",
        OFTEN,
        Edit(
            _FLIGHT,
            "self._marked = await ground.call(ground.store.mark_sending, self._claim.epoch)",
            "self._marked = True",
        ),
    ),
    _bug(
        "a wall clock says when a job is due",
        "lookahead",
        OFTEN,
        Edit(_FLIGHT, _MOMENT, _WALL),
        Edit(_FLIGHT, _EARLY, "if claimed is None:"),
    ),
    _bug(
        "a call that is told to end is made again",
        "failover",
        OFTEN,
        Edit(_CALLING, _UNCANCEL, "return await call_sink(deck, plan, sink, batch)"),
    ),
    _bug(
        "`start_by` is not looked at before a send",
        "deadlines",
        OFTEN,
        Edit(
            _PLANS, "if job.start_by is not None and now > job.start_by:", "if job.start_by is None is True:"
        ),
    ),
    _bug(
        "`misfire` is not looked at",
        "deadlines",
        OFTEN,
        Edit(_PLANS, "now > shifted(job.due_since, self.skip_after)", "now is None"),
    ),
)

ORDER: Final = (
    _bug(
        "the next of a run goes past a failure",
        "runs",
        RARE,
        Edit(_FLIGHT, "went=False)", "went=True)", "_finish"),
    ),
    _bug(
        "what stands behind a returned job is forgotten",
        "runs",
        OFTEN,
        Edit(_FLIGHT, "self._next_of_group(claimed, went=False, why=why)", "pass", "_give_back"),
    ),
    _bug(
        "a paused lane keeps what it has claimed",
        "live_config",
        RARE,
        Edit(_FLIGHT, "if why := self._stopped(now):", "if (why := self._stopped(now)) is False:"),
    ),
)

LIMITS: Final = (
    _bug(
        "what a pool put back is not told that it is set otherwise",
        "raised",
        OFTEN,
        Edit(_NODE, "self._as_leader(self._housekeeping().recall)", "asyncio.sleep(0)"),
    ),
    _bug(
        "the token of a call comes back",
        "pools",
        OFTEN,
        Edit(
            _FLIGHT,
            "self._limits.release(done)",
            "self._limits.refund(done)",
        ),
    ),
    _bug(
        "slots are not given back",
        "pools",
        OFTEN,
        Edit(_SHARE, "self.busy = max(0, self.busy - jobs)", "self.busy = max(0, self.busy)"),
    ),
    _bug(
        "a rate is per process",
        "pools",
        OFTEN,
        Edit(_SHARE, "self.tokens = max(0, grant.tokens - self.spent)", "self.tokens = self.limit.burst"),
    ),
    _bug(
        "an in-flight limit is per process",
        "pools",
        OFTEN,
        Edit(
            _SHARE,
            "self.slots = max(self.busy, held - surplus)",
            "self.slots = max(self.busy, self.limit.max_in_flight or 0)",
        ),
    ),
    _bug(
        "an open breaker is never tried again",
        "breakers",
        RARE,
        Edit(_BREAKERS, "self.not_tried(target)", "pass"),
    ),
    _bug(
        "an open breaker lets everything through",
        "breakers",
        OFTEN,
        Edit("penstock.domain.breakers", 'if self.state == "open" and', 'if self.state == "shut" and'),
    ),
)

SURVIVAL: Final = (
    _bug(
        "a node sends what it does not serve",
        "divided",
        OFTEN,
        Edit(_BOARD, "if self.serves(name)", "if name"),
    ),
    _bug(
        "a leader knows only the lanes that it serves",
        "divided",
        RARE,
        Edit(
            _RECOVERY,
            "self.deck.board.lanes.get(lane) or (",
            "self.deck.board.lanes.get(lane) if lane else (",
        ),
    ),
    _bug(
        "what a dead node left is sent again without asking",
        "recovery_probe",
        RARE,
        Edit(_RECOVERY, "if plan is not None and plan.hold and not claim.sending:", "if claim:"),
    ),
    _bug(
        "a job is recovered without end",
        "reports",
        OFTEN,
        Edit(_RECOVERY, "job.recoveries >= plan.max_recoveries:", "job.recoveries < 0:"),
    ),
    _bug(
        "what was taken over is left alone",
        "failover",
        OFTEN,
        Edit(_RECOVERY, "for _ in range(TRIES):", "for _ in range(0):", "_settle_some"),
    ),
    _bug(
        "housekeeping names no term",
        "steady",
        OFTEN,
        Edit(_NODE, "return bool(await chore(term))", "return bool(await chore(None))"),
    ),
    _bug(
        "a claim is renewed after its flight is over",
        "steady",
        RARE,
        Edit(_FLIGHT, "deck.holdings.drop(epoch)", "deck.holdings.trusts(epoch, 0.0)"),
    ),
    _bug(
        "claims are not renewed",
        "lookahead",
        OFTEN,
        Edit(_HOLDING, "await holdings.renew(ground)", "await asyncio.sleep(0)"),
    ),
    _bug(
        "a node does not insist when its grace is over",
        "failover",
        RARE,
        Edit(_NODE, "self._tell_lanes(self.deck.hurry)", "self._tell_lanes(self.deck.stop)"),
    ),
)

MADE: Final = (
    _bug(
        "a job that is out leaves its slot to its node",
        "pools",
        OFTEN,
        Edit(_SHARE, "self.slots = max(self.busy, self.slots - gone)", "pass"),
    ),
    _bug(
        "slots that go out during a request are granted again",
        "pools",
        OFTEN,
        Edit(_SHARE, "held, surplus = grant.slots - self.gone,", "held, surplus = grant.slots,"),
    ),
    _bug(
        "two nodes hold what the other one waits for",
        "pools",
        RARE,
        Edit(
            _SHARE,
            "return self.useless_since is not None and now - self.useless_since >= USELESS_S",
            "return False",
        ),
    ),
    _bug(
        "a slot that went out with its job stays in the books",
        "pools",
        RARE,
        Edit(_LIMITS, "if share.gone or share.void:", "if share.void:"),
        Edit(_LIMITS, "self._wanted.set()  # in the books it counts twice until they hear of it", "pass"),
    ),
    _bug(
        "a slot that is too many is used again and again",
        "squeezed",
        RARE,
        Edit(_SHARE, "gone = jobs if out else min(jobs, self.surplus)", "gone = jobs if out else 0"),
    ),
    _bug(
        "a node that stops keeps its slots",
        "failover",
        OFTEN,
        Edit(_LIMITS, "one.tokens or one.spent or one.slots or one.gone", "one.tokens or one.spent"),
    ),
    _bug(
        "a slot is cut that may be taken while the question is on its way",
        "pools",
        RARE,
        Edit(_LIMITS, "kept = min(slots, share.slots) if now < share.until else 0", "kept = 0"),
    ),
    _bug(
        "settings that were seen before a sleep are taken for new",
        "live_config",
        RARE,
        Edit(
            _BOARD, "self._looked_at, self._failed = started, False", "self._looked_at = ground.monotonic()"
        ),
    ),
    _bug(
        "a call that was not begun is cancelled and forgotten",
        "failover",
        RARE,
        Edit(_FLIGHT, "self._calls[call] = False", "self._calls[call] = True"),
    ),
    _bug(
        "a stopped lane is claimed and given back without rest",
        "live_config",
        RARE,
        Edit(_FLIGHT, "deck.board.note_stopped(self._plan.name)", "pass"),
    ),
    _bug(
        "the pause of a job's own pool is not heeded",
        "live_config",
        RARE,
        Edit(_WEEDING, "if pool is not None and pool.stopped(confirmed.now):", "if pool is False:"),
    ),
    _bug(
        "a trial that was not made blocks its target",
        "breakers",
        RARE,
        Edit(_BREAKERS, "self.not_tried(target)", "self._trials.pop(target, None)"),
        Edit(_BREAKERS, 'self._trials.pop(target or "", None)', "pass"),
    ),
    _bug(
        "a look-ahead job whose node died is due at once",
        "lookahead",
        RARE,
        Edit("penstock.domain.settlement", "due_at = max(job.due_at, now)  # it", "due_at = now  # it"),
    ),
    _bug(
        "a job that was put back is not late any more",
        "pools",
        RARE,
        Edit(
            "penstock.domain.settlement", "_again(row, due_at)._replace(since=since)", "_again(row, due_at)"
        ),
    ),
    _bug(
        "looks follow each other without a pause",
        "crowd",
        RARE,
        Edit(_SCOUTING, "max(SHORTEST_S, min(self._took * REST, 0.05))", "min(self._took * REST, 0.05)"),
    ),
    _bug(
        "what recovery took over and could not deal with is renewed for ever",
        "divided",
        RARE,
        Edit(_RECOVERY, "finally:  # what is held is renewed", "except ZeroDivisionError:  # what is held"),
    ),
    _bug(
        "work that must not repeat does where the leader cannot open its sink",
        "divided",
        RARE,
        Edit(
            _RECOVERY,
            "return plan_of(known, board.pools, None) if sink is None",
            "return None if sink is None",
        ),
    ),
)

ENGINE_BUGS: Final = (*SENDING, *ORDER, *LIMITS, *SURVIVAL, *MADE)
