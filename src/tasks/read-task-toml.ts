import { readFile, stat } from 'node:fs/promises';
import path from 'node:path';
import { parse, TomlError } from 'smol-toml';
import { messageOf, RolloutError } from '../core/errors.ts';
import { errnoOf } from './file-presence.ts';

export const taskTomlName = 'task.toml';

export type TomlDocument = Readonly<Record<string, unknown>>;

/**
 * Reads task.toml of a task folder as a document, not yet checked. Rejects with TASK_NOT_FOUND (no such folder, or none with a
 * task.toml) or TASK_CONFIG_UNREADABLE (no access, not UTF-8, not TOML).
 */
export async function readTaskToml(dir: string, signal: AbortSignal): Promise<TomlDocument> {
  signal.throwIfAborted();
  await expectFolder(dir);
  let bytes: Buffer;
  try {
    bytes = await readFile(path.join(dir, taskTomlName), { signal });
  } catch (error) {
    signal.throwIfAborted();
    if (errnoOf(error) === 'ENOENT')
      throw new RolloutError('TASK_NOT_FOUND', `${dir} holds no ${taskTomlName}`, {
        phase: 'resolve',
        field: taskTomlName,
        remedy: 'Name a task folder, or make one with "slipway task init".',
        cause: error,
      });
    throw unreadable(`${dir}: ${taskTomlName} cannot be read: ${messageOf(error)}`, error);
  }
  return parseToml(bytes, dir);
}

async function expectFolder(dir: string): Promise<void> {
  const found = await stat(dir).catch((error: unknown) => {
    if (errnoOf(error) === 'ENOENT' || errnoOf(error) === 'ENOTDIR') return null;
    throw unreadable(`${dir} cannot be read: ${messageOf(error)}`, error);
  });
  if (found?.isDirectory() === true) return;
  throw new RolloutError('TASK_NOT_FOUND', `${dir} is not a folder`, {
    phase: 'resolve',
    field: 'path',
    remedy: 'Check the path of the task folder.',
  });
}

function parseToml(bytes: Uint8Array, dir: string): TomlDocument {
  let text: string;
  try {
    text = new TextDecoder('utf-8', { fatal: true }).decode(bytes);
  } catch (error) {
    throw unreadable(`${dir}: ${taskTomlName} is not UTF-8 text`, error);
  }
  try {
    return plainNumbers(parse(text, { integersAsBigInt: 'asNeeded' })) as TomlDocument;
  } catch (error) {
    const [what = 'not TOML'] = messageOf(error).split('\n');
    const place = error instanceof TomlError ? ` (line ${error.line}, column ${error.column})` : '';
    throw unreadable(`${dir}: ${taskTomlName}: ${what}${place}`, error);
  }
}

/** Integers beyond 2^53 (a seed in `[metadata]`) as the nearest number: a bigint would not survive JSON. */
function plainNumbers(value: unknown): unknown {
  if (typeof value === 'bigint') return Number(value);
  if (Array.isArray(value)) return value.map(plainNumbers);
  if (typeof value !== 'object' || value === null || value instanceof Date) return value;
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, plainNumbers(item)]));
}

function unreadable(message: string, cause: unknown): RolloutError {
  return new RolloutError('TASK_CONFIG_UNREADABLE', message, {
    phase: 'resolve',
    field: taskTomlName,
    remedy: `Make ${taskTomlName} a readable TOML file in UTF-8.`,
    cause,
  });
}
