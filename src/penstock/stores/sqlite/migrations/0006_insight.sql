-- phase: expand
-- breaking: no
--
-- What people are told: which groups are stuck, who is at work, who stopped what; and the embedded queue, made to
-- cost the same with one message or a million.

-- What a node says of itself with its heartbeat, as JSON: its lanes, sinks it cannot open, limits it waits for.
ALTER TABLE penstock_nodes ADD COLUMN note TEXT;
CREATE INDEX penstock_nodes_seen ON penstock_nodes (seen_at);

-- Groups that may be blocked, by name: those with a dead job, those with a held one. Both are rare. `grp || ''` and
-- `id + 0` are orders that only these indexes have: the planner would else try its luck with another one.
CREATE INDEX penstock_groups_dead ON penstock_groups (lane, grp || '') WHERE dead_arrival IS NOT NULL;
CREATE INDEX penstock_jobs_held ON penstock_jobs (lane, grp || '') WHERE state = 5 AND holds;
-- Who paused a group, and why.
CREATE INDEX penstock_audit_group ON penstock_audit (lane, after, id + 0) WHERE action = 'pause_group';

-- Messages without a group are found by when they are visible, groups by when their first message is: a hundred
-- thousand messages of one group are one row to look at.
DROP INDEX penstock_queue_visible;
DROP INDEX penstock_queue_group;
CREATE INDEX penstock_queue_visible ON penstock_queue (queue, visible_at, id) WHERE grp IS NULL;
CREATE INDEX penstock_queue_group ON penstock_queue (queue, grp, id + 0) WHERE grp IS NOT NULL;
CREATE TABLE penstock_queue_groups (
  queue TEXT NOT NULL, grp TEXT NOT NULL, head INTEGER NOT NULL, visible_at INTEGER NOT NULL,
  PRIMARY KEY (queue, grp)) WITHOUT ROWID;
CREATE UNIQUE INDEX penstock_queue_groups_head ON penstock_queue_groups (head);
CREATE INDEX penstock_queue_groups_visible ON penstock_queue_groups (queue, visible_at, head);

-- Names of messages that were acknowledged of late: sent once more, they are duplicates still.
CREATE TABLE penstock_queue_dedups (
  id INTEGER PRIMARY KEY, queue TEXT NOT NULL, dedup_id TEXT NOT NULL, until INTEGER NOT NULL,
  UNIQUE (queue, dedup_id));
CREATE INDEX penstock_queue_dedups_until ON penstock_queue_dedups (until);
