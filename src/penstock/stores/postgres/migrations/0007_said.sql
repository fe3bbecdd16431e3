-- phase: expand
-- breaking: no
--
-- What callers said: dropped on success where a lane does not keep it, and looked at once more where SQL wrote it.

-- SQL cannot see all that makes JSON mean different things to different readers (keys twice, NUL, lone surrogates):
-- what came through the view is looked at before it is sent.
ALTER TABLE penstock.contexts ADD COLUMN unchecked boolean NOT NULL DEFAULT false;

-- One probe of the key per job, then one UPDATE per partition by where the rows are: an UPDATE of the whole table may be
-- planned to read a partition that was never analysed, and of one row at a time it costs ten times as much. Nobody else
-- writes these rows: whoever ended the job is here.
CREATE FUNCTION penstock.forget(class smallint, gone bigint[]) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE part record;
BEGIN
  FOR part IN
    SELECT c.home, array_agg(c.place) AS places
      FROM unnest(gone) AS g(arrival) CROSS JOIN LATERAL (
        SELECT x.tableoid::regclass AS home, x.ctid AS place FROM penstock.contexts AS x
         WHERE x.keep = class AND x.arrival = g.arrival OFFSET 0) AS c
     GROUP BY c.home
  LOOP
    EXECUTE format('UPDATE %s SET payload = NULL, headers = NULL WHERE ctid = ANY ($1)', part.home)
      USING part.places;
  END LOOP;
END $$;

-- As before, but for `unchecked`.
CREATE OR REPLACE FUNCTION penstock.enqueue_row() RETURNS trigger
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
      message_group, tenant, key, target, headers, pool, entity, version, event, correlation, payload, unchecked)
    VALUES (home.keep, home.id, CASE NEW.mode WHEN 'immediate' THEN 0 WHEN 'next_on_error' THEN 1 ELSE 2 END,
      NEW.sequence, NEW.max_attempts, NEW.run_at, NEW.start_by, NEW.finish_by, NEW.id,
      NEW.message_group, NEW.tenant, NEW.key, NEW.target, NEW.headers, NEW.pool, NEW.entity, NEW.version, NEW.event,
      NEW.correlation, NEW.payload, true)
    ON CONFLICT DO NOTHING;
    IF FOUND THEN
      RETURN NEW;
    END IF;
  END IF;
  PERFORM penstock.refuse_job('id', format('id: there is a job %s already', new_id), 'unique_violation');
END $$;
