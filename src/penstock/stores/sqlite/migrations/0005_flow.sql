-- phase: contract
-- breaking: yes
--
-- Limits over all nodes: of a lane, a pool, or one key of a pool. A limit is known by one text, `lane/orders`,
-- `pool/web` or `pool/web/<key>`. What nobody used before makes room: pool_buckets, pool_slices.
DROP TABLE penstock_pool_buckets;
DROP TABLE penstock_pool_slices;

-- The bucket: what is left of it at that time, in grains (domain/rates.py); NULL = nobody drew from it. From `idle_at`
-- on it is full if nobody has anything of it on lease, and its row may go: a new one is full as well.
CREATE TABLE penstock_limits (
  name    TEXT NOT NULL PRIMARY KEY,
  level   INTEGER,
  at      INTEGER NOT NULL,
  idle_at INTEGER NOT NULL
) WITHOUT ROWID;

-- What a node may spend and occupy by itself until then.
CREATE TABLE penstock_limit_leases (
  name   TEXT NOT NULL,
  node   INTEGER NOT NULL,
  tokens INTEGER NOT NULL,
  slots  INTEGER NOT NULL,
  until  INTEGER NOT NULL,
  PRIMARY KEY (name, node)
) WITHOUT ROWID;

-- A job that is out occupies its lane, and the pool (or key of a pool) that `slot` names: `web` or `web/<key>`.
ALTER TABLE penstock_jobs ADD COLUMN slot TEXT;
CREATE INDEX penstock_jobs_out ON penstock_jobs (lane) WHERE state IN (3, 4);
CREATE INDEX penstock_jobs_slot ON penstock_jobs (slot) WHERE slot IS NOT NULL;
