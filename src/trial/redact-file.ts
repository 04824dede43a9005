import { randomUUID } from 'node:crypto';
import { constants } from 'node:fs';
import { open, rename, rm, type FileHandle } from 'node:fs/promises';
import path from 'node:path';
import { fileChunks } from '../core/file-chunks.ts';

const chunkBytes = 1024 * 1024;
/** Stands where a secret was. */
export const redacted = '[REDACTED]';

/**
 * Replaces secrets in a file of any size and kind; every other byte stays as it is. A file without any is not written. Links are not
 * followed. `secrets`: the longest first, none of them empty.
 */
export async function redactFile(file: string, secrets: readonly string[]): Promise<void> {
  // One character per byte: what is no UTF-8 survives, and a secret is found beside it.
  const wanted = secrets.map((secret) => Buffer.from(secret, 'utf8').toString('latin1'));
  await using source = await open(file, constants.O_RDONLY | constants.O_NOFOLLOW);
  if (!(await holdsAny(source, wanted))) return;
  const draft = path.join(path.dirname(file), `.redacted-${randomUUID()}`);
  try {
    const { mode } = await source.stat();
    await using target = await open(draft, 'wx', mode & 0o777);
    await copyWithout(wanted, source, target);
    await rename(draft, file);
  } catch (error) {
    await rm(draft, { force: true });
    throw error;
  }
}

async function holdsAny(source: FileHandle, wanted: readonly string[]): Promise<boolean> {
  const overlap = overlapOf(wanted);
  let rest = '';
  for await (const chunk of fileChunks(source, chunkBytes)) {
    const text = rest + chunk.toString('latin1');
    if (wanted.some((secret) => text.includes(secret))) return true;
    rest = text.slice(Math.max(0, text.length - overlap));
  }
  return false;
}

async function copyWithout(
  wanted: readonly string[],
  source: FileHandle,
  target: FileHandle,
): Promise<void> {
  const overlap = overlapOf(wanted);
  let rest = '';
  for await (const chunk of fileChunks(source, chunkBytes)) {
    const text = rest + chunk.toString('latin1');
    // What begins behind that place may be the beginning of a longer secret, which goes on in the next chunk.
    const cleaned = cleanedTo(text.length - overlap, text, wanted);
    await target.writeFile(cleaned.text, 'latin1');
    rest = text.slice(cleaned.end);
  }
  await target.writeFile(cleanedTo(rest.length, rest, wanted).text, 'latin1');
}

/** The text up to `limit`, or to the end of a secret that lies over it, without the secrets in there; of those that begin together the longest. */
function cleanedTo(
  limit: number,
  text: string,
  wanted: readonly string[],
): { readonly text: string; readonly end: number } {
  const found = wanted.map((secret) => ({ secret, at: text.indexOf(secret) }));
  let result = '';
  let from = 0;
  for (;;) {
    const [first] = found.filter(({ at }) => at >= 0).toSorted((a, b) => a.at - b.at);
    if (first === undefined || first.at >= limit) break;
    result += text.slice(from, first.at) + redacted;
    from = first.at + first.secret.length;
    for (const next of found)
      if (next.at >= 0 && next.at < from) next.at = text.indexOf(next.secret, from);
  }
  const end = Math.max(from, limit, 0);
  return { text: result + text.slice(from, end), end };
}

function overlapOf(wanted: readonly string[]): number {
  return Math.max(0, ...wanted.map(({ length }) => length - 1));
}
