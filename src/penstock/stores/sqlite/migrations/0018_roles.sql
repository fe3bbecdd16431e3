-- phase: expand
-- breaking: no
--
-- What people did, as before, and what was done to lanes and pools by a statement that names penstock as its actor: only
-- of jobs does that name mean a node.
DROP INDEX penstock_audit_people;
DROP INDEX penstock_audit_people_lane;
CREATE INDEX penstock_audit_people ON penstock_audit (id + 0) WHERE actor <> 'penstock' OR arrival IS NULL;
CREATE INDEX penstock_audit_people_lane ON penstock_audit (lane, id + 0)
 WHERE (actor <> 'penstock' OR arrival IS NULL) AND lane IS NOT NULL;
