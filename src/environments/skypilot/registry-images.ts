/** Images of Dockerfiles: a cluster takes them from a registry only, so they are built on this machine and pushed there, once for each content. */
import { spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import path from 'node:path';
import { access, constants } from 'node:fs/promises';
import type { Clock } from '../../core/clock.ts';
import { messageOf, RolloutError } from '../../core/errors.ts';
import { LinkedAbort } from '../../core/linked-abort.ts';
import { makeFolder } from '../../core/make-folder.ts';
import { SingleFlight } from '../../core/single-flight.ts';
import type { ImageSource } from '../environment.ts';
import { NegativeCache } from '../shared/negative-cache.ts';
import type { CompiledSkyOptions, SkyPorts } from './options.ts';

type DockerfileImage = Extract<ImageSource, { kind: 'dockerfile' }>;

const tagDigits = 32;
const maxPushes = 2;
const pushBackoffMs = 5_000;
const lookMs = 60_000;
const failureMs = 600_000;
const saidBytes = 4_000;

export class RegistryImages {
  readonly #options: CompiledSkyOptions;
  readonly #clock: Clock;
  readonly #variables: SkyPorts['hostVariables'];
  readonly #locks: SkyPorts['buildLocks'];
  readonly #flights = new SingleFlight<string>();
  readonly #failures: NegativeCache<RolloutError>;
  readonly #pushed = new Set<string>();

  constructor(options: CompiledSkyOptions, { clock, hostVariables, buildLocks }: SkyPorts) {
    this.#options = options;
    this.#clock = clock;
    this.#variables = hostVariables;
    this.#locks = buildLocks;
    this.#failures = new NegativeCache({ ttlMs: failureMs, clock });
  }

  /** The reference that the cluster pulls. Rejects with IMAGE_BUILD_FAILED, or CONFIG_INVALID without a registry or a builder. */
  async ensure(
    image: DockerfileImage,
    how: {
      readonly forceBuild: boolean;
      readonly signal: AbortSignal;
      readonly onProgress: (line: string) => void;
    },
  ): Promise<string> {
    const { registry } = this.#options;
    if (registry === null) throw noRegistry();
    const reference = referenceOf(registry, image);
    if (this.#pushed.has(reference) && !how.forceBuild) return reference;
    const failed = this.#failures.get(image.contextHash);
    if (failed !== null && !how.forceBuild) throw failed;
    return await this.#flights.run(reference, how.signal, (signal) =>
      this.#make(image, { ...how, reference, signal }),
    );
  }

  async #make(
    image: DockerfileImage,
    how: {
      readonly reference: string;
      readonly forceBuild: boolean;
      readonly signal: AbortSignal;
      readonly onProgress: (line: string) => void;
    },
  ): Promise<string> {
    const { reference, signal, onProgress } = how;
    const builder = await this.#builder();
    using held = new DisposableStack();
    held.use(await this.#turn(reference, signal));
    if (how.forceBuild || !(await this.#isThere(builder, reference, signal))) {
      await this.#build(builder, image, { reference, signal, onProgress });
      await this.#push(builder, reference, { signal, onProgress });
    }
    this.#pushed.add(reference);
    return reference;
  }

  /** Of all processes of this machine: the next one finds the image in the registry. */
  async #turn(reference: string, signal: AbortSignal): Promise<Disposable> {
    if (this.#locks === null) return { [Symbol.dispose]: () => undefined };
    const { locks, dir } = this.#locks;
    await makeFolder(dir, { mode: 0o700 });
    const digest = createHash('sha256').update(reference).digest('hex').slice(0, tagDigits);
    const timeoutMs = this.#options.buildTimeoutMs;
    const lock = await locks.acquire(path.join(dir, `sky-${digest}.lock`), { timeoutMs, signal });
    return { [Symbol.dispose]: () => lock.release() };
  }

  async #isThere(builder: Builder, reference: string, signal: AbortSignal): Promise<boolean> {
    const words = { docker: ['manifest', 'inspect'], buildah: ['manifest', 'inspect'] }[builder];
    const insecure = isLoopback(reference) && builder === 'docker' ? ['--insecure'] : [];
    const tls = isLoopback(reference) && builder === 'buildah' ? ['--tls-verify=false'] : [];
    const looked = await this.#run(builder, [...words, ...insecure, ...tls, reference], {
      signal,
      ms: lookMs,
    });
    return looked.exitCode === 0;
  }

  async #build(
    builder: Builder,
    image: DockerfileImage,
    how: {
      readonly reference: string;
      readonly signal: AbortSignal;
      readonly onProgress: (line: string) => void;
    },
  ): Promise<void> {
    const { reference, signal, onProgress } = how;
    const { platform, buildTimeoutMs } = this.#options;
    const dockerfile = path.join(image.contextDir, 'Dockerfile');
    const verb = { docker: ['build'], buildah: ['build', '--layers'] }[builder];
    const words = [
      ...[...verb, '--force-rm', '--platform', platform],
      ...['-t', reference, '-f', dockerfile],
    ];
    const built = await this.#run(builder, [...words, image.contextDir], {
      signal,
      ms: buildTimeoutMs,
      onProgress,
    });
    if (built.exitCode === 0) return;
    const failure = buildFailed(builder, built);
    this.#failures.remember(image.contextHash, failure);
    throw failure;
  }

  async #push(
    builder: Builder,
    reference: string,
    how: { readonly signal: AbortSignal; readonly onProgress: (line: string) => void },
  ): Promise<void> {
    const tls = isLoopback(reference) && builder === 'buildah' ? ['--tls-verify=false'] : [];
    for (let attempt = 1; ; attempt += 1) {
      const ms = this.#options.buildTimeoutMs;
      const pushed = await this.#run(builder, ['push', ...tls, reference], { ...how, ms });
      if (pushed.exitCode === 0) return;
      if (attempt === maxPushes)
        throw new RolloutError(
          'IMAGE_BUILD_FAILED',
          `${builder} could not push the image to ${reference}`,
          {
            phase: 'environment',
            retryable: true,
            detail: pushed.said,
            field: 'environment.kwargs.registry',
            remedy: `Log in to the registry with "${builder} login", and check that it takes pushes.`,
          },
        );
      await this.#clock.sleep(pushBackoffMs * (1 + Math.random()), how.signal);
    }
  }

  async #builder(): Promise<Builder> {
    const { builder } = this.#options;
    if (builder !== null) return builder;
    for (const name of ['docker', 'buildah'] as const)
      if (await isOnPath(name, this.#variables['PATH'] ?? '')) return name;
    throw new RolloutError('CONFIG_INVALID', 'nothing on this machine builds Dockerfiles', {
      phase: 'config',
      field: 'environment.docker_image',
      remedy: 'Install docker or buildah, or give the task a prebuilt docker_image.',
    });
  }

  async #run(
    file: Builder,
    words: readonly string[],
    how: {
      readonly signal: AbortSignal;
      readonly ms: number;
      readonly onProgress?: (line: string) => void;
    },
  ): Promise<Ended> {
    using limit = new LinkedAbort([how.signal], {
      ms: how.ms,
      reason: () =>
        new RolloutError('IMAGE_BUILD_FAILED', `${file} took longer than ${how.ms / 1000} s`, {
          phase: 'environment',
          retryable: true,
        }),
    });
    return await runToEnd(file, words, {
      variables: this.#variables,
      signal: limit.signal,
      onProgress: how.onProgress ?? ((): void => undefined),
    });
  }
}

type Builder = 'docker' | 'buildah';

interface Ended {
  readonly exitCode: number | null;
  readonly said: string;
}

async function runToEnd(
  file: string,
  words: readonly string[],
  how: {
    readonly variables: SkyPorts['hostVariables'];
    readonly signal: AbortSignal;
    readonly onProgress: (line: string) => void;
  },
): Promise<Ended> {
  how.signal.throwIfAborted();
  let said = '';
  const hear = (chunk: Buffer): void => {
    const text = chunk.toString('utf8');
    said = (said + text).slice(-saidBytes);
    for (const line of text.split('\n')) if (line.trim() !== '') how.onProgress(line);
  };
  // A group of its own: what a builder started ends with it.
  const child = spawn(file, words, {
    stdio: ['ignore', 'pipe', 'pipe'],
    env: { ...how.variables },
    detached: true,
  });
  const onAbort = (): void => endGroup(child.pid);
  how.signal.addEventListener('abort', onAbort, { once: true });
  try {
    child.stdout.on('data', hear);
    child.stderr.on('data', hear);
    const ended = Promise.withResolvers<number | null>();
    child.once('error', (error) => {
      said += messageOf(error);
      ended.resolve(null);
    });
    child.once('close', (code) => ended.resolve(code));
    const exitCode = await ended.promise;
    how.signal.throwIfAborted();
    return { exitCode, said };
  } finally {
    how.signal.removeEventListener('abort', onAbort);
  }
}

function endGroup(pid: number | undefined): void {
  if (pid === undefined) return;
  try {
    process.kill(-pid, 'SIGKILL');
  } catch {
    // Nobody is left in the group.
  }
}

async function isOnPath(name: string, searched: string): Promise<boolean> {
  for (const folder of searched.split(path.delimiter))
    if (
      await access(path.join(folder, name), constants.X_OK).then(
        () => true,
        () => false,
      )
    )
      return true;
  return false;
}

/** `REGISTRY/TASK:HASH`: equal contents of equally named tasks are one image. */
export function referenceOf(registry: string, image: DockerfileImage): string {
  const task = path.basename(path.dirname(image.contextDir)).toLowerCase();
  const name = task.replaceAll(/[^a-z0-9]+/g, '-').replaceAll(/^-+|-+$/g, '');
  const hash = image.contextHash
    .toLowerCase()
    .replaceAll(/[^a-z0-9]/g, '')
    .slice(0, tagDigits);
  return `${registry.replace(/\/+$/, '')}/${name === '' ? 'environment' : name}:${hash}`;
}

/** Registries on this machine speak plain HTTP. */
function isLoopback(reference: string): boolean {
  return /^(localhost|127\.\d+\.\d+\.\d+|\[::1\])(:|\/)/.test(reference);
}

function noRegistry(): RolloutError {
  return new RolloutError(
    'CONFIG_INVALID',
    'a task with a Dockerfile needs a registry for its image on skypilot',
    {
      phase: 'config',
      field: 'environment.kwargs.registry',
      remedy:
        'Set "registry" or HARBOR_SKYPILOT_REGISTRY to one that the cluster can pull from, or give the task a prebuilt docker_image or a pool.',
    },
  );
}

function buildFailed(builder: string, { said, exitCode }: Ended): RolloutError {
  const isUnstarted = exitCode === null;
  return new RolloutError(
    'IMAGE_BUILD_FAILED',
    isUnstarted ? `${builder} cannot be started` : `${builder} could not build the Dockerfile`,
    { phase: 'environment', retryable: false, detail: said },
  );
}
