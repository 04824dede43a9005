import { closeSync, fsyncSync, openSync, renameSync, rmSync } from 'node:fs';
import type { DatabaseSync } from 'node:sqlite';
import { RolloutError } from '../../core/errors.ts';
import { applicationId, type SchemaStep } from './schema.ts';

/** Brings an open file to the newest version of `steps`. A file that holds something is copied first, to `<file>.v<N>`; answers that copy's path. */
export function upgrade(
  database: DatabaseSync,
  file: string,
  steps: readonly SchemaStep[],
): string | null {
  const found = versionOf(database, file);
  const newest = steps.length;
  if (found > newest) throw tooNew(file, found, newest);
  const missing = steps.filter(({ version }) => version > found);
  if (missing.length === 0) return null;
  const copy = found === 0 ? null : `${file}.v${found}`;
  if (copy !== null) copyInto(database, copy);
  for (const { version, up } of missing) step(database, version, up);
  return copy;
}

/** Takes steps back until the file has version `target`. All or nothing. */
export function downgrade(
  database: DatabaseSync,
  file: string,
  { target, steps }: { readonly target: number; readonly steps: readonly SchemaStep[] },
): { readonly from: number; readonly copy: string | null } {
  const from = versionOf(database, file);
  if (from > steps.length) throw tooNew(file, from, steps.length);
  if (target > from || target < 1) throw noDowngrade(file, from, target);
  if (target === from) return { from, copy: null };
  const undone = steps.filter(({ version }) => version > target && version <= from).reverse();
  const downs = undone.map(({ down }) => down);
  if (downs.includes(null)) throw noDowngrade(file, from, target);
  const copy = `${file}.v${from}`;
  copyInto(database, copy);
  step(database, target, downs.join('\n'));
  return { from, copy };
}

/** A consistent copy, whole or not there. */
export function copyInto(database: DatabaseSync, path: string): void {
  const draft = `${path}.part`;
  rmSync(draft, { force: true });
  closeSync(openSync(draft, 'wx', 0o600));
  try {
    database.prepare('VACUUM INTO ?').run(draft);
    const copy = openSync(draft, 'r+');
    try {
      fsyncSync(copy);
    } finally {
      closeSync(copy);
    }
    renameSync(draft, path);
  } catch (error) {
    rmSync(draft, { force: true });
    throw error;
  }
}

function step(database: DatabaseSync, version: number, sql: string): void {
  database.exec('BEGIN IMMEDIATE');
  try {
    database.exec(`${sql}; PRAGMA user_version = ${version}`);
    database.exec('COMMIT');
  } catch (error) {
    if (database.isTransaction) database.exec('ROLLBACK');
    throw error;
  }
}

/** 0 = an empty file. */
function versionOf(database: DatabaseSync, file: string): number {
  const version = pragma(database, 'user_version');
  const application = pragma(database, 'application_id');
  if (application === applicationId) return version;
  const isEmpty = database.prepare('SELECT 1 FROM sqlite_schema LIMIT 1').get() === undefined;
  if (!isEmpty || application !== 0)
    throw new RolloutError('STORE_FAILED', `${file} is not a store of Slipway`, {
      phase: 'server',
      remedy: 'Name another data folder.',
    });
  database.exec(`PRAGMA application_id = ${applicationId}`);
  return 0;
}

function pragma(database: DatabaseSync, name: string): number {
  return Number(database.prepare(`PRAGMA ${name}`).get()?.[name] ?? 0);
}

function tooNew(file: string, found: number, newest: number): RolloutError {
  return new RolloutError(
    'STORE_TOO_NEW',
    `${file} has schema version ${found}, this program knows up to ${newest}`,
    {
      phase: 'server',
      remedy: `Run the newer Slipway, or 'slipway store downgrade ${newest}' of it first.`,
    },
  );
}

function noDowngrade(file: string, from: number, target: number): RolloutError {
  return new RolloutError(
    'STORE_UNSUPPORTED',
    `${file} cannot go from schema version ${from} to ${target}`,
    {
      phase: 'server',
      remedy: `Stop the server and put the copy ${file}.v${target} in its place.`,
    },
  );
}
