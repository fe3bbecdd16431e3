-- phase: expand
-- breaking: no
--
-- A job that is put back comes due again later. Since when it had been due it keeps here: `misfire` counts from that.
-- NULL: `due_at` says it.

ALTER TABLE penstock.jobs ADD COLUMN since timestamptz;
ALTER TABLE penstock.claims ADD COLUMN sinces timestamptz[];
