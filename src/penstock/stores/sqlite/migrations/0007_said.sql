-- phase: expand
-- breaking: no
--
-- What callers said: dropped on success where a lane does not keep it, and looked at once more where SQL wrote it.

-- SQL cannot see all that makes JSON mean different things to different readers (keys twice, NUL, lone surrogates):
-- what came through the view is looked at before it is sent.
ALTER TABLE penstock_contexts ADD COLUMN unchecked INTEGER NOT NULL DEFAULT 0;

-- As before, but for `unchecked`, and for keys of jobs whose payload was dropped.
DROP TRIGGER penstock_enqueue_write;
CREATE TRIGGER penstock_enqueue_write INSTEAD OF INSERT ON penstock_enqueue_read
BEGIN
  SELECT RAISE(ABORT, 'penstock: payload: it is longer than the lane''s max_payload')
   WHERE length(CAST(NEW.payload AS BLOB)) > NEW.max_payload;
  SELECT RAISE(ABORT, 'penstock: payload: it is not JSON: write text as "text", nothing as null, or leave it out')
   WHERE NEW.payload IS NOT NULL AND NOT json_valid(NEW.payload);
  SELECT RAISE(ABORT, 'penstock: sequence: write a whole number from 0 to 2147483647; 99 is the default')
   WHERE NEW.sequence NOT BETWEEN 0 AND 2147483647;
  SELECT RAISE(ABORT, 'penstock: mode: must be one of immediate, next_on_error, block_on_error')
   WHERE NEW.mode < 0;
  SELECT CASE name
    WHEN 'run_at' THEN RAISE(ABORT, 'penstock: run_at: write a time of 1970 to 9998 with its offset, like 2026-11-15T10:00:00Z, or microseconds since 1970')
    WHEN 'start_by' THEN RAISE(ABORT, 'penstock: start_by: write a time of 1970 to 9998 with its offset, like 2026-11-15T10:00:00Z, or microseconds since 1970')
    WHEN 'finish_by' THEN RAISE(ABORT, 'penstock: finish_by: write a time of 1970 to 9998 with its offset, like 2026-11-15T10:00:00Z, or microseconds since 1970')
    END
    FROM (SELECT '' AS name, 0 AS value WHERE 0 UNION ALL VALUES
      ('run_at', NEW.run_at), ('start_by', NEW.start_by), ('finish_by', NEW.finish_by))
   WHERE value NOT BETWEEN 0 AND 253370764799999999;
  SELECT RAISE(ABORT, 'penstock: start_by: it is before run_at, the job could never start: write a later time')
   WHERE NEW.start_by < NEW.run_at;
  SELECT RAISE(ABORT, 'penstock: finish_by: it is before run_at, the job could never finish in time: write a later time')
   WHERE NEW.finish_by < NEW.run_at;
  SELECT CASE name
    WHEN 'message_group' THEN RAISE(ABORT, 'penstock: message_group: write 1 to 255 bytes (a hash of a longer one), or leave it out')
    WHEN 'key' THEN RAISE(ABORT, 'penstock: key: write 1 to 255 bytes (a hash of a longer one), or leave it out')
    WHEN 'tenant' THEN RAISE(ABORT, 'penstock: tenant: write 1 to 255 bytes (a hash of a longer one), or leave it out')
    WHEN 'target' THEN RAISE(ABORT, 'penstock: target: write 1 to 2048 bytes, or leave it out')
    WHEN 'entity' THEN RAISE(ABORT, 'penstock: entity: write 1 to 2048 bytes, or leave it out')
    WHEN 'version' THEN RAISE(ABORT, 'penstock: version: write 1 to 2048 bytes, or leave it out')
    WHEN 'correlation' THEN RAISE(ABORT, 'penstock: correlation: write 1 to 2048 bytes, or leave it out')
    WHEN 'headers' THEN RAISE(ABORT, 'penstock: headers: longer than 16384 bytes together, write fewer')
    END
    FROM (SELECT '' AS name, '' AS value, 0 AS longest WHERE 0 UNION ALL VALUES
      ('message_group', NEW.message_group, 255), ('key', NEW.key, 255), ('tenant', NEW.tenant, 255),
      ('target', NEW.target, 2048), ('entity', NEW.entity, 2048), ('version', NEW.version, 2048),
      ('correlation', NEW.correlation, 2048), ('headers', NEW.headers, 16384))
   WHERE value IS NOT NULL AND length(CAST(value AS BLOB)) NOT BETWEEN iif(name = 'headers', 0, 1) AND longest;
  SELECT RAISE(ABORT, 'penstock: headers: write a JSON object of texts, like {"X-Trace": "abc"}')
   WHERE CASE WHEN json_valid(NEW.headers) THEN json_type(NEW.headers) <> 'object' ELSE NEW.headers IS NOT NULL END;
  SELECT RAISE(ABORT, 'penstock: headers: a name is printable ASCII without space or colon, a value is a text without line breaks and NUL')
    FROM json_each(NEW.headers)
   WHERE key = '' OR key GLOB '*[^!-9;-~]*' OR type <> 'text' OR instr(atom, char(10)) OR instr(atom, char(13))
      OR instr(NEW.headers, '\u0000');
  SELECT RAISE(ABORT, 'penstock: unknown pool; see SELECT name FROM penstock_pools')
   WHERE NEW.pool IS NOT NULL AND NOT EXISTS (SELECT 1 FROM penstock_pools WHERE name = NEW.pool);
  SELECT RAISE(ABORT, 'penstock: max_attempts: write a whole number from 1 to 1000')
   WHERE NEW.max_attempts NOT BETWEEN 1 AND 1000;
  SELECT RAISE(ABORT, 'penstock: id: not a ULID: write 26 letters and digits in capitals, like 01ARZ3NDEKTSV4RRFFQ69G5FAV, or leave it out')
   WHERE NEW.id NOT GLOB '[0-7]*' OR NEW.id GLOB '*[^0-9A-HJKMNP-TV-Z]*' OR length(NEW.id) <> 26;
  SELECT RAISE(ABORT, 'penstock: event: write a JSON object with id, type, at and subscription, and nothing else')
   WHERE CASE WHEN json_valid(NEW.event) THEN json_type(NEW.event) <> 'object' ELSE NEW.event IS NOT NULL END;
  SELECT RAISE(ABORT, 'penstock: event: write a JSON object with id, type, at and subscription, and nothing else')
    FROM json_each(NEW.event) WHERE key NOT IN ('id', 'type', 'at', 'subscription');

  -- A key belongs to its job while that is live or dead, or was finished less than key_ttl ago. This clock ticks in
  -- milliseconds, the one that wrote finished_at is finer.
  -- A payload that was dropped (it is gone, but its hash is not that of none) is taken for the same.
  SELECT CASE WHEN c.payload IS NEW.payload OR (c.payload IS NULL AND k.hash NOT IN
      (x'', x'6E340B9CFFB37A989CA544E6BB780A2C78901D3FB33738768511A30617AFA01D')) THEN RAISE(IGNORE)
    ELSE RAISE(ABORT, 'penstock: key: it already belongs to a job with a different payload; see SELECT id FROM penstock_keys') END
    FROM penstock_keys AS k CROSS JOIN penstock_contexts AS c ON c.id = k.id
    LEFT JOIN penstock_history AS h ON h.arrival = c.arrival
   WHERE k.lane = NEW.lane AND k.key = NEW.key AND (h.arrival IS NULL OR NEW.now + 1000 - h.finished_at < NEW.key_ttl);
  SELECT RAISE(ABORT, 'penstock: id: there is a job of this id already')
   WHERE EXISTS (SELECT 1 FROM penstock_contexts WHERE id = NEW.id);
  INSERT INTO penstock_contexts (keep, lane, mode, sequence, max_attempts, run_at, created_at, start_by, finish_by, id,
    message_group, tenant, key, target, headers, pool, entity, version, event, correlation, payload,
    unchecked)
  VALUES (NEW.keep, NEW.lane, NEW.mode, NEW.sequence, NEW.max_attempts, coalesce(NEW.run_at, NEW.now), NEW.now,
    NEW.start_by, NEW.finish_by, coalesce(NEW.id, (SELECT id FROM penstock_new_id)), NEW.message_group, NEW.tenant,
    NEW.key, NEW.target, NEW.headers, NEW.pool, NEW.entity, NEW.version, NEW.event, NEW.correlation, NEW.payload,
    1);
  -- There is no SHA-256 in SQLite: an empty hash says, compare with the payload itself.
  INSERT INTO penstock_keys (lane, key, id, hash, created_at)
  SELECT NEW.lane, NEW.key, id, x'', NEW.now FROM penstock_contexts
   WHERE NEW.key IS NOT NULL AND arrival = last_insert_rowid()
  ON CONFLICT (lane, key) DO UPDATE SET id = excluded.id, hash = excluded.hash, created_at = excluded.created_at;
END;
