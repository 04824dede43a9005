/**
 * Creation of one sandbox. It goes on when nobody waits for it any more, so that its id is never lost: a create whose answer is lost is looked for by its name,
 * which the service gives to one sandbox at a time, and is ours only with our label.
 */
import { RolloutError } from '../../core/errors.ts';
import { LinkedAbort } from '../../core/linked-abort.ts';
import type { EnvironmentSpec } from '../environment.ts';
import { caVariables } from '../shared/extra-ca.ts';
import type { ApiClient } from './api/api-client.ts';
import { ApiError, apiFailure, isStatus, isThrottle } from './api/api-error.ts';
import { proxyUrl, sandboxAnswer, type SandboxAnswer } from './api/answers.ts';
import type { PreparedImage } from './images/snapshots.ts';
import { networkSettings } from './network-settings.ts';
import type { CompiledDaytonaOptions, DaytonaPorts } from './options.ts';
import { labelKeys, serviceLabels } from './sandbox-names.ts';

/** A create that answered with an error of the service may still come to be. */
const lateLooks = 4;
const goneStates = new Set([
  'destroyed',
  'destroying',
  'error',
  'build_failed',
  'stopped',
  'archived',
]);

export interface BootParts {
  readonly api: ApiClient;
  readonly options: CompiledDaytonaOptions;
  readonly ports: DaytonaPorts;
}

export interface BootedSandbox {
  readonly id: string;
  /** Base URL of its toolbox. */
  readonly toolboxUrl: string;
}

/** Resolves when the sandbox runs. `abandoned` ends it between two calls, never inside a create. Rejects with typed errors. */
export async function bootSandbox(
  parts: BootParts,
  wanted: {
    readonly spec: EnvironmentSpec;
    readonly image: PreparedImage;
    readonly hasCa: boolean;
    /** Before every further create of the same start. */
    readonly admitCreate: (signal: AbortSignal) => Promise<void>;
  },
  abandoned: AbortSignal,
): Promise<BootedSandbox> {
  const { options } = parts;
  using limit = new LinkedAbort([], {
    ms: options.createTimeoutMs,
    reason: () =>
      new RolloutError(
        'ENVIRONMENT_START_TIMEOUT',
        `Daytona made no sandbox within ${options.createTimeoutMs / 1000} s`,
        { phase: 'environment' },
      ),
  });
  try {
    const made = await create(parts, wanted, { abandoned, limit: limit.signal });
    abandoned.throwIfAborted();
    using waiting = new LinkedAbort([limit.signal, abandoned]);
    return await untilStarted(parts, made, waiting.signal);
  } catch (error) {
    abandoned.throwIfAborted();
    limit.signal.throwIfAborted();
    const failure = apiFailure(error, {
      code: 'ENVIRONMENT_START_FAILED',
      phase: 'environment',
      what: 'creating the sandbox',
    });
    if (error instanceof ApiError && isThrottle(error))
      throw new RolloutError('ENVIRONMENT_THROTTLED', failure.message, {
        phase: 'environment',
        cause: error,
        ...(error.retryAfterMs === null ? {} : { retryAfterMs: error.retryAfterMs }),
        remedy: "Lower the number of concurrent trials, or raise the organisation's limits.",
      });
    if (!isStatus(error, 400, 422)) throw failure;
    throw new RolloutError(failure.code, failure.message, {
      phase: 'environment',
      cause: error,
      retryable: false,
      remedy: 'Correct what the service refuses: resources, labels, a secret or the network.',
    });
  }
}

async function create(
  parts: BootParts,
  wanted: Parameters<typeof bootSandbox>[1],
  signals: { readonly abandoned: AbortSignal; readonly limit: AbortSignal },
): Promise<SandboxAnswer> {
  const { api, options, ports } = parts;
  const { name } = wanted.spec;
  const json = createBody(options, wanted, ports.clock.now());
  for (let attempt = 1; ; attempt += 1) {
    signals.abandoned.throwIfAborted();
    if (attempt > 1) await wanted.admitCreate(signals.abandoned);
    try {
      // Not under `abandoned`: what the service has begun is to be known.
      return sandboxAnswer.parse(
        await api.json({
          method: 'POST',
          url: '/sandbox',
          json,
          signal: signals.limit,
          limitMs: options.createTimeoutMs,
          leavesThrottle: true,
        }),
      );
    } catch (error) {
      if (!(error instanceof ApiError) || !(error.mayBeDone || error.status === 409)) throw error;
      const found = await lookedFor(parts, name, signals.limit);
      if (found !== null) return found;
      if (error.status === 409 || attempt === 3) throw error;
    }
  }
}

/** Our sandbox of this name, looked for more than once. */
async function lookedFor(
  { api, options, ports }: BootParts,
  name: string,
  signal: AbortSignal,
): Promise<SandboxAnswer | null> {
  for (let look = 1; look <= lateLooks; look += 1) {
    const found = await findSandbox(api, name, signal);
    if (found !== null) return found;
    await ports.clock.sleep(options.pollMs, signal);
  }
  return null;
}

/** The sandbox of this name when it is ours; also one that is on its way out. */
export async function findSandbox(
  api: ApiClient,
  name: string,
  signal: AbortSignal,
): Promise<SandboxAnswer | null> {
  try {
    const answer = await api.json({
      method: 'GET',
      url: `/sandbox/${encodeURIComponent(name)}`,
      signal,
    });
    const found = sandboxAnswer.parse(answer);
    return found.labels[labelKeys.name] === name && found.state !== 'destroyed' ? found : null;
  } catch (error) {
    if (isStatus(error, 404)) return null;
    throw error;
  }
}

async function untilStarted(
  { api, options, ports }: BootParts,
  made: SandboxAnswer,
  signal: AbortSignal,
): Promise<BootedSandbox> {
  let sandbox = made;
  while (sandbox.state !== 'started') {
    if (goneStates.has(sandbox.state ?? '')) throw failedStart(sandbox);
    await ports.clock.sleep(options.pollMs, signal);
    sandbox = sandboxAnswer.parse(
      await api.json({ method: 'GET', url: `/sandbox/${sandbox.id}`, signal }),
    );
  }
  const { id } = sandbox;
  const proxy =
    sandbox.toolboxProxyUrl ||
    proxyUrl.parse(
      await api.json({ method: 'GET', url: `/sandbox/${id}/toolbox-proxy-url`, signal }),
    ).url;
  return { id, toolboxUrl: `${proxy.replace(/\/+$/, '')}/${id}` };
}

function failedStart({ state, errorReason }: SandboxAnswer): RolloutError {
  const reason = errorReason ?? 'no reason given';
  if (state === 'build_failed')
    return new RolloutError('IMAGE_BUILD_FAILED', `the image could not be built: ${reason}`, {
      phase: 'environment',
      detail: reason,
      remedy: "Correct the task's Dockerfile.",
    });
  return new RolloutError(
    'ENVIRONMENT_START_FAILED',
    `the sandbox ended as ${state ?? 'unknown'}: ${reason}`,
    {
      phase: 'environment',
    },
  );
}

function createBody(
  options: CompiledDaytonaOptions,
  { spec, image, hasCa }: Parameters<typeof bootSandbox>[1],
  now: Date,
): Record<string, unknown> {
  const secrets = Object.entries(options.secrets).map(([variable, secret]) => ({
    [variable]: secret,
  }));
  return {
    name: spec.name,
    user: options.user,
    env: { ...(hasCa ? caVariables : {}), ...spec.env },
    labels: { ...options.labels, ...serviceLabels(spec.name, spec.labels) },
    public: false,
    ...networkSettings(spec.network),
    ...image.create,
    ...(options.target === null ? {} : { target: options.target }),
    autoStopInterval: options.autoStopIntervalMins,
    autoDeleteInterval: options.autoDeleteIntervalMins,
    ttlMinutes: minutesUntil(spec.labels.expiresAt, now),
    ...(secrets.length > 0 ? { secrets } : {}),
  };
}

/** The service removes a sandbox at its expiry, also when nobody is left who remembers it. */
function minutesUntil(expiresAt: string, now: Date): number {
  const minutes = Math.ceil((Date.parse(expiresAt) - now.getTime()) / 60_000);
  return Number.isFinite(minutes) ? Math.max(1, minutes) : 24 * 60;
}
