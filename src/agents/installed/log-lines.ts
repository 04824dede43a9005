/** Reading logs that programs in a sandbox wrote: lines of JSON, any of which may be broken, cut off, or of a shape that nobody knows. */
import { createReadStream } from 'node:fs';
import { lstat, readFile } from 'node:fs/promises';
import { createInterface } from 'node:readline';

export type JsonObject = Readonly<Record<string, unknown>>;

/** A log of a run is not larger; what is behind it is not read. */
const longestLogBytes = 256 * 1024 * 1024;

/** Nothing for what is no regular file. */
export async function* textLines(file: string): AsyncGenerator<string> {
  const stats = await lstat(file).catch(() => null);
  if (stats?.isFile() !== true) return;
  const input = createReadStream(file, { end: longestLogBytes, encoding: 'utf8' });
  try {
    yield* createInterface({ input, crlfDelay: Infinity });
  } finally {
    input.destroy();
  }
}

/** The objects of a file, one per line; other lines are passed over. */
export async function* jsonLines(file: string): AsyncGenerator<JsonObject> {
  for await (const line of textLines(file)) {
    const value = objectIn(line);
    if (value !== null) yield value;
  }
}

/** Of the lines of a text. */
export function jsonObjectsIn(text: string): readonly JsonObject[] {
  return text
    .split('\n')
    .map(objectIn)
    .filter((value) => value !== null);
}

/** The object that a file is; null for what is none, or no regular file. */
export async function jsonFile(file: string): Promise<JsonObject | null> {
  const stats = await lstat(file).catch(() => null);
  if (stats?.isFile() !== true || stats.size > longestLogBytes) return null;
  return objectIn(await readFile(file, 'utf8'));
}

export function objectIn(text: string): JsonObject | null {
  if (!text.trimStart().startsWith('{')) return null;
  try {
    return asObject(JSON.parse(text));
  } catch {
    return null; // cut off, or no JSON
  }
}

export function asObject(value: unknown): JsonObject | null {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
    ? (value as JsonObject)
    : null;
}

export function asList(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}

export function objectsOf(value: unknown): readonly JsonObject[] {
  return asList(value)
    .map(asObject)
    .filter((each) => each !== null);
}

export function asText(value: unknown): string | null {
  return typeof value === 'string' ? value : null;
}

/** A count; what is none is 0. */
export function asCount(value: unknown): number {
  return typeof value === 'number' && Number.isSafeInteger(value) && value >= 0 ? value : 0;
}

/** Arguments of a call as ATIF has them: an object. */
export function argumentsOf(text: unknown): JsonObject {
  if (typeof text !== 'string') return asObject(text) ?? { input: text ?? null };
  return objectIn(text) ?? { input: text };
}
