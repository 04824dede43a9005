import { constants } from 'node:fs';
import { open, type FileHandle } from 'node:fs/promises';
import { redacted } from '../trajectory/redact.ts';

const longestChunk = 1024 * 1024;
const shortestChunk = 4096;

/**
 * Copies a regular file of any size and kind to a new one, contents only, without the secrets; every other byte stays as it is. A link, a device, a
 * pipe is refused. `spellings`: the longest first, none of them empty.
 */
export async function redactingCopy(
  from: string,
  to: string,
  spellings: readonly string[],
): Promise<void> {
  // Without NONBLOCK the opening of a pipe would wait for its other end.
  const flags = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK;
  await using source = await open(from, flags);
  const entry = await source.stat();
  if (!entry.isFile()) throw new Error('it is no regular file');
  await using target = await open(to, 'wx', 0o644);
  // One character per byte: what is no UTF-8 survives, and a secret is found beside it.
  const wanted = spellings.map((secret) => Buffer.from(secret, 'utf8').toString('latin1'));
  const chunkBytes = Math.min(longestChunk, Math.max(shortestChunk, entry.size));
  await copy({ source, target, chunkBytes }, wanted);
  // Its source may be removed next.
  await target.datasync();
}

interface Copying {
  readonly source: FileHandle;
  readonly target: FileHandle;
  readonly chunkBytes: number;
}

async function copy({ source, target, chunkBytes }: Copying, wanted: readonly string[]) {
  const longest = Math.max(0, ...wanted.map(({ length }) => length - 1));
  const buffer = Buffer.allocUnsafe(chunkBytes);
  let rest = '';
  for (;;) {
    const { bytesRead } = await source.read(buffer, 0, chunkBytes);
    const isLast = bytesRead === 0;
    const text = rest + buffer.toString('latin1', 0, bytesRead);
    // What begins behind that place may go on in the next chunk.
    const { clean, end } = cleaned(text, isLast ? text.length : text.length - longest, wanted);
    if (clean !== '') await target.writeFile(clean, 'latin1');
    rest = text.slice(end);
    if (isLast) return;
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
