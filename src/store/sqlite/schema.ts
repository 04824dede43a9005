/**
 * The tables, as numbered steps. A file's `user_version` says which steps it has. A step that was released never changes: what comes later is a new
 * step, with a `down` wherever the older program can live with what is left.
 */

export interface SchemaStep {
  /** From 1, without gaps. */
  readonly version: number;
  readonly up: string;
  /** How to get back to the version before; null = only by a backup. */
  readonly down: string | null;
}

/** "Slpw": tells the file from other SQLite files. */
export const applicationId = 0x536c7077;

/** States as in `wire/rollout/rollout-state.ts`; an index can only be used by a query that says the same words. */
export const endedStates = `('success', 'failure', 'cancelled')`;
export const liveStates = `('queued', 'running', 'grading')`;

/**
 * Bodies of requests have their own table: a state change writes a row anew, and would write its body with it.
 * AUTOINCREMENT keeps numbers growing after the newest row was removed.
 */
const tables = `
CREATE TABLE rollouts (
  seq INTEGER PRIMARY KEY AUTOINCREMENT,
  id TEXT NOT NULL UNIQUE,
  tenant TEXT NOT NULL,
  digest TEXT NOT NULL,
  accepted_at INTEGER NOT NULL,
  state TEXT NOT NULL,
  attempt INTEGER NOT NULL,
  has_agent_begun INTEGER NOT NULL,
  is_tombstone INTEGER NOT NULL,
  started_at INTEGER,
  completed_at INTEGER,
  ended_at INTEGER,
  outcome TEXT,
  controller_report TEXT
) STRICT;
CREATE INDEX live_rollouts ON rollouts (seq) WHERE state IN ${liveStates};
CREATE INDEX ended_rollouts ON rollouts (coalesce(ended_at, accepted_at)) WHERE state IN ${endedStates};
CREATE TABLE requests (seq INTEGER PRIMARY KEY, body TEXT NOT NULL) STRICT;
CREATE TABLE deliveries (
  seq INTEGER PRIMARY KEY AUTOINCREMENT,
  key TEXT NOT NULL UNIQUE,
  rollout_id TEXT NOT NULL,
  channel TEXT NOT NULL,
  state TEXT NOT NULL,
  attempts INTEGER NOT NULL,
  created_at INTEGER NOT NULL,
  last_attempt_at INTEGER,
  last_error TEXT,
  url TEXT NOT NULL,
  auth TEXT,
  body TEXT NOT NULL,
  UNIQUE (rollout_id, channel)
) STRICT;
CREATE INDEX pending_deliveries ON deliveries (seq) WHERE state = 'pending';
CREATE INDEX dead_deliveries ON deliveries (seq) WHERE state = 'dead';
CREATE TABLE receipts (
  seq INTEGER PRIMARY KEY,
  rollout_id TEXT NOT NULL,
  receipt TEXT NOT NULL
) STRICT;
CREATE INDEX receipts_of_rollout ON receipts (rollout_id);
CREATE TABLE events (
  cursor INTEGER PRIMARY KEY AUTOINCREMENT,
  rollout_id TEXT NOT NULL,
  tenant TEXT NOT NULL,
  type TEXT NOT NULL,
  at INTEGER NOT NULL,
  payload TEXT NOT NULL
) STRICT;
`;

export const schemaSteps: readonly SchemaStep[] = [
  { version: 1, up: tables, down: null },
  {
    version: 2,
    // A tenant's pages, and the events of one rollout, without reading past those of all others.
    up: `
      CREATE INDEX rollouts_of_tenant ON rollouts (tenant, seq);
      CREATE INDEX events_of_rollout ON events (rollout_id, cursor);
    `,
    down: `
      DROP INDEX rollouts_of_tenant;
      DROP INDEX events_of_rollout;
    `,
  },
];
