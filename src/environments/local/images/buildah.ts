/**
 * buildah, driven with a storage of our own so that the user's images stay as they are. It builds Dockerfiles, pulls from registries
 * and takes archives in; results leave it as an uncompressed OCI layout, from which our store unpacks them.
 */
import { createHash, randomUUID } from 'node:crypto';
import { existsSync, statfsSync } from 'node:fs';
import { readFile, rename, rm, truncate, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { RolloutError } from '../../../core/errors.ts';
import { LinkedAbort } from '../../../core/linked-abort.ts';
import { makeFolder } from '../../../core/make-folder.ts';
import { withCaCertificates } from '../../shared/ca-dockerfile.ts';
import { caBundle, caFile } from '../../shared/extra-ca.ts';
import {
  findProgram,
  hostSearchPath,
  runHostCommand,
  type HostCommandResult,
} from '../host-command.ts';

export type OnLine = (line: string) => void;

export interface BuildRequest {
  readonly contextDir: string;
  /** Name of the result in buildah's storage. */
  readonly name: string;
  readonly extraCaBundle: string | null;
  readonly onLine: OnLine;
}

const overlayFs = 0x794c7630;
const logLines = 80;

export class Buildah {
  readonly #dir: string;
  readonly #program: string | null;
  #prepared: Promise<void> | null = null;

  /** @param dir Folder for storage and settings. */
  constructor(dir: string, program: string | null = findProgram('buildah')) {
    this.#dir = dir;
    this.#program = program;
  }

  get isInstalled(): boolean {
    return this.#program !== null;
  }

  async has(reference: string, signal: AbortSignal): Promise<boolean> {
    const result = await this.#run(
      ['inspect', '--type', 'image', '--format', '{{.FromImageID}}', reference],
      { signal },
    );
    return result.exitCode === 0;
  }

  /** Takes an archive in and gives its image a name. */
  async load(archive: string, reference: string, signal: AbortSignal): Promise<void> {
    const pulled = await this.#run(['pull', '--quiet', `docker-archive:${archive}`], { signal });
    const id = pulled.stdout.trim().split('\n').at(-1) ?? '';
    if (pulled.exitCode !== 0 || id === '') throw loadFailed(archive, pulled);
    const tagged = await this.#run(['tag', id, reference], { signal });
    if (tagged.exitCode !== 0) throw loadFailed(archive, tagged);
  }

  /**
   * Pulls from a registry. False when none answers: copying has not begun after `startMs`, or the connection failed, or the image is not
   * there. DISK_FULL is no such answer and is thrown.
   */
  async pull(
    reference: string,
    options: { readonly startMs: number; readonly signal: AbortSignal; readonly onLine: OnLine },
  ): Promise<boolean> {
    using attempt = new LinkedAbort([options.signal]);
    const silence = setTimeout(() => attempt.abort('no answer'), options.startMs);
    try {
      const result = await this.#run(['pull', `docker://${reference}`], {
        signal: attempt.signal,
        onLine: (line) => {
          if (/^(?:Getting image source|Copying)/.test(line)) clearTimeout(silence);
          options.onLine(line);
        },
      });
      if (result.exitCode !== 0 && isDiskFull(result.stderr)) throw loadFailed(reference, result);
      return result.exitCode === 0;
    } catch (error) {
      options.signal.throwIfAborted();
      if (attempt.signal.aborted) return false;
      throw error;
    } finally {
      clearTimeout(silence);
    }
  }

  /** IMAGE_BUILD_FAILED with the last lines of the log, or DISK_FULL. */
  async build(request: BuildRequest, signal: AbortSignal): Promise<void> {
    const lines: string[] = [];
    const ca =
      request.extraCaBundle === null
        ? null
        : await this.#writeInput(await caBundle(request.extraCaBundle));
    const own = path.join(request.contextDir, 'Dockerfile');
    const dockerfile =
      ca === null ? own : await this.#writeInput(withCaCertificates(await readFile(own, 'utf8')));
    const result = await this.#run(
      [
        ...['bud', '--layers', '--force-rm', '--isolation', 'chroot'],
        ...['--format', 'oci', '--tag', request.name],
        ...(ca === null ? [] : ['--volume', `${ca}:${caFile}:ro`]),
        ...['--file', dockerfile, request.contextDir],
      ],
      {
        signal,
        onLine: (line) => {
          lines.push(line);
          if (lines.length > logLines) lines.shift();
          request.onLine(line);
        },
      },
    );
    if (result.exitCode !== 0) throw buildFailed(lines);
  }

  /**
   * Writes an image as an OCI layout and hands the folder to `use`; it is removed afterwards. Layers in `known` are not written: an
   * empty file of their size stands where each would be, which buildah takes for the layer.
   */
  async exported<T>(
    image: { readonly reference: string; readonly known: ReadonlyMap<string, number> },
    signal: AbortSignal,
    use: (layout: string) => Promise<T>,
  ): Promise<T> {
    const { reference, known } = image;
    const layout = path.join(this.#dir, 'exports', randomUUID());
    const blobs = path.join(layout, 'blobs', 'sha256');
    await makeFolder(blobs);
    try {
      for (const [diffId, size] of known) {
        const file = path.join(blobs, diffId.slice('sha256:'.length));
        await writeFile(file, '');
        await truncate(file, size);
      }
      const result = await this.#run(
        ['push', '--quiet', '--disable-compression', reference, `oci:${layout}:image`],
        { signal },
      );
      if (result.exitCode !== 0) throw loadFailed(reference, result);
      return await use(layout);
    } finally {
      await rm(layout, { recursive: true, force: true });
    }
  }

  async #run(
    args: readonly string[],
    options: { readonly signal: AbortSignal; readonly onLine?: OnLine },
  ): Promise<HostCommandResult> {
    if (this.#program === null) throw missing();
    await (this.#prepared ??= this.#prepare());
    const [file, ...before] = [...privateMounts, this.#program];
    return runHostCommand(
      {
        file,
        args: [
          ...before,
          ...['--root', path.join(this.#dir, 'storage'), '--runroot', path.join(this.#dir, 'run')],
          ...['--registries-conf', path.join(this.#dir, 'registries.conf')],
          ...withPolicy(args, path.join(this.#dir, 'policy.json')),
        ],
        environment: {
          ...process.env,
          PATH: hostSearchPath(),
          STORAGE_DRIVER: this.#driver,
          BUILDAH_FORMAT: 'oci',
        },
        ...(options.onLine === undefined ? {} : { onLine: options.onLine }),
      },
      options.signal,
    );
  }

  /** A file for a build, named by its content: a build that is under way keeps the file it began with. */
  async #writeInput(content: string): Promise<string> {
    const digest = createHash('sha256').update(content).digest('hex').slice(0, 16);
    const file = path.join(this.#dir, 'inputs', digest);
    await this.#writeOnce(file, content);
    return file;
  }

  async #writeOnce(file: string, content: string): Promise<void> {
    if (existsSync(file)) return;
    await makeFolder(path.dirname(file), { mode: 0o700 });
    const draft = `${file}.${randomUUID()}`;
    await writeFile(draft, content);
    await rename(draft, file);
  }

  get #driver(): string {
    return statfsSync(this.#dir).type === overlayFs ? 'vfs' : 'overlay';
  }

  async #prepare(): Promise<void> {
    await Promise.all(
      Object.entries(settings).map(([name, content]) =>
        this.#writeOnce(path.join(this.#dir, name), content),
      ),
    );
  }
}

/**
 * As root buildah mounts its storage onto itself and leaves that mount when it ends; in a mount namespace of its own it ends with it. A plain
 * user's buildah makes such a namespace itself.
 */
const privateMounts: readonly string[] =
  process.getuid?.() === 0 ? ['unshare', '--mount', '--propagation', 'private'] : [];

const settings = {
  'registries.conf':
    'unqualified-search-registries = ["docker.io"]\nshort-name-mode = "permissive"\n',
  'policy.json': '{"default":[{"type":"insecureAcceptAnything"}]}\n',
} as const;

/** The commands that copy images take a policy for signatures; a machine without one of its own would refuse. */
function withPolicy(args: readonly string[], policy: string): readonly string[] {
  const [command = '', ...rest] = args;
  const copies = ['pull', 'push', 'bud'].includes(command);
  return copies ? [command, '--signature-policy', policy, ...rest] : args;
}

function missing(): RolloutError {
  return new RolloutError(
    'ENVIRONMENT_UNAVAILABLE',
    'building or pulling images without Docker needs buildah, which is not installed',
    {
      phase: 'environment',
      remedy: 'Install it (`sudo apt-get install buildah`), or use `--env docker`.',
    },
  );
}

function isDiskFull(text: string): boolean {
  return /no space left on device/i.test(text);
}

function buildFailed(lines: readonly string[]): RolloutError {
  const detail = lines.join('\n');
  if (isDiskFull(detail))
    return new RolloutError('DISK_FULL', 'no space left to build an image', {
      phase: 'environment',
      detail,
      remedy: 'Free disk space under the cache folder, then run the job again: it resumes.',
    });
  const last = lines.findLast((line) => /error/i.test(line)) ?? lines.at(-1) ?? 'no output';
  return new RolloutError('IMAGE_BUILD_FAILED', `the Dockerfile does not build: ${last}`, {
    phase: 'environment',
    field: 'environment/Dockerfile',
    detail,
    remedy: 'Fix the step that the end of the build log names.',
  });
}

function loadFailed(what: string, result: HostCommandResult): RolloutError {
  if (isDiskFull(result.stderr)) return buildFailed([result.stderr]);
  return new RolloutError('IMAGE_INVALID', `buildah cannot copy ${what}`, {
    phase: 'environment',
    detail: result.stderr,
    remedy: 'Build or save the image again.',
  });
}
