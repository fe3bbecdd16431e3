-- phase: expand
-- breaking: no
--
-- What people look at: pages of jobs in the order of an index, each filter with an index that begins with it.
-- Every index ends with the arrival, which is the row's number; `arrival + 0` is spelt as on PostgreSQL.
--
-- Only two of these lie on the way of every job: jobs_listed, and for ordered jobs jobs_scheduled. The others hold
-- what is rare: dead letters, jobs that were cancelled, skipped or expired, jobs with a key. `arrival > 0` is true
-- of every row; it keeps a list's index from the planner's sight when it plans a statement that does not say it.
CREATE INDEX penstock_jobs_listed ON penstock_jobs (lane, state, arrival + 0) WHERE arrival > 0;
CREATE INDEX penstock_jobs_scheduled ON penstock_jobs (lane, due_at) WHERE state = 6 OR (state = 1 AND mode <> 0);
CREATE INDEX penstock_dead_listed ON penstock_dead (lane, grp, finished_at) WHERE grp IS NOT NULL AND arrival > 0;
CREATE INDEX penstock_history_unusual ON penstock_history (lane, state, finished_at) WHERE state <> 10;
CREATE INDEX penstock_contexts_key ON penstock_contexts (key) WHERE key IS NOT NULL;
CREATE INDEX penstock_audit_lane ON penstock_audit (lane) WHERE lane IS NOT NULL;

-- The history of a lane outlives it, and needs its name.
CREATE TABLE penstock_former_lanes (
  id INTEGER PRIMARY KEY, name TEXT NOT NULL,
  deleted_at INTEGER NOT NULL DEFAULT (CAST((julianday('now') - 2440587.5) * 86400000000 AS INTEGER)));

CREATE TRIGGER penstock_lanes_gone AFTER DELETE ON penstock_lanes
BEGIN
  INSERT INTO penstock_former_lanes (id, name) VALUES (OLD.id, OLD.name);
  DELETE FROM penstock_keys WHERE lane = OLD.id;
  DELETE FROM penstock_groups WHERE lane = OLD.id;
END;
