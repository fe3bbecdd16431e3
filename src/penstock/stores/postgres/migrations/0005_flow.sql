-- phase: contract
-- breaking: yes
--
-- Limits over the whole cluster: of a lane, a pool, or one key of a pool. A limit is known by one text, `lane/orders`,
-- `pool/web` or `pool/web/<key>`; its row in `limits` is the lock under which nodes are given tokens and slots.
-- What nobody used before makes room: pool_buckets, pool_slices.
DROP TABLE penstock.pool_buckets, penstock.pool_slices;

-- The bucket: what is left of it at that time, in grains (domain/rates.py); NULL = nobody drew from it. From `idle_at`
-- on it is full if nobody has anything of it on lease, and its row may go: a new one is full as well.
CREATE TABLE penstock.limits (
  name    text COLLATE "C" PRIMARY KEY,
  level   bigint,
  at      timestamptz NOT NULL,
  idle_at timestamptz NOT NULL
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.01);

-- What a node may spend and occupy by itself until then.
CREATE TABLE penstock.limit_leases (
  name   text COLLATE "C" NOT NULL,
  node   integer NOT NULL,
  tokens bigint NOT NULL,
  slots  integer NOT NULL,
  until  timestamptz NOT NULL,
  PRIMARY KEY (name, node)
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.01);

-- A job that is out occupies its lane, and the pool (or key of a pool) that `slot` names: `web` or `web/<key>`.
ALTER TABLE penstock.jobs ADD COLUMN slot text COLLATE "C";
CREATE INDEX jobs_out ON penstock.jobs (lane) WHERE state IN (3, 4);
CREATE INDEX jobs_slot ON penstock.jobs (slot) WHERE slot IS NOT NULL;
