-- phase: expand
-- breaking: no
--
-- A lane names a pool that exists: a misspelt one would limit nothing, and nobody would know.

CREATE TRIGGER penstock_lanes_pool_insert BEFORE INSERT ON penstock_lanes
WHEN NEW.pool IS NOT NULL AND NEW.pool <> '' BEGIN
  SELECT RAISE(ABORT, 'penstock: lanes.pool: unknown pool: make it first')
   WHERE NOT EXISTS (SELECT 1 FROM penstock_pools p WHERE p.name = NEW.pool);
END;

CREATE TRIGGER penstock_lanes_pool_update BEFORE UPDATE OF pool ON penstock_lanes
WHEN NEW.pool IS NOT NULL AND NEW.pool <> '' AND NEW.pool IS NOT OLD.pool BEGIN
  SELECT RAISE(ABORT, 'penstock: lanes.pool: unknown pool: make it first')
   WHERE NOT EXISTS (SELECT 1 FROM penstock_pools p WHERE p.name = NEW.pool);
END;

CREATE TRIGGER penstock_pools_used BEFORE DELETE ON penstock_pools BEGIN
  SELECT RAISE(ABORT, 'penstock: pools.name: the pool is used by a lane: give it another pool first')
   WHERE EXISTS (SELECT 1 FROM penstock_lanes l WHERE l.pool = OLD.name);
END;
