import {
  closeSync,
  constants,
  fchmodSync,
  fstatSync,
  linkSync,
  lstatSync,
  openSync,
  readSync,
  rmSync,
  writeFileSync,
  type Stats,
} from 'node:fs';
import { redacted } from '../trajectory/redact.ts';

const longestChunk = 1024 * 1024;
const shortestChunk = 4096;
const fileMode = 0o644;

export interface FileToKeep {
  readonly from: string;
  /** Free, and on a way without links. */
  readonly to: string;
  readonly mayBeTaken: boolean;
}

/**
 * Keeps a regular file of any size and kind, contents only, without the secrets; every other byte stays as it is. A link, a device, a pipe is refused.
 * One that may be taken and holds no secret gets a second name in place of a copy: nothing is written, and its first name may go. `spellings`: the longest
 * first, none of them empty. Answers a descriptor of what is kept, which is not synced and the caller's to close; where it throws, nothing of it is there.
 */
export function keepFile(
  { from, to, mayBeTaken }: FileToKeep,
  spellings: readonly string[],
): number {
  // Without NONBLOCK the opening of a pipe would wait for its other end.
  const flags = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK;
  const source = openSync(from, flags);
  let kept: number | null = null;
  try {
    const entry = fstatSync(source);
    if (!entry.isFile()) throw new Error('it is no regular file');
    // One character per byte: what is no UTF-8 survives, and a secret is found beside it.
    const wanted = spellings.map((secret) => Buffer.from(secret, 'utf8').toString('latin1'));
    const chunkBytes = Math.min(longestChunk, Math.max(shortestChunk, entry.size));
    // What has another name, or another owner, can be changed from there.
    const isOurs = entry.nlink === 1 && entry.uid === process.getuid?.();
    const isTaken =
      mayBeTaken &&
      isOurs &&
      !holdsAny({ source, chunkBytes }, wanted) &&
      take({ from, to, source }, entry);
    kept = isTaken
      ? source
      : writeNew(to, (target) => copy({ source, target, chunkBytes }, wanted));
    return kept;
  } finally {
    if (kept !== source) closeSync(source);
  }
}

/** Answers a descriptor, which is not synced and the caller's to close; where it throws, there is no file. */
export function writeNew(file: string, write: (descriptor: number) => void): number {
  const descriptor = openSync(file, 'wx', fileMode);
  try {
    write(descriptor);
    return descriptor;
  } catch (error) {
    closeSync(descriptor);
    rmSync(file, { force: true });
    throw error;
  }
}

interface Copying {
  readonly source: number;
  readonly target: number;
  readonly chunkBytes: number;
}

/** False where the file system has no second name for it. */
function take(
  { from, to, source }: { readonly from: string; readonly to: string; readonly source: number },
  entry: Stats,
): boolean {
  try {
    linkSync(from, to);
  } catch {
    return false; // whatever is wrong with it, a copy says so too
  }
  try {
    const { ino, dev } = lstatSync(to);
    if (ino !== entry.ino || dev !== entry.dev) throw new Error('it was replaced meanwhile');
    if ((entry.mode & 0o7777) !== fileMode) fchmodSync(source, fileMode);
    return true;
  } catch (error) {
    rmSync(to, { force: true });
    throw error;
  }
}

function holdsAny(
  { source, chunkBytes }: Pick<Copying, 'source' | 'chunkBytes'>,
  wanted: readonly string[],
): boolean {
  const longest = longestOf(wanted);
  let isFound = false;
  eachChunk({ source, chunkBytes }, (text) => {
    isFound ||= wanted.some((secret) => text.includes(secret));
    return isFound ? null : text.slice(Math.max(0, text.length - longest));
  });
  return isFound;
}

function copy({ source, target, chunkBytes }: Copying, wanted: readonly string[]): void {
  const longest = longestOf(wanted);
  eachChunk({ source, chunkBytes }, (text, isLast) => {
    // What begins behind that place may go on in the next chunk.
    const { clean, end } = cleaned(text, isLast ? text.length : text.length - longest, wanted);
    if (clean !== '') writeFileSync(target, clean, 'latin1');
    return text.slice(end);
  });
}

/** Characters before the end of a chunk in which a secret may begin that goes on in the next. */
function longestOf(wanted: readonly string[]): number {
  return Math.max(0, ...wanted.map(({ length }) => length - 1));
}

/** From the beginning, whatever was read before; each text begins with what `take` left of the one before, the last one is only that. `take` answers null to end it. */
function eachChunk(
  { source, chunkBytes }: Pick<Copying, 'source' | 'chunkBytes'>,
  take: (text: string, isLast: boolean) => string | null,
): void {
  const buffer = Buffer.allocUnsafe(chunkBytes);
  let rest: string | null = '';
  let isLast = false;
  for (let at = 0; rest !== null && !isLast;) {
    const bytesRead = readSync(source, buffer, 0, chunkBytes, at);
    at += bytesRead;
    isLast = bytesRead === 0;
    rest = take(rest + buffer.toString('latin1', 0, bytesRead), isLast);
  }
}

/** The text up to `limit`, or to the end of a secret that lies over it; of those that begin together the longest is replaced. */
function cleaned(
  text: string,
  limit: number,
  wanted: readonly string[],
): { readonly clean: string; readonly end: number } {
  const next = wanted.map((secret) => ({ secret, at: text.indexOf(secret) }));
  let clean = '';
  let from = 0;
  for (;;) {
    for (const one of next)
      if (one.at >= 0 && one.at < from) one.at = text.indexOf(one.secret, from);
    const [first] = next.filter(({ at }) => at >= 0).sort((a, b) => a.at - b.at);
    if (first === undefined || first.at >= limit) break;
    clean += text.slice(from, first.at) + redacted;
    from = first.at + first.secret.length;
  }
  const end = Math.max(from, limit, 0);
  return { clean: clean + text.slice(from, end), end };
}
