-- phase: expand
-- breaking: no
--
-- How many slots a node lacks of its part of a limit: whoever borrowed them gives them back.
ALTER TABLE penstock.limit_leases ADD COLUMN lacks integer NOT NULL DEFAULT 0;
