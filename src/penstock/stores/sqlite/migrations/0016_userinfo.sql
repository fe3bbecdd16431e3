-- phase: expand
-- breaking: no
--
-- A lane that calls its target cannot do so with a user name in it (domain/sense.py): every job would die of it. Refused
-- where sink or target changes, so a lane that has one from before can still be paused, and mended.

CREATE TRIGGER penstock_lanes_userinfo_insert AFTER INSERT ON penstock_lanes
WHEN NEW.sink = 'http' AND NEW.target LIKE 'http%://%@%' BEGIN
  SELECT RAISE(ABORT, 'penstock: lanes.target: holds a user name, which everybody sees: use an Authorization header of the job or the sink')
    FROM (SELECT replace(replace(substr(NEW.target, instr(NEW.target, '://') + 3), '?', '/'), '#', '/') || '/' AS rest)
   WHERE instr(substr(rest, 1, instr(rest, '/') - 1), '@') > 0;
END;
CREATE TRIGGER penstock_lanes_userinfo_update AFTER UPDATE OF sink, target ON penstock_lanes
WHEN NEW.sink = 'http' AND NEW.target LIKE 'http%://%@%' AND (NEW.sink, NEW.target) IS NOT (OLD.sink, OLD.target) BEGIN
  SELECT RAISE(ABORT, 'penstock: lanes.target: holds a user name, which everybody sees: use an Authorization header of the job or the sink')
    FROM (SELECT replace(replace(substr(NEW.target, instr(NEW.target, '://') + 3), '?', '/'), '#', '/') || '/' AS rest)
   WHERE instr(substr(rest, 1, instr(rest, '/') - 1), '@') > 0;
END;
