-- phase: expand
-- breaking: no
--
-- Jobs whose executor fell silent are found lane by lane: each has its own `max_recoveries_per_pass`, and a lane with
-- very many of them is not in the way of the others.

CREATE INDEX jobs_silent ON penstock.jobs (lane, deadline, arrival) WHERE deadline IS NOT NULL;
DROP INDEX penstock.jobs_deadline;
