-- phase: expand
-- breaking: no
--
-- The same shape as on PostgreSQL: live jobs move between `jobs`, `claims`, `dead` and `history`; contexts are
-- written once. One writer at a time makes wakes, locks and partitions unnecessary: enqueue touches the group
-- itself and old rows are deleted in small slices. Times are whole microseconds since 1970, UTC.

CREATE TABLE penstock_contexts (
  arrival INTEGER PRIMARY KEY AUTOINCREMENT,
  keep INTEGER NOT NULL,
  lane INTEGER NOT NULL,
  mode INTEGER NOT NULL DEFAULT 0,
  sequence INTEGER NOT NULL DEFAULT 99 CHECK (sequence BETWEEN 0 AND 2147483647),
  max_attempts INTEGER CHECK (max_attempts > 0),
  run_at INTEGER NOT NULL,
  created_at INTEGER NOT NULL,
  start_by INTEGER,
  finish_by INTEGER,
  id TEXT NOT NULL UNIQUE,
  message_group TEXT,
  tenant TEXT,
  key TEXT,
  target TEXT, headers TEXT, pool TEXT, entity TEXT, version TEXT, event TEXT, correlation TEXT,
  payload TEXT
);

-- An edit never touches the context: it adds a revision, and the live row names the one that counts.
CREATE TABLE penstock_revisions (
  arrival INTEGER NOT NULL, revision INTEGER NOT NULL, at INTEGER NOT NULL, actor TEXT NOT NULL,
  payload TEXT, headers TEXT, target TEXT, PRIMARY KEY (arrival, revision)) WITHOUT ROWID;

CREATE TABLE penstock_jobs (
  arrival INTEGER PRIMARY KEY,
  lane INTEGER NOT NULL,
  keep INTEGER NOT NULL,
  mode INTEGER NOT NULL,
  state INTEGER NOT NULL DEFAULT 1,
  ord INTEGER NOT NULL,
  grp TEXT,
  tenant TEXT,
  due_at INTEGER NOT NULL,
  start_by INTEGER,
  attempt INTEGER NOT NULL DEFAULT 0,
  max_attempts INTEGER,
  send INTEGER NOT NULL DEFAULT 0,
  open INTEGER NOT NULL DEFAULT 0,
  recoveries INTEGER NOT NULL DEFAULT 0,
  deferrals INTEGER NOT NULL DEFAULT 0,
  revision INTEGER NOT NULL DEFAULT 0,
  holds INTEGER NOT NULL,
  epoch INTEGER, node INTEGER, claimed_at INTEGER, sent_at INTEGER, started_at INTEGER, deadline INTEGER,
  reason TEXT, receipt TEXT
);
-- Who waits without a tenant, and who with one: a job is in one of the two, so neither is read for the other.
CREATE INDEX penstock_jobs_due ON penstock_jobs (lane, due_at, arrival)
  WHERE mode = 0 AND state = 1 AND tenant IS NULL;
CREATE INDEX penstock_jobs_due_tenants ON penstock_jobs (lane, due_at, arrival)
  WHERE mode = 0 AND state = 1 AND tenant IS NOT NULL;
CREATE INDEX penstock_jobs_tenant ON penstock_jobs (lane, tenant, due_at, arrival)
  WHERE mode = 0 AND state = 1 AND tenant IS NOT NULL;
CREATE INDEX penstock_jobs_group ON penstock_jobs (lane, grp, ord, arrival) WHERE holds;
CREATE INDEX penstock_jobs_passed ON penstock_jobs (lane, grp) WHERE grp IS NOT NULL AND NOT holds;
CREATE INDEX penstock_jobs_deadline ON penstock_jobs (deadline) WHERE deadline IS NOT NULL;
CREATE INDEX penstock_jobs_start_by ON penstock_jobs (start_by) WHERE state = 1 AND start_by IS NOT NULL;

-- One row per batch in flight; `jobs` is a JSON array of live rows, `settled` a bit per position.
CREATE TABLE penstock_claims (
  id INTEGER PRIMARY KEY,
  claimed_at INTEGER NOT NULL,
  lease_until INTEGER NOT NULL,
  lane INTEGER NOT NULL,
  node INTEGER NOT NULL,
  takeovers INTEGER NOT NULL DEFAULT 0,
  groups INTEGER NOT NULL DEFAULT 0,
  sending INTEGER NOT NULL DEFAULT 0,
  settled BLOB,
  arrivals TEXT NOT NULL,
  jobs TEXT NOT NULL
);
CREATE INDEX penstock_claims_lease ON penstock_claims (lease_until);
CREATE TABLE penstock_epochs (last INTEGER NOT NULL);
INSERT INTO penstock_epochs VALUES (0);

-- An operator's cancel or hold for a job that is inside a claim or already out.
CREATE TABLE penstock_requests (
  arrival INTEGER PRIMARY KEY, verb TEXT NOT NULL, actor TEXT NOT NULL, reason TEXT, at INTEGER NOT NULL);

-- A group is ready when it is in groups_ready or groups_tenant: nobody holds it, it is not paused, and next_at is the time of its
-- head. next_at is NULL while its head is in flight, held, or waits for a dead job (blocked).
CREATE TABLE penstock_groups (
  lane INTEGER NOT NULL, grp TEXT NOT NULL,
  next_at INTEGER, claim INTEGER, dead_seq INTEGER, dead_arrival INTEGER,
  blocked INTEGER NOT NULL DEFAULT 0, paused INTEGER NOT NULL DEFAULT 0, tenant TEXT,
  PRIMARY KEY (lane, grp)) WITHOUT ROWID;
CREATE INDEX penstock_groups_ready ON penstock_groups (lane, next_at, grp)
  WHERE claim IS NULL AND NOT paused AND next_at IS NOT NULL AND tenant IS NULL;
CREATE INDEX penstock_groups_ready_tenants ON penstock_groups (lane, next_at, grp)
  WHERE claim IS NULL AND NOT paused AND next_at IS NOT NULL AND tenant IS NOT NULL;
CREATE INDEX penstock_groups_tenant ON penstock_groups (lane, tenant, next_at, grp)
  WHERE claim IS NULL AND NOT paused AND next_at IS NOT NULL AND tenant IS NOT NULL;

CREATE TABLE penstock_keys (
  lane INTEGER NOT NULL, key TEXT NOT NULL, id TEXT NOT NULL, hash BLOB NOT NULL,
  created_at INTEGER NOT NULL, PRIMARY KEY (lane, key)) WITHOUT ROWID;
CREATE INDEX penstock_keys_created ON penstock_keys (created_at);

CREATE TABLE penstock_attempts (
  arrival INTEGER NOT NULL, keep INTEGER NOT NULL, attempt INTEGER NOT NULL, send INTEGER NOT NULL, epoch INTEGER,
  node INTEGER, claimed_at INTEGER, ended_at INTEGER NOT NULL, outcome TEXT NOT NULL, error TEXT, due_at INTEGER);
CREATE INDEX penstock_attempts_job ON penstock_attempts (arrival);

CREATE TABLE penstock_dead (
  arrival INTEGER PRIMARY KEY,
  due_at INTEGER NOT NULL, finished_at INTEGER NOT NULL,
  lane INTEGER NOT NULL, ord INTEGER NOT NULL, seq INTEGER NOT NULL, send INTEGER NOT NULL,
  deferrals INTEGER NOT NULL, keep INTEGER NOT NULL, mode INTEGER NOT NULL, state INTEGER NOT NULL,
  attempt INTEGER NOT NULL, recoveries INTEGER NOT NULL, revision INTEGER NOT NULL, max_attempts INTEGER,
  start_by INTEGER, claimed_at INTEGER, sent_at INTEGER, started_at INTEGER,
  epoch INTEGER, node INTEGER, grp TEXT, tenant TEXT, reason TEXT, receipt TEXT, error TEXT, result TEXT);
CREATE INDEX penstock_dead_group ON penstock_dead (lane, grp, seq, arrival) WHERE mode <> 0;
CREATE INDEX penstock_dead_finished ON penstock_dead (lane, finished_at);

CREATE TABLE penstock_history (
  arrival INTEGER PRIMARY KEY,
  due_at INTEGER NOT NULL, finished_at INTEGER NOT NULL,
  lane INTEGER NOT NULL, ord INTEGER NOT NULL, send INTEGER NOT NULL,
  deferrals INTEGER NOT NULL, keep INTEGER NOT NULL, mode INTEGER NOT NULL, state INTEGER NOT NULL,
  attempt INTEGER NOT NULL, recoveries INTEGER NOT NULL, revision INTEGER NOT NULL, max_attempts INTEGER,
  start_by INTEGER, claimed_at INTEGER, sent_at INTEGER, started_at INTEGER,
  epoch INTEGER, node INTEGER, grp TEXT, tenant TEXT, reason TEXT, receipt TEXT, error TEXT, result TEXT);
CREATE INDEX penstock_history_lane ON penstock_history (lane, finished_at);
CREATE INDEX penstock_history_group ON penstock_history (lane, grp, finished_at) WHERE grp IS NOT NULL;
CREATE INDEX penstock_history_old ON penstock_history (keep, finished_at);

CREATE TABLE penstock_counts (
  lane INTEGER NOT NULL, state INTEGER NOT NULL, n INTEGER NOT NULL, PRIMARY KEY (lane, state)) WITHOUT ROWID;
CREATE VIEW penstock_current_counts AS SELECT lane, state, n FROM penstock_counts;

-- The way in: whoever inserts a context has enqueued. The group is marked to be looked at; a job that stands
-- behind the dead job it waits for cannot free a blocked group and leaves it asleep.
CREATE TRIGGER penstock_enqueued AFTER INSERT ON penstock_contexts BEGIN
  INSERT INTO penstock_jobs (arrival, lane, keep, mode, ord, grp, tenant, due_at, start_by, max_attempts, holds)
  VALUES (NEW.arrival, NEW.lane, NEW.keep, NEW.mode, NEW.sequence,
          CASE WHEN NEW.mode <> 0 THEN coalesce(NEW.message_group, 'default') END,
          NEW.tenant, NEW.run_at, NEW.start_by, NEW.max_attempts, NEW.mode <> 0);
  INSERT INTO penstock_groups (lane, grp, next_at, tenant)
  SELECT NEW.lane, coalesce(NEW.message_group, 'default'), NEW.run_at, NEW.tenant WHERE NEW.mode <> 0
  ON CONFLICT (lane, grp) DO UPDATE SET next_at = min(coalesce(next_at, excluded.next_at), excluded.next_at)
    WHERE (next_at IS NULL OR next_at > excluded.next_at)
      AND NOT (NEW.mode = 2 AND dead_arrival IS NOT NULL AND (dead_seq, dead_arrival) < (NEW.sequence, NEW.arrival));
  INSERT INTO penstock_counts (lane, state, n) VALUES (NEW.lane, 1, 1)
  ON CONFLICT (lane, state) DO UPDATE SET n = n + 1;
END;

-- A lane goes only when nothing of it is left to be done; its history stays until it is old.
CREATE TRIGGER penstock_lane_deleted BEFORE DELETE ON penstock_lanes
WHEN EXISTS (SELECT 1 FROM penstock_jobs WHERE lane = OLD.id) OR EXISTS (SELECT 1 FROM penstock_claims WHERE lane = OLD.id)
  OR EXISTS (SELECT 1 FROM penstock_dead WHERE lane = OLD.id)
BEGIN
  SELECT RAISE(ABORT, 'penstock: the lane still has live or dead jobs: finish, cancel or skip them first');
END;
