-- phase: expand
-- breaking: no
--
-- Bulk operations: one verb on all jobs that a filter found, carried out piece by piece by whoever leads.
CREATE TABLE penstock_operations (
  id TEXT NOT NULL PRIMARY KEY,
  verb TEXT NOT NULL, filter TEXT NOT NULL, actor TEXT NOT NULL, reason TEXT NOT NULL,
  tenant TEXT, rate INTEGER, force INTEGER NOT NULL, change TEXT, key TEXT UNIQUE,
  state TEXT NOT NULL,
  created_at INTEGER NOT NULL, next_at INTEGER NOT NULL, finished_at INTEGER,
  found INTEGER NOT NULL DEFAULT 0, matched INTEGER, done INTEGER NOT NULL DEFAULT 0,
  requested INTEGER NOT NULL DEFAULT 0, refused INTEGER NOT NULL DEFAULT 0,
  refusals TEXT NOT NULL DEFAULT '{}', place TEXT, stopped_by TEXT, problem TEXT
) WITHOUT ROWID;
CREATE INDEX penstock_operations_open ON penstock_operations (id) WHERE finished_at IS NULL;
CREATE INDEX penstock_operations_ended ON penstock_operations (finished_at) WHERE finished_at IS NOT NULL;

-- The jobs that an operation is about, in the order in which they are dealt with; grp is '' for those in no group.
CREATE TABLE penstock_operation_jobs (
  operation TEXT NOT NULL, lane INTEGER NOT NULL, grp TEXT NOT NULL, seq INTEGER NOT NULL,
  arrival INTEGER NOT NULL, id TEXT NOT NULL,
  PRIMARY KEY (operation, lane, grp, seq, arrival)
) WITHOUT ROWID;
