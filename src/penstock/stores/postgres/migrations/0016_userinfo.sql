-- phase: expand
-- breaking: no
--
-- A lane that calls its target cannot do so with a user name in it (domain/sense.py): every job would die of it. Refused
-- where sink or target changes, so a lane that has one from before can still be paused, and mended.

-- Runs after lanes_sense (triggers go by their names), so it is a URL.
CREATE FUNCTION penstock.check_userinfo() RETURNS trigger
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  RAISE EXCEPTION USING
    ERRCODE = 'check_violation', SCHEMA = 'penstock', TABLE = 'lanes', COLUMN = 'target',
    MESSAGE = 'penstock: lanes.target: holds a user name, which everybody sees:'
              ' use an Authorization header of the job or the sink';
END $$;

CREATE TRIGGER lanes_userinfo_insert BEFORE INSERT ON penstock.lanes
  FOR EACH ROW WHEN (NEW.sink = 'http' AND NEW.target ~* '^https?://[^/?#]*@')
  EXECUTE FUNCTION penstock.check_userinfo();
CREATE TRIGGER lanes_userinfo_update BEFORE UPDATE OF sink, target ON penstock.lanes
  FOR EACH ROW WHEN (
    NEW.sink = 'http' AND NEW.target ~* '^https?://[^/?#]*@'
    AND (NEW.sink, NEW.target) IS DISTINCT FROM (OLD.sink, OLD.target))
  EXECUTE FUNCTION penstock.check_userinfo();
