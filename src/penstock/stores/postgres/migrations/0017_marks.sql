-- phase: expand
-- breaking: no
--
-- A pending job that a pool put back says in `reason` which, and how that is set (domain/pools.mark). When it is set
-- otherwise, or is not the lane's any more, the leader lets these jobs come: the marks there are it finds here, by one
-- probe each.

CREATE INDEX jobs_marks ON penstock.jobs (lane, reason, arrival) WHERE state = 1 AND reason IS NOT NULL;
