-- phase: expand
-- breaking: no
--
-- Enqueue from any language: INSERT INTO penstock.enqueue (lane, payload) VALUES ('pay', '{"amount": 5}').
-- Contract version 1, described in docs/reference/sql.md: columns are added, never renamed or removed.
--
-- The view is a door, it shows nothing: whoever may insert learns nothing of other people's jobs, and SELECT can
-- be granted for RETURNING. The trigger has its owner's rights and the caller's transaction. It appends, as every
-- enqueue does; only callers with the same key of the same lane wait for each other.
--
-- No literal in these functions holds a backslash: they are parsed under the caller's settings.

CREATE VIEW penstock.enqueue AS SELECT
  NULL::text AS lane, NULL::text AS payload, NULL::text AS message_group, NULL::bigint AS sequence,
  NULL::text AS mode, NULL::timestamptz AS run_at, NULL::timestamptz AS start_by, NULL::timestamptz AS finish_by,
  NULL::text AS key, NULL::text AS tenant, NULL::text AS target, NULL::text AS headers, NULL::text AS pool,
  NULL::bigint AS max_attempts, NULL::text AS id, NULL::text AS entity, NULL::text AS version, NULL::text AS event,
  NULL::text AS correlation
 WHERE false;
COMMENT ON VIEW penstock.enqueue IS 'Insert a row to enqueue a job. Contract version 1.';

-- A ULID of now: 48 bits of milliseconds, 80 random ones. Base 64 has two letters for each of base 32.
CREATE FUNCTION penstock.new_id() RETURNS text
LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  letters constant text := '0123456789ABCDEFGHJKMNPQRSTVWXYZ';
  ms constant bigint := floor(extract(epoch FROM clock_timestamp()) * 1000);
  -- 16 bytes, of which the 7th and the 9th are not all random
  dice constant bytea := uuid_send(gen_random_uuid());
BEGIN
  RETURN substr(letters, (ms >> 45 & 31)::integer + 1, 1) || substr(letters, (ms >> 40 & 31)::integer + 1, 1)
    || substr(letters, (ms >> 35 & 31)::integer + 1, 1) || substr(letters, (ms >> 30 & 31)::integer + 1, 1)
    || substr(letters, (ms >> 25 & 31)::integer + 1, 1) || substr(letters, (ms >> 20 & 31)::integer + 1, 1)
    || substr(letters, (ms >> 15 & 31)::integer + 1, 1) || substr(letters, (ms >> 10 & 31)::integer + 1, 1)
    || substr(letters, (ms >> 5 & 31)::integer + 1, 1) || substr(letters, (ms & 31)::integer + 1, 1)
    || translate(encode(substr(dice, 1, 6) || substr(dice, 10, 6), 'base64'),
                 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/', letters || letters);
END $$;

-- object, array, string, number, boolean or null; NULL when the text is not JSON.
CREATE FUNCTION penstock.json_kind(value text) RETURNS text
LANGUAGE plpgsql IMMUTABLE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  RETURN json_typeof(value::json);
EXCEPTION WHEN data_exception OR statement_too_complex THEN
  RETURN NULL;
END $$;

CREATE FUNCTION penstock.size_bytes(value text) RETURNS numeric
LANGUAGE plpgsql IMMUTABLE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  RETURN rtrim(value, 'BGKMi')::numeric
    * CASE ltrim(value, '0123456789') WHEN 'B' THEN 1 WHEN 'KiB' THEN 1024 WHEN 'MiB' THEN 1048576 ELSE 1073741824 END;
END $$;

-- An object of texts that no reader takes for more headers than there are.
CREATE FUNCTION penstock.headers_problem(headers text) RETURNS text
LANGUAGE plpgsql IMMUTABLE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  IF octet_length(headers) > 16384 THEN
    RETURN 'longer than 16384 bytes together, write fewer';
  ELSIF penstock.json_kind(headers) IS DISTINCT FROM 'object' THEN
    RETURN 'write a JSON object of texts, like {"X-Trace": "abc"}';
  END IF;
  RETURN (SELECT CASE
      WHEN h.key !~ '^[!-9;-~]+$' THEN format('%L is no header name: use printable ASCII without space or colon', h.key)
      WHEN json_typeof(h.value) <> 'string' THEN format('%s is not a text: write {"X-Trace": "abc"}', h.key)
      ELSE format('%s holds a line break, remove it', h.key) END
    FROM json_each(headers::json) AS h
   WHERE h.key !~ '^[!-9;-~]+$' OR json_typeof(h.value) <> 'string'
      OR translate(h.value #>> '{}', chr(10) || chr(13), '') <> h.value #>> '{}'
   LIMIT 1);
EXCEPTION WHEN data_exception THEN
  RETURN 'holds a NUL character, remove it';
END $$;

CREATE FUNCTION penstock.event_problem(event text) RETURNS text
LANGUAGE plpgsql IMMUTABLE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  IF penstock.json_kind(event) = 'object'
     AND NOT EXISTS (SELECT FROM json_object_keys(event::json) AS k WHERE k NOT IN ('id', 'type', 'at', 'subscription')) THEN
    RETURN NULL;
  END IF;
  RETURN 'write a JSON object with id, type, at and subscription, and nothing else';
EXCEPTION WHEN data_exception THEN
  RETURN 'holds a NUL character, remove it';
END $$;

-- What is wrong with a row, as `column: what to write instead`; NULL when nothing is.
CREATE FUNCTION penstock.enqueue_problem(job penstock.enqueue, max_payload text) RETURNS text
LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  first constant timestamptz := '1970-01-01 00:00:00+00';
  last constant timestamptz := '9999-01-01 00:00:00+00';
  labels constant text := '%s: it has %s bytes, write 1 to 255 (a hash of a longer one), or leave it out';
  texts constant text := '%s: it has %s bytes, write 1 to 2048, or leave it out';
  times constant text := '%s: write a time from 1970 to 9998';
BEGIN
  RETURN CASE
    WHEN octet_length(job.payload) > penstock.size_bytes(max_payload) THEN
      format('payload: it has %s bytes, more than the lane''s max_payload of %s', octet_length(job.payload), max_payload)
    WHEN job.payload IS NOT NULL AND penstock.json_kind(job.payload) IS NULL THEN
      'payload: it is not JSON: write text as "text", nothing as null, or leave it out'
    WHEN octet_length(job.message_group) NOT BETWEEN 1 AND 255 THEN
      format(labels, 'message_group', octet_length(job.message_group))
    WHEN job.sequence NOT BETWEEN 0 AND 2147483647 THEN
      'sequence: write a whole number from 0 to 2147483647; 99 is the default'
    WHEN job.mode NOT IN ('immediate', 'next_on_error', 'block_on_error') THEN
      format('mode: %L is none of immediate, next_on_error, block_on_error', job.mode)
    WHEN job.run_at < first OR job.run_at >= last THEN format(times, 'run_at')
    WHEN job.start_by < first OR job.start_by >= last THEN format(times, 'start_by')
    WHEN job.finish_by < first OR job.finish_by >= last THEN format(times, 'finish_by')
    WHEN job.start_by < job.run_at THEN 'start_by: it is before run_at, the job could never start: write a later time'
    WHEN job.finish_by < job.run_at THEN
      'finish_by: it is before run_at, the job could never finish in time: write a later time'
    WHEN octet_length(job.key) NOT BETWEEN 1 AND 255 THEN format(labels, 'key', octet_length(job.key))
    WHEN octet_length(job.tenant) NOT BETWEEN 1 AND 255 THEN format(labels, 'tenant', octet_length(job.tenant))
    WHEN octet_length(job.target) NOT BETWEEN 1 AND 2048 THEN format(texts, 'target', octet_length(job.target))
    WHEN job.headers IS NOT NULL AND penstock.headers_problem(job.headers) IS NOT NULL THEN
      'headers: ' || penstock.headers_problem(job.headers)
    WHEN job.max_attempts NOT BETWEEN 1 AND 1000 THEN 'max_attempts: write a whole number from 1 to 1000'
    WHEN job.id !~ '^[0-7][0-9A-HJKMNP-TV-Z]{25}$' THEN
      format('id: %L is not a ULID: write 26 letters and digits in capitals, like 01ARZ3NDEKTSV4RRFFQ69G5FAV, or leave it out', job.id)
    WHEN octet_length(job.entity) NOT BETWEEN 1 AND 2048 THEN format(texts, 'entity', octet_length(job.entity))
    WHEN octet_length(job.version) NOT BETWEEN 1 AND 2048 THEN format(texts, 'version', octet_length(job.version))
    WHEN job.event IS NOT NULL AND penstock.event_problem(job.event) IS NOT NULL THEN
      'event: ' || penstock.event_problem(job.event)
    WHEN octet_length(job.correlation) NOT BETWEEN 1 AND 2048 THEN
      format(texts, 'correlation', octet_length(job.correlation))
  END;
END $$;

-- Whether a key still belongs to this job: it is live or dead, or finished less than ttl ago.
CREATE FUNCTION penstock.owns_key(job text, ttl text) RETURNS boolean
LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  context record;
  finished timestamptz;
BEGIN
  SELECT c.keep, c.arrival INTO context FROM penstock.contexts AS c WHERE c.id = job;
  IF NOT FOUND THEN  -- dropped by retention
    RETURN false;
  END IF;
  SELECT h.finished_at INTO finished FROM penstock.history AS h
   WHERE h.keep = context.keep AND h.arrival = context.arrival;
  RETURN NOT FOUND OR extract(epoch FROM now() - finished) * 1000 < penstock.duration_ms(ttl);
END $$;

CREATE FUNCTION penstock.refuse_job(field text, problem text, code text) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  RAISE EXCEPTION USING ERRCODE = code, SCHEMA = 'penstock', TABLE = 'enqueue', COLUMN = field,
    MESSAGE = 'penstock: ' || problem;
END $$;

CREATE FUNCTION penstock.enqueue_row() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  home record;
  owner record;
  fingerprint bytea;
  problem text;
  new_id text;
BEGIN
  SELECT l.id, l.keep, l.mode, l.max_payload, l.key_ttl INTO home FROM penstock.lanes AS l WHERE l.name = NEW.lane;
  IF NEW.lane IS NULL THEN
    PERFORM penstock.refuse_job('lane', 'lane: write the name of a lane', 'not_null_violation');
  ELSIF NOT FOUND THEN
    PERFORM penstock.refuse_job('lane', format('unknown lane "%s"', left(NEW.lane, 80)), 'foreign_key_violation');
  END IF;
  problem := penstock.enqueue_problem(NEW, home.max_payload);
  IF problem IS NOT NULL THEN
    PERFORM penstock.refuse_job(split_part(problem, ':', 1), problem, 'check_violation');
  ELSIF NEW.pool IS NOT NULL AND NOT EXISTS (SELECT FROM penstock.pools AS p WHERE p.name = NEW.pool) THEN
    PERFORM penstock.refuse_job('pool', format('unknown pool "%s"', left(NEW.pool, 80)), 'foreign_key_violation');
  END IF;

  new_id := coalesce(NEW.id, penstock.new_id());
  IF NEW.key IS NOT NULL THEN
    fingerprint := sha256(CASE WHEN NEW.payload IS NULL THEN decode('00', 'hex')
      ELSE decode('01', 'hex') || convert_to(NEW.payload, 'UTF8') END);
    LOOP
      SELECT k.id, k.hash INTO owner FROM penstock.keys AS k WHERE k.lane = home.id AND k.key = NEW.key;
      IF NOT FOUND THEN  -- waits for a caller with the same key, who is then found
        INSERT INTO penstock.keys (lane, key, id, hash) VALUES (home.id, NEW.key, new_id, fingerprint)
        ON CONFLICT (lane, key) DO NOTHING;
      ELSIF NOT penstock.owns_key(owner.id, home.key_ttl) THEN
        UPDATE penstock.keys AS k SET id = new_id, hash = fingerprint, created_at = now()
         WHERE k.lane = home.id AND k.key = NEW.key AND k.id = owner.id;
      ELSIF owner.hash = fingerprint THEN
        NEW.id := owner.id;
        RETURN NEW;
      ELSE
        PERFORM penstock.refuse_job('key', format('key "%s" already belongs to job %s, which has a different payload',
          NEW.key, owner.id), 'unique_violation');
      END IF;
      EXIT WHEN FOUND;
    END LOOP;
  END IF;

  IF NEW.id IS NULL OR NOT EXISTS (SELECT FROM penstock.contexts AS c WHERE c.id = new_id) THEN
    NEW.id := new_id;
    NEW.mode := coalesce(NEW.mode, home.mode);
    NEW.sequence := coalesce(NEW.sequence, 99);
    NEW.run_at := coalesce(NEW.run_at, now());
    INSERT INTO penstock.contexts (keep, lane, mode, sequence, max_attempts, run_at, start_by, finish_by, id,
      message_group, tenant, key, target, headers, pool, entity, version, event, correlation, payload)
    VALUES (home.keep, home.id, CASE NEW.mode WHEN 'immediate' THEN 0 WHEN 'next_on_error' THEN 1 ELSE 2 END,
      NEW.sequence, NEW.max_attempts, NEW.run_at, NEW.start_by, NEW.finish_by, NEW.id,
      NEW.message_group, NEW.tenant, NEW.key, NEW.target, NEW.headers, NEW.pool, NEW.entity, NEW.version, NEW.event,
      NEW.correlation, NEW.payload)
    ON CONFLICT DO NOTHING;
    IF FOUND THEN
      RETURN NEW;
    END IF;
  END IF;
  PERFORM penstock.refuse_job('id', format('id: there is a job %s already', new_id), 'unique_violation');
END $$;
REVOKE ALL ON FUNCTION penstock.enqueue_row() FROM PUBLIC;

CREATE TRIGGER enqueue_insert INSTEAD OF INSERT ON penstock.enqueue
  FOR EACH ROW EXECUTE FUNCTION penstock.enqueue_row();
