-- phase: expand
-- breaking: no
--
-- What no lane can work with (domain/sense.py, and the largest max_payload) is refused to plain SQL too. Only where one
-- of these columns changes: a lane that has such a value from before can still be paused, and mended.
--
-- A view with a trigger is a function in all but name. What is not written well at all is passed over: the check of
-- each setting by itself refuses it.

CREATE VIEW penstock_lanes_sense AS
  SELECT lease, poll_interval, timeout, retry, max_payload, sink, target FROM penstock_lanes;
CREATE TRIGGER penstock_lanes_sense_check INSTEAD OF INSERT ON penstock_lanes_sense
BEGIN
  SELECT CASE name
    WHEN 'lease' THEN RAISE(ABORT, 'penstock: lanes.lease: too short: write 1s or more')
    WHEN 'poll_interval' THEN RAISE(ABORT, 'penstock: lanes.poll_interval: too short or too long: write 20ms to 1m')
    WHEN 'timeout' THEN RAISE(ABORT, 'penstock: lanes.timeout: too short: write 1ms or more')
    END
    FROM (SELECT name, least, most, CAST(rtrim(value, 'dhms') AS INTEGER)
            * CASE substr(value, length(rtrim(value, 'dhms')) + 1) WHEN 'ms' THEN 1 WHEN 's' THEN 1000
                WHEN 'm' THEN 60000 WHEN 'h' THEN 3600000 WHEN 'd' THEN 86400000 END AS ms
      FROM (SELECT '' AS name, '' AS value, 0 AS least, 0 AS most WHERE 0 UNION ALL VALUES
        ('lease', NEW.lease, 1000, 9223372036854775807), ('poll_interval', NEW.poll_interval, 20, 60000),
        ('timeout', NEW.timeout, 1, 9223372036854775807)))
   WHERE ms NOT BETWEEN least AND most;
  SELECT RAISE(ABORT, 'penstock: lanes.retry: the first attempt is made at once: write ["0s", "1m"] to wait 1m before the second')
    FROM json_each(CASE WHEN json_valid(NEW.retry) THEN NEW.retry ELSE '[]' END)
   WHERE key = 0 AND typeof(key) = 'integer' AND type = 'text' AND CAST(rtrim(value, 'dhms') AS INTEGER) > 0;
  SELECT RAISE(ABORT, 'penstock: lanes.max_payload: more than a database keeps in one row: write at most 1GiB')
    FROM (SELECT rtrim(NEW.max_payload, 'BGKMi') AS digits)
   WHERE CAST(digits AS INTEGER) * CASE substr(NEW.max_payload, length(digits) + 1)
      WHEN 'B' THEN 1 WHEN 'KiB' THEN 1024 WHEN 'MiB' THEN 1048576 WHEN 'GiB' THEN 1073741824 END > 1073741824;
  -- host: what stands between // and the next / ? or #, after the last @; none where nothing, a port or [] is there.
  SELECT RAISE(ABORT, 'penstock: lanes.target: no URL to call: write https://host/path')
    FROM (SELECT scheme, authority, substr(authority, length(rtrim(authority, replace(authority, '@', ''))) + 1) AS host
      FROM (SELECT scheme, substr(rest, 1, instr(rest, '/') - 1) AS authority
        FROM (SELECT lower(substr(NEW.target, 1, instr(NEW.target, '://') - 1)) AS scheme,
          replace(replace(substr(NEW.target, instr(NEW.target, '://') + 3), '?', '/'), '#', '/') || '/' AS rest)))
   WHERE NEW.sink = 'http' AND (scheme NOT IN ('http', 'https') OR host = '' OR host GLOB ':*' OR host GLOB '[[]]*'
      OR (instr(authority, '[') > 0) <> (instr(authority, ']') > 0)
      OR NEW.target GLOB '*[' || char(1) || '- ' || char(127) || ']*');
END;

CREATE TRIGGER penstock_lanes_sense_insert AFTER INSERT ON penstock_lanes BEGIN
  INSERT INTO penstock_lanes_sense
  VALUES (NEW.lease, NEW.poll_interval, NEW.timeout, NEW.retry, NEW.max_payload, NEW.sink, NEW.target);
END;
CREATE TRIGGER penstock_lanes_sense_update
AFTER UPDATE OF lease, poll_interval, timeout, retry, max_payload, sink, target ON penstock_lanes
WHEN (NEW.lease, NEW.poll_interval, NEW.timeout, NEW.retry, NEW.max_payload, NEW.sink, NEW.target)
  IS NOT (OLD.lease, OLD.poll_interval, OLD.timeout, OLD.retry, OLD.max_payload, OLD.sink, OLD.target)
BEGIN
  INSERT INTO penstock_lanes_sense
  VALUES (NEW.lease, NEW.poll_interval, NEW.timeout, NEW.retry, NEW.max_payload, NEW.sink, NEW.target);
END;
