-- phase: expand
-- breaking: no
--
-- Enqueue from any language: INSERT INTO penstock_enqueue (lane, payload) VALUES ('pay', '{"amount": 5}').
-- Contract version 1, described in docs/reference/sql.md: columns are added, never renamed or removed.
--
-- The view is a door, it shows nothing. What was given is first read (times, numbers, the lane's settings), then
-- checked and written. RAISE takes a literal only (until SQLite 3.47): errors name the field, not the value.

CREATE VIEW penstock_enqueue AS SELECT
  CAST(NULL AS TEXT) AS lane, CAST(NULL AS TEXT) AS payload, CAST(NULL AS TEXT) AS message_group,
  CAST(NULL AS INTEGER) AS sequence, CAST(NULL AS TEXT) AS mode, CAST(NULL AS TEXT) AS run_at,
  CAST(NULL AS TEXT) AS start_by, CAST(NULL AS TEXT) AS finish_by, CAST(NULL AS TEXT) AS key,
  CAST(NULL AS TEXT) AS tenant, CAST(NULL AS TEXT) AS target, CAST(NULL AS TEXT) AS headers,
  CAST(NULL AS TEXT) AS pool, CAST(NULL AS INTEGER) AS max_attempts, CAST(NULL AS TEXT) AS id,
  CAST(NULL AS TEXT) AS entity, CAST(NULL AS TEXT) AS version, CAST(NULL AS TEXT) AS event,
  CAST(NULL AS TEXT) AS correlation
 WHERE 0;

-- A ULID of now: 48 bits of milliseconds, 80 random ones.
CREATE VIEW penstock_new_id AS
  WITH RECURSIVE
    now (ms) AS (SELECT CAST((julianday('now') - 2440587.5) * 86400000 + 0.5 AS INTEGER)),
    letter (shift) AS (SELECT 45 UNION ALL SELECT shift - 5 FROM letter WHERE shift > -80)
  SELECT group_concat(substr('0123456789ABCDEFGHJKMNPQRSTVWXYZ',
      (CASE WHEN shift >= 0 THEN ms >> shift ELSE random() END & 31) + 1, 1), '') AS id
    FROM now, letter;

-- What was given, as it is stored; a number or time that cannot be read is -1.
CREATE VIEW penstock_enqueue_read AS SELECT
  NULL AS lane, NULL AS keep, NULL AS mode, NULL AS key_ttl, NULL AS max_payload, NULL AS now, NULL AS sequence,
  NULL AS max_attempts, NULL AS run_at, NULL AS start_by, NULL AS finish_by, NULL AS id, NULL AS message_group,
  NULL AS tenant, NULL AS key, NULL AS target, NULL AS headers, NULL AS pool, NULL AS entity, NULL AS version,
  NULL AS event, NULL AS correlation, NULL AS payload
 WHERE 0;

CREATE TRIGGER penstock_enqueue_insert INSTEAD OF INSERT ON penstock_enqueue
BEGIN
  SELECT RAISE(ABORT, 'penstock: lane: write the name of a lane') WHERE NEW.lane IS NULL;
  SELECT RAISE(ABORT, 'penstock: unknown lane; see SELECT name FROM penstock_lanes')
   WHERE NOT EXISTS (SELECT 1 FROM penstock_lanes WHERE name = NEW.lane);
  -- Text that is not UTF-8 breaks its readers. SQLite reads broken bytes as U+FFFD or as U+0080 to U+00BF: seen as
  -- letters, but not there as bytes. (What is broken beside whole ones of these is not noticed.)
  SELECT CASE name
    WHEN 'payload' THEN RAISE(ABORT, 'penstock: payload: write it as text, in UTF-8 and without NUL characters')
    WHEN 'message_group' THEN RAISE(ABORT, 'penstock: message_group: write it as text, in UTF-8 and without NUL characters')
    WHEN 'mode' THEN RAISE(ABORT, 'penstock: mode: write it as text, in UTF-8 and without NUL characters')
    WHEN 'key' THEN RAISE(ABORT, 'penstock: key: write it as text, in UTF-8 and without NUL characters')
    WHEN 'tenant' THEN RAISE(ABORT, 'penstock: tenant: write it as text, in UTF-8 and without NUL characters')
    WHEN 'target' THEN RAISE(ABORT, 'penstock: target: write it as text, in UTF-8 and without NUL characters')
    WHEN 'headers' THEN RAISE(ABORT, 'penstock: headers: write it as text, in UTF-8 and without NUL characters')
    WHEN 'pool' THEN RAISE(ABORT, 'penstock: pool: write it as text, in UTF-8 and without NUL characters')
    WHEN 'id' THEN RAISE(ABORT, 'penstock: id: write it as text, in UTF-8 and without NUL characters')
    WHEN 'entity' THEN RAISE(ABORT, 'penstock: entity: write it as text, in UTF-8 and without NUL characters')
    WHEN 'version' THEN RAISE(ABORT, 'penstock: version: write it as text, in UTF-8 and without NUL characters')
    WHEN 'event' THEN RAISE(ABORT, 'penstock: event: write it as text, in UTF-8 and without NUL characters')
    WHEN 'correlation' THEN RAISE(ABORT, 'penstock: correlation: write it as text, in UTF-8 and without NUL characters')
    END
    FROM (SELECT '' AS name, '' AS value WHERE 0 UNION ALL VALUES
      ('payload', NEW.payload), ('message_group', NEW.message_group), ('mode', NEW.mode), ('key', NEW.key),
      ('tenant', NEW.tenant), ('target', NEW.target), ('headers', NEW.headers), ('pool', NEW.pool), ('id', NEW.id),
      ('entity', NEW.entity), ('version', NEW.version), ('event', NEW.event), ('correlation', NEW.correlation))
   WHERE value IS NOT NULL AND (typeof(value) NOT IN ('text', 'integer') OR instr(value, char(0))
      OR value GLOB '*' || char(65533) || '*'
        AND NOT (instr(value, char(65533)) OR instr(value, char(65534)) OR instr(value, char(65535)))
      OR value GLOB '*[' || char(128) || '-' || char(191) || ']*' AND NOT instr(CAST(value AS BLOB), x'C2'));
  INSERT INTO penstock_enqueue_read
  SELECT l.id, l.keep,
    CASE coalesce(NEW.mode, l.mode) WHEN 'immediate' THEN 0 WHEN 'next_on_error' THEN 1 WHEN 'block_on_error' THEN 2 ELSE -1 END,
    CAST(l.key_ttl AS INTEGER) * CASE ltrim(l.key_ttl, '0123456789')
      WHEN 'ms' THEN 1000 WHEN 's' THEN 1000000 WHEN 'm' THEN 60000000 WHEN 'h' THEN 3600000000 ELSE 86400000000 END,
    CAST(l.max_payload AS INTEGER) * CASE ltrim(l.max_payload, '0123456789')
      WHEN 'B' THEN 1 WHEN 'KiB' THEN 1024 WHEN 'MiB' THEN 1048576 ELSE 1073741824 END,
    CAST((julianday('now') - 2440587.5) * 86400000000 AS INTEGER),
    coalesce(given.sequence, 99), given.max_attempts, given.run_at, given.start_by, given.finish_by,
    NEW.id, NEW.message_group, NEW.tenant, NEW.key, NEW.target, NEW.headers, NEW.pool, NEW.entity, NEW.version,
    NEW.event, NEW.correlation, CAST(NEW.payload AS TEXT)
    FROM penstock_lanes AS l, (
      SELECT max(CASE name WHEN 'sequence' THEN number END) AS sequence,
             max(CASE name WHEN 'max_attempts' THEN number END) AS max_attempts,
             max(CASE name WHEN 'run_at' THEN time END) AS run_at,
             max(CASE name WHEN 'start_by' THEN time END) AS start_by,
             max(CASE name WHEN 'finish_by' THEN time END) AS finish_by
        -- what is below 1973 was meant to be seconds or milliseconds
        FROM (SELECT name, number, CASE WHEN number >= 100000000000000 THEN number
            -- with a modifier, 30 February becomes 2 March
            WHEN strftime('%Y-%m-%dT%H:%M:%S', moment, '+0 days') = moment
              AND (fraction = '' OR fraction GLOB '.[0-9]*' AND substr(fraction, 2) NOT GLOB '*[^0-9]*')
              AND (zone IN ('Z', 'z') OR zone GLOB '[+-][0-2][0-9]:[0-5][0-9]' AND substr(zone, 2, 2) < '24')
            THEN (CAST(strftime('%s', moment) AS INTEGER) - CAST(substr(zone, 1, 1) || '1' AS INTEGER)
                * (CAST(substr(zone, 2, 2) AS INTEGER) * 3600 + CAST(substr(zone, 5, 2) AS INTEGER) * 60)) * 1000000
              + CAST(substr(substr(fraction, 2) || '000000', 1, 6) AS INTEGER)
            ELSE -1 END AS time
          FROM (SELECT name, number, zone,
                substr(value, 1, 10) || iif(substr(value, 11, 1) IN ('t', ' '), 'T', substr(value, 11, 1)) || substr(value, 12, 8) AS moment,
                substr(value, 20, length(value) - 19 - length(zone)) AS fraction
              FROM (SELECT name, value, substr(value, CASE WHEN substr(value, -1) IN ('Z', 'z') THEN -1 ELSE -6 END) AS zone,
                  CASE typeof(value) WHEN 'integer' THEN value
                    WHEN 'real' THEN iif(value = CAST(value AS INTEGER), CAST(value AS INTEGER), -1)
                    WHEN 'text' THEN iif(value <> '' AND value NOT GLOB '*[^0-9]*' AND length(value) < 19, CAST(value AS INTEGER), -1)
                    ELSE -1 END AS number
                FROM (SELECT '' AS name, '' AS value WHERE 0 UNION ALL VALUES
                  ('sequence', NEW.sequence), ('max_attempts', NEW.max_attempts), ('run_at', NEW.run_at),
                  ('start_by', NEW.start_by), ('finish_by', NEW.finish_by))
               WHERE value IS NOT NULL)))) AS given
   WHERE l.name = NEW.lane;
END;

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
  SELECT CASE WHEN c.payload IS NEW.payload THEN RAISE(IGNORE)
    ELSE RAISE(ABORT, 'penstock: key: it already belongs to a job with a different payload; see SELECT id FROM penstock_keys') END
    FROM penstock_keys AS k CROSS JOIN penstock_contexts AS c ON c.id = k.id
    LEFT JOIN penstock_history AS h ON h.arrival = c.arrival
   WHERE k.lane = NEW.lane AND k.key = NEW.key AND (h.arrival IS NULL OR NEW.now + 1000 - h.finished_at < NEW.key_ttl);
  SELECT RAISE(ABORT, 'penstock: id: there is a job of this id already')
   WHERE EXISTS (SELECT 1 FROM penstock_contexts WHERE id = NEW.id);
  INSERT INTO penstock_contexts (keep, lane, mode, sequence, max_attempts, run_at, created_at, start_by, finish_by, id,
    message_group, tenant, key, target, headers, pool, entity, version, event, correlation, payload)
  VALUES (NEW.keep, NEW.lane, NEW.mode, NEW.sequence, NEW.max_attempts, coalesce(NEW.run_at, NEW.now), NEW.now,
    NEW.start_by, NEW.finish_by, coalesce(NEW.id, (SELECT id FROM penstock_new_id)), NEW.message_group, NEW.tenant,
    NEW.key, NEW.target, NEW.headers, NEW.pool, NEW.entity, NEW.version, NEW.event, NEW.correlation, NEW.payload);
  -- There is no SHA-256 in SQLite: an empty hash says, compare with the payload itself.
  INSERT INTO penstock_keys (lane, key, id, hash, created_at)
  SELECT NEW.lane, NEW.key, id, x'', NEW.now FROM penstock_contexts
   WHERE NEW.key IS NOT NULL AND arrival = last_insert_rowid()
  ON CONFLICT (lane, key) DO UPDATE SET id = excluded.id, hash = excluded.hash, created_at = excluded.created_at;
END;
