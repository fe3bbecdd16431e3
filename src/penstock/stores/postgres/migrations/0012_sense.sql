-- phase: expand
-- breaking: no
--
-- What no lane can work with (domain/sense.py, and the largest max_payload) is refused to plain SQL too. Only where one
-- of these columns changes: a lane that has such a value from before can still be paused, and mended.

-- Runs after lanes_check (triggers go by their names), so every setting is written well.
CREATE FUNCTION penstock.check_sense() RETURNS trigger
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  wait text := CASE json_typeof(NEW.retry::json) WHEN 'array' THEN NEW.retry::json ->> 0 END;
  -- between // and the next / ? or #; then without a user
  authority text := (regexp_match(NEW.target, '^https?://([^/?#]*)', 'i'))[1];
  host text := regexp_replace(authority, '^.*@', '');
  setting text;
  problem text;
BEGIN
  SELECT b.name, CASE WHEN b.ms < b.least THEN format('%s is too short: write %s or more', b.value, b.shortest)
                      ELSE format('%s is too long: write %s or less', b.value, b.longest) END
    INTO setting, problem
    FROM (SELECT v.*, penstock.duration_ms(v.value) AS ms, penstock.duration_ms(v.shortest) AS least,
                 penstock.duration_ms(v.longest) AS most
            FROM (VALUES ('lease', NEW.lease, '1s', NULL), ('poll_interval', NEW.poll_interval, '20ms', '1m'),
                         ('timeout', NEW.timeout, '1ms', NULL)) AS v (name, value, shortest, longest)) AS b
   WHERE b.ms < b.least OR b.ms > b.most LIMIT 1;
  IF problem IS NULL AND penstock.duration_ms(wait) > 0 THEN
    setting := 'retry';
    problem := format('the first attempt is made at once: write ["0s", "%s"] to wait %s before the second', wait, wait);
  ELSIF problem IS NULL AND penstock.size_bytes(NEW.max_payload) > 1073741824 THEN
    setting := 'max_payload';
    problem := format('%s is more than a database keeps in one row: write at most 1GiB', NEW.max_payload);
  ELSIF problem IS NULL AND NEW.sink = 'http' AND NEW.target IS NOT NULL AND (
      host IS NULL OR host = '' OR host ~ '^(:|\[\])' OR NEW.target ~ '[\u0001-\u0020\u007f]'
      OR (position('[' IN authority) > 0) <> (position(']' IN authority) > 0)) THEN
    setting := 'target';
    problem := format('%L is no URL to call: write https://host/path', NEW.target);
  END IF;
  IF problem IS NOT NULL THEN
    RAISE EXCEPTION USING
      ERRCODE = 'check_violation', SCHEMA = 'penstock', TABLE = 'lanes', COLUMN = setting,
      MESSAGE = format('penstock: lanes.%s: %s', setting, problem);
  END IF;
  RETURN NEW;
END $$;

CREATE TRIGGER lanes_sense_insert BEFORE INSERT ON penstock.lanes
  FOR EACH ROW EXECUTE FUNCTION penstock.check_sense();
CREATE TRIGGER lanes_sense_update
  BEFORE UPDATE OF lease, poll_interval, timeout, retry, max_payload, sink, target ON penstock.lanes
  FOR EACH ROW WHEN (
    (NEW.lease, NEW.poll_interval, NEW.timeout, NEW.retry, NEW.max_payload, NEW.sink, NEW.target)
    IS DISTINCT FROM
    (OLD.lease, OLD.poll_interval, OLD.timeout, OLD.retry, OLD.max_payload, OLD.sink, OLD.target))
  EXECUTE FUNCTION penstock.check_sense();
