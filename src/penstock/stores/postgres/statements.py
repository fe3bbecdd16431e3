"""The hot statements of PostgreSQL. `tests/plans` holds each one to its index and its number of rows."""

from typing import Final

from penstock.domain.job import Context, Live
from penstock.domain.ordering import DEFAULT_SEQUENCE

EVER: Final = "-infinity"
WAKES_PER_LOOK: Final = 5000
# What a claim needs of a live row: the rest of a pending row always has its default.
TAKEN_COLUMNS: Final = (
    "arrival", "keep", "due_at", "ord", "mode", "grp", "tenant", "start_by", "attempt", "max_attempts",
    "send", "open", "recoveries", "deferrals", "revision", "since",
)  # fmt: skip
# What a claim returns of it, in the order of a Live, behind the epoch and the time of the claim.
RETURNED: Final = Live._fields[: Live._fields.index("holds")]
ARRIVAL, DUE_AT, GRP, ORD, STATE, REVISION = (
    2 + RETURNED.index(column) for column in ("arrival", "due_at", "grp", "ord", "state", "revision")
)
_ARRAYS: Final = (
    "arrivals", "keeps", "dues", "ords", "modes", "grps", "tenants", "start_bys", "attempts", "max_attempts",
    "sends", "opens", "recoveries", "deferrals", "revisions", "sinces",
)  # fmt: skip
# The value that every job of a batch usually has: an array of nothing else is stored as NULL.
DEFAULTS: Final = (None, None, None, None, 0, None, None, None, 0, None, 0, False, 0, 0, 0, None)
_RETURNED: Final = ", ".join(f"d.{column}" for column in RETURNED)
_CONTEXT: Final = ", ".join(f"x.{column}" for column in Context._fields)


def _array(column: str, default: object) -> str:
    if column in ("arrival", "keep", "due_at", "ord"):
        return f"array_agg({column})"
    test = f"{column} IS NOT NULL" if default is None else f"{column} <> {str(default).lower()}"
    return f"CASE WHEN bool_or({test}) THEN array_agg({column}) END"


_AGGREGATES: Final = ", ".join(
    _array(column, default) for column, default in zip(TAKEN_COLUMNS, DEFAULTS, strict=True)
)
_OPEN_CLAIM: Final = f"""
    INSERT INTO penstock.claims (id, lane, node, lease_until, groups, {", ".join(_ARRAYS)})
    SELECT {{epoch}}, %(lane)s::int, %(node)s::int, now() + %(lease)s::interval, {{groups}}, {_AGGREGATES}
      FROM (SELECT * FROM d ORDER BY {{order}}) d HAVING count(*) > 0"""
_COUNT: Final = """
    INSERT INTO penstock.count_deltas (lane, state, n)
    SELECT %(lane)s::int, v.state, v.n FROM (SELECT count(*)::int AS n FROM d) q
     CROSS JOIN LATERAL (VALUES (1, -q.n), (2, q.n)) v(state, n) WHERE q.n > 0"""
# The context is found by one probe of its partition; OFFSET 0 keeps the planner from turning it into a join.
_RESULT: Final = f"""
    SELECT {{epoch}} AS epoch, now() AS claimed_at, {_RETURNED}, {_CONTEXT}{{more}}
      FROM d LEFT JOIN LATERAL (
        SELECT * FROM penstock.contexts x WHERE x.keep = d.keep AND x.arrival = d.arrival OFFSET 0) x ON true"""
_K: Final = "(SELECT id FROM k)"
_CLAIM: Final = f"""
    WITH k AS MATERIALIZED (SELECT nextval('penstock.epochs') AS id),
    {{picks}}
    d AS (DELETE FROM penstock.jobs WHERE ctid = ANY(ARRAY({{pick}})) RETURNING *),
    c AS ({_OPEN_CLAIM.format(epoch=_K, groups="false", order="due_at, arrival")}),
    n AS ({_COUNT})
    {_RESULT.format(epoch=_K, more="")}"""

_DUE: Final = """lane = %(lane)s::int AND mode = 0 AND state = 1 AND due_at <= now() + %(ahead)s::interval"""
# Nothing is picked where somebody has a tenant: such a lane is claimed by fair shares.
_NO_TENANTS: Final = """NOT EXISTS (SELECT FROM penstock.jobs t
           WHERE t.lane = %(lane)s::int AND t.mode = 0 AND t.state = 1 AND t.tenant IS NOT NULL)"""
CLAIM: Final = _CLAIM.format(
    picks="",
    pick=f"""
        SELECT ctid FROM penstock.jobs
         WHERE {_DUE} AND tenant IS NULL AND due_at >= %(low)s::timestamptz AND {_NO_TENANTS}
         ORDER BY lane, due_at, arrival LIMIT %(limit)s::int FOR UPDATE SKIP LOCKED""",
)
# Each tenant's oldest first, the same number for all; jobs without a tenant are one tenant; then the oldest. Each
# of the three has an index of its own and cannot be planned on another: see the migration.
_NOBODY: Final = "tenant IS NULL"
_SOMEBODY: Final = "num_nulls(tenant) = 0"
_REST: Final = """
        SELECT ctid AS row, {order} FROM penstock.{table}
         WHERE {where} AND {whose} AND ctid <> ALL(ARRAY(SELECT row FROM fair))
         ORDER BY lane, {order} LIMIT (SELECT n FROM wanted) FOR {lock} SKIP LOCKED"""
_FAIR: Final = f"""
    nobody AS MATERIALIZED (
        SELECT ctid AS row FROM penstock.{{table}} WHERE {{where}} AND {_NOBODY}
         ORDER BY lane, {{order}} LIMIT %(nobody)s::int FOR {{lock}} SKIP LOCKED),
    fair AS MATERIALIZED (
        SELECT j.row FROM unnest(%(tenants)s::text[]) t(tenant) CROSS JOIN LATERAL (
          SELECT ctid AS row FROM penstock.{{table}} WHERE {{where}} AND tenant IS NOT NULL AND tenant = t.tenant
           ORDER BY lane, tenant, {{order}} LIMIT %(quota)s::int FOR {{lock}} SKIP LOCKED) j
        UNION ALL SELECT row FROM nobody),
    wanted AS MATERIALIZED (SELECT greatest(0, %(limit)s::int - count(*)) AS n FROM fair),
    rest_of_nobody AS MATERIALIZED ({_REST.replace("{whose}", _NOBODY)}),
    rest_of_tenants AS MATERIALIZED ({_REST.replace("{whose}", _SOMEBODY)}),
    rest AS MATERIALIZED (
        SELECT row FROM (SELECT * FROM rest_of_nobody UNION ALL SELECT * FROM rest_of_tenants) r
         ORDER BY {{order}} LIMIT (SELECT n FROM wanted))"""
_FAIR_ROWS: Final = "SELECT row FROM fair UNION ALL SELECT row FROM rest"
CLAIM_FAIR: Final = _CLAIM.format(
    picks=_FAIR.format(table="jobs", where=_DUE, order="due_at, arrival", lock="UPDATE") + ",",
    pick=_FAIR_ROWS,
)
# Enqueue: one array per column; the statement trigger of contexts does the rest.
_ENQUEUED: Final = (
    ("keep", "smallint"), ("lane", "int"), ("mode", "smallint"), ("sequence", "int"),
    ("max_attempts", "smallint"), ("run_at", "timestamptz"), ("start_by", "timestamptz"),
    ("finish_by", "timestamptz"), ("id", "text"), ("message_group", "text"), ("tenant", "text"),
    ("key", "text"), ("target", "text"), ("headers", "text"), ("pool", "text"), ("entity", "text"),
    ("version", "text"), ("event", "text"), ("correlation", "text"), ("payload", "text"),
)  # fmt: skip
ENQUEUED: Final = dict(_ENQUEUED)
_NAMES: Final = ", ".join(ENQUEUED)
_VALUES: Final = _NAMES.replace("run_at", "coalesce(run_at, now())").replace(
    "sequence", f"coalesce(sequence, {DEFAULT_SEQUENCE})"
)
# Where a caller chose the ids they may be taken; our own are new and go by COPY.
ENQUEUE: Final = f"""
    INSERT INTO penstock.contexts ({_NAMES})
    SELECT {_VALUES} FROM unnest({", ".join(f"%s::{kind}[]" for kind in ENQUEUED.values())}) u({_NAMES})
    ON CONFLICT DO NOTHING RETURNING id"""

# Wakes become groups' next_at. least() makes this commute with a settle that runs at the same time: a mark may be
# too early, which costs one look, but never too late. What it says of blocking comes from its own snapshot, and
# whoever resolves a dead job after that leaves a wake of its own. A woken group in which nothing is left goes, but
# not while it has a next_at: another claimer may have set that for a job this snapshot does not see.
ABSORB: Final = """
    WITH w AS (DELETE FROM penstock.wakes WHERE ctid = ANY(ARRAY(
          SELECT ctid FROM penstock.wakes WHERE lane = %(lane)s::int AND id >= %(low)s::bigint
           ORDER BY lane, id LIMIT 5000 FOR UPDATE SKIP LOCKED)) RETURNING id, grp),
    h AS MATERIALIZED (
        SELECT w.grp, j.tenant, j.state, CASE WHEN j.state = 1 THEN j.due_at END AS due_at,
               coalesce(j.state = 1 AND j.mode = 2 AND g.dead_arrival IS NOT NULL AND (g.dead_seq, g.dead_arrival)
                 < (CASE WHEN j.ord < 0 THEN j.ord::bigint + 2147483648 ELSE j.ord END, j.arrival), false) AS blocked
          FROM (SELECT DISTINCT grp FROM w ORDER BY grp) w
         CROSS JOIN LATERAL (SELECT due_at, tenant, state, mode, ord, arrival FROM penstock.jobs j
                WHERE j.lane = %(lane)s::int AND j.grp = w.grp AND j.holds
                ORDER BY j.lane, j.grp, j.ord, j.arrival LIMIT 1) j
          LEFT JOIN LATERAL (SELECT dead_seq, dead_arrival FROM penstock.groups g
                WHERE g.lane = %(lane)s::int AND g.grp = w.grp OFFSET 0) g ON true),
    u AS (INSERT INTO penstock.groups AS g (lane, grp, next_at, blocked, tenant)
          SELECT %(lane)s::int, grp, CASE WHEN NOT blocked THEN due_at END, blocked, tenant FROM h
           WHERE due_at IS NOT NULL ORDER BY grp
          ON CONFLICT (lane, grp) DO UPDATE SET next_at = least(g.next_at, excluded.next_at),
             blocked = excluded.blocked, tenant = excluded.tenant),
    e AS (DELETE FROM penstock.groups g
           WHERE g.lane = %(lane)s::int AND g.grp = ANY(ARRAY(SELECT grp FROM w EXCEPT SELECT grp FROM h))
             AND g.claim IS NULL AND g.next_at IS NULL AND g.dead_arrival IS NULL AND NOT g.paused)
    SELECT count(*), max(id) FROM w"""
_READY: Final = """lane = %(lane)s::int AND claim IS NULL AND NOT paused AND next_at IS NOT NULL
             AND next_at <= now() + %(ahead)s::interval"""
_LEASE: Final = """
    WITH k AS MATERIALIZED (SELECT nextval('penstock.epochs') AS id){picks}
    UPDATE penstock.groups SET claim = (SELECT id FROM k), next_at = NULL
     WHERE claim IS NULL AND ctid = ANY(ARRAY({pick})) RETURNING claim, grp, dead_seq, dead_arrival"""
LEASE: Final = _LEASE.format(
    picks="",
    pick=f"""
        SELECT ctid FROM penstock.groups WHERE {_READY} AND tenant IS NULL AND NOT EXISTS (SELECT FROM penstock.groups t
           WHERE t.lane = %(lane)s::int AND t.claim IS NULL AND NOT t.paused AND t.next_at IS NOT NULL
             AND t.tenant IS NOT NULL)
         ORDER BY lane, next_at, grp LIMIT %(limit)s::int FOR NO KEY UPDATE SKIP LOCKED""",
)
LEASE_FAIR: Final = _LEASE.format(
    picks="," + _FAIR.format(table="groups", where=_READY, order="next_at, grp", lock="NO KEY UPDATE"),
    pick=_FAIR_ROWS,
)
# The first jobs of each leased group as far as they may go one after the other: domain/ordering.py's run(), in SQL.
# What is dead in a group cannot change once its row is ours, so the lease has told it.
# A job that an operator or a report moves at the same moment is waited for and then not taken: `wanted` tells.
RUNS: Final = f"""
    WITH f AS MATERIALIZED (
        SELECT h.row
          FROM unnest(%(groups)s::text[], %(dead_seqs)s::int[], %(dead_arrivals)s::bigint[])
            b(grp, dead_seq, dead_arrival)
         CROSS JOIN LATERAL (
          SELECT y.row FROM (
            SELECT q.row, bool_and(q.state = 1 AND q.due_at <= now() + %(ahead)s::interval
                AND NOT (q.mode = 2 AND b.dead_arrival IS NOT NULL AND (b.dead_seq, b.dead_arrival)
                  < (CASE WHEN q.ord < 0 THEN q.ord::bigint + 2147483648 ELSE q.ord END, q.arrival)))
                OVER (ORDER BY q.ord, q.arrival) AS ok
              FROM (SELECT j.ctid AS row, j.arrival, j.ord, j.state, j.due_at, j.mode FROM penstock.jobs j
                     WHERE j.lane = %(lane)s::int AND j.grp = b.grp AND j.holds
                     ORDER BY j.lane, j.grp, j.ord, j.arrival LIMIT %(run)s::int) q) y WHERE y.ok) h),
    d AS (DELETE FROM penstock.jobs WHERE ctid = ANY(ARRAY(SELECT row FROM f)) RETURNING *),
    c AS ({_OPEN_CLAIM.format(epoch="%(epoch)s::bigint", groups="true", order="grp, ord, arrival")}),
    n AS ({_COUNT})
    {_RESULT.format(epoch="%(epoch)s::bigint", more=", (SELECT count(*) FROM f) AS wanted")}"""
# A whole claim, untouched so far, all succeeded: straight from its arrays into history.
SETTLE: Final = f"""
    WITH c AS (DELETE FROM penstock.claims WHERE id = %(epoch)s::bigint AND settled IS NULL RETURNING *),
    n AS (INSERT INTO penstock.count_deltas (lane, state, n)
          SELECT c.lane, v.state, v.sign * cardinality(c.arrivals) FROM c, (VALUES (2, -1), (10, 1)) v(state, sign))
    INSERT INTO penstock.history (arrival, keep, due_at, ord, mode, grp, tenant, start_by, attempt, max_attempts, send,
        recoveries, deferrals, revision, lane, state, epoch, node, claimed_at, finished_at)
    SELECT u.arrival, u.keep, u.due_at, u.ord, coalesce(u.mode, 0), u.grp, u.tenant, u.start_by,
           coalesce(u.attempt, 0) + 1, u.max_attempts,
           coalesce(u.send, 0) + CASE WHEN coalesce(u.open, false) THEN 0 ELSE 1 END,
           coalesce(u.recoveries, 0), coalesce(u.deferrals, 0), coalesce(u.revision, 0),
           c.lane, 10, c.id, c.node, c.claimed_at, now()
      FROM c CROSS JOIN LATERAL unnest({", ".join(f"c.{a}" for a in _ARRAYS)}) u({", ".join(TAKEN_COLUMNS)})"""
FORGET: Final = "SELECT penstock.forget(%(keep)s::smallint, %(arrivals)s::bigint[])"
_A_CLAIM: Final = f"""
    SELECT id, lane, node, claimed_at, lease_until, takeovers, groups, sending, settled, {", ".join(_ARRAYS)}
      FROM penstock.claims WHERE"""
CLAIM_ROW: Final = f"{_A_CLAIM} id = %(epoch)s::bigint"
CLAIM_ROWS: Final = f"{_A_CLAIM} id = ANY(%(epochs)s::bigint[])"
CLAIMS_WITH: Final = f"{_A_CLAIM} arrivals && %(arrivals)s::bigint[]"
LOCKED_CLAIM: Final = CLAIM_ROW + " FOR UPDATE"
CLAIMS_OF: Final = """
    SELECT a.arrival, c.id FROM penstock.claims c CROSS JOIN LATERAL unnest(c.arrivals) a(arrival)
     WHERE c.arrivals && %(arrivals)s::bigint[] AND a.arrival = ANY(%(arrivals)s::bigint[])"""
LAPSED: Final = """
    SELECT id FROM penstock.claims WHERE lease_until < now() ORDER BY lease_until, id LIMIT %(limit)s::int
       FOR UPDATE SKIP LOCKED"""
# Groups are found one by one by their name. A plan made before the batch is known (PostgreSQL keeps one after five
# runs) would otherwise read every group of the lane: LATERAL with OFFSET 0, LIMIT or a lock cannot become a join.
_EACH_GROUP: Final = "unnest(%(groups)s::text[]) k(grp) CROSS JOIN LATERAL"
# Locks rows in the order of their names. Where they are it leaves in a setting of the transaction: what follows in the
# same queue of statements finds them there without looking for their names again. A locked row does not move.
_LOCK: Final = f"""
    SELECT set_config('penstock.held', coalesce((
      SELECT array_agg(g.row)::text FROM {_EACH_GROUP} (
        SELECT ctid AS row FROM penstock.groups g
         WHERE g.lane = %(lane)s::int AND g.grp = k.grp AND g.claim = %(epoch)s::bigint FOR NO KEY UPDATE) g
       WHERE {{which}}), '{{{{}}}}'), true)"""
_HELD: Final = "current_setting('penstock.held')::tid[]"
LOCK_GROUPS: Final = _LOCK.format(which="true")
# Where a claim is settled as a whole, its groups go with its row; one that was settled in parts before still has both.
LOCK_IF_CLOSED: Final = _LOCK.format(
    which="NOT EXISTS (SELECT FROM penstock.claims c WHERE c.id = %(epoch)s::bigint)"
)
_BLOCKED: Final = """coalesce(q.state = 1 AND q.mode = 2 AND g.dead_arrival IS NOT NULL
    AND (g.dead_seq, g.dead_arrival) < (CASE WHEN q.ord < 0 THEN q.ord::bigint + 2147483648 ELSE q.ord END, q.arrival),
    false)"""
# What a locked group's row says of its next head: domain/ordering.py's gate(), in SQL. One in which nothing is left goes
# at once instead of being let go first; a job committed later brings its wake, which makes the group again. Nobody
# can have marked it for a job that this snapshot does not see: its lock was taken before.
RELEASE_GROUPS: Final = f"""
    WITH h AS MATERIALIZED (
        SELECT g.row, q.arrival IS NULL AND g.dead_arrival IS NULL AND NOT g.paused AS empty, q.tenant,
               {_BLOCKED} AS blocked, CASE WHEN q.state = 1 AND NOT {_BLOCKED} THEN q.due_at END AS next_at
          FROM unnest({_HELD}) k(row) CROSS JOIN LATERAL (
            SELECT k.row, grp, dead_seq, dead_arrival, paused FROM penstock.groups WHERE ctid = k.row OFFSET 0) g
          LEFT JOIN LATERAL (
            SELECT due_at, tenant, state, mode, ord, arrival FROM penstock.jobs j
             WHERE j.lane = %(lane)s::int AND j.grp = g.grp AND j.holds
             ORDER BY j.lane, j.grp, j.ord, j.arrival LIMIT 1) q ON true),
    e AS (DELETE FROM penstock.groups WHERE ctid = ANY(ARRAY(SELECT row FROM h WHERE empty)))
    UPDATE penstock.groups g SET claim = NULL, tenant = h.tenant, blocked = h.blocked, next_at = h.next_at
      FROM h WHERE h.row = g.ctid AND g.ctid = ANY(ARRAY(SELECT row FROM h WHERE NOT empty))"""
HAND_OVER_GROUPS: Final = f"UPDATE penstock.groups g SET claim = %(new)s::bigint WHERE g.ctid = ANY({_HELD})"
WAKE: Final = "INSERT INTO penstock.wakes (lane, grp) SELECT %(lane)s::int, unnest(%(groups)s::text[])"
FOLD: Final = """
    WITH d AS (DELETE FROM penstock.count_deltas RETURNING lane, state, n),
    f AS (INSERT INTO penstock.counts AS c (lane, state, n)
          SELECT lane, state, sum(n) FROM d GROUP BY 1, 2 ORDER BY 1, 2
          ON CONFLICT (lane, state) DO UPDATE SET n = c.n + excluded.n)
    SELECT count(*) FROM d"""
_TENANTS: Final = """
    WITH RECURSIVE t (tenant, due, n) AS (
      (SELECT tenant, {due}, 1 FROM penstock.{table}
        WHERE lane = %(lane)s::int AND {where} AND tenant IS NOT NULL AND tenant > %(after)s
        ORDER BY lane, tenant, {due} LIMIT 1)
      UNION ALL
      SELECT s.tenant, s.due, t.n + 1 FROM t CROSS JOIN LATERAL (
        SELECT j.tenant, j.{due} AS due FROM penstock.{table} j
         WHERE j.lane = %(lane)s::int AND {where} AND j.tenant IS NOT NULL AND j.tenant > t.tenant
         ORDER BY j.lane, j.tenant, j.{due} LIMIT 1) s
       WHERE t.n < %(visits)s::int)
    SELECT tenant, due <= now() + %(ahead)s::interval FROM t"""
JOB_TENANTS: Final = _TENANTS.format(table="jobs", due="due_at", where="mode = 0 AND state = 1")
GROUP_TENANTS: Final = _TENANTS.format(
    table="groups", due="next_at", where="claim IS NULL AND NOT paused AND next_at IS NOT NULL"
)
JOB_NOBODY: Final = f"SELECT EXISTS (SELECT FROM penstock.jobs WHERE {_DUE} AND tenant IS NULL)"
GROUP_NOBODY: Final = f"SELECT EXISTS (SELECT FROM penstock.groups WHERE {_READY} AND tenant IS NULL)"
