/** Removes known secrets from what a trial leaves. */
import { readdir } from 'node:fs/promises';
import path from 'node:path';
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
  const redact = (value: unknown): unknown => {
    if (typeof value === 'string') return redactText(value, secrets);
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
      await redactFile(path.join(entry.parentPath, entry.name), secrets).catch((error: unknown) =>
        problems.push(error),
      );
  if (problems.length > 0) throw problems[0];
}
