/**
 * Copies between host and container through the engine's archive endpoints. The engine resolves parent folders inside the
 * container's root; what is copied out is unpacked by `safe-tar`, which writes only regular files and folders.
 */
import { mkdir, mkdtemp, rename, rm } from 'node:fs/promises';
import path from 'node:path';
import type { Readable } from 'node:stream';
import { PassThrough } from 'node:stream';
import * as tar from 'tar-stream';
import { attribute, RolloutError } from '../../core/errors.ts';
import type { DownloadOptions } from '../environment.ts';
import { defaultMaxBytes, packDir, packFile, unpackInto } from '../shared/safe-tar.ts';
import { shellQuote } from '../shared/shell-quote.ts';
import { attachExec } from './attached-exec.ts';
import type { ExecTarget } from './container-exec.ts';
import { EngineError, engineFailure } from './engine/engine-error.ts';

/** Go's file modes, as the engine's stat header has them. */
const goDirectory = 0x8000_0000;
const goNotRegular = 0x8f28_0000;

interface PathStat {
  readonly name: string;
  readonly size: number;
  readonly mode: number;
}

export async function uploadFile(
  target: ExecTarget,
  from: string,
  to: string,
  signal: AbortSignal,
): Promise<void> {
  await transfer(`copying a file to ${to}`, signal, async () => {
    if (isDirectory(await stat(target, to, signal))) throw refused(`${to} is a folder`);
    await put(target, '/', packFile(from, inner(to)), signal);
  });
}

export async function uploadDir(
  target: ExecTarget,
  from: string,
  to: string,
  signal: AbortSignal,
): Promise<void> {
  await transfer(`copying a folder to ${to}`, signal, async () => {
    const found = await stat(target, to, signal);
    if (found === null) await put(target, '/', folderArchive(inner(to)), signal);
    await put(target, to, packDir(from), signal);
  });
}

export async function downloadFile(
  target: ExecTarget,
  from: string,
  to: string,
  options: DownloadOptions & { readonly signal: AbortSignal },
): Promise<void> {
  const { signal } = options;
  await transfer(`copying the file ${from}`, signal, async () => {
    const maxBytes = options.maxBytes ?? defaultMaxBytes;
    const found = await stat(target, from, signal);
    if (found === null) throw refused(`${from} does not exist`);
    if (!isRegular(found)) throw refused(`${from} is not a regular file`);
    if (found.size > maxBytes) throw refused(`${from} is larger than ${maxBytes} bytes`);
    await mkdir(path.dirname(to), { recursive: true });
    const landing = await mkdtemp(path.join(path.dirname(to), '.slipway-download-'));
    try {
      const archive = await get(target, from, signal);
      const { skipped } = await unpackInto(archive, landing, {
        strip: 0,
        exclude: [],
        maxBytes,
        signal,
      });
      if (skipped.length > 0) throw refused(`${from} is not a regular file`);
      await rename(path.join(landing, found.name), to);
    } finally {
      await rm(landing, { recursive: true, force: true });
    }
  });
}

export async function downloadDir(
  target: ExecTarget,
  from: string,
  to: string,
  options: DownloadOptions & { readonly signal: AbortSignal },
): Promise<{ readonly skipped: readonly string[] }> {
  const { signal, exclude = [], maxBytes = defaultMaxBytes } = options;
  return transfer(`copying the folder ${from}`, signal, async () => {
    const found = await stat(target, from, signal);
    if (found === null) throw refused(`${from} does not exist`);
    if (!isDirectory(found)) throw refused(`${from} is not a folder`);
    const limits = { exclude, maxBytes, signal };
    if (exclude.length > 0) {
      const filtered = await downloadFiltered(target, from, to, limits);
      if (filtered !== null) return filtered;
    }
    return unpackInto(await get(target, from, signal), to, { ...limits, strip: 1 });
  });
}

/**
 * Leaves excluded files behind with the container's own tar. Null when it has none that understands the options, or is not
 * running: then everything is fetched and the unpacking leaves them out.
 */
async function downloadFiltered(
  target: ExecTarget,
  from: string,
  to: string,
  options: {
    readonly exclude: readonly string[];
    readonly maxBytes: number;
    readonly signal: AbortSignal;
  },
): Promise<{ readonly skipped: readonly string[] } | null> {
  const flags = options.exclude.map((pattern) => `--exclude=${shellQuote(pattern)}`);
  const tarCommand = `exec tar -cf - --no-anchored --wildcards --wildcards-match-slash ${flags.join(' ')} -C ${shellQuote(from)} .`;
  // A dry run of the options on an empty list tells an old or small tar apart before any byte is written to the host.
  const probe =
    'tar --no-anchored --wildcards --wildcards-match-slash --exclude=x -cf /dev/null -T /dev/null';
  const output = new PassThrough({ highWaterMark: 1024 * 1024 });
  const progress: { phase: 'probing' | 'copying' | 'unable' } = { phase: 'probing' };
  try {
    const exec = await attachExec(
      target,
      {
        argv: ['sh', '-c', `${probe} >/dev/null 2>&1 || exit 42; ${tarCommand}`],
        user: 0,
        cwd: '/',
        env: {},
        wantsStdin: false,
        onOutput: (stream, bytes) => {
          if (stream !== 'stdout') return;
          progress.phase = 'copying';
          if (!output.write(Buffer.from(bytes))) {
            exec.socket.pause();
            output.once('drain', () => exec.socket.resume());
          }
        },
      },
      options.signal,
    );
    const closeOutput = exec.ended.then(async () => {
      const exitCode = await exec.exitCode(options.signal);
      if (exitCode === 42 || exitCode === 126 || exitCode === 127) progress.phase = 'unable';
      output.end();
    });
    closeOutput.catch((error: unknown) => output.destroy(error as Error));
    const result = await unpackInto(output, to, { ...options, strip: 0 }).finally(() =>
      exec.socket.destroy(),
    );
    await closeOutput;
    return progress.phase === 'unable' ? null : result;
  } catch (error) {
    if (error instanceof EngineError && progress.phase === 'probing') return null;
    throw error;
  }
}

async function stat(target: ExecTarget, of: string, signal: AbortSignal): Promise<PathStat | null> {
  try {
    const answer = await target.engine.stream({
      method: 'HEAD',
      path: `/containers/${target.containerId}/archive`,
      query: { path: of },
      signal,
    });
    answer.resume();
    const header = String(answer.headers['x-docker-container-path-stat'] ?? '');
    return JSON.parse(Buffer.from(header, 'base64').toString('utf8')) as PathStat;
  } catch (error) {
    if (error instanceof EngineError && error.status === 404) {
      await target.engine.json({
        method: 'GET',
        path: `/containers/${target.containerId}/json`,
        signal,
      }); // rejects when it is the container that is missing
      return null;
    }
    throw error;
  }
}

async function put(
  target: ExecTarget,
  into: string,
  archive: Readable,
  signal: AbortSignal,
): Promise<void> {
  const answer = await target.engine.stream({
    method: 'PUT',
    path: `/containers/${target.containerId}/archive`,
    query: { path: into, noOverwriteDirNonDir: 'true' },
    tar: archive,
    signal,
  });
  answer.resume();
}

function get(target: ExecTarget, from: string, signal: AbortSignal): Promise<Readable> {
  return target.engine.stream({
    method: 'GET',
    path: `/containers/${target.containerId}/archive`,
    query: { path: from },
    signal,
  });
}

function folderArchive(name: string): Readable {
  const pack = tar.pack();
  pack.entry({ name: `${name}/`, type: 'directory', mode: 0o755, uid: 0, gid: 0 });
  pack.finalize();
  return pack as unknown as Readable;
}

/** The path as an archive that is unpacked at the root names it. */
function inner(absolute: string): string {
  const name = path.posix.normalize(absolute).replace(/^\/+|\/+$/g, '');
  if (!absolute.startsWith('/') || name === '')
    throw refused(`${absolute} is not an absolute path`);
  return name;
}

function isDirectory(found: PathStat | null): boolean {
  return found !== null && (found.mode & goDirectory) !== 0;
}

function isRegular(found: PathStat): boolean {
  return (found.mode & goNotRegular) === 0;
}

async function transfer<T>(what: string, signal: AbortSignal, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    signal.throwIfAborted();
    if (error instanceof EngineError)
      throw engineFailure(error, {
        code: 'TRANSFER_FAILED',
        phase: 'environment',
        what,
        isRunning: true,
      });
    throw attribute(error, 'TRANSFER_FAILED', 'environment', what);
  }
}

function refused(message: string): RolloutError {
  return new RolloutError('TRANSFER_FAILED', message, { phase: 'environment', retryable: false });
}
