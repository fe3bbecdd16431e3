-- phase: expand
-- breaking: no
--
-- Who may come in: API keys, users and their sessions. Of keys and sessions only SHA-256 hashes are kept, of passwords
-- what scrypt makes of them.

CREATE TABLE penstock_api_keys (
  id         TEXT PRIMARY KEY,
  name       TEXT NOT NULL,
  hash       TEXT NOT NULL UNIQUE,
  scopes     TEXT NOT NULL,
  tenant     TEXT,
  created_at INTEGER NOT NULL,
  created_by TEXT NOT NULL,
  expires_at INTEGER,
  revoked_at INTEGER,
  used_at    INTEGER
) WITHOUT ROWID;
CREATE UNIQUE INDEX penstock_api_keys_name ON penstock_api_keys (name) WHERE revoked_at IS NULL;

CREATE TABLE penstock_users (
  name       TEXT PRIMARY KEY,
  password   TEXT NOT NULL,
  scopes     TEXT NOT NULL,
  tenant     TEXT,
  created_at INTEGER NOT NULL,
  seen_at    INTEGER
) WITHOUT ROWID;

CREATE TABLE penstock_sessions (
  hash       TEXT PRIMARY KEY,
  name       TEXT NOT NULL,
  created_at INTEGER NOT NULL,
  seen_at    INTEGER NOT NULL
) WITHOUT ROWID;
CREATE INDEX penstock_sessions_name ON penstock_sessions (name);
CREATE INDEX penstock_sessions_created ON penstock_sessions (created_at);
