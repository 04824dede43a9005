/**
 * Files of a finished rollout, as the server keeps them. Each comes under a partial name and gets its own when its digest is right, so that a name never
 * stands for half a file; what an earlier attempt left is taken up where it ended.
 */
import { createHash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { open, rename, rm, stat } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { RolloutError, attribute } from '../core/errors.ts';
import { makeFolder } from '../core/make-folder.ts';
import type { FileDocument } from '../wire/api/file.ts';
import type { ServerClient } from './server-client.ts';

export interface DownloadedFile {
  readonly path: string;
  readonly sizeBytes: number;
  /** `kept`: it was there already. */
  readonly state: 'downloaded' | 'resumed' | 'kept';
}

export interface DownloadOptions {
  readonly id: string;
  /** Absolute. */
  readonly dir: string;
  /** Files, or folders with all that is in them; empty = everything. */
  readonly only: readonly string[];
  readonly signal: AbortSignal;
  readonly onFile: (file: DownloadedFile) => void;
}

export async function downloadRollout(
  options: DownloadOptions,
  client: Pick<ServerClient, 'files' | 'download'>,
): Promise<readonly DownloadedFile[]> {
  const { id, only, signal } = options;
  const { files } = await client.files(id, signal);
  const wanted = files.filter(
    ({ path }) =>
      only.length === 0 ||
      only.some((one) => path === one || path.startsWith(`${one.replace(/\/+$/, '')}/`)),
  );
  if (wanted.length === 0 && only.length > 0)
    throw new RolloutError('REQUEST_INVALID', `${id} has no file ${only.join(', ')}`, {
      phase: 'server',
      remedy: `See what it has: slipway rollouts show ${id}.`,
    });
  const done: DownloadedFile[] = [];
  for (const file of wanted) {
    signal.throwIfAborted();
    const target = join(options.dir, ...safeSegments(file.path));
    const state = await fetchFile(file, target, { id, client, signal });
    const one = { path: file.path, sizeBytes: file.size_bytes, state };
    options.onFile(one);
    done.push(one);
  }
  return done;
}

/** The server is not trusted with the places of our files. */
function safeSegments(path: string): readonly string[] {
  const segments = path.split('/');
  if (segments.some((one) => one === '' || one === '.' || one === '..' || /[\\\0]/.test(one)))
    throw new RolloutError('ARCHIVE_UNSAFE', `the server names a file ${JSON.stringify(path)}`, {
      phase: 'server',
    });
  return segments;
}

async function fetchFile(
  file: FileDocument,
  target: string,
  {
    id,
    client,
    signal,
  }: {
    readonly id: string;
    readonly client: Pick<ServerClient, 'download'>;
    readonly signal: AbortSignal;
  },
): Promise<DownloadedFile['state']> {
  if ((await digestOf(target)) === file.sha256) return 'kept';
  await makeFolder(dirname(target));
  const partial = `${target}.partial`;
  const before = (await stat(partial).catch(() => null))?.size ?? 0;
  const offset = before < file.size_bytes ? before : 0;
  const etag = `"${file.sha256}"`;
  const response = await client.download({ id, path: file.path, etag }, offset, signal);
  const isResumed = response.status === 206;
  try {
    await using out = await open(partial, isResumed ? 'r+' : 'w');
    const start = isResumed ? offset : 0;
    await out.truncate(start);
    let position = start;
    const body: AsyncIterable<Uint8Array> | null = response.body;
    for await (const chunk of body ?? []) {
      position += (await out.write(chunk, 0, chunk.length, position)).bytesWritten;
    }
  } catch (error) {
    signal.throwIfAborted();
    throw attribute(error, 'SERVER_UNREACHABLE', 'server', `${file.path} broke off`);
  }
  if ((await digestOf(partial)) !== file.sha256) {
    await rm(partial, { force: true });
    throw new RolloutError('SERVER_UNREACHABLE', `${file.path} arrived with another digest`, {
      phase: 'server',
      remedy: 'Download it again.',
    });
  }
  await rename(partial, target);
  return isResumed ? 'resumed' : 'downloaded';
}

/** null = there is no such file. */
async function digestOf(file: string): Promise<string | null> {
  const hash = createHash('sha256');
  try {
    for await (const chunk of createReadStream(file)) hash.update(chunk as Buffer);
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === 'ENOENT' || code === 'ENOTDIR') return null;
    throw attribute(error, 'TRANSFER_FAILED', 'server', file);
  }
  return hash.digest('hex');
}
