/** Copies as archives through a folder of ours in the sandbox: the service knows files by their whole content, so an archive goes in parts. */
import { randomBytes } from 'node:crypto';
import { createWriteStream } from 'node:fs';
import { mkdir, mkdtemp, readFile, rename, rm, stat } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { attribute, RolloutError } from '../../core/errors.ts';
import type { DownloadOptions } from '../environment.ts';
import { defaultMaxBytes, packDir, packFile, unpackInto } from '../shared/safe-tar.ts';
import { shellQuote } from '../shared/shell-quote.ts';
import { baseFolder } from './relay/relay-scripts.ts';
import { skyFailure } from './sky-error.ts';
import type { Executed, SkyService } from './sky-service.ts';

/** The service and the SDK hold a part in memory. */
const partBytes = 16 * 1024 * 1024;
/** For an archive in the sandbox to be written or unpacked. */
const archiveSec = 600;

export interface TransferTarget {
  readonly service: SkyService;
  /** The sandbox, by its name at the service. */
  readonly sandbox: string;
}

type Copying = DownloadOptions & { readonly signal: AbortSignal };

export async function uploadFile(
  target: TransferTarget,
  from: string,
  to: string,
  signal: AbortSignal,
): Promise<void> {
  const whole = absolute(to);
  const [folder, name] = [path.posix.dirname(whole), path.posix.basename(whole)];
  await transfer(`copying a file to ${to}`, signal, async () => {
    const ready = `[ ! -d ${shellQuote(whole)} ] || exit 21; mkdir -p ${shellQuote(folder)} || exit 22`;
    await upload(target, packFile(from, name), { into: folder, ready, signal });
  });
}

export async function uploadDir(
  target: TransferTarget,
  from: string,
  to: string,
  signal: AbortSignal,
): Promise<void> {
  const into = absolute(to);
  await transfer(`copying a folder to ${to}`, signal, async () => {
    const ready = `mkdir -p ${shellQuote(into)} || exit 22`;
    await upload(target, packDir(from), { into, ready, signal });
  });
}

export async function downloadFile(
  target: TransferTarget,
  from: string,
  to: string,
  options: Copying,
): Promise<void> {
  const { signal, maxBytes = defaultMaxBytes } = options;
  const source = absolute(from);
  await transfer(`copying the file ${from}`, signal, async () => {
    const quoted = shellQuote(source);
    const [folder, name] = [path.posix.dirname(source), path.posix.basename(source)];
    const check = `[ -e ${quoted} ] || [ -L ${quoted} ] || exit 24; [ -f ${quoted} ] && [ ! -L ${quoted} ] || exit 25`;
    const pack = `tar -cf "$f" -C ${shellQuote(folder)} -- ${shellQuote(name)}`;
    await mkdir(path.dirname(to), { recursive: true });
    const landing = await mkdtemp(path.join(path.dirname(to), '.slipway-download-'));
    try {
      const limits = { strip: 0, exclude: [], maxBytes, signal };
      const script = `${check}; ${pack}`;
      const { skipped } = await download(target, { script, into: landing, limits });
      if (skipped.length > 0) throw refused(`${from} is not a regular file`);
      await rename(path.join(landing, name), to);
    } finally {
      await rm(landing, { recursive: true, force: true });
    }
  });
}

export async function downloadDir(
  target: TransferTarget,
  from: string,
  to: string,
  options: Copying,
): Promise<{ readonly skipped: readonly string[] }> {
  const { signal, exclude = [], maxBytes = defaultMaxBytes } = options;
  const quoted = shellQuote(absolute(from));
  return transfer(`copying the folder ${from}`, signal, () => {
    const flags = exclude.map((pattern) => `--exclude=${shellQuote(pattern)}`).join(' ');
    const globs = '--no-anchored --wildcards --wildcards-match-slash';
    // A tar without these options fetches everything: unpacking leaves the rest out.
    const probe = `x=; ! tar ${globs} --exclude=x -cf /dev/null -T /dev/null 2>/dev/null || x=1`;
    const filtered = `tar -cf "$f" ${globs} ${flags} -C ${quoted} .`;
    const pack =
      exclude.length === 0
        ? `tar -cf "$f" -C ${quoted} .`
        : `${probe}; if [ -n "$x" ]; then ${filtered}; else tar -cf "$f" -C ${quoted} .; fi`;
    const check = `[ -e ${quoted} ] || exit 24; [ -d ${quoted} ] || exit 26`;
    const limits = { strip: 0, exclude, maxBytes, signal };
    return download(target, { script: `${check}; ${pack}`, into: to, limits });
  });
}

async function upload(
  target: TransferTarget,
  archive: Readable,
  to: { readonly into: string; readonly ready: string; readonly signal: AbortSignal },
): Promise<void> {
  const { into, ready, signal } = to;
  const scratch = await mkdtemp(path.join(tmpdir(), 'slipway-upload-'));
  try {
    const hostPath = path.join(scratch, 'archive.tar');
    await pipeline(archive, createWriteStream(hostPath), { signal });
    const { size } = await stat(hostPath);
    const file = await remoteFile(target, ready, signal);
    const parts = Math.ceil(size / partBytes);
    for (let part = 0; part < parts; part += 1)
      await target.service.write(
        {
          name: target.sandbox,
          hostPath,
          offset: part * partBytes,
          size: partBytes,
          to: `${file}.${part}`,
        },
        signal,
      );
    const names = Array.from({ length: parts }, (_, part) => `"$f.${part}"`).join(' ');
    const script = `f=${file}; cat ${names} | tar -xpf - -C ${shellQuote(into)}; code=$?; rm -f ${names}; exit $code`;
    expectDone(await run(target, script, { limitSec: archiveSec, signal, repeatable: false }));
  } finally {
    await rm(scratch, { recursive: true, force: true });
  }
}

async function download(
  target: TransferTarget,
  of: {
    readonly script: string;
    readonly into: string;
    readonly limits: Parameters<typeof unpackInto>[2];
  },
): Promise<{ readonly skipped: readonly string[] }> {
  const { signal } = of.limits;
  const file = await remoteFile(target, ':', signal);
  const scratch = await mkdtemp(path.join(tmpdir(), 'slipway-download-'));
  const script = `f=${file}; ${of.script}; code=$?; echo "$(wc -c <"$f")"; exit $code`;
  try {
    const packed = await run(target, script, { limitSec: archiveSec, signal, repeatable: true });
    const sizeBytes = Number(packed.stdout.toString('latin1').trim().split('\n').at(-1));
    // GNU tar ends with 1 when a file changed while it was read.
    if (packed.exitCode !== 1 || !(sizeBytes > 0)) expectDone(packed);
    const parts = fetchParts(target, { file, sizeBytes, scratch, signal });
    return await unpackInto(Readable.from(parts), of.into, of.limits);
  } finally {
    await rm(scratch, { recursive: true, force: true });
    const gone = `rm -f ${file} ${file}.part`;
    await run(target, gone, { limitSec: 60, signal, repeatable: true }).catch(() => undefined); // the sandbox takes it along
  }
}

async function* fetchParts(
  target: TransferTarget,
  of: {
    readonly file: string;
    readonly sizeBytes: number;
    readonly scratch: string;
    readonly signal: AbortSignal;
  },
): AsyncGenerator<Buffer> {
  const { file, sizeBytes, scratch, signal } = of;
  const hostPath = path.join(scratch, 'part');
  for (let at = 0; at < sizeBytes; at += partBytes) {
    const isWhole = sizeBytes <= partBytes;
    if (!isWhole) {
      const cut = `tail -c +${at + 1} ${file} | head -c ${partBytes} >${file}.part`;
      expectDone(await run(target, cut, { limitSec: archiveSec, signal, repeatable: true }));
    }
    const from = isWhole ? file : `${file}.part`;
    await target.service.read({ name: target.sandbox, from, hostPath }, signal);
    yield await readFile(hostPath);
  }
}

/** A path for a file of ours in the sandbox, whose folder is there; `ready` runs before. */
async function remoteFile(
  target: TransferTarget,
  ready: string,
  signal: AbortSignal,
): Promise<string> {
  const script = `${ready}; ${baseFolder}; echo "$b"`;
  const done = await run(target, script, { limitSec: 60, signal, repeatable: true });
  expectDone(done);
  return `${done.stdout.toString('utf8').trim()}/copy-${randomBytes(8).toString('hex')}`;
}

function run(
  { service, sandbox }: TransferTarget,
  script: string,
  how: { readonly limitSec: number; readonly signal: AbortSignal; readonly repeatable: boolean },
): Promise<Executed> {
  const { limitSec, signal, repeatable } = how;
  return service.execute(
    { name: sandbox, argv: ['sh', '-c', script], limitSec, repeatable },
    signal,
  );
}

const meanings: Readonly<Record<number, string>> = {
  21: 'the target is a folder',
  22: 'the folder of the target cannot be made',
  24: 'it does not exist',
  25: 'it is not a regular file',
  26: 'it is not a folder',
  127: 'the image has no tar',
};

function expectDone({ exitCode, stderr }: Executed): void {
  if (exitCode === 0) return;
  const said = stderr.toString('utf8').trim().slice(-1000);
  throw refused(meanings[exitCode] ?? `exit code ${exitCode}: ${said}`);
}

function absolute(of: string): string {
  const whole = path.posix.normalize(of).replace(/(?<=.)\/+$/, '');
  if (!of.startsWith('/') || whole === '/') throw refused(`${of} is not an absolute path`);
  return whole;
}

async function transfer<T>(what: string, signal: AbortSignal, work: () => Promise<T>): Promise<T> {
  try {
    signal.throwIfAborted();
    return await work();
  } catch (error) {
    signal.throwIfAborted();
    if (error instanceof RolloutError) throw error;
    throw skyFailure(attributeSystem(error, what), {
      code: 'TRANSFER_FAILED',
      phase: 'environment',
      what,
    });
  }
}

/** A full disk of this host is told from the service's failures. */
function attributeSystem(error: unknown, what: string): unknown {
  return error instanceof Error && 'syscall' in error
    ? attribute(error, 'TRANSFER_FAILED', 'environment', what)
    : error;
}

function refused(message: string): RolloutError {
  return new RolloutError('TRANSFER_FAILED', message, { phase: 'environment', retryable: false });
}
