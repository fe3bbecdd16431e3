-- phase: expand
-- breaking: no
--
-- What people are told: which groups are stuck, who is at work, who stopped what; and the embedded queue, made to
-- cost the same with one message or a million.

-- What a node says of itself with its heartbeat, as JSON: its lanes, sinks it cannot open, limits it waits for.
ALTER TABLE penstock.nodes ADD COLUMN note text;
CREATE INDEX nodes_seen ON penstock.nodes (seen_at);

-- Groups that may be blocked, by name: those with a dead job, those with a held one. Both are rare. `grp || ''` and
-- `id + 0` are orders that only these indexes have: the planner would else try its luck with another one.
CREATE INDEX groups_dead ON penstock.groups (lane, (grp || '')) WHERE dead_arrival IS NOT NULL;
CREATE INDEX jobs_held ON penstock.jobs (lane, (grp || '')) WHERE state = 5 AND holds;
-- Who paused a group, and why.
CREATE INDEX audit_group ON penstock.audit (lane, after, (id + 0)) WHERE action = 'pause_group';

-- Messages without a group are found by when they are visible, groups by when their first message is: a hundred
-- thousand messages of one group are one row to look at. The row is also the group's lock.
DROP INDEX penstock.queue_visible, penstock.queue_group;
CREATE INDEX queue_visible ON penstock.queue (queue, visible_at, id) WHERE grp IS NULL;
CREATE INDEX queue_group ON penstock.queue (queue, grp, (id + 0)) WHERE grp IS NOT NULL;
CREATE TABLE penstock.queue_groups (
  queue text NOT NULL, grp text COLLATE "C" NOT NULL, head bigint NOT NULL, visible_at timestamptz NOT NULL,
  PRIMARY KEY (queue, grp)
) WITH (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.01);
CREATE UNIQUE INDEX queue_groups_head ON penstock.queue_groups (head);
CREATE INDEX queue_groups_visible ON penstock.queue_groups (queue, visible_at, head);

-- Names of messages that were acknowledged of late: sent once more, they are duplicates still.
CREATE TABLE penstock.queue_dedups (
  id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  queue text NOT NULL, dedup_id text NOT NULL, until timestamptz NOT NULL,
  UNIQUE (queue, dedup_id)
) WITH (autovacuum_vacuum_scale_factor = 0.01);
CREATE INDEX queue_dedups_until ON penstock.queue_dedups (until, id);
