-- phase: expand
-- breaking: no
--
-- Live jobs move, they are not rewritten: a claim deletes the narrow rows of `jobs` into one row of `claims`
-- whose id is the epoch; a settle deletes that row and writes `history` (or `jobs` again, or `dead`).
-- What the caller said is written once, into `contexts`, and never moves.

CREATE SEQUENCE penstock.arrivals;
CREATE SEQUENCE penstock.epochs;

-- The first arrival number of a day: every day has its own range, so partitions by arrival are partitions by day.
CREATE FUNCTION penstock.arrival_floor(day date) RETURNS bigint LANGUAGE sql IMMUTABLE
  AS $$ SELECT (day - date '2026-01-01')::bigint * 68719476736 $$;

-- keep = retention class of the job, in days; it decides the partition here and in history.
CREATE TABLE penstock.contexts (
  arrival bigint NOT NULL DEFAULT nextval('penstock.arrivals'),
  keep smallint NOT NULL,
  lane int NOT NULL,
  mode smallint NOT NULL DEFAULT 0,
  sequence int NOT NULL DEFAULT 99 CHECK (sequence >= 0),
  max_attempts smallint CHECK (max_attempts > 0),
  run_at timestamptz NOT NULL DEFAULT now(),
  created_at timestamptz NOT NULL DEFAULT now(),
  start_by timestamptz,
  finish_by timestamptz,
  id text COLLATE "C" NOT NULL,
  message_group text COLLATE "C",
  tenant text COLLATE "C",
  key text COLLATE "C",
  target text, headers text, pool text, entity text, version text, event text, correlation text,
  payload text,
  PRIMARY KEY (keep, arrival)
) PARTITION BY RANGE (keep, arrival);

-- An edit never touches the context: it adds a revision, and the live row names the one that counts.
CREATE TABLE penstock.revisions (
  arrival bigint NOT NULL, revision smallint NOT NULL, at timestamptz NOT NULL DEFAULT now(), actor text NOT NULL,
  payload text, headers text, target text, PRIMARY KEY (arrival, revision));

CREATE TABLE penstock.jobs (
  arrival bigint PRIMARY KEY,
  due_at timestamptz NOT NULL,
  lane int NOT NULL,
  ord int NOT NULL,
  send int NOT NULL DEFAULT 0,
  deferrals int NOT NULL DEFAULT 0,
  keep smallint NOT NULL,
  mode smallint NOT NULL,
  state smallint NOT NULL DEFAULT 1,
  attempt smallint NOT NULL DEFAULT 0,
  recoveries smallint NOT NULL DEFAULT 0,
  revision smallint NOT NULL DEFAULT 0,
  open boolean NOT NULL DEFAULT false,
  holds boolean NOT NULL,
  max_attempts smallint,
  start_by timestamptz, deadline timestamptz, claimed_at timestamptz, sent_at timestamptz, started_at timestamptz,
  epoch bigint, node int,
  grp text COLLATE "C", tenant text COLLATE "C", reason text, receipt text
) WITH (fillfactor = 90, autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_cost_delay = 0);
-- Who waits without a tenant, and who with one: a job is in one of the two, so neither is read for the other.
CREATE INDEX jobs_due ON penstock.jobs (lane, due_at, arrival) WHERE mode = 0 AND state = 1 AND tenant IS NULL;
CREATE INDEX jobs_tenant ON penstock.jobs (lane, tenant, due_at, arrival)
  WHERE mode = 0 AND state = 1 AND tenant IS NOT NULL;
-- num_nulls() says the same as IS NOT NULL, but a statement that names one tenant cannot be planned on it.
CREATE INDEX jobs_due_tenants ON penstock.jobs (lane, due_at, arrival)
  WHERE mode = 0 AND state = 1 AND num_nulls(tenant) = 0;
CREATE INDEX jobs_group ON penstock.jobs (lane, grp, ord, arrival) WHERE holds;
CREATE INDEX jobs_passed ON penstock.jobs (lane, grp) WHERE grp IS NOT NULL AND NOT holds;
CREATE INDEX jobs_deadline ON penstock.jobs (deadline, arrival) WHERE deadline IS NOT NULL;
CREATE INDEX jobs_start_by ON penstock.jobs (start_by, arrival) WHERE state = 1 AND start_by IS NOT NULL;

-- One row per batch in flight; the arrays are its jobs, in one order. Rarely used arrays are NULL when every
-- job has the default. `settled` is a bit per position.
CREATE TABLE penstock.claims (
  id bigint PRIMARY KEY,
  claimed_at timestamptz NOT NULL DEFAULT now(),
  lease_until timestamptz NOT NULL,
  lane int NOT NULL,
  node int NOT NULL,
  takeovers int NOT NULL DEFAULT 0,
  groups boolean NOT NULL DEFAULT false,
  sending boolean NOT NULL DEFAULT false,
  settled bytea,
  arrivals bigint[] NOT NULL, keeps smallint[] NOT NULL, dues timestamptz[] NOT NULL,
  ords int[] NOT NULL, modes smallint[], grps text[], tenants text[], start_bys timestamptz[],
  attempts smallint[], max_attempts smallint[], sends int[], opens boolean[],
  recoveries smallint[], deferrals int[], revisions smallint[]
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_cost_delay = 0);
CREATE INDEX claims_lease ON penstock.claims (lease_until);
ALTER TABLE penstock.claims ALTER arrivals SET STORAGE EXTERNAL, ALTER keeps SET STORAGE EXTERNAL,
  ALTER dues SET STORAGE EXTERNAL, ALTER ords SET STORAGE EXTERNAL, ALTER grps SET STORAGE EXTERNAL;

-- An operator's cancel or hold for a job that is inside a claim or already out.
CREATE TABLE penstock.requests (
  arrival bigint PRIMARY KEY, verb text NOT NULL, actor text NOT NULL, reason text,
  at timestamptz NOT NULL DEFAULT now());

-- A group is ready when it is in groups_ready or groups_tenant: nobody holds it, it is not paused, and next_at is the time of its
-- head. next_at is NULL while its head is in flight, held, or waits for a dead job (blocked).
CREATE TABLE penstock.groups (
  lane int NOT NULL, grp text COLLATE "C" NOT NULL,
  next_at timestamptz, claim bigint, dead_arrival bigint, dead_seq int,
  blocked boolean NOT NULL DEFAULT false, paused boolean NOT NULL DEFAULT false, tenant text COLLATE "C",
  PRIMARY KEY (lane, grp)
) WITH (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_cost_delay = 0);
CREATE INDEX groups_ready ON penstock.groups (lane, next_at, grp)
  WHERE claim IS NULL AND NOT paused AND next_at IS NOT NULL AND tenant IS NULL;
CREATE INDEX groups_tenant ON penstock.groups (lane, tenant, next_at, grp)
  WHERE claim IS NULL AND NOT paused AND next_at IS NOT NULL AND tenant IS NOT NULL;
CREATE INDEX groups_ready_tenants ON penstock.groups (lane, next_at, grp)
  WHERE claim IS NULL AND NOT paused AND next_at IS NOT NULL AND num_nulls(tenant) = 0;

-- "Look at this group again." Only appended, by whoever changed a group without holding it; claimers absorb them.
CREATE TABLE penstock.wakes (
  id bigint GENERATED ALWAYS AS IDENTITY, lane int NOT NULL, grp text COLLATE "C" NOT NULL, PRIMARY KEY (lane, id)
) WITH (autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_cost_delay = 0);

CREATE TABLE penstock.keys (
  lane int NOT NULL, key text COLLATE "C" NOT NULL, id text COLLATE "C" NOT NULL, hash bytea NOT NULL,
  created_at timestamptz NOT NULL DEFAULT now(), PRIMARY KEY (lane, key));
CREATE INDEX keys_created ON penstock.keys (created_at);

CREATE TABLE penstock.attempts (
  arrival bigint NOT NULL, keep smallint NOT NULL, attempt smallint NOT NULL, send int NOT NULL, epoch bigint,
  node int, claimed_at timestamptz, ended_at timestamptz NOT NULL, outcome text NOT NULL, error text,
  due_at timestamptz) PARTITION BY RANGE (keep, arrival);
CREATE INDEX attempts_job ON penstock.attempts (keep, arrival);

CREATE TABLE penstock.dead (
  arrival bigint PRIMARY KEY,
  due_at timestamptz NOT NULL, finished_at timestamptz NOT NULL,
  lane int NOT NULL, ord int NOT NULL, seq int NOT NULL, send int NOT NULL, deferrals int NOT NULL,
  keep smallint NOT NULL, mode smallint NOT NULL, state smallint NOT NULL, attempt smallint NOT NULL,
  recoveries smallint NOT NULL, revision smallint NOT NULL, max_attempts smallint,
  start_by timestamptz, claimed_at timestamptz, sent_at timestamptz, started_at timestamptz,
  epoch bigint, node int, grp text COLLATE "C", tenant text COLLATE "C", reason text, receipt text,
  error text, result text);
CREATE INDEX dead_group ON penstock.dead (lane, grp, seq, arrival) WHERE mode <> 0;
CREATE INDEX dead_finished ON penstock.dead (lane, finished_at);

CREATE TABLE penstock.history (
  arrival bigint NOT NULL,
  due_at timestamptz NOT NULL, finished_at timestamptz NOT NULL,
  lane int NOT NULL, ord int NOT NULL, send int NOT NULL, deferrals int NOT NULL,
  keep smallint NOT NULL, mode smallint NOT NULL, state smallint NOT NULL, attempt smallint NOT NULL,
  recoveries smallint NOT NULL, revision smallint NOT NULL, max_attempts smallint,
  start_by timestamptz, claimed_at timestamptz, sent_at timestamptz, started_at timestamptz,
  epoch bigint, node int, grp text COLLATE "C", tenant text COLLATE "C", reason text, receipt text,
  error text, result text) PARTITION BY RANGE (keep, finished_at);
CREATE INDEX history_arrival ON penstock.history (arrival);
CREATE INDEX history_lane ON penstock.history (lane, finished_at);
CREATE INDEX history_group ON penstock.history (lane, grp, finished_at) WHERE grp IS NOT NULL;

CREATE TABLE penstock.counts (lane int, state smallint, n bigint NOT NULL, PRIMARY KEY (lane, state));
CREATE TABLE penstock.count_deltas (lane int NOT NULL, state smallint NOT NULL, n int NOT NULL);
CREATE VIEW penstock.current_counts AS
  SELECT lane, state, sum(n) AS n
    FROM (SELECT lane, state, n FROM penstock.counts UNION ALL SELECT lane, state, n FROM penstock.count_deltas) c
   GROUP BY lane, state;

-- Partitions are made ahead, never by default: LIKE + ATTACH takes no lock that an open enqueue would hold up.
CREATE FUNCTION penstock.add_partition(parent text, keep int, first text, bound_from text, bound_to text)
RETURNS void LANGUAGE plpgsql SET search_path = pg_catalog AS $$
DECLARE child text := format('%s_%s_%s', parent, keep, first);
BEGIN
  IF to_regclass(format('penstock.%I', child)) IS NOT NULL THEN RETURN; END IF;
  EXECUTE format('CREATE TABLE penstock.%I (LIKE penstock.%I INCLUDING DEFAULTS INCLUDING CONSTRAINTS) '
    'WITH (autovacuum_vacuum_insert_scale_factor = 0.2)', child, parent);
  IF parent = 'contexts' THEN  -- an id is enqueued once, even by two callers who repeat a lost reply
    EXECUTE format('CREATE UNIQUE INDEX %I ON penstock.%I (id)', child || '_id', child);
  END IF;
  EXECUTE format('ALTER TABLE penstock.%I ATTACH PARTITION penstock.%I FOR VALUES FROM (%s, %s) TO (%s, %s)',
    parent, child, keep, bound_from, keep, bound_to);
END $$;

-- Long classes have longer partitions, so that their number stays small: 1 day, 7 days from 90d on, 30 for a year.
CREATE FUNCTION penstock.prepare_class(class int) RETURNS void LANGUAGE plpgsql SET search_path = pg_catalog AS $$
DECLARE
  span int := CASE WHEN class >= 365 THEN 30 WHEN class >= 90 THEN 7 ELSE 1 END;
  origin constant date := date '2026-01-01';
  today int := (now() AT TIME ZONE 'UTC')::date - origin;
  slot int;
  a date; b date;
BEGIN
  FOR slot IN SELECT generate_series(floor((today - 1)::numeric / span)::int, ceil((today + 8)::numeric / span)::int)
  LOOP
    a := origin + slot * span; b := a + span;
    PERFORM penstock.add_partition('contexts', class, to_char(a, 'YYYYMMDD'),
      penstock.arrival_floor(a)::text, penstock.arrival_floor(b)::text);
    PERFORM penstock.add_partition('attempts', class, to_char(a, 'YYYYMMDD'),
      penstock.arrival_floor(a)::text, penstock.arrival_floor(b)::text);
    PERFORM penstock.add_partition('history', class, to_char(a, 'YYYYMMDD'),
      quote_literal(to_char(a, 'YYYY-MM-DD') || ' 00:00+00'), quote_literal(to_char(b, 'YYYY-MM-DD') || ' 00:00+00'));
  END LOOP;
END $$;

-- Called by every node at its start and by the leader every hour.
CREATE FUNCTION penstock.prepare() RETURNS void LANGUAGE plpgsql SET search_path = pg_catalog AS $$
DECLARE floor_today bigint := penstock.arrival_floor((now() AT TIME ZONE 'UTC')::date);
BEGIN
  PERFORM pg_advisory_xact_lock(7070, 2);
  -- Classes that no lane has any more still have jobs on their way to history.
  PERFORM penstock.prepare_class(q.keep) FROM (
    SELECT keep FROM penstock.lanes
     UNION SELECT split_part(c.relname, '_', 2)::smallint FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid
            WHERE i.inhparent = 'penstock.history'::regclass) q;
  IF (SELECT last_value FROM penstock.arrivals) < floor_today THEN
    PERFORM setval('penstock.arrivals', floor_today, true);
  END IF;
END $$;

CREATE FUNCTION penstock.lane_prepared() RETURNS trigger LANGUAGE plpgsql SET search_path = pg_catalog AS $$
BEGIN
  PERFORM pg_advisory_xact_lock(7070, 2);
  PERFORM penstock.prepare_class(NEW.keep);
  RETURN NULL;
END $$;
CREATE TRIGGER lanes_prepare AFTER INSERT OR UPDATE OF retention ON penstock.lanes
  FOR EACH ROW EXECUTE FUNCTION penstock.lane_prepared();

-- The way in: whoever inserts contexts, by INSERT or COPY, has enqueued. Appends only; nobody waits for anybody.
CREATE FUNCTION penstock.enqueued() RETURNS trigger LANGUAGE plpgsql SET search_path = pg_catalog AS $$
DECLARE home record;
BEGIN
  INSERT INTO penstock.jobs (arrival, lane, keep, mode, ord, grp, tenant, due_at, start_by, max_attempts, holds)
  SELECT arrival, lane, keep, mode, sequence, CASE WHEN mode <> 0 THEN coalesce(message_group, 'default') END,
         tenant, run_at, start_by, max_attempts, mode <> 0 FROM added;
  INSERT INTO penstock.wakes (lane, grp)
  SELECT DISTINCT lane, coalesce(message_group, 'default') COLLATE "C" FROM added WHERE mode <> 0;
  FOR home IN SELECT lane, count(*) AS n FROM added GROUP BY lane LOOP
    -- Callers never wait for each other here: the lock is shared. It keeps the lane from being deleted until they
    -- are done; one that was deleted since they read it is refused, and the call is made again.
    PERFORM pg_advisory_xact_lock_shared(7071, home.lane);
    IF NOT EXISTS (SELECT FROM penstock.lanes l WHERE l.id = home.lane) THEN
      RAISE EXCEPTION 'penstock: unknown lane: it was deleted just now' USING ERRCODE = 'serialization_failure';
    END IF;
    INSERT INTO penstock.count_deltas (lane, state, n) VALUES (home.lane, 1, home.n);
  END LOOP;
  RETURN NULL;
END $$;
CREATE TRIGGER contexts_enqueued AFTER INSERT ON penstock.contexts REFERENCING NEW TABLE AS added
  FOR EACH STATEMENT EXECUTE FUNCTION penstock.enqueued();

SELECT penstock.prepare_class(keep) FROM (SELECT DISTINCT keep FROM penstock.lanes) q;
SELECT setval('penstock.arrivals', penstock.arrival_floor((now() AT TIME ZONE 'UTC')::date), true);

-- A lane goes only when nothing of it is left to be done; its history stays until it is old.
CREATE FUNCTION penstock.lane_deleted() RETURNS trigger LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  IF NOT pg_try_advisory_xact_lock(7071, OLD.id) THEN
    RAISE EXCEPTION 'penstock: somebody is enqueuing into lane "%" just now: try again', OLD.name
      USING ERRCODE = 'restrict_violation';
  END IF;
  IF EXISTS (SELECT FROM penstock.jobs WHERE lane = OLD.id) OR EXISTS (SELECT FROM penstock.claims WHERE lane = OLD.id)
     OR EXISTS (SELECT FROM penstock.dead WHERE lane = OLD.id) THEN
    RAISE EXCEPTION 'penstock: lane "%" still has live or dead jobs: finish, cancel or skip them first', OLD.name
      USING ERRCODE = 'restrict_violation';
  END IF;
  RETURN OLD;
END $$;
CREATE TRIGGER lanes_deleted BEFORE DELETE ON penstock.lanes
  FOR EACH ROW EXECUTE FUNCTION penstock.lane_deleted();
