-- phase: expand
-- breaking: no
--
-- A lane names a pool that exists: a misspelt one would limit nothing, and nobody would know.

CREATE FUNCTION penstock.check_pool() RETURNS trigger
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  IF TG_OP = 'DELETE' THEN
    PERFORM 1 FROM penstock.lanes AS l WHERE l.pool = OLD.name;
    IF FOUND THEN
      RAISE EXCEPTION USING
        ERRCODE = 'restrict_violation', SCHEMA = 'penstock', TABLE = 'pools', COLUMN = 'name',
        MESSAGE = format('penstock: pools.name: pool "%s" is used by a lane: give it another pool first', OLD.name);
    END IF;
    RETURN OLD;
  END IF;
  PERFORM 1 FROM penstock.pools AS p WHERE p.name = NEW.pool FOR KEY SHARE;
  IF NOT FOUND THEN
    RAISE EXCEPTION USING
      ERRCODE = 'foreign_key_violation', SCHEMA = 'penstock', TABLE = 'lanes', COLUMN = 'pool',
      MESSAGE = format('penstock: lanes.pool: unknown pool "%s": make it first', NEW.pool);
  END IF;
  RETURN NEW;
END $$;

CREATE TRIGGER lanes_pool_insert BEFORE INSERT ON penstock.lanes
  FOR EACH ROW WHEN (NEW.pool IS NOT NULL) EXECUTE FUNCTION penstock.check_pool();
CREATE TRIGGER lanes_pool_update BEFORE UPDATE OF pool ON penstock.lanes
  FOR EACH ROW WHEN (NEW.pool IS NOT NULL AND NEW.pool IS DISTINCT FROM OLD.pool)
  EXECUTE FUNCTION penstock.check_pool();
CREATE TRIGGER pools_used BEFORE DELETE ON penstock.pools
  FOR EACH ROW EXECUTE FUNCTION penstock.check_pool();
