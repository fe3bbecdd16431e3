-- phase: expand
-- breaking: no
--
-- Configuration (lanes, pools), what operators do (audit, pauses), and what nodes share (leases, limits,
-- breakers, the embedded queue). A setting is kept as a person writes it, so that a plain
--     UPDATE penstock_lanes SET batch_size = 1000, jitter = '4s' WHERE name = 'pay'
-- is a safe way to change one: triggers refuse what Penstock would refuse, raise the version and audit it.
--
-- Times are microseconds since 1970, UTC. AUTOINCREMENT where a number must never be given twice.

CREATE TABLE penstock_lanes (
  id             INTEGER PRIMARY KEY AUTOINCREMENT,
  name           TEXT NOT NULL UNIQUE,
  enabled        INTEGER NOT NULL DEFAULT 1,
  mode           TEXT NOT NULL DEFAULT 'immediate',
  sink           TEXT NOT NULL DEFAULT 'console',
  queue          TEXT,
  target         TEXT,
  format         TEXT,
  complete_on    TEXT,
  pool           TEXT,
  batch_size     INTEGER NOT NULL DEFAULT 500,
  poll_interval  TEXT NOT NULL DEFAULT '1s',
  lookahead      TEXT NOT NULL DEFAULT '5s',
  jitter         TEXT NOT NULL DEFAULT '0s',
  misfire        TEXT NOT NULL DEFAULT 'send_now',
  rate           TEXT,
  max_in_flight  INTEGER NOT NULL DEFAULT 200,
  max_groups     INTEGER,
  retry          TEXT NOT NULL DEFAULT '["0s","1m","5m","15m","1h"]',
  retry_on       TEXT,
  give_up_on     TEXT,
  workflow       TEXT,
  task_queue     TEXT,
  timeout        TEXT NOT NULL DEFAULT '15s',
  lease          TEXT NOT NULL DEFAULT '30s',
  ack_timeout    TEXT NOT NULL DEFAULT '15m',
  run_timeout    TEXT NOT NULL DEFAULT '1h',
  heartbeat      TEXT NOT NULL DEFAULT '30s',
  on_unknown     TEXT NOT NULL DEFAULT 'requeue',
  max_recoveries INTEGER NOT NULL DEFAULT 5,
  max_recoveries_per_pass INTEGER NOT NULL DEFAULT 100,
  hold_until     TEXT NOT NULL DEFAULT 'done',
  max_depth      INTEGER,
  max_payload    TEXT NOT NULL DEFAULT '256KiB',
  key_ttl        TEXT NOT NULL DEFAULT '24h',
  retention      TEXT NOT NULL DEFAULT '7d',
  dead_retention TEXT NOT NULL DEFAULT '30d',
  keep_payload   INTEGER NOT NULL DEFAULT 1,
  weight         INTEGER NOT NULL DEFAULT 1,
  -- the retention class in days
  keep           INTEGER GENERATED ALWAYS AS (CASE retention
                   WHEN '1d' THEN 1 WHEN '7d' THEN 7 WHEN '30d' THEN 30 WHEN '90d' THEN 90 WHEN '1y' THEN 365
                 END) VIRTUAL,
  -- operation, not configuration: who stopped it, why, until when
  paused         INTEGER NOT NULL DEFAULT 0,
  paused_until   INTEGER,
  pause_reason   TEXT,
  paused_by      TEXT,
  version        INTEGER NOT NULL DEFAULT 1,
  updated_at     INTEGER NOT NULL DEFAULT (CAST((julianday('now') - 2440587.5) * 86400000000 AS INTEGER)),
  updated_by     TEXT
);

CREATE TABLE penstock_pools (
  id            INTEGER PRIMARY KEY AUTOINCREMENT,
  name          TEXT NOT NULL UNIQUE,
  rate          TEXT,
  burst         INTEGER,
  max_in_flight INTEGER,
  key           TEXT,
  paused        INTEGER NOT NULL DEFAULT 0,
  paused_until  INTEGER,
  pause_reason  TEXT,
  paused_by     TEXT,
  version       INTEGER NOT NULL DEFAULT 1,
  updated_at    INTEGER NOT NULL DEFAULT (CAST((julianday('now') - 2440587.5) * 86400000000 AS INTEGER)),
  updated_by    TEXT
);

-- Moves off the normal path and everything an operator does; before and after are states or JSON.
CREATE TABLE penstock_audit (
  id      INTEGER PRIMARY KEY,
  at      INTEGER NOT NULL DEFAULT (CAST((julianday('now') - 2440587.5) * 86400000000 AS INTEGER)),
  arrival INTEGER,
  lane    INTEGER,
  actor   TEXT NOT NULL,
  action  TEXT NOT NULL,
  before  TEXT,
  after   TEXT,
  reason  TEXT
);
CREATE INDEX penstock_audit_arrival ON penstock_audit (arrival) WHERE arrival IS NOT NULL;
CREATE INDEX penstock_audit_at ON penstock_audit (at);

-- What is stopped beyond a lane or pool: the whole store, a tenant, a target.
CREATE TABLE penstock_pauses (
  scope  TEXT NOT NULL,
  name   TEXT NOT NULL DEFAULT '',
  until  INTEGER,
  reason TEXT,
  actor  TEXT NOT NULL,
  at     INTEGER NOT NULL DEFAULT (CAST((julianday('now') - 2440587.5) * 86400000000 AS INTEGER)),
  PRIMARY KEY (scope, name)
) WITHOUT ROWID;

-- One row per run of a process.
CREATE TABLE penstock_nodes (
  id         INTEGER PRIMARY KEY AUTOINCREMENT,
  name       TEXT NOT NULL,
  version    TEXT NOT NULL,
  started_at INTEGER NOT NULL,
  seen_at    INTEGER NOT NULL
);

-- Leadership: a term's number only grows, and every renewal names it.
CREATE TABLE penstock_leases (
  name   TEXT NOT NULL PRIMARY KEY,
  holder INTEGER NOT NULL,
  term   INTEGER NOT NULL,
  until  INTEGER NOT NULL
) WITHOUT ROWID;

-- One row per pass of a node over a lane; phases is JSON, seconds by name.
CREATE TABLE penstock_ticks (
  id      INTEGER PRIMARY KEY,
  node    INTEGER NOT NULL,
  lane    INTEGER,
  at      INTEGER NOT NULL,
  claimed INTEGER NOT NULL,
  settled INTEGER NOT NULL,
  phases  TEXT NOT NULL
);
CREATE INDEX penstock_ticks_at ON penstock_ticks (at);

-- Rate limits: what is left of a bucket (in grains, domain/rates.py) and what nodes have on lease (in tokens).
-- The key is '' for a pool without one and for jobs without a tenant.
CREATE TABLE penstock_pool_buckets (
  pool   INTEGER NOT NULL,
  key    TEXT NOT NULL DEFAULT '',
  tokens INTEGER NOT NULL,
  at     INTEGER NOT NULL,
  PRIMARY KEY (pool, key)
) WITHOUT ROWID;
CREATE TABLE penstock_pool_slices (
  pool   INTEGER NOT NULL,
  key    TEXT NOT NULL DEFAULT '',
  node   INTEGER NOT NULL,
  tokens INTEGER NOT NULL,
  until  INTEGER NOT NULL,
  PRIMARY KEY (pool, key, node)
) WITHOUT ROWID;

-- Circuit breakers and slow-downs, by scheme, host and port.
CREATE TABLE penstock_targets (
  target     TEXT NOT NULL PRIMARY KEY,
  state      TEXT NOT NULL DEFAULT 'closed',
  failures   INTEGER NOT NULL DEFAULT 0,
  opened_at  INTEGER,
  until      INTEGER,
  slow_until INTEGER
) WITHOUT ROWID;

-- Keys for tokens and signatures; a retired one still verifies.
CREATE TABLE penstock_secrets (
  name       TEXT NOT NULL,
  kid        TEXT NOT NULL,
  secret     TEXT NOT NULL,
  created_at INTEGER NOT NULL DEFAULT (CAST((julianday('now') - 2440587.5) * 86400000000 AS INTEGER)),
  retired_at INTEGER,
  PRIMARY KEY (name, kid)
) WITHOUT ROWID;

-- The embedded broker. A received message is invisible until visible_at; `receives` fences its acknowledgement.
CREATE TABLE penstock_queue (
  id         INTEGER PRIMARY KEY AUTOINCREMENT,
  queue      TEXT NOT NULL,
  grp        TEXT,
  dedup_id   TEXT,
  body       TEXT NOT NULL,
  visible_at INTEGER NOT NULL DEFAULT (CAST((julianday('now') - 2440587.5) * 86400000000 AS INTEGER)),
  receives   INTEGER NOT NULL DEFAULT 0,
  created_at INTEGER NOT NULL DEFAULT (CAST((julianday('now') - 2440587.5) * 86400000000 AS INTEGER))
);
CREATE INDEX penstock_queue_visible ON penstock_queue (queue, visible_at, id);
CREATE INDEX penstock_queue_group ON penstock_queue (queue, grp, id) WHERE grp IS NOT NULL;
CREATE UNIQUE INDEX penstock_queue_dedup ON penstock_queue (queue, dedup_id) WHERE dedup_id IS NOT NULL;

-- A function in all but name: inserting a lane's row here raises when a setting is not what domain/lanes.py
-- allows. RAISE takes a literal only (until SQLite 3.47), so every setting has its own line.
CREATE VIEW penstock_lanes_checked AS SELECT * FROM penstock_lanes;
CREATE TRIGGER penstock_lanes_check INSTEAD OF INSERT ON penstock_lanes_checked
BEGIN
  SELECT RAISE(ABORT, 'penstock: lanes.name: use 1 to 63 of A-Z a-z 0-9 _ . - and begin with a letter or digit')
   WHERE typeof(NEW.name) <> 'text' OR NEW.name NOT GLOB '[A-Za-z0-9]*' OR NEW.name GLOB '*[^A-Za-z0-9_.-]*'
      OR length(CAST(NEW.name AS BLOB)) > 63 OR instr(NEW.name, char(0));
  SELECT CASE name
    WHEN 'enabled' THEN RAISE(ABORT, 'penstock: lanes.enabled: write true or false')
    WHEN 'keep_payload' THEN RAISE(ABORT, 'penstock: lanes.keep_payload: write true or false')
    WHEN 'paused' THEN RAISE(ABORT, 'penstock: lanes.paused: write true or false')
    END
    FROM (SELECT '' AS name, 0 AS value WHERE 0 UNION ALL VALUES
      ('enabled', NEW.enabled), ('keep_payload', NEW.keep_payload), ('paused', NEW.paused))
   WHERE value NOT IN (0, 1);
  SELECT CASE name
    WHEN 'batch_size' THEN RAISE(ABORT, 'penstock: lanes.batch_size: write a whole number, at least 1')
    WHEN 'max_in_flight' THEN RAISE(ABORT, 'penstock: lanes.max_in_flight: write a whole number, at least 1')
    WHEN 'max_groups' THEN RAISE(ABORT, 'penstock: lanes.max_groups: write a whole number, at least 1')
    WHEN 'max_recoveries' THEN RAISE(ABORT, 'penstock: lanes.max_recoveries: write a whole number, at least 0')
    WHEN 'max_recoveries_per_pass'
      THEN RAISE(ABORT, 'penstock: lanes.max_recoveries_per_pass: write a whole number, at least 1')
    WHEN 'max_depth' THEN RAISE(ABORT, 'penstock: lanes.max_depth: write a whole number, at least 1')
    WHEN 'weight' THEN RAISE(ABORT, 'penstock: lanes.weight: write a whole number, at least 1')
    END
    FROM (SELECT '' AS name, 0 AS value, 0 AS least WHERE 0 UNION ALL VALUES
      ('batch_size', NEW.batch_size, 1), ('max_in_flight', NEW.max_in_flight, 1),
      ('max_groups', NEW.max_groups, 1), ('max_recoveries', NEW.max_recoveries, 0),
      ('max_recoveries_per_pass', NEW.max_recoveries_per_pass, 1), ('max_depth', NEW.max_depth, 1),
      ('weight', NEW.weight, 1))
   WHERE value IS NOT NULL AND NOT (typeof(value) = 'integer' AND value BETWEEN least AND 2147483647);
  SELECT CASE name
    WHEN 'sink' THEN RAISE(ABORT, 'penstock: lanes.sink: write a text that is not empty')
    WHEN 'queue' THEN RAISE(ABORT, 'penstock: lanes.queue: write a text that is not empty')
    WHEN 'target' THEN RAISE(ABORT, 'penstock: lanes.target: write a text that is not empty')
    WHEN 'pool' THEN RAISE(ABORT, 'penstock: lanes.pool: write a text that is not empty')
    WHEN 'retry_on' THEN RAISE(ABORT, 'penstock: lanes.retry_on: write a text that is not empty')
    WHEN 'give_up_on' THEN RAISE(ABORT, 'penstock: lanes.give_up_on: write a text that is not empty')
    WHEN 'workflow' THEN RAISE(ABORT, 'penstock: lanes.workflow: write a text that is not empty')
    WHEN 'task_queue' THEN RAISE(ABORT, 'penstock: lanes.task_queue: write a text that is not empty')
    END
    FROM (SELECT '' AS name, '' AS value WHERE 0 UNION ALL VALUES
      ('sink', NEW.sink), ('queue', NEW.queue), ('target', NEW.target), ('pool', NEW.pool),
      ('retry_on', NEW.retry_on), ('give_up_on', NEW.give_up_on), ('workflow', NEW.workflow),
      ('task_queue', NEW.task_queue))
   WHERE value IS NOT NULL AND (typeof(value) <> 'text' OR value = '' OR instr(value, char(0)));
  SELECT RAISE(ABORT, 'penstock: lanes.mode: must be one of immediate, next_on_error, block_on_error')
   WHERE NEW.mode NOT IN ('immediate', 'next_on_error', 'block_on_error');
  SELECT RAISE(ABORT, 'penstock: lanes.format: must be one of pointer, full, app, payload')
   WHERE NEW.format NOT IN ('pointer', 'full', 'app', 'payload');
  SELECT RAISE(ABORT, 'penstock: lanes.complete_on: must be one of sent, reported')
   WHERE NEW.complete_on NOT IN ('sent', 'reported');
  SELECT RAISE(ABORT, 'penstock: lanes.on_unknown: must be one of requeue, hold')
   WHERE NEW.on_unknown NOT IN ('requeue', 'hold');
  SELECT RAISE(ABORT, 'penstock: lanes.hold_until: must be one of done, sent')
   WHERE NEW.hold_until NOT IN ('done', 'sent');
  SELECT RAISE(ABORT, 'penstock: lanes.retention: must be one of 1d, 7d, 30d, 90d, 1y')
   WHERE NEW.retention NOT IN ('1d', '7d', '30d', '90d', '1y');
  SELECT RAISE(ABORT, 'penstock: lanes.max_payload: not a size: write 512B, 256KiB, 8MiB or 1GiB')
    FROM (SELECT rtrim(NEW.max_payload, 'BGKMi') AS digits)
   WHERE digits = '' OR digits GLOB '*[^0-9]*' OR length(digits) > 15
      OR substr(NEW.max_payload, length(digits) + 1) NOT IN ('B', 'KiB', 'MiB', 'GiB');
  SELECT RAISE(ABORT, 'penstock: lanes.rate: not a rate from 1 to 1000000000: write 200/s, 10/m or 5/h')
    FROM (SELECT substr(NEW.rate, 1, length(NEW.rate) - 2) AS digits)
   WHERE NEW.rate IS NOT NULL AND (digits = '' OR digits GLOB '*[^0-9]*' OR length(digits) > 10
      OR CAST(digits AS INTEGER) NOT BETWEEN 1 AND 1000000000 OR substr(NEW.rate, -2) NOT IN ('/s', '/m', '/h'));
  -- Shape first: what is no JSON, or neither a list nor a whole curve, has no durations to look at.
  SELECT RAISE(ABORT, 'penstock: lanes.retry: not JSON, write ["0s","1m","5m"]')
   WHERE NOT json_valid(NEW.retry);
  SELECT RAISE(ABORT, 'penstock: lanes.retry: write a list of 1 to 1000 delays, ["0s","1m","5m"], or a curve with first, factor, max and attempts')
   WHERE NOT CASE json_type(NEW.retry)
     WHEN 'array' THEN json_array_length(NEW.retry) BETWEEN 1 AND 1000
     WHEN 'object' THEN (SELECT count(*) = 4 AND count(DISTINCT key) = 4 AND min(CASE key
         WHEN 'first' THEN type = 'text'
         WHEN 'max' THEN type = 'text'
         WHEN 'factor' THEN type IN ('integer', 'real') AND value BETWEEN 1 AND 1000
         WHEN 'attempts' THEN type = 'integer' AND value BETWEEN 1 AND 1000
         ELSE 0 END) FROM json_each(NEW.retry))
     ELSE 0 END;
  SELECT CASE name
    WHEN 'poll_interval' THEN RAISE(ABORT, 'penstock: lanes.poll_interval: not a duration: write 5s, 250ms, 1m, 2h or 7d')
    WHEN 'lookahead' THEN RAISE(ABORT, 'penstock: lanes.lookahead: not a duration: write 5s, 250ms, 1m, 2h or 7d')
    WHEN 'jitter' THEN RAISE(ABORT, 'penstock: lanes.jitter: not a duration: write 5s, 250ms, 1m, 2h or 7d')
    WHEN 'timeout' THEN RAISE(ABORT, 'penstock: lanes.timeout: not a duration: write 5s, 250ms, 1m, 2h or 7d')
    WHEN 'lease' THEN RAISE(ABORT, 'penstock: lanes.lease: not a duration: write 5s, 250ms, 1m, 2h or 7d')
    WHEN 'ack_timeout' THEN RAISE(ABORT, 'penstock: lanes.ack_timeout: not a duration: write 5s, 250ms, 1m, 2h or 7d')
    WHEN 'run_timeout' THEN RAISE(ABORT, 'penstock: lanes.run_timeout: not a duration: write 5s, 250ms, 1m, 2h or 7d')
    WHEN 'heartbeat' THEN RAISE(ABORT, 'penstock: lanes.heartbeat: not a duration: write 5s, 250ms, 1m, 2h or 7d')
    WHEN 'key_ttl' THEN RAISE(ABORT, 'penstock: lanes.key_ttl: not a duration: write 5s, 250ms, 1m, 2h or 7d')
    WHEN 'dead_retention' THEN RAISE(ABORT, 'penstock: lanes.dead_retention: not a duration: write 5s, 250ms, 1m, 2h or 7d')
    WHEN 'misfire' THEN RAISE(ABORT, 'penstock: lanes.misfire: neither send_now nor skip_after(10m)')
    WHEN 'retry' THEN RAISE(ABORT, 'penstock: lanes.retry: a delay is not a duration from 0s to 365d: write 5s, 250ms, 1m, 2h or 7d')
    END
    FROM (SELECT name, value, longest, rtrim(value, 'dhms') AS digits
      FROM (SELECT '' AS name, '' AS value, 0 AS longest WHERE 0 UNION ALL VALUES
        ('poll_interval', NEW.poll_interval, 86399999999999999), ('lookahead', NEW.lookahead, 86399999999999999), ('jitter', NEW.jitter, 86399999999999999),
        ('timeout', NEW.timeout, 86399999999999999), ('lease', NEW.lease, 86399999999999999),
        ('ack_timeout', NEW.ack_timeout, 86399999999999999), ('run_timeout', NEW.run_timeout, 86399999999999999),
        ('heartbeat', NEW.heartbeat, 86399999999999999), ('key_ttl', NEW.key_ttl, 86399999999999999),
        ('dead_retention', NEW.dead_retention, 86399999999999999),
        ('misfire', CASE WHEN NEW.misfire = 'send_now' THEN '0s' WHEN NEW.misfire GLOB 'skip_after(*)'
          THEN substr(NEW.misfire, 12, length(NEW.misfire) - 12) ELSE '' END, 86399999999999999)
        UNION ALL
        SELECT 'retry', CASE type WHEN 'text' THEN value ELSE '' END, 31536000000 FROM json_each(NEW.retry)
         WHERE typeof(key) = 'integer' OR key IN ('first', 'max')))
   WHERE digits = '' OR digits GLOB '*[^0-9]*' OR length(digits) > 15
      OR coalesce(CAST(digits AS INTEGER) * CASE substr(value, length(digits) + 1)
        WHEN 'ms' THEN 1 WHEN 's' THEN 1000 WHEN 'm' THEN 60000 WHEN 'h' THEN 3600000 WHEN 'd' THEN 86400000
        END > longest, 1);
  SELECT RAISE(ABORT, 'penstock: lanes.retry: a curve begins above 0s and its max is no shorter than its first')
    FROM (SELECT max(CASE key WHEN 'first' THEN ms END) AS first, max(CASE key WHEN 'max' THEN ms END) AS longest
      FROM (SELECT key, CAST(rtrim(value, 'dhms') AS INTEGER) * CASE substr(value, length(rtrim(value, 'dhms')) + 1)
          WHEN 'ms' THEN 1 WHEN 's' THEN 1000 WHEN 'm' THEN 60000 WHEN 'h' THEN 3600000 ELSE 86400000 END AS ms
        FROM json_each(NEW.retry) WHERE key IN ('first', 'max')))
   WHERE first = 0 OR longest < first;
END;

-- Who changed it: whoever names himself in updated_by, else 'sql'. A statement that raises the version itself, as
-- put_lane does, brings updated_at and updated_by along; that is how the same actor is told from nobody.
CREATE VIEW penstock_lanes_json AS
  SELECT id, json_patch('{}', json_object(
      'name', name, 'enabled', json(iif(enabled, 'true', 'false')), 'mode', mode, 'sink', sink, 'queue', queue,
      'target', target, 'format', format, 'complete_on', complete_on, 'pool', pool, 'batch_size', batch_size,
      'poll_interval', poll_interval, 'lookahead', lookahead, 'jitter', jitter, 'misfire', misfire,
      'rate', rate, 'max_in_flight', max_in_flight, 'max_groups', max_groups, 'retry', retry,
      'retry_on', retry_on, 'give_up_on', give_up_on, 'workflow', workflow, 'task_queue', task_queue,
      'timeout', timeout, 'lease', lease, 'ack_timeout', ack_timeout, 'run_timeout', run_timeout,
      'heartbeat', heartbeat, 'on_unknown', on_unknown, 'max_recoveries', max_recoveries,
      'max_recoveries_per_pass', max_recoveries_per_pass, 'hold_until', hold_until, 'max_depth', max_depth,
      'max_payload', max_payload, 'key_ttl', key_ttl, 'retention', retention, 'dead_retention', dead_retention,
      'keep_payload', json(iif(keep_payload, 'true', 'false')), 'weight', weight,
      'paused', json(iif(paused, 'true', 'false')),
      'paused_until', strftime('%Y-%m-%dT%H:%M:%S', paused_until / 1000000, 'unixepoch') || printf('.%06d+00:00', paused_until % 1000000),
      'pause_reason', pause_reason, 'paused_by', paused_by)) AS settings
    FROM penstock_lanes;

CREATE TRIGGER penstock_lanes_insert AFTER INSERT ON penstock_lanes
BEGIN
  INSERT INTO penstock_lanes_checked SELECT * FROM penstock_lanes WHERE id = NEW.id;
  INSERT INTO penstock_audit (at, lane, actor, action, after)
  SELECT NEW.updated_at, NEW.id, coalesce(NEW.updated_by, 'sql'), 'lane.create', settings
    FROM penstock_lanes_json WHERE id = NEW.id;
  UPDATE penstock_lanes SET updated_by = 'sql' WHERE id = NEW.id AND updated_by IS NULL;
END;

CREATE TRIGGER penstock_lanes_update AFTER UPDATE ON penstock_lanes
BEGIN
  SELECT RAISE(ABORT, 'penstock: lanes.name: a lane cannot be renamed')
   WHERE (OLD.id, OLD.name) IS NOT (NEW.id, NEW.name);
  INSERT INTO penstock_lanes_checked SELECT * FROM penstock_lanes WHERE id = NEW.id;
  INSERT INTO penstock_audit (at, lane, actor, action, before, after, reason)
  SELECT iif(NEW.version <> OLD.version, NEW.updated_at, CAST((julianday('now') - 2440587.5) * 86400000000 AS INTEGER)),
      NEW.id,
      iif((NEW.version, NEW.updated_by) IS NOT (OLD.version, OLD.updated_by), coalesce(NEW.updated_by, 'sql'), 'sql'),
      'lane.update', before, after, iif(OLD.paused IS NOT NEW.paused, NEW.pause_reason, NULL)
    FROM (SELECT count(*) AS changed, json_group_object(setting,
        CASE WHEN setting IN ('enabled', 'keep_payload', 'paused') THEN json(iif(was, 'true', 'false')) ELSE was END) AS before,
      json_group_object(setting,
        CASE WHEN setting IN ('enabled', 'keep_payload', 'paused') THEN json(iif(now, 'true', 'false')) ELSE now END) AS after
      FROM (SELECT '' AS setting, 0 AS was, 0 AS now WHERE 0 UNION ALL VALUES
        ('enabled', OLD.enabled, NEW.enabled), ('mode', OLD.mode, NEW.mode), ('sink', OLD.sink, NEW.sink),
        ('queue', OLD.queue, NEW.queue), ('target', OLD.target, NEW.target), ('format', OLD.format, NEW.format),
        ('complete_on', OLD.complete_on, NEW.complete_on), ('pool', OLD.pool, NEW.pool),
        ('batch_size', OLD.batch_size, NEW.batch_size), ('poll_interval', OLD.poll_interval, NEW.poll_interval),
        ('lookahead', OLD.lookahead, NEW.lookahead), ('jitter', OLD.jitter, NEW.jitter),
        ('misfire', OLD.misfire, NEW.misfire), ('rate', OLD.rate, NEW.rate),
        ('max_in_flight', OLD.max_in_flight, NEW.max_in_flight), ('max_groups', OLD.max_groups, NEW.max_groups),
        ('retry', OLD.retry, NEW.retry), ('retry_on', OLD.retry_on, NEW.retry_on),
        ('give_up_on', OLD.give_up_on, NEW.give_up_on), ('workflow', OLD.workflow, NEW.workflow),
        ('task_queue', OLD.task_queue, NEW.task_queue), ('timeout', OLD.timeout, NEW.timeout),
        ('lease', OLD.lease, NEW.lease), ('ack_timeout', OLD.ack_timeout, NEW.ack_timeout),
        ('run_timeout', OLD.run_timeout, NEW.run_timeout), ('heartbeat', OLD.heartbeat, NEW.heartbeat),
        ('on_unknown', OLD.on_unknown, NEW.on_unknown),
        ('max_recoveries', OLD.max_recoveries, NEW.max_recoveries),
        ('max_recoveries_per_pass', OLD.max_recoveries_per_pass, NEW.max_recoveries_per_pass),
        ('hold_until', OLD.hold_until, NEW.hold_until), ('max_depth', OLD.max_depth, NEW.max_depth),
        ('max_payload', OLD.max_payload, NEW.max_payload), ('key_ttl', OLD.key_ttl, NEW.key_ttl),
        ('retention', OLD.retention, NEW.retention), ('dead_retention', OLD.dead_retention, NEW.dead_retention),
        ('keep_payload', OLD.keep_payload, NEW.keep_payload), ('weight', OLD.weight, NEW.weight),
        ('paused', OLD.paused, NEW.paused),
        ('paused_until',
          strftime('%Y-%m-%dT%H:%M:%S', OLD.paused_until / 1000000, 'unixepoch') || printf('.%06d+00:00', OLD.paused_until % 1000000),
          strftime('%Y-%m-%dT%H:%M:%S', NEW.paused_until / 1000000, 'unixepoch') || printf('.%06d+00:00', NEW.paused_until % 1000000)),
        ('pause_reason', OLD.pause_reason, NEW.pause_reason), ('paused_by', OLD.paused_by, NEW.paused_by))
     WHERE was IS NOT now)
   WHERE changed;
  UPDATE penstock_lanes SET version = OLD.version + 1,
      (updated_at, updated_by) = (SELECT at, actor FROM penstock_audit WHERE id = last_insert_rowid())
   WHERE id = NEW.id AND changes();
END;

CREATE TRIGGER penstock_lanes_delete BEFORE DELETE ON penstock_lanes
BEGIN
  INSERT INTO penstock_audit (lane, actor, action, before)
  SELECT OLD.id, 'sql', 'lane.delete', settings FROM penstock_lanes_json WHERE id = OLD.id;
END;

CREATE VIEW penstock_pools_checked AS SELECT * FROM penstock_pools;
CREATE TRIGGER penstock_pools_check INSTEAD OF INSERT ON penstock_pools_checked
BEGIN
  SELECT RAISE(ABORT, 'penstock: pools.name: use 1 to 63 of A-Z a-z 0-9 _ . - and begin with a letter or digit')
   WHERE typeof(NEW.name) <> 'text' OR NEW.name NOT GLOB '[A-Za-z0-9]*' OR NEW.name GLOB '*[^A-Za-z0-9_.-]*'
      OR length(CAST(NEW.name AS BLOB)) > 63 OR instr(NEW.name, char(0));
  SELECT RAISE(ABORT, 'penstock: pools.rate: not a rate from 1 to 1000000000: write 200/s, 10/m or 5/h')
    FROM (SELECT substr(NEW.rate, 1, length(NEW.rate) - 2) AS digits)
   WHERE NEW.rate IS NOT NULL AND (digits = '' OR digits GLOB '*[^0-9]*' OR length(digits) > 10
      OR CAST(digits AS INTEGER) NOT BETWEEN 1 AND 1000000000 OR substr(NEW.rate, -2) NOT IN ('/s', '/m', '/h'));
  SELECT RAISE(ABORT, 'penstock: pools.burst: write a whole number from 1 to 1000000000')
   WHERE NEW.burst IS NOT NULL AND NOT (typeof(NEW.burst) = 'integer' AND NEW.burst BETWEEN 1 AND 1000000000);
  SELECT RAISE(ABORT, 'penstock: pools.max_in_flight: write a whole number, at least 1')
   WHERE NEW.max_in_flight IS NOT NULL
     AND NOT (typeof(NEW.max_in_flight) = 'integer' AND NEW.max_in_flight BETWEEN 1 AND 2147483647);
  SELECT RAISE(ABORT, 'penstock: pools.key: must be one of tenant, target, group')
   WHERE NEW.key NOT IN ('tenant', 'target', 'group');
  SELECT RAISE(ABORT, 'penstock: pools.paused: write true or false') WHERE NEW.paused NOT IN (0, 1);
END;

CREATE VIEW penstock_pools_json AS
  SELECT id, json_patch('{}', json_object(
      'name', name, 'rate', rate, 'burst', burst, 'max_in_flight', max_in_flight, 'key', key,
      'paused', json(iif(paused, 'true', 'false')),
      'paused_until', strftime('%Y-%m-%dT%H:%M:%S', paused_until / 1000000, 'unixepoch') || printf('.%06d+00:00', paused_until % 1000000),
      'pause_reason', pause_reason, 'paused_by', paused_by)) AS settings
    FROM penstock_pools;

CREATE TRIGGER penstock_pools_insert AFTER INSERT ON penstock_pools
BEGIN
  INSERT INTO penstock_pools_checked SELECT * FROM penstock_pools WHERE id = NEW.id;
  INSERT INTO penstock_audit (at, actor, action, after)
  SELECT NEW.updated_at, coalesce(NEW.updated_by, 'sql'), 'pool.create', settings
    FROM penstock_pools_json WHERE id = NEW.id;
  UPDATE penstock_pools SET updated_by = 'sql' WHERE id = NEW.id AND updated_by IS NULL;
END;

CREATE TRIGGER penstock_pools_update AFTER UPDATE ON penstock_pools
BEGIN
  SELECT RAISE(ABORT, 'penstock: pools.name: a pool cannot be renamed')
   WHERE (OLD.id, OLD.name) IS NOT (NEW.id, NEW.name);
  INSERT INTO penstock_pools_checked SELECT * FROM penstock_pools WHERE id = NEW.id;
  INSERT INTO penstock_audit (at, actor, action, before, after, reason)
  SELECT iif(NEW.version <> OLD.version, NEW.updated_at, CAST((julianday('now') - 2440587.5) * 86400000000 AS INTEGER)),
      iif((NEW.version, NEW.updated_by) IS NOT (OLD.version, OLD.updated_by), coalesce(NEW.updated_by, 'sql'), 'sql'),
      'pool.update', json_set(before, '$.name', NEW.name), json_set(after, '$.name', NEW.name),
      iif(OLD.paused IS NOT NEW.paused, NEW.pause_reason, NULL)
    FROM (SELECT count(*) AS changed, json_group_object(setting,
        CASE WHEN setting = 'paused' THEN json(iif(was, 'true', 'false')) ELSE was END) AS before,
      json_group_object(setting,
        CASE WHEN setting = 'paused' THEN json(iif(now, 'true', 'false')) ELSE now END) AS after
      FROM (SELECT '' AS setting, 0 AS was, 0 AS now WHERE 0 UNION ALL VALUES
        ('rate', OLD.rate, NEW.rate), ('burst', OLD.burst, NEW.burst),
        ('max_in_flight', OLD.max_in_flight, NEW.max_in_flight), ('key', OLD.key, NEW.key),
        ('paused', OLD.paused, NEW.paused),
        ('paused_until',
          strftime('%Y-%m-%dT%H:%M:%S', OLD.paused_until / 1000000, 'unixepoch') || printf('.%06d+00:00', OLD.paused_until % 1000000),
          strftime('%Y-%m-%dT%H:%M:%S', NEW.paused_until / 1000000, 'unixepoch') || printf('.%06d+00:00', NEW.paused_until % 1000000)),
        ('pause_reason', OLD.pause_reason, NEW.pause_reason), ('paused_by', OLD.paused_by, NEW.paused_by))
     WHERE was IS NOT now)
   WHERE changed;
  UPDATE penstock_pools SET version = OLD.version + 1,
      (updated_at, updated_by) = (SELECT at, actor FROM penstock_audit WHERE id = last_insert_rowid())
   WHERE id = NEW.id AND changes();
END;

CREATE TRIGGER penstock_pools_delete BEFORE DELETE ON penstock_pools
BEGIN
  INSERT INTO penstock_audit (actor, action, before)
  SELECT 'sql', 'pool.delete', settings FROM penstock_pools_json WHERE id = OLD.id;
END;
