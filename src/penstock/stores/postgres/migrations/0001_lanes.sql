-- phase: expand
-- breaking: no
--
-- Configuration (lanes, pools), what operators do (audit, pauses), and what nodes share (leases, limits,
-- breakers, the embedded queue). A setting is kept as a person writes it, so that a plain
--     UPDATE penstock.lanes SET batch_size = 1000, jitter = '4s' WHERE name = 'pay'
-- is a safe way to change one: triggers refuse what Penstock would refuse, raise the version and audit it.
--
-- Triggers run with the rights and the search_path of whoever writes: every function has a search_path of its
-- own, with pg_temp last, or a temporary table could pass for a type.

CREATE TABLE penstock.lanes (
  id             integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  name           text COLLATE "C" NOT NULL UNIQUE,
  enabled        boolean NOT NULL DEFAULT true,
  mode           text NOT NULL DEFAULT 'immediate',
  sink           text NOT NULL DEFAULT 'console',
  queue          text,
  target         text,
  format         text,
  complete_on    text,
  pool           text,
  batch_size     integer NOT NULL DEFAULT 500,
  poll_interval  text NOT NULL DEFAULT '1s',
  lookahead      text NOT NULL DEFAULT '5s',
  jitter         text NOT NULL DEFAULT '0s',
  misfire        text NOT NULL DEFAULT 'send_now',
  rate           text,
  max_in_flight  integer NOT NULL DEFAULT 200,
  max_groups     integer,
  retry          text NOT NULL DEFAULT '["0s","1m","5m","15m","1h"]',
  retry_on       text,
  give_up_on     text,
  workflow       text,
  task_queue     text,
  timeout        text NOT NULL DEFAULT '15s',
  lease          text NOT NULL DEFAULT '30s',
  ack_timeout    text NOT NULL DEFAULT '15m',
  run_timeout    text NOT NULL DEFAULT '1h',
  heartbeat      text NOT NULL DEFAULT '30s',
  on_unknown     text NOT NULL DEFAULT 'requeue',
  max_recoveries integer NOT NULL DEFAULT 5,
  max_recoveries_per_pass integer NOT NULL DEFAULT 100,
  hold_until     text NOT NULL DEFAULT 'done',
  max_depth      integer,
  max_payload    text NOT NULL DEFAULT '256KiB',
  key_ttl        text NOT NULL DEFAULT '24h',
  retention      text NOT NULL DEFAULT '7d',
  dead_retention text NOT NULL DEFAULT '30d',
  keep_payload   boolean NOT NULL DEFAULT true,
  weight         integer NOT NULL DEFAULT 1,
  -- the retention class in days, which names a partition
  keep           smallint GENERATED ALWAYS AS (CASE retention
                   WHEN '1d' THEN 1 WHEN '7d' THEN 7 WHEN '30d' THEN 30 WHEN '90d' THEN 90 WHEN '1y' THEN 365
                 END) STORED,
  -- operation, not configuration: who stopped it, why, until when
  paused         boolean NOT NULL DEFAULT false,
  paused_until   timestamptz,
  pause_reason   text,
  paused_by      text,
  version        integer NOT NULL DEFAULT 1,
  updated_at     timestamptz NOT NULL DEFAULT now(),
  updated_by     text
);

CREATE TABLE penstock.pools (
  id            integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  name          text COLLATE "C" NOT NULL UNIQUE,
  rate          text,
  burst         integer,
  max_in_flight integer,
  key           text,
  paused        boolean NOT NULL DEFAULT false,
  paused_until  timestamptz,
  pause_reason  text,
  paused_by     text,
  version       integer NOT NULL DEFAULT 1,
  updated_at    timestamptz NOT NULL DEFAULT now(),
  updated_by    text
);

-- Moves off the normal path and everything an operator does; before and after are states or JSON.
CREATE TABLE penstock.audit (
  id      bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  at      timestamptz NOT NULL DEFAULT now(),
  arrival bigint,
  lane    integer,
  actor   text NOT NULL,
  action  text NOT NULL,
  before  text,
  after   text,
  reason  text
);
CREATE INDEX audit_arrival ON penstock.audit (arrival) WHERE arrival IS NOT NULL;
CREATE INDEX audit_at ON penstock.audit (at);

-- What is stopped beyond a lane or pool: the whole store, a tenant, a target.
CREATE TABLE penstock.pauses (
  scope  text NOT NULL,
  name   text NOT NULL DEFAULT '',
  until  timestamptz,
  reason text,
  actor  text NOT NULL,
  at     timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (scope, name)
);

-- One row per run of a process; the identity never gives a number twice.
CREATE TABLE penstock.nodes (
  id         integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  name       text NOT NULL,
  version    text NOT NULL,
  started_at timestamptz NOT NULL,
  seen_at    timestamptz NOT NULL
) WITH (fillfactor = 50);

-- Leadership: a term's number only grows, and every renewal names it.
CREATE TABLE penstock.leases (
  name   text PRIMARY KEY,
  holder integer NOT NULL,
  term   bigint NOT NULL,
  until  timestamptz NOT NULL
) WITH (fillfactor = 50);

-- One row per pass of a node over a lane; phases is JSON, seconds by name.
CREATE TABLE penstock.ticks (
  id      bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  node    integer NOT NULL,
  lane    integer,
  at      timestamptz NOT NULL,
  claimed integer NOT NULL,
  settled integer NOT NULL,
  phases  text NOT NULL
);
CREATE INDEX ticks_at ON penstock.ticks (at);

-- Rate limits: what is left of a bucket (in grains, domain/rates.py) and what nodes have on lease (in tokens).
-- The key is '' for a pool without one and for jobs without a tenant.
CREATE TABLE penstock.pool_buckets (
  pool   integer NOT NULL,
  key    text NOT NULL DEFAULT '',
  tokens bigint NOT NULL,
  at     timestamptz NOT NULL,
  PRIMARY KEY (pool, key)
) WITH (fillfactor = 50);
CREATE TABLE penstock.pool_slices (
  pool   integer NOT NULL,
  key    text NOT NULL DEFAULT '',
  node   integer NOT NULL,
  tokens bigint NOT NULL,
  until  timestamptz NOT NULL,
  PRIMARY KEY (pool, key, node)
) WITH (fillfactor = 50);

-- Circuit breakers and slow-downs, by scheme, host and port.
CREATE TABLE penstock.targets (
  target     text PRIMARY KEY,
  state      text NOT NULL DEFAULT 'closed',
  failures   integer NOT NULL DEFAULT 0,
  opened_at  timestamptz,
  until      timestamptz,
  slow_until timestamptz
) WITH (fillfactor = 50);

-- Keys for tokens and signatures; a retired one still verifies.
CREATE TABLE penstock.secrets (
  name       text NOT NULL,
  kid        text NOT NULL,
  secret     text NOT NULL,
  created_at timestamptz NOT NULL DEFAULT now(),
  retired_at timestamptz,
  PRIMARY KEY (name, kid)
);

-- The embedded broker. A received message is invisible until visible_at; `receives` fences its acknowledgement.
CREATE TABLE penstock.queue (
  id         bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  queue      text NOT NULL,
  grp        text COLLATE "C",
  dedup_id   text,
  body       text NOT NULL,
  visible_at timestamptz NOT NULL DEFAULT now(),
  receives   integer NOT NULL DEFAULT 0,
  created_at timestamptz NOT NULL DEFAULT now()
) WITH (autovacuum_vacuum_scale_factor = 0.01);
CREATE INDEX queue_visible ON penstock.queue (queue, visible_at, id);
CREATE INDEX queue_group ON penstock.queue (queue, grp, id) WHERE grp IS NOT NULL;
CREATE UNIQUE INDEX queue_dedup ON penstock.queue (queue, dedup_id) WHERE dedup_id IS NOT NULL;

-- What a setting must be: the same rules, in the same words, as domain/lanes.py. A new setting is a new column
-- and a new row here.
CREATE FUNCTION penstock.setting_rules(scope text)
RETURNS TABLE (name text, kind text, required boolean, lowest integer, highest integer, words text[])
LANGUAGE sql IMMUTABLE SET search_path = pg_catalog, pg_temp AS $$
  SELECT r.name, r.kind, r.required, r.lowest, r.highest, string_to_array(r.words, ' ') FROM (VALUES
    ('lane', 'mode', 'word', true, NULL::integer, NULL::integer, 'immediate next_on_error block_on_error'),
    ('lane', 'sink', 'text', true, NULL, NULL, NULL),
    ('lane', 'queue', 'text', false, NULL, NULL, NULL),
    ('lane', 'target', 'text', false, NULL, NULL, NULL),
    ('lane', 'format', 'word', false, NULL, NULL, 'pointer full app payload'),
    ('lane', 'complete_on', 'word', false, NULL, NULL, 'sent reported'),
    ('lane', 'pool', 'text', false, NULL, NULL, NULL),
    ('lane', 'batch_size', 'int', true, 1, NULL, NULL),
    ('lane', 'poll_interval', 'duration', true, NULL, NULL, NULL),
    ('lane', 'lookahead', 'duration', true, NULL, NULL, NULL),
    ('lane', 'jitter', 'duration', true, NULL, NULL, NULL),
    ('lane', 'misfire', 'misfire', true, NULL, NULL, NULL),
    ('lane', 'rate', 'rate', false, NULL, NULL, NULL),
    ('lane', 'max_in_flight', 'int', true, 1, NULL, NULL),
    ('lane', 'max_groups', 'int', false, 1, NULL, NULL),
    ('lane', 'retry', 'retry', true, NULL, NULL, NULL),
    ('lane', 'retry_on', 'text', false, NULL, NULL, NULL),
    ('lane', 'give_up_on', 'text', false, NULL, NULL, NULL),
    ('lane', 'workflow', 'text', false, NULL, NULL, NULL),
    ('lane', 'task_queue', 'text', false, NULL, NULL, NULL),
    ('lane', 'timeout', 'duration', true, NULL, NULL, NULL),
    ('lane', 'lease', 'duration', true, NULL, NULL, NULL),
    ('lane', 'ack_timeout', 'duration', true, NULL, NULL, NULL),
    ('lane', 'run_timeout', 'duration', true, NULL, NULL, NULL),
    ('lane', 'heartbeat', 'duration', true, NULL, NULL, NULL),
    ('lane', 'on_unknown', 'word', true, NULL, NULL, 'requeue hold'),
    ('lane', 'max_recoveries', 'int', true, 0, NULL, NULL),
    ('lane', 'max_recoveries_per_pass', 'int', true, 1, NULL, NULL),
    ('lane', 'hold_until', 'word', true, NULL, NULL, 'done sent'),
    ('lane', 'max_depth', 'int', false, 1, NULL, NULL),
    ('lane', 'max_payload', 'size', true, NULL, NULL, NULL),
    ('lane', 'key_ttl', 'duration', true, NULL, NULL, NULL),
    ('lane', 'retention', 'word', true, NULL, NULL, '1d 7d 30d 90d 1y'),
    ('lane', 'dead_retention', 'duration', true, NULL, NULL, NULL),
    ('lane', 'weight', 'int', true, 1, NULL, NULL),
    ('lane', 'enabled', 'bool', true, NULL, NULL, NULL),
    ('lane', 'keep_payload', 'bool', true, NULL, NULL, NULL),
    ('lane', 'paused', 'bool', true, NULL, NULL, NULL),
    ('pool', 'rate', 'rate', false, NULL, NULL, NULL),
    ('pool', 'burst', 'int', false, 1, 1000000000, NULL),
    ('pool', 'max_in_flight', 'int', false, 1, NULL, NULL),
    ('pool', 'key', 'word', false, NULL, NULL, 'tenant target group'),
    ('pool', 'paused', 'bool', true, NULL, NULL, NULL)
  ) AS r (scope, name, kind, required, lowest, highest, words)
  WHERE r.scope = $1
$$;

-- NULL when it is not one. No duration is longer than 999999999 days.
CREATE FUNCTION penstock.duration_ms(value text) RETURNS numeric
LANGUAGE plpgsql IMMUTABLE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  part text[] := regexp_match(value, '^([0-9]{1,15})(ms|s|m|h|d)$');
BEGIN
  RETURN part[1]::numeric
    * CASE part[2] WHEN 'ms' THEN 1 WHEN 's' THEN 1000 WHEN 'm' THEN 60000 WHEN 'h' THEN 3600000 ELSE 86400000 END;
END $$;

CREATE FUNCTION penstock.duration_problem(value text) RETURNS text
LANGUAGE plpgsql IMMUTABLE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  ms numeric := penstock.duration_ms(value);
BEGIN
  IF ms IS NULL THEN
    RETURN format('%L is not a duration: write 5s, 250ms, 1m, 2h or 7d', value);
  ELSIF ms >= 86400000000000000 THEN
    RETURN format('%L is not a duration: the longest is 999999999d', value);
  END IF;
  RETURN NULL;
END $$;

CREATE FUNCTION penstock.delay_problem(value text) RETURNS text
LANGUAGE plpgsql IMMUTABLE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  RETURN coalesce(penstock.duration_problem(value), CASE WHEN penstock.duration_ms(value) > 31536000000
    THEN format('not a retry schedule: a delay of %s is not between 0s and 365d', value) END);
END $$;

-- json, not jsonb: it keeps the spelling of numbers, and 8.0 is no number of attempts.
CREATE FUNCTION penstock.retry_problem(value text) RETURNS text
LANGUAGE plpgsql IMMUTABLE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  advice constant text := 'not a retry schedule: '
    'write ["0s", "1m", "5m"] or { first = "1s", factor = 2, max = "1h", attempts = 8 }';
  whole json;
  problem text;
  total integer;
BEGIN
  BEGIN
    whole := value::json;
  EXCEPTION WHEN data_exception THEN
    RETURN format('not a retry schedule: %L is not JSON, write ["0s","1m","5m"]', value);
  END;
  IF json_typeof(whole) = 'array' THEN
    total := json_array_length(whole);
    IF total NOT BETWEEN 1 AND 1000 THEN
      RETURN format('not a retry schedule: %s attempts, write between 1 and 1000', total);
    END IF;
    SELECT p.problem INTO problem
      FROM json_array_elements(whole) WITH ORDINALITY AS e (value, place), penstock.delay_problem(
             CASE json_typeof(e.value) WHEN 'string' THEN e.value #>> '{}' ELSE e.value::text END) AS p (problem)
     WHERE p.problem IS NOT NULL ORDER BY e.place LIMIT 1;
    RETURN problem;
  ELSIF json_typeof(whole) <> 'object' THEN
    RETURN advice;
  ELSIF ARRAY(SELECT DISTINCT k FROM json_object_keys(whole) AS k ORDER BY k)
        <> ARRAY['attempts', 'factor', 'first', 'max'] THEN
    RETURN 'not a retry schedule: a curve has first, factor, max and attempts, and nothing else';
  ELSIF json_typeof(whole -> 'first') <> 'string' OR json_typeof(whole -> 'max') <> 'string' THEN
    RETURN advice;
  ELSIF json_typeof(whole -> 'factor') <> 'number' OR (whole ->> 'factor')::numeric NOT BETWEEN 1 AND 1000 THEN
    RETURN 'not a retry schedule: a factor is from 1 to 1000, 2 for example';
  ELSIF json_typeof(whole -> 'attempts') <> 'number' OR (whole ->> 'attempts') !~ '^[0-9]{1,9}$'
        OR (whole ->> 'attempts')::integer NOT BETWEEN 1 AND 1000 THEN
    RETURN format('not a retry schedule: %s attempts, write between 1 and 1000', whole ->> 'attempts');
  END IF;
  problem := coalesce(penstock.delay_problem(whole ->> 'first'), penstock.delay_problem(whole ->> 'max'));
  IF problem IS NOT NULL THEN
    RETURN problem;
  ELSIF penstock.duration_ms(whole ->> 'first') = 0 THEN
    RETURN 'not a retry schedule: a curve that begins at 0s never grows, write first = "1s"';
  ELSIF penstock.duration_ms(whole ->> 'max') < penstock.duration_ms(whole ->> 'first') THEN
    RETURN format('not a retry schedule: max is shorter than first, write at least %s', whole ->> 'first');
  END IF;
  RETURN NULL;
EXCEPTION WHEN data_exception THEN  -- \u0000 is JSON but no text
  RETURN advice;
END $$;

-- What is wrong with a setting, NULL when nothing is.
CREATE FUNCTION penstock.setting_problem(
  kind text, value text, required boolean, lowest integer, highest integer, words text[]
) RETURNS text
LANGUAGE plpgsql IMMUTABLE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  part text[];
BEGIN
  IF value IS NULL THEN
    RETURN CASE WHEN required THEN 'must have a value' END;
  END IF;
  CASE kind
    WHEN 'bool' THEN
      RETURN NULL;
    WHEN 'int' THEN
      RETURN CASE WHEN value::integer < lowest THEN format('must be at least %s', lowest)
                  WHEN value::integer > highest THEN format('must be at most %s', highest) END;
    WHEN 'text' THEN
      RETURN CASE WHEN value = '' THEN 'write a text that is not empty' END;
    WHEN 'word' THEN
      RETURN CASE WHEN value <> ALL (words) THEN format('%L is none of %s', value, array_to_string(words, ', ')) END;
    WHEN 'duration' THEN
      RETURN penstock.duration_problem(value);
    WHEN 'size' THEN
      RETURN CASE WHEN value !~ '^[0-9]{1,15}(B|KiB|MiB|GiB)$'
        THEN format('%L is not a size: write 512B, 256KiB, 8MiB or 1GiB', value) END;
    WHEN 'rate' THEN
      part := regexp_match(value, '^([0-9]{1,10})/([smh])$');
      RETURN CASE WHEN part IS NULL THEN format('%L is not a rate: write 200/s, 10/m or 5/h', value)
        WHEN part[1]::bigint NOT BETWEEN 1 AND 1000000000
        THEN format('%L is not a rate: the number is from 1 to 1000000000; to stop a lane pause it', value) END;
    WHEN 'misfire' THEN
      part := regexp_match(value, '^skip_after\((.+)\)$');
      RETURN CASE WHEN part IS NOT NULL THEN penstock.duration_problem(part[1])
        WHEN value <> 'send_now' THEN format('%L is neither send_now nor skip_after(10m)', value) END;
    WHEN 'retry' THEN
      RETURN penstock.retry_problem(value);
  END CASE;
END $$;

-- BEFORE a row is written (argument: lane or pool): check it; if a setting or the pause really changed, raise the
-- version. Whoever names himself in updated_by is believed; put_lane marks that by raising the version itself.
CREATE FUNCTION penstock.check_settings() RETURNS trigger
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  scope constant text := TG_ARGV[0];
  whole constant jsonb := to_jsonb(NEW);
  own constant text[] := ARRAY['keep', 'version', 'updated_at', 'updated_by'];
  actor constant text := coalesce(nullif(current_setting('penstock.actor', true), ''), session_user);
  setting text := 'name';
  problem text;
BEGIN
  IF TG_OP = 'UPDATE' AND (NEW.id, NEW.name) IS DISTINCT FROM (OLD.id, OLD.name) THEN
    problem := format('a %s cannot be renamed', scope);
  ELSIF NEW.name IS NULL OR NEW.name !~ '^[A-Za-z0-9][A-Za-z0-9_.-]{0,62}$' THEN
    problem := format(
      '%L is not a %s: use 1 to 63 of A-Z a-z 0-9 _ . - and begin with a letter or digit', NEW.name, scope);
  ELSE
    SELECT r.name, p.problem INTO setting, problem
      FROM penstock.setting_rules(scope) AS r,
           penstock.setting_problem(r.kind, whole ->> r.name, r.required, r.lowest, r.highest, r.words) AS p (problem)
     WHERE p.problem IS NOT NULL LIMIT 1;
  END IF;
  IF problem IS NOT NULL THEN
    RAISE EXCEPTION USING
      ERRCODE = 'check_violation', SCHEMA = TG_TABLE_SCHEMA, TABLE = TG_TABLE_NAME, COLUMN = setting,
      MESSAGE = format('penstock: %s.%s: %s', TG_TABLE_NAME, setting, problem);
  END IF;

  IF TG_OP = 'INSERT' THEN
    NEW.updated_by := coalesce(NEW.updated_by, actor);
  ELSIF whole - own IS DISTINCT FROM to_jsonb(OLD) - own THEN
    IF NEW.updated_by IS NULL OR (NEW.version, NEW.updated_by) IS NOT DISTINCT FROM (OLD.version, OLD.updated_by) THEN
      NEW.updated_by := actor;
    END IF;
    NEW.version := OLD.version + 1;
    NEW.updated_at := now();
  ELSE
    NEW.version := OLD.version;
    NEW.updated_at := OLD.updated_at;
    NEW.updated_by := OLD.updated_by;
  END IF;
  RETURN NEW;
END $$;

-- AFTER a row was written: note what changed. It has its owner's rights: who may change a lane need not be able
-- to write the audit table, nor to forge it.
CREATE FUNCTION penstock.audit_settings() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET timezone = 'UTC' AS $$
DECLARE
  scope constant text := TG_ARGV[0];
  own constant text[] := ARRAY['id', 'name', 'keep', 'version', 'updated_at', 'updated_by'];
  old_settings constant jsonb := CASE WHEN TG_OP <> 'INSERT' THEN to_jsonb(OLD) - own END;
  new_settings constant jsonb := CASE WHEN TG_OP <> 'DELETE' THEN to_jsonb(NEW) - own END;
  row_name constant text := CASE WHEN TG_OP = 'DELETE' THEN OLD.name ELSE NEW.name END;
  row_id constant integer := CASE WHEN TG_OP = 'DELETE' THEN OLD.id ELSE NEW.id END;
  before jsonb;
  after jsonb;
BEGIN
  SELECT jsonb_object_agg(s.key, old_settings -> s.key), jsonb_object_agg(s.key, new_settings -> s.key)
    INTO before, after
    FROM jsonb_each(coalesce(new_settings, old_settings)) AS s (key, value)
   WHERE old_settings -> s.key IS DISTINCT FROM new_settings -> s.key;
  -- A lane that is gone, or a pool, is known by its name alone.
  IF TG_OP <> 'UPDATE' THEN
    before := jsonb_strip_nulls(before);
    after := jsonb_strip_nulls(after);
  END IF;
  IF TG_OP <> 'UPDATE' OR scope <> 'lane' THEN
    before := before || jsonb_build_object('name', row_name);
    after := after || jsonb_build_object('name', row_name);
  END IF;
  INSERT INTO penstock.audit (lane, actor, action, before, after, reason) VALUES (
    CASE WHEN scope = 'lane' THEN row_id END,
    CASE WHEN TG_OP = 'DELETE' THEN coalesce(nullif(current_setting('penstock.actor', true), ''), session_user)
         ELSE NEW.updated_by END,
    scope || CASE TG_OP WHEN 'INSERT' THEN '.create' WHEN 'UPDATE' THEN '.update' ELSE '.delete' END,
    CASE WHEN TG_OP <> 'INSERT' THEN before::text END,
    CASE WHEN TG_OP <> 'DELETE' THEN after::text END,
    CASE WHEN TG_OP = 'UPDATE' AND after ? 'paused' THEN NEW.pause_reason END
  );
  RETURN NULL;
END $$;
REVOKE ALL ON FUNCTION penstock.audit_settings() FROM PUBLIC;

CREATE TRIGGER lanes_check BEFORE INSERT OR UPDATE ON penstock.lanes
  FOR EACH ROW EXECUTE FUNCTION penstock.check_settings('lane');
CREATE TRIGGER lanes_audit_update AFTER UPDATE ON penstock.lanes
  FOR EACH ROW WHEN (OLD.version IS DISTINCT FROM NEW.version) EXECUTE FUNCTION penstock.audit_settings('lane');
CREATE TRIGGER lanes_audit AFTER INSERT OR DELETE ON penstock.lanes
  FOR EACH ROW EXECUTE FUNCTION penstock.audit_settings('lane');
CREATE TRIGGER pools_check BEFORE INSERT OR UPDATE ON penstock.pools
  FOR EACH ROW EXECUTE FUNCTION penstock.check_settings('pool');
CREATE TRIGGER pools_audit_update AFTER UPDATE ON penstock.pools
  FOR EACH ROW WHEN (OLD.version IS DISTINCT FROM NEW.version) EXECUTE FUNCTION penstock.audit_settings('pool');
CREATE TRIGGER pools_audit AFTER INSERT OR DELETE ON penstock.pools
  FOR EACH ROW EXECUTE FUNCTION penstock.audit_settings('pool');
