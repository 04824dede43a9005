/**
 * Images of the service. Each image with its resources becomes one snapshot, named by its content, that sandboxes start from: however many ask for it, in
 * this process or in others, it is built once. A snapshot's resources are its own, which is why they are part of the name.
 */
import { createHash } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import path from 'node:path';
import { attribute, RolloutError } from '../../../core/errors.ts';
import { LinkedAbort } from '../../../core/linked-abort.ts';
import { SingleFlight } from '../../../core/single-flight.ts';
import type { ImageSource, ResourceLimits } from '../../environment.ts';
import { NegativeCache } from '../../shared/negative-cache.ts';
import type { ApiClient } from '../api/api-client.ts';
import { ApiError, apiFailure, isStatus } from '../api/api-error.ts';
import { logsUrl, snapshotAnswer, type SnapshotAnswer } from '../api/answers.ts';
import type { CompiledDaytonaOptions, DaytonaPorts } from '../options.ts';
import { storeContext } from './context-store.ts';
import { lastUser } from './last-user.ts';

const failureTtlMs = 10 * 60_000;
const logLimitMs = 20_000;
const logTailLength = 4_000;
const failed = new Set(['error', 'build_failed']);

/** What the service makes sandboxes with. */
export interface Resources {
  readonly cpu?: number;
  /** GiB. */
  readonly memory?: number;
  /** GiB. */
  readonly disk?: number;
}

/** How a sandbox is asked for: by a snapshot, which has resources of its own, or by a build. */
export interface PreparedImage {
  readonly create: { readonly snapshot: string } | ({ readonly buildInfo: BuildInfo } & Resources);
  /** Who commands run as when nobody says; null = the sandbox's own user. */
  readonly user: string | null;
}

interface BuildInfo {
  readonly dockerfileContent: string;
  readonly contextHashes?: readonly string[];
}

interface Definition {
  readonly dockerfile: string;
  readonly context: { readonly folder: string; readonly hash: string } | null;
  readonly user: string | null;
}

export interface ImageRequest {
  readonly image: ImageSource;
  readonly limits: ResourceLimits;
  readonly forceBuild: boolean;
  readonly signal: AbortSignal;
  readonly onProgress: (line: string) => void;
}

export class DaytonaImages {
  readonly #api: ApiClient;
  readonly #options: CompiledDaytonaOptions;
  readonly #ports: DaytonaPorts;
  readonly #building = new SingleFlight<string>();
  readonly #failures: NegativeCache<RolloutError>;

  constructor(api: ApiClient, options: CompiledDaytonaOptions, ports: DaytonaPorts) {
    this.#api = api;
    this.#options = options;
    this.#ports = ports;
    this.#failures = new NegativeCache({ ttlMs: failureTtlMs, clock: ports.clock });
  }

  /** Rejects with IMAGE_BUILD_FAILED, IMAGE_NOT_FOUND, CAPABILITY_UNSUPPORTED or ENVIRONMENT_UNAVAILABLE. */
  async prepare(request: ImageRequest): Promise<PreparedImage> {
    const { image, signal } = request;
    if (image.kind === 'compose')
      throw new RolloutError('CAPABILITY_UNSUPPORTED', 'Daytona runs no compose files', {
        phase: 'environment',
        field: 'environment.type',
        remedy: 'Use --env docker for this task.',
      });
    const definition = await defined(image);
    const resources = resourcesOf(request.limits);
    const { user } = definition;
    const template = this.#template(image);
    if (template !== null) {
      if (await this.#active(template, signal)) return { create: { snapshot: template }, user };
      request.onProgress(`there is no active snapshot ${template}: the image is built instead`);
    }
    const { context } = definition;
    if (!this.#options.autoSnapshot) {
      if (context !== null)
        await this.#calling('sending the build context', signal, () =>
          storeContext(this.#api, context, signal),
        );
      return { create: { buildInfo: buildInfo(definition), ...resources }, user };
    }
    const name = snapshotName(definition, resources, this.#options.target);
    const known = this.#failures.get(name);
    if (known !== null) throw known;
    await this.#building.run(name, signal, (building) =>
      this.#ensure(name, { definition, resources, request: { ...request, signal: building } }),
    );
    return { create: { snapshot: name }, user };
  }

  async #ensure(
    name: string,
    wanted: {
      readonly definition: Definition;
      readonly resources: Resources;
      readonly request: ImageRequest;
    },
  ): Promise<string> {
    const { request } = wanted;
    using limit = new LinkedAbort([request.signal], {
      ms: this.#options.buildTimeoutMs,
      reason: () =>
        buildFailure(name, `took longer than ${this.#options.buildTimeoutMs / 1000} s`, {
          retryable: true,
        }),
    });
    const { signal } = limit;
    try {
      let found = await this.#calling('looking for the snapshot', signal, () =>
        this.#get(name, signal),
      );
      if (found !== null && (failed.has(found.state) || request.forceBuild)) {
        await this.#remove(found, signal);
        found = null;
      }
      found ??= await this.#create(name, wanted, signal);
      await this.#untilActive(found, { name, onProgress: request.onProgress, signal });
      return name;
    } catch (error) {
      if (error instanceof RolloutError && error.code === 'IMAGE_BUILD_FAILED' && !error.retryable)
        this.#failures.remember(name, error);
      throw error;
    }
  }

  async #create(
    name: string,
    {
      definition,
      resources,
      request,
    }: {
      readonly definition: Definition;
      readonly resources: Resources;
      readonly request: ImageRequest;
    },
    signal: AbortSignal,
  ): Promise<SnapshotAnswer> {
    const { context } = definition;
    if (context !== null)
      await this.#calling('sending the build context', signal, () =>
        storeContext(this.#api, context, signal),
      );
    request.onProgress(`building the snapshot ${name}`);
    const json = {
      name,
      buildInfo: buildInfo(definition),
      ...resources,
      ...(this.#options.target === null ? {} : { regionId: this.#options.target }),
    };
    return await this.#calling('creating the snapshot', signal, async () => {
      try {
        return snapshotAnswer.parse(
          await this.#api.json({ method: 'POST', url: '/snapshots', json, signal }),
        );
      } catch (error) {
        // Another process was first, or the answer to our own call was lost.
        const mayExist =
          error instanceof ApiError &&
          (error.status === 409 || error.mayBeDone || /already exists/i.test(error.message));
        const found = mayExist ? await this.#get(name, signal) : null;
        if (found === null) throw error;
        return found;
      }
    });
  }

  async #untilActive(
    first: SnapshotAnswer,
    about: {
      readonly name: string;
      readonly onProgress: (line: string) => void;
      readonly signal: AbortSignal;
    },
  ): Promise<void> {
    const { name, signal } = about;
    let snapshot: SnapshotAnswer | null = first;
    let said = '';
    for (;;) {
      if (snapshot === null) throw buildFailure(name, 'is gone', { retryable: true });
      const { state } = snapshot;
      if (state === 'active') return;
      if (failed.has(state)) throw await this.#buildError(snapshot, signal);
      if (state === 'inactive')
        await this.#calling('activating the snapshot', signal, () =>
          this.#api.json({
            method: 'POST',
            url: `/snapshots/${snapshot?.id ?? ''}/activate`,
            signal,
            isIdempotent: true,
          }),
        );
      if (state !== said) about.onProgress(`snapshot ${name}: ${state}`);
      said = state;
      await this.#ports.clock.sleep(this.#options.pollMs, signal);
      snapshot = await this.#calling('looking at the snapshot', signal, () =>
        this.#get(name, signal),
      );
    }
  }

  async #buildError(snapshot: SnapshotAnswer, signal: AbortSignal): Promise<RolloutError> {
    const reason = snapshot.errorReason ?? 'no reason given';
    const log = await this.#buildLog(snapshot, signal);
    // Its name is free again for a build that is better.
    await this.#remove(snapshot, signal).catch(() => undefined); // the next build finds it failed and removes it first
    if (/not found|manifest unknown|pull access denied|no such image|does not exist/i.test(reason))
      return new RolloutError(
        'IMAGE_NOT_FOUND',
        `the snapshot ${snapshot.name} could not be made: ${reason}`,
        {
          phase: 'environment',
          detail: reason,
          remedy: "Name an image that Daytona's builders can pull.",
        },
      );
    return buildFailure(snapshot.name, `could not be built: ${reason}`, { retryable: false, log });
  }

  /** The last lines of a build; empty where the service has none. */
  async #buildLog(snapshot: SnapshotAnswer, signal: AbortSignal): Promise<string> {
    try {
      const asked = { method: 'GET', signal, limitMs: logLimitMs } as const;
      const answer = await this.#api.json({
        ...asked,
        url: `/snapshots/${snapshot.id}/build-logs-url`,
      });
      const stream = await this.#api.stream({ ...asked, url: logsUrl.parse(answer).url });
      let tail = '';
      for await (const chunk of stream.setEncoding('utf8') as AsyncIterable<string>)
        tail = (tail + chunk).slice(-logTailLength);
      return tail.trim();
    } catch {
      signal.throwIfAborted();
      return ''; // the reason that the service gives is told in any case
    }
  }

  async #active(name: string, signal: AbortSignal): Promise<boolean> {
    const found = await this.#calling('looking for the snapshot', signal, () =>
      this.#get(name, signal),
    );
    return found?.state === 'active';
  }

  async #get(name: string, signal: AbortSignal): Promise<SnapshotAnswer | null> {
    try {
      const url = `/snapshots/${encodeURIComponent(name)}`;
      return snapshotAnswer.parse(await this.#api.json({ method: 'GET', url, signal }));
    } catch (error) {
      if (isStatus(error, 404)) return null;
      throw error;
    }
  }

  async #remove(snapshot: SnapshotAnswer, signal: AbortSignal): Promise<void> {
    await this.#calling('removing a snapshot', signal, async () => {
      await this.#api
        .json({ method: 'DELETE', url: `/snapshots/${snapshot.id}`, signal })
        .catch((error: unknown) => {
          if (!isStatus(error, 404)) throw error;
        });
      while ((await this.#get(snapshot.name, signal)) !== null)
        await this.#ports.clock.sleep(this.#options.pollMs, signal);
    });
  }

  async #calling<T>(what: string, signal: AbortSignal, work: () => Promise<T>): Promise<T> {
    try {
      return await work();
    } catch (error) {
      signal.throwIfAborted();
      throw apiFailure(error, { code: 'ENVIRONMENT_START_FAILED', phase: 'environment', what });
    }
  }

  #template(image: Exclude<ImageSource, { kind: 'compose' }>): string | null {
    const source = image.kind === 'prebuilt' ? image.reference : path.dirname(image.contextDir);
    const name = path.posix.basename(source).replace(/[:@].*$/, '');
    return this.#options.snapshotTemplateName?.replaceAll('{name}', name) ?? null;
  }
}

/** Whole processors and GiB are what the service sells: a task gets at least what it asks for. */
export function resourcesOf(limits: ResourceLimits): Resources {
  const gibibytes = (megabytes: number): number => Math.max(1, Math.ceil(megabytes / 1024));
  return {
    ...(limits.cpus === null ? {} : { cpu: Math.max(1, Math.ceil(limits.cpus)) }),
    ...(limits.memoryMb === null ? {} : { memory: gibibytes(limits.memoryMb) }),
    ...(limits.storageMb === null ? {} : { disk: gibibytes(limits.storageMb) }),
  };
}

async function defined(image: Exclude<ImageSource, { kind: 'compose' }>): Promise<Definition> {
  if (image.kind === 'prebuilt')
    return { dockerfile: `FROM ${image.reference}\n`, context: null, user: null };
  try {
    const dockerfile = await readFile(path.join(image.contextDir, 'Dockerfile'), 'utf8');
    const context = {
      folder: image.contextDir,
      hash: image.contextHash.replace(/[^0-9a-zA-Z]/g, ''),
    };
    return { dockerfile, context, user: lastUser(dockerfile) };
  } catch (error) {
    throw attribute(
      error,
      'TASK_ENVIRONMENT_UNDEFINED',
      'environment',
      `the Dockerfile of ${image.contextDir}`,
    );
  }
}

function buildInfo({ dockerfile, context }: Definition): BuildInfo {
  return {
    dockerfileContent: dockerfile,
    ...(context === null ? {} : { contextHashes: [context.hash] }),
  };
}

function snapshotName(definition: Definition, resources: Resources, target: string | null): string {
  const content = JSON.stringify([
    definition.dockerfile,
    definition.context?.hash ?? null,
    resources,
    target,
  ]);
  return `slipway-${createHash('sha256').update(content).digest('hex').slice(0, 24)}`;
}

function buildFailure(
  name: string,
  why: string,
  { retryable, log = '' }: { readonly retryable: boolean; readonly log?: string },
): RolloutError {
  return new RolloutError('IMAGE_BUILD_FAILED', `the snapshot ${name} ${why}`, {
    phase: 'environment',
    retryable,
    detail: log === '' ? why : log,
    remedy: "Correct the task's Dockerfile; its build log is on the service's page of snapshots.",
  });
}
