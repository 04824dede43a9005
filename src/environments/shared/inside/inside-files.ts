/** Copies between this host and a sandbox that is somewhere else, over `Attach`: tar in, tar or bytes out. Needs `tar` in the image, and nothing else that a shell has not. */
import { createWriteStream } from 'node:fs';
import { mkdir, mkdtemp, rename, rm, stat } from 'node:fs/promises';
import path from 'node:path';
import { PassThrough, Transform, type Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { attribute, RolloutError } from '../../../core/errors.ts';
import { raceSignal } from '../../../core/race-signal.ts';
import type { DownloadOptions } from '../../environment.ts';
import { defaultMaxBytes, packDir, packFile, unpackInto } from '../safe-tar.ts';
import { shellQuote } from '../shell-quote.ts';
import type { Attach, ProgramEnd } from './attached-program.ts';
import { runInside, type RunningProgram } from './running-program.ts';

export interface InsideFilesOptions {
  readonly attach: Attach;
  readonly endsInput: () => boolean;
  /** Attributes what `attach` rejected with. */
  readonly failure: (error: unknown, what: string) => RolloutError;
}

/** Exit codes of our scripts, and what they say. */
const refusals = new Map<number, string>([
  [41, 'is a folder'],
  [42, 'is a link'],
  [43, 'does not exist or is not a regular file'],
  [44, 'does not exist or is not a folder'],
]);
const noTar = 45;
const needsTar = `command -v tar >/dev/null 2>&1 || exit ${noTar}`;
const wildcards = '--no-anchored --wildcards --wildcards-match-slash';

export class InsideFiles {
  readonly #options: InsideFilesOptions;

  constructor(options: InsideFilesOptions) {
    this.#options = options;
  }

  async uploadFile(from: string, to: string, signal: AbortSignal): Promise<void> {
    await this.#transfer(`copying a file to ${to}`, signal, async () => {
      const at = plainPath(to);
      await stat(from);
      const folder = shellQuote(path.posix.dirname(at));
      const script = `[ -d ${shellQuote(at)} ] && exit 41; ${needsTar}; mkdir -p ${folder} && exec tar -xpf - -C ${folder}`;
      await this.#put(script, packFile(from, path.posix.basename(at)), { at, signal });
    });
  }

  async uploadDir(from: string, to: string, signal: AbortSignal): Promise<void> {
    await this.#transfer(`copying a folder to ${to}`, signal, async () => {
      const at = plainPath(to);
      if (!(await stat(from)).isDirectory()) throw refused(`${from} is not a folder`);
      const folder = shellQuote(at);
      const script = `${needsTar}; mkdir -p ${folder} && exec tar -xpf - -C ${folder}`;
      await this.#put(script, packDir(from), { at, signal });
    });
  }

  async downloadFile(
    from: string,
    to: string,
    signal: AbortSignal,
    options: DownloadOptions = {},
  ): Promise<void> {
    await this.#transfer(`copying the file ${from}`, signal, async () => {
      const at = plainPath(from);
      const file = shellQuote(at);
      const maxBytes = options.maxBytes ?? defaultMaxBytes;
      const script = `[ -L ${file} ] && exit 42; [ -f ${file} ] || exit 43; exec cat <${file}`;
      await using got = await this.#get(script, { at, signal });
      await mkdir(path.dirname(to), { recursive: true });
      const landing = await mkdtemp(path.join(path.dirname(to), '.slipway-download-'));
      try {
        const file = path.join(landing, 'file');
        await pipeline(got.bytes, atMost(maxBytes, at), createWriteStream(file), { signal });
        await got.finish();
        await rename(file, to);
      } finally {
        await rm(landing, { recursive: true, force: true });
      }
    });
  }

  async downloadDir(
    from: string,
    to: string,
    signal: AbortSignal,
    options: DownloadOptions = {},
  ): Promise<{ readonly skipped: readonly string[] }> {
    const { exclude = [], maxBytes = defaultMaxBytes } = options;
    return await this.#transfer(`copying the folder ${from}`, signal, async () => {
      const at = plainPath(from);
      const folder = shellQuote(at);
      const check = `[ -L ${folder} ] && exit 42; [ -d ${folder} ] || exit 44; ${needsTar}`;
      const flags = exclude.map((pattern) => `--exclude=${shellQuote(pattern)}`).join(' ');
      // A tar without these options sends everything: what is excluded is left out on arrival too.
      const filtered = `tar ${wildcards} --exclude=x -cf /dev/null -T /dev/null >/dev/null 2>&1 && exec tar -cf - ${wildcards} ${flags} -C ${folder} .`;
      const script = `${check}; ${exclude.length === 0 ? '' : `${filtered}; `}exec tar -cf - -C ${folder} .`;
      await using got = await this.#get(script, { at, signal });
      const unpacked = await unpackInto(got.bytes, to, { strip: 0, exclude, maxBytes, signal });
      await got.finish({ mayWarn: true });
      return unpacked;
    });
  }

  async #put(script: string, archive: Readable, of: Transfer): Promise<void> {
    const said = new Said();
    const program = await this.#run(script, { said, onStdout: () => undefined, ...of });
    try {
      const sent = pipeline(archive, program.stdin, { end: false }).then(() => {
        if (this.#options.endsInput()) program.stdin.end();
      });
      sent.catch(() => undefined);
      const first = await raceSignal(
        Promise.race([program.ended, sent.then(() => null)]),
        of.signal,
      );
      const end = first ?? (await raceSignal(program.ended, of.signal));
      checkEnd(end, { at: of.at, said, worst: 0 });
      await raceSignal(sent, of.signal);
    } finally {
      archive.destroy();
      program.detach();
    }
  }

  /** Resolves when the first bytes are there, or the end: a refusal rejects before anything is made on this host. */
  async #get(script: string, of: Transfer): Promise<Download> {
    const bytes = new PassThrough({ highWaterMark: 1024 * 1024 });
    bytes.on('error', () => undefined); // told by whoever reads it
    const said = new Said();
    const begins = Promise.withResolvers<undefined>();
    const held: { program: RunningProgram | null } = { program: null };
    const program = await this.#run(script, {
      ...of,
      said,
      onStdout: (piece) => {
        begins.resolve(undefined);
        if (bytes.destroyed || bytes.write(piece)) return;
        held.program?.pause();
        bytes.once('drain', () => held.program?.resume());
      },
    });
    held.program = program;
    const letGo = (): void => {
      program.detach();
      bytes.destroy();
    };
    const ended = program.ended.then((end) => {
      if (end.kind === 'exited') bytes.end();
      else bytes.destroy(new Error('the stream broke', { cause: end.cause }));
      return end;
    });
    try {
      const first = await raceSignal(Promise.race([ended, begins.promise]), of.signal);
      if (first !== undefined) checkEnd(first, { at: of.at, said, worst: 1 });
    } catch (error) {
      letGo();
      throw error;
    }
    return {
      bytes,
      finish: async ({ mayWarn = false } = {}) => {
        const end = await raceSignal(ended, of.signal);
        checkEnd(end, { at: of.at, said, worst: mayWarn ? 1 : 0 });
      },
      [Symbol.asyncDispose]: () => {
        letGo();
        return Promise.resolve();
      },
    };
  }

  #run(
    script: string,
    options: Transfer & { readonly said: Said; readonly onStdout: (piece: Buffer) => void },
  ): Promise<RunningProgram> {
    return runInside(
      this.#options.attach,
      { run: 'sh', command: script, cwd: '/', env: {}, user: null, input: 'open' },
      {
        onOutput: (stream, piece) =>
          stream === 'stdout' ? options.onStdout(piece) : options.said.add(piece),
        signal: options.signal,
      },
    );
  }

  async #transfer<T>(what: string, signal: AbortSignal, work: () => Promise<T>): Promise<T> {
    try {
      signal.throwIfAborted();
      return await work();
    } catch (error) {
      signal.throwIfAborted();
      throw isSystemError(error)
        ? attribute(error, 'TRANSFER_FAILED', 'environment', what)
        : this.#options.failure(error, what);
    }
  }
}

interface Transfer {
  /** Path in the sandbox. */
  readonly at: string;
  readonly signal: AbortSignal;
}

interface Download extends AsyncDisposable {
  readonly bytes: Readable;
  /** Resolves when the program has ended well. `mayWarn`: an exit code of 1 is a file that changed while it was read. */
  finish(options?: { readonly mayWarn?: boolean }): Promise<void>;
}

/** The first of what a program says on stderr. */
class Said {
  #text = '';

  get text(): string {
    return this.#text.trim();
  }

  add(piece: Buffer): void {
    if (this.#text.length < 2000) this.#text += piece.toString('utf8');
  }
}

function checkEnd(
  end: ProgramEnd,
  of: { readonly at: string; readonly said: Said; readonly worst: number },
): void {
  if (end.kind === 'lost')
    throw new RolloutError('TRANSFER_FAILED', `the stream of the copy of ${of.at} broke`, {
      phase: 'environment',
      cause: end.cause,
    });
  if (end.exitCode <= of.worst) return;
  const refusal = refusals.get(end.exitCode);
  if (refusal !== undefined) throw refused(`${of.at} ${refusal}`);
  if (end.exitCode === noTar)
    throw new RolloutError('TRANSFER_FAILED', 'the image has no tar', {
      phase: 'environment',
      retryable: false,
      remedy: 'Install tar in the image: files go in and out of the sandbox through it.',
    });
  throw refused(`copying ${of.at} ended with exit code ${end.exitCode}: ${of.said.text}`);
}

function atMost(maxBytes: number, at: string): Transform {
  let size = 0;
  return new Transform({
    transform(piece: Buffer, _encoding, done) {
      size += piece.length;
      if (size > maxBytes) done(refused(`${at} is larger than ${maxBytes} bytes`));
      else done(null, piece);
    },
  });
}

function plainPath(absolute: string): string {
  const at = path.posix.normalize(absolute).replace(/(.)\/+$/, '$1');
  if (at.startsWith('/') && at !== '/') return at;
  throw refused(`${absolute} is not an absolute path below the root`);
}

function isSystemError(error: unknown): boolean {
  return (
    error instanceof Error &&
    (error as NodeJS.ErrnoException).syscall !== undefined &&
    'path' in error
  );
}

function refused(message: string): RolloutError {
  return new RolloutError('TRANSFER_FAILED', message, { phase: 'environment', retryable: false });
}
