-- Begins the transaction of every migration: one migrator at a time, and a table to note what was applied.
-- What exists is left alone and asked for first, because CREATE .. IF NOT EXISTS wants the right to create even
-- then: so a schema that a DBA made beforehand is enough, and `migrate` with nothing to do needs no rights.
SET LOCAL search_path = pg_catalog, pg_temp;
SELECT pg_advisory_xact_lock(7379655093214802);
DO $$
BEGIN
  IF to_regnamespace('penstock') IS NULL THEN
    CREATE SCHEMA penstock;
  END IF;
  IF to_regclass('penstock.migrations') IS NULL THEN
    CREATE TABLE penstock.migrations (
      number     integer PRIMARY KEY,
      name       text NOT NULL,
      checksum   text NOT NULL,
      breaking   boolean NOT NULL,
      applied_at timestamptz NOT NULL DEFAULT now()
    );
  END IF;
END $$;
