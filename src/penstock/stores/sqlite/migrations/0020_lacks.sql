-- phase: expand
-- breaking: no
--
-- How many slots a node lacks of its part of a limit: whoever borrowed them gives them back.
ALTER TABLE penstock_limit_leases ADD COLUMN lacks INTEGER NOT NULL DEFAULT 0;
