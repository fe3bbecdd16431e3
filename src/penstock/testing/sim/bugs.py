"""The bug bank: mistakes that were made, or are easily made, in a store. A harness has to find them all.

A harness that finds nothing proves nothing. Each bug names the family that finds it soonest, and each has to
be found within a bounded number of seeds, while the code as it is passes them (tests/sim/test_bugs.py).
"""

from typing import Final

from penstock.testing.sim.plant import Bug, Edit, TriggerEdit

_SETTLE: Final = "penstock.stores.sql.settle"
_REPORTS: Final = "penstock.stores.sql.reports"
_VERBS: Final = "penstock.stores.sql.verbs"
_STORE: Final = "penstock.stores.sql.store"
_ENQUEUE: Final = "penstock.stores.sql.enqueue"
_SQLITE: Final = "penstock.stores.sqlite.hotpath"
_KEEPING: Final = "penstock.stores.sql.housekeeping"
_LANDING: Final = "penstock.domain.settlement"

_CLAIM_ROW: Final = "row = hot.claim_row(tx, claim.epoch, lock=True)"
_ANY_CLAIM: Final = (
    "present = [epoch for _, epoch in hot.claims_of(tx, list(outcomes))]\n"
    "    row = hot.claim_row(tx, max([0, *present]), lock=True)"
)
_READY: Final = "GROUPS, lane=lane.id, until=until, limit=wanted)"
_READY_AMONG_FIRST: Final = """GROUPS, lane=lane.id, until=until, limit=500)
            first = "SELECT grp FROM penstock_groups WHERE lane = ? ORDER BY grp LIMIT ?"
            names = [row[0] for row in tx.connection.execute(first, (lane.id, wanted))]
            groups = [group for group in groups if group in names]"""
_HEAD: Final = "AND holds ORDER BY ord, arrival LIMIT 1"
_EARLIEST_DUE: Final = "AND holds ORDER BY due_at LIMIT 1"
_RELEASE: Final = 'tx.connection.execute(RELEASE, {**these, "epoch": epoch})'
_UNCLAIM: Final = 'tx.connection.execute("UPDATE penstock_groups SET claim = NULL WHERE claim = ?", (epoch,))'
_ALL_APPLIED: Final = "return Settled(frozenset(outcomes), frozenset())"
_NOT_RUNNING: Final = "WHERE arrival = ANY(:arrivals) AND state <> 4"
_DUE: Final = "j.due_at <= :until"
_DUE_LATELY: Final = "j.due_at BETWEEN :until - 1000000 AND :until"
_BLOCKS: Final = "AND NOT (j.state = 1 AND j.mode = 2"
_BLOCKS_ANY: Final = "AND NOT (j.state = 1 AND j.mode > 0"
_OPEN: Final = "row = row._replace(attempt=job.attempt + 1, open=not known)"

FENCING: Final = (
    Bug("settle without an epoch guard", "zombies", [Edit(_SETTLE, _CLAIM_ROW, _ANY_CLAIM)]),
    Bug(
        "a takeover keeps the old epoch",
        "steady",
        [Edit(_REPORTS, "epoch = hot.next_epoch(tx)\n", "epoch = row.epoch\n")],
    ),
    Bug(
        "a lost claim may mark itself as sending",
        "zombies",
        [Edit(_STORE, "(MARK_SENDING, epoch=epoch)) > 0", "(MARK_SENDING, epoch=epoch)) >= 0")],
    ),
    Bug(
        "a probe's finding is written under any epoch",
        "reports",
        [Edit(_REPORTS, "AND epoch = :epoch", "AND epoch >= :epoch")],
    ),
    Bug(
        "a report on an older send is applied",
        "reports",
        [Edit(_REPORTS, "row.send == words[row.arrival].send", "row.send > 0")],
    ),
)

ORDER: Final = (
    Bug(
        "LIMIT before filter: blocked groups hide the free one",
        "many_groups",
        [Edit(_SQLITE, _READY, _READY_AMONG_FIRST)],
    ),
    Bug(
        "a successor overtakes a head that backs off",
        "hot_group",
        [
            Edit(_SQLITE, "AND holds ORDER BY ord", "AND holds AND due_at <= :until ORDER BY ord", "RUNS"),
            Edit(_SQLITE, _HEAD, _EARLIEST_DUE, "RELEASE"),
            Edit(_SQLITE, _HEAD, _EARLIEST_DUE, "REFRESH"),
        ],
    ),
    Bug(
        "a sent head loses its place to a lower sequence",
        "hot_group",
        [Edit(_LANDING, "order = sent_ord(job.ord) if", "order = job.ord if")],
    ),
    Bug("a released group is not woken", "hot_group", [Edit(_SQLITE, _RELEASE, _UNCLAIM)]),
    Bug(
        "the end of a job that was out does not wake its group",
        "reports",
        [Edit(_REPORTS, "\n        wake_groups(tx, hot, rows)", "")],
    ),
    Bug(
        "an empty group is removed while a claim holds it",
        "verbs",
        [Edit(_SQLITE, "AND claim IS NULL AND next_at IS NULL", "AND next_at IS NULL")],
    ),
    Bug(
        "a job that comes due before the head does not lower next_at",
        "mode_mix",
        [TriggerEdit("penstock_enqueued", "OR next_at > excluded.next_at", "")],
    ),
    Bug(
        "a run goes on behind a dead job",
        "runs",
        [Edit(_SQLITE, "NOT (j.mode = 2 AND g.dead_arrival", "NOT (j.mode = 9 AND g.dead_arrival", "RUNS")],
    ),
    Bug(
        "a takeover leaves the groups to the old epoch",
        "hot_group",
        [Edit(_SQLITE, "SET claim = :new WHERE", "SET claim = :old + 0 * :new WHERE", "HAND_OVER")],
    ),
    Bug(
        "a paused group is let go by the next one that is paused",
        "many_groups",
        [
            Edit(
                _VERBS, "DO UPDATE SET paused = excluded.paused", "DO UPDATE SET paused = NOT excluded.paused"
            )
        ],
    ),
    Bug(
        "a dead job does not block its group",
        "dead_letters",
        [Edit(_SETTLE, "if job.state == JobState.DEAD and", "if job.state == JobState.HELD and")],
    ),
    Bug(
        "a dead job blocks its group whatever the mode of those behind it",
        "mode_mix",
        [Edit(_SQLITE, _BLOCKS, _BLOCKS_ANY, "RELEASE"), Edit(_SQLITE, _BLOCKS, _BLOCKS_ANY, "REFRESH")],
    ),
    Bug(
        "a resolved dead job still blocks its group",
        "dead_letters",
        [Edit(_VERBS, "tx.execute(EARLIEST_DEAD, lane=lane, grp=group)", "pass")],
    ),
)

TRIES: Final = (
    Bug(
        "an exhausted job is left pending",
        "steady",
        [Edit("penstock.domain.outcomes", "if attempt + 1 >= limit:", "if attempt + 1 > limit:")],
    ),
    Bug(
        "a deferral burns an attempt",
        "steady",
        [Edit(_LANDING, "(deferrals=job.deferrals + 1,", "(deferrals=job.deferrals + 1, attempt=1,")],
    ),
    Bug(
        "a replay begins again with send number one",
        "dead_letters",
        [Edit(_LANDING, "attempt=0, recoveries=0,", "attempt=0, recoveries=0, send=0,")],
    ),
    Bug(
        "a retry repeats the send number, so that brokers drop it",
        "steady",
        [Edit(_LANDING, _OPEN, _OPEN.replace("not known", "True"))],
    ),
    Bug(
        "a send of unknown fate is repeated under a new number",
        "recovery_probe",
        [Edit(_LANDING, "else Move.LAPSE)._replace(open=True)", "else Move.LAPSE)._replace(open=False)")],
    ),
    Bug(
        "moves that are not attempts are missing from the timeline",
        "retention",
        [Edit("penstock.stores.sql.rows", "audit.append(landing.audit)", "pass")],
    ),
    Bug(
        "an operator's request is ignored",
        "verbs",
        [Edit(_SETTLE, "now=now, request=requests.get(job.arrival))", "now=now, request=None)")],
    ),
    Bug(
        "jobs that are late are not looked for: a lower bound on what is due",
        "herd",
        [Edit(_SQLITE, _DUE, _DUE_LATELY, "OLDEST")],
    ),
    Bug(
        "jobs are claimed before they are due",
        "steady",
        [Edit(_SQLITE, "to_us(tx.now + ask.ahead)", "to_us(tx.now + ask.lease)", "claim")],
    ),
)

ROWS: Final = (
    Bug(
        "a claim is closed before all of it is in history",
        "steady",
        [Edit(_SQLITE, "[claimed.job for claimed in claim.jobs]", "[c.job for c in claim.jobs[:3]]")],
    ),
    Bug(
        "a job that ended stays among the live ones",
        "reports",
        [Edit(_REPORTS, "WHERE arrival = ANY(:arrivals)", _NOT_RUNNING, "REMOVE")],
    ),
    Bug(
        "a settle does not take claimed jobs out of the count",
        "steady",
        [Edit(_SETTLE, "deltas.subtract(before)", "before.clear()")],
    ),
    Bug(
        "a settle says that everything took effect",
        "zombies",
        [Edit(_SETTLE, "return Settled(applied, frozenset(outcomes) - applied)", _ALL_APPLIED)],
    ),
    Bug(
        "a payload comes back in another spelling",
        "steady",
        [Edit(_SQLITE, "x.payload", "lower(x.payload)", "TAKEN")],
    ),
    Bug(
        "an edited job is sent as it was",
        "verbs",
        [Edit(_SQLITE, "if any(row[_REVISION] for row in rows):", "if not rows:")],
    ),
    Bug(
        "an edited message goes out under the number of the old one",
        "recovery_probe",
        [Edit("penstock.domain.edits", "revision=row.revision + 1, open=False", "revision=row.revision + 1")],
    ),
    Bug(
        "dead jobs are dropped whatever their lane's retention says",
        "retention",
        [Edit(_KEEPING, "d.finished_at < :before", "d.finished_at <> :before")],
    ),
    Bug(
        "a partial settle marks another position",
        "steady",
        [Edit(_SETTLE, "mask |= 1 << position", "mask |= 1 << (len(row.jobs) - 1 - position)")],
    ),
    Bug(
        "a key is not checked among finished jobs",
        "keys",
        [Edit(_ENQUEUE, "return end is None or now < shifted(end, ttl)", "return end is None")],
    ),
    Bug(
        "two callers with one key both get a job",
        "keys",
        [Edit(_ENQUEUE, "if not owners:", "if len(owners) >= 0:")],
    ),
)

BUGS: Final = (*FENCING, *ORDER, *TRIES, *ROWS)
