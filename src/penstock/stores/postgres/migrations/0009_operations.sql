-- phase: expand
-- breaking: no
--
-- Bulk operations: one verb on all jobs that a filter found, carried out piece by piece by whoever leads.
CREATE TABLE penstock.operations (
  id text COLLATE "C" PRIMARY KEY,
  verb text NOT NULL, filter text NOT NULL, actor text NOT NULL, reason text NOT NULL,
  tenant text COLLATE "C", rate int, force boolean NOT NULL, change text, key text COLLATE "C" UNIQUE,
  state text NOT NULL,
  created_at timestamptz NOT NULL, next_at timestamptz NOT NULL, finished_at timestamptz,
  found int NOT NULL DEFAULT 0, matched int, done int NOT NULL DEFAULT 0, requested int NOT NULL DEFAULT 0,
  refused int NOT NULL DEFAULT 0, refusals text NOT NULL DEFAULT '{}', place text, stopped_by text, problem text
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.01);
CREATE INDEX operations_open ON penstock.operations (id) WHERE finished_at IS NULL;
CREATE INDEX operations_ended ON penstock.operations (finished_at) WHERE finished_at IS NOT NULL;

-- The jobs that an operation is about, in the order in which they are dealt with; grp is '' for those in no group.
CREATE TABLE penstock.operation_jobs (
  operation text COLLATE "C" NOT NULL, lane int NOT NULL, grp text COLLATE "C" NOT NULL, seq int NOT NULL,
  arrival bigint NOT NULL, id text COLLATE "C" NOT NULL,
  PRIMARY KEY (operation, lane, grp, seq, arrival)
) WITH (autovacuum_vacuum_scale_factor = 0.01);
