/**
 * Copies between host and sandbox: as tar archives through files of the sandbox, which its own `tar` packs and unpacks as root; single files come back
 * directly. What is copied out is unpacked by `safe-tar`, which writes only regular files and folders.
 */
import { randomUUID } from 'node:crypto';
import { createWriteStream } from 'node:fs';
import { access, chmod, lstat, mkdir, mkdtemp, rename, rm } from 'node:fs/promises';
import path from 'node:path';
import { Transform, type Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { attribute, RolloutError } from '../../core/errors.ts';
import type { DownloadOptions } from '../environment.ts';
import { defaultMaxBytes, packDir, packFile, unpackInto } from '../shared/safe-tar.ts';
import { shellQuote } from '../shared/shell-quote.ts';
import { ApiError, apiFailure } from './api/api-error.ts';
import type { Toolbox } from './sessions/toolbox.ts';

/** For packing or unpacking inside. */
const tarLimitMs = 1_800_000;
const removeLimitMs = 20_000;

/** Exit codes of our scripts; tar's own are 1 and 2. */
const refusals: Readonly<Record<number, string>> = {
  41: 'does not exist',
  42: 'is not a folder',
  43: 'is not a regular file',
  44: 'is a folder',
};

export async function uploadFile(
  toolbox: Toolbox,
  from: string,
  to: string,
  signal: AbortSignal,
): Promise<void> {
  await transfer(`copying a file to ${to}`, signal, async () => {
    const name = path.posix.basename(inner(to));
    if (!(await lstat(from)).isFile()) throw refused(`${from} is not a regular file`);
    const at = shellQuote(absolute(to));
    const folder = shellQuote(path.posix.dirname(absolute(to)));
    const check = `if [ -d ${at} ]; then exit 44; fi; mkdir -p -- ${folder} || exit 1; cd -- ${folder} || exit 1`;
    await put(toolbox, { body: () => packFile(from, name), check, at: to, signal });
  });
}

export async function uploadDir(
  toolbox: Toolbox,
  from: string,
  to: string,
  signal: AbortSignal,
): Promise<void> {
  await transfer(`copying a folder to ${to}`, signal, async () => {
    await access(from);
    const at = shellQuote(absolute(to));
    const check = `if [ -e ${at} ] && [ ! -d ${at} ]; then exit 42; fi; mkdir -p -- ${at} || exit 1; cd -- ${at} || exit 1`;
    await put(toolbox, { body: () => packDir(from), check, at: to, signal });
  });
}

export async function downloadFile(
  toolbox: Toolbox,
  from: string,
  to: string,
  options: DownloadOptions & { readonly signal: AbortSignal },
): Promise<void> {
  const { signal, maxBytes = defaultMaxBytes } = options;
  await transfer(`copying the file ${from}`, signal, async () => {
    const at = shellQuote(absolute(from));
    const script = `f=${at}; if [ ! -e "$f" ] && [ ! -L "$f" ]; then exit 41; fi; if [ -L "$f" ] || [ ! -f "$f" ]; then exit 43; fi; stat -c '%a %s' -- "$f"`;
    const [mode = '', size = ''] = (await inside(toolbox, script, { at: from, signal }))
      .trim()
      .split(' ');
    if (Number(size) > maxBytes) throw refused(`${from} is larger than ${maxBytes} bytes`);
    await mkdir(path.dirname(to), { recursive: true });
    const landing = await mkdtemp(path.join(path.dirname(to), '.slipway-download-'));
    try {
      const landed = path.join(landing, 'file');
      await pipeline(
        await toolbox.download(absolute(from), signal),
        limited(from, maxBytes),
        createWriteStream(landed),
        { signal },
      );
      await chmod(landed, Number.parseInt(mode, 8) & 0o777);
      await rename(landed, to);
    } finally {
      await rm(landing, { recursive: true, force: true });
    }
  });
}

export async function downloadDir(
  toolbox: Toolbox,
  from: string,
  to: string,
  options: DownloadOptions & { readonly signal: AbortSignal },
): Promise<{ readonly skipped: readonly string[] }> {
  const { signal, exclude = [], maxBytes = defaultMaxBytes } = options;
  return await transfer(`copying the folder ${from}`, signal, async () => {
    const archive = archivePath();
    const at = shellQuote(absolute(from));
    const glob = '--no-anchored --wildcards --wildcards-match-slash';
    const flags = [glob, ...exclude.map((pattern) => `--exclude=${shellQuote(pattern)}`)].join(' ');
    const script = [
      `f=${at}; if [ ! -e "$f" ]; then exit 41; fi; if [ ! -d "$f" ]; then exit 42; fi`,
      `x=; if tar ${glob} --exclude=x -cf /dev/null -T /dev/null 2>/dev/null; then x=1; fi`,
      // 1: a file changed while it was read, which a program that still runs may do.
      `if [ -n "$x" ]; then tar -cf ${archive} ${exclude.length > 0 ? flags : ''} -C "$f" .; else tar -cf ${archive} -C "$f" .; fi`,
      'c=$?; [ $c -le 1 ] || exit $c',
    ].join('\n');
    try {
      await inside(toolbox, script, { at: from, signal });
      const source = await toolbox.download(archive, signal);
      return await unpackInto(source, to, { strip: 0, exclude, maxBytes, signal });
    } finally {
      await forget(toolbox, archive);
    }
  });
}

async function put(
  toolbox: Toolbox,
  options: {
    readonly body: () => Readable;
    /** Enters the folder to unpack in, or exits. */
    readonly check: string;
    readonly at: string;
    readonly signal: AbortSignal;
  },
): Promise<void> {
  const { at, check, signal } = options;
  const archive = archivePath();
  try {
    await toolbox.upload(archive, { body: options.body, signal });
    await inside(toolbox, `${check}; tar -xpf ${archive}`, { at, signal });
  } finally {
    await forget(toolbox, archive);
  }
}

async function inside(
  toolbox: Toolbox,
  script: string,
  about: { readonly at: string; readonly signal: AbortSignal },
): Promise<string> {
  const options = { signal: about.signal, limitMs: tarLimitMs, isIdempotent: true };
  const { exitCode, output } = await toolbox.execute(script, options);
  if (exitCode === 0) return output;
  const why = refusals[exitCode];
  if (why !== undefined) throw refused(`${about.at} ${why}`);
  throw new RolloutError('TRANSFER_FAILED', `tar in the sandbox failed at ${about.at}`, {
    phase: 'environment',
    detail: output.slice(-2_000),
    ...(exitCode === 127 ? { retryable: false, remedy: 'Add tar to the image.' } : {}),
  });
}

/** Under a deadline of its own: the caller's signal may be what ended the copy. */
async function forget(toolbox: Toolbox, file: string): Promise<void> {
  const options = { signal: AbortSignal.timeout(removeLimitMs), limitMs: removeLimitMs };
  await toolbox.execute(`rm -f ${file}`, options).catch(() => undefined); // it goes with the sandbox
}

function archivePath(): string {
  return `/tmp/.slipway-${randomUUID()}.tar`;
}

function limited(from: string, maxBytes: number): Transform {
  let bytes = 0;
  return new Transform({
    transform(chunk: Buffer, _encoding, done) {
      bytes += chunk.length;
      if (bytes > maxBytes) done(refused(`${from} is larger than ${maxBytes} bytes`));
      else done(null, chunk);
    },
  });
}

function absolute(sandboxPath: string): string {
  if (!sandboxPath.startsWith('/')) throw refused(`${sandboxPath} is not an absolute path`);
  return path.posix.normalize(sandboxPath);
}

/** Refuses the root, which is no file. */
function inner(sandboxPath: string): string {
  const name = absolute(sandboxPath).replace(/^\/+|\/+$/g, '');
  if (name === '') throw refused(`${sandboxPath} is a folder`);
  return name;
}

async function transfer<T>(what: string, signal: AbortSignal, work: () => Promise<T>): Promise<T> {
  try {
    signal.throwIfAborted();
    return await work();
  } catch (error) {
    signal.throwIfAborted();
    if (error instanceof ApiError)
      throw apiFailure(error, {
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
