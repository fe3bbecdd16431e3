-- Begins the transaction of every migration; it is the only one: SQLite has one writer.
CREATE TABLE IF NOT EXISTS penstock_migrations (
  number     INTEGER PRIMARY KEY,
  name       TEXT NOT NULL,
  checksum   TEXT NOT NULL,
  breaking   INTEGER NOT NULL,
  applied_at INTEGER NOT NULL DEFAULT (CAST((julianday('now') - 2440587.5) * 86400000000 AS INTEGER))
);
