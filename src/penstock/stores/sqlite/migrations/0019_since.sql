-- phase: expand
-- breaking: no
--
-- A job that is put back comes due again later. Since when it had been due it keeps here: `misfire` counts from that.
-- NULL: `due_at` says it.

ALTER TABLE penstock_jobs ADD COLUMN since INTEGER;
