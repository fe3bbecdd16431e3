-- phase: expand
-- breaking: no
--
-- Who may come in: API keys, users and their sessions. Of keys and sessions only SHA-256 hashes are kept, of passwords
-- what scrypt makes of them.

CREATE TABLE penstock.api_keys (
  id         text PRIMARY KEY,
  name       text NOT NULL,
  hash       text NOT NULL UNIQUE,
  scopes     text NOT NULL,
  tenant     text,
  created_at timestamptz NOT NULL,
  created_by text NOT NULL,
  expires_at timestamptz,
  revoked_at timestamptz,
  used_at    timestamptz
);
CREATE UNIQUE INDEX api_keys_name ON penstock.api_keys (name) WHERE revoked_at IS NULL;

CREATE TABLE penstock.users (
  name       text PRIMARY KEY,
  password   text NOT NULL,
  scopes     text NOT NULL,
  tenant     text,
  created_at timestamptz NOT NULL,
  seen_at    timestamptz
);

CREATE TABLE penstock.sessions (
  hash       text PRIMARY KEY,
  name       text NOT NULL,
  created_at timestamptz NOT NULL,
  seen_at    timestamptz NOT NULL
);
CREATE INDEX sessions_name ON penstock.sessions (name);
CREATE INDEX sessions_created ON penstock.sessions (created_at);
