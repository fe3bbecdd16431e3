-- phase: expand
-- breaking: no
--
-- What people did, as before, and what was done to lanes and pools by a database role that is called penstock: only of
-- jobs does that name mean a node.
DROP INDEX penstock.audit_people;
DROP INDEX penstock.audit_people_lane;
CREATE INDEX audit_people ON penstock.audit ((id + 0)) WHERE actor <> 'penstock' OR arrival IS NULL;
CREATE INDEX audit_people_lane ON penstock.audit (lane, (id + 0))
  WHERE (actor <> 'penstock' OR arrival IS NULL) AND lane IS NOT NULL;
