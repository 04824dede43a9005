/** Removes known secrets from what a trial leaves. */
import { readdir } from 'node:fs/promises';
import path from 'node:path';
import { isRolloutError } from '../core/errors.ts';
import {
  isTrajectoryFile,
  redactSpill,
  redactTrajectory,
} from '../trajectory/redact-trajectory.ts';
import { TrajectoryRedactor } from '../trajectory/redact.ts';
import { spellingsOf } from '../trajectory/secret-spellings.ts';
import { isSpillFile } from '../trajectory/spill.ts';
import { isSensitiveName, isTemplate } from '../wire/harbor/sensitive.ts';
import { redactFile, redacted } from './redact-file.ts';

/** Shorter values are left alone: they occur in ordinary text, and replacing them would corrupt it. */
const minSecretLength = 6;

/** Values of sensitive-named variables, longest first, so that one secret inside another does not leave a piece of it. */
export function secretsOf(tables: readonly Readonly<Record<string, string>>[]): readonly string[] {
  const values = tables.flatMap((table) =>
    Object.entries(table).flatMap(([name, value]) =>
      isSensitiveName(name) && value.length >= minSecretLength && !isTemplate(value) ? [value] : [],
    ),
  );
  return [...new Set(values)].sort((a, b) => b.length - a.length);
}

export function redactText(text: string, secrets: readonly string[]): string {
  return secrets.reduce((result, secret) => result.replaceAll(secret, redacted), text);
}

/** Every string in a document, keys left as they are. */
export function redactDocument<T>(document: T, secrets: readonly string[]): T {
  if (secrets.length === 0) return document;
  const redactor = new TrajectoryRedactor(secrets);
  const redact = (value: unknown): unknown => {
    if (typeof value === 'string') return redactor.text(value);
    if (Array.isArray(value)) return value.map(redact);
    if (typeof value !== 'object' || value === null) return value;
    return Object.fromEntries(Object.entries(value).map(([key, part]) => [key, redact(part)]));
  };
  return redact(document) as T;
}

/** Rewrites every file below a folder that holds a secret. Links are not followed. What cannot be rewritten spares no other file. */
export async function redactFolder(dir: string, secrets: readonly string[]): Promise<void> {
  if (secrets.length === 0) return;
  const entries = await readdir(dir, { recursive: true, withFileTypes: true });
  const problems: unknown[] = [];
  for (const entry of entries)
    if (entry.isFile())
      await redactAny(path.join(entry.parentPath, entry.name), secrets).catch((error: unknown) =>
        problems.push(error),
      );
  if (problems.length > 0) throw problems[0];
}

/** A trajectory is cleaned as one, so that it stays valid; any other file byte by byte, in every spelling that JSON gives a secret. */
async function redactAny(file: string, secrets: readonly string[]): Promise<void> {
  try {
    if (isSpillFile(file)) {
      await redactSpill(file, secrets);
      return;
    }
    if (await isTrajectoryFile(file)) {
      await redactTrajectory(file, secrets);
      return;
    }
  } catch (error) {
    // Cut off, too long, or nested deeper than the stack: bytes are what there is.
    if (!isRolloutError(error, 'TRAJECTORY_INVALID') && !(error instanceof RangeError)) throw error;
  }
  await redactFile(file, spellingsOf(secrets));
}
