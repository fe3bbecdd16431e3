-- phase: expand
-- breaking: no
--
-- What people look at: pages of jobs in the order of an index, each filter with an index that begins with it.
--
-- Only two of these lie on the way of every job. jobs_listed costs an enqueue 75 bytes of WAL (of some 820) and
-- claims and settles nothing: they delete rows, they do not touch indexes. jobs_scheduled costs the same again,
-- for ordered jobs only. The others hold what is rare: dead letters, jobs that were cancelled, skipped or expired,
-- jobs with a key. `arrival > 0` is true of every row; it keeps a list's index from the planner's sight when it
-- plans a claim, a verb or an expiry, which do not say it. `arrival + 0` is the arrival in an order that only this
-- index has: for a lane's newest jobs the planner would else try its luck with the primary key.
CREATE INDEX jobs_listed ON penstock.jobs (lane, state, (arrival + 0)) WHERE arrival > 0;
CREATE INDEX jobs_scheduled ON penstock.jobs (lane, due_at, arrival) WHERE state = 6 OR (state = 1 AND mode <> 0);
CREATE INDEX dead_listed ON penstock.dead (lane, grp, finished_at) WHERE grp IS NOT NULL AND arrival > 0;
CREATE INDEX history_unusual ON penstock.history (lane, state, finished_at) WHERE state <> 10;
CREATE INDEX contexts_key ON penstock.contexts (key, arrival) WHERE key IS NOT NULL;
CREATE INDEX audit_lane ON penstock.audit (lane, id) WHERE lane IS NOT NULL;

-- The history of a lane outlives it, and needs its name.
CREATE TABLE penstock.former_lanes (
  id integer PRIMARY KEY, name text COLLATE "C" NOT NULL, deleted_at timestamptz NOT NULL DEFAULT now());

-- It has its owner's rights: who may delete a lane need not be able to write the other tables.
CREATE FUNCTION penstock.lane_gone() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  INSERT INTO penstock.former_lanes (id, name) VALUES (OLD.id, OLD.name);
  DELETE FROM penstock.keys WHERE lane = OLD.id;
  DELETE FROM penstock.groups WHERE lane = OLD.id;
  DELETE FROM penstock.wakes WHERE lane = OLD.id;
  RETURN NULL;
END $$;
REVOKE ALL ON FUNCTION penstock.lane_gone() FROM PUBLIC;
CREATE TRIGGER lanes_gone AFTER DELETE ON penstock.lanes FOR EACH ROW EXECUTE FUNCTION penstock.lane_gone();
