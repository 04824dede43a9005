/** Removes known secrets from what a trial leaves. */
import { open, readdir, readFile, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { isSensitiveName, isTemplate } from '../wire/harbor/sensitive.ts';

/** Shorter values are left alone: they occur in ordinary text, and replacing them would corrupt it. */
const minSecretLength = 6;
const replacement = '[REDACTED]';
const probeBytes = 8 * 1024;
const maxFileBytes = 64 * 1024 * 1024;

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
  return secrets.reduce((result, secret) => result.replaceAll(secret, replacement), text);
}

/** Every string in a document, keys left as they are. */
export function redactDocument<T>(document: T, secrets: readonly string[]): T {
  if (secrets.length === 0) return document;
  const redact = (value: unknown): unknown => {
    if (typeof value === 'string') return redactText(value, secrets);
    if (Array.isArray(value)) return value.map(redact);
    if (typeof value !== 'object' || value === null) return value;
    return Object.fromEntries(Object.entries(value).map(([key, part]) => [key, redact(part)]));
  };
  return redact(document) as T;
}

/** Rewrites every UTF-8 text file below a folder that holds a secret. Links are not followed; a NUL near the start means binary. */
export async function redactFolder(dir: string, secrets: readonly string[]): Promise<void> {
  if (secrets.length === 0) return;
  const entries = await readdir(dir, { recursive: true, withFileTypes: true });
  for (const entry of entries)
    if (entry.isFile()) await redactFile(path.join(entry.parentPath, entry.name), secrets);
}

async function redactFile(file: string, secrets: readonly string[]): Promise<void> {
  if (!(await isSmallText(file))) return;
  const bytes = await readFile(file);
  const text = bytes.toString('utf8');
  const redacted = redactText(text, secrets);
  if (redacted === text) return;
  if (!Buffer.from(text, 'utf8').equals(bytes)) return; // not UTF-8: writing it back would change it
  await writeFile(file, redacted);
}

async function isSmallText(file: string): Promise<boolean> {
  const handle = await open(file, 'r');
  try {
    const { size } = await handle.stat();
    const { buffer, bytesRead } = await handle.read(Buffer.alloc(probeBytes), 0, probeBytes, 0);
    return size <= maxFileBytes && !buffer.subarray(0, bytesRead).includes(0);
  } finally {
    await handle.close();
  }
}
