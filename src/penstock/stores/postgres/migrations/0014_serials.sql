-- phase: expand
-- breaking: no
--
-- What a node asks of a limit is numbered: a call that was lost on its way, and is carried out after a later one, must
-- not undo what that one booked.
ALTER TABLE penstock.limit_leases ADD COLUMN serial bigint NOT NULL DEFAULT 0;
