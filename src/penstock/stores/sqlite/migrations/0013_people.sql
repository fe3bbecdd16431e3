-- phase: expand
-- breaking: no
--
-- What people did, among all that nodes did by themselves: both lists are read newest first.
CREATE INDEX penstock_audit_people ON penstock_audit (id + 0) WHERE actor <> 'penstock';
CREATE INDEX penstock_audit_people_lane ON penstock_audit (lane, id + 0) WHERE actor <> 'penstock' AND lane IS NOT NULL;
