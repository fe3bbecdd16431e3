-- phase: expand
-- breaking: no
--
-- What people did, among all that nodes did by themselves: both lists are read newest first. `id + 0` is the number in
-- an order that only these have: a planner without statistics would else try its luck with the primary key.
CREATE INDEX audit_people ON penstock.audit ((id + 0)) WHERE actor <> 'penstock';
CREATE INDEX audit_people_lane ON penstock.audit (lane, (id + 0)) WHERE actor <> 'penstock' AND lane IS NOT NULL;
