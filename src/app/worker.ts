/**
 * `slipway worker`: a host that executes rollouts of a front end elsewhere. It is that server without its control listener, store and callbacks: backend, gateway, and the
 * queue that both share.
 */
import os from 'node:os';
import { startsPrograms } from '../backends/registry.ts';
import type { ServeConfig } from '../config/serve/read-serve-config.ts';
import { RolloutError } from '../core/errors.ts';
import { Scope } from '../core/scope.ts';
import { Claims, type ClaimBook } from '../scheduler/jetstream/claims.ts';
import { WorkerHost } from '../scheduler/jetstream/worker-host.ts';
import { holdFolder } from '../store/sqlite/store-folder.ts';
import { SecretMask } from '../telemetry/secret-mask.ts';
import { ServerLog } from '../telemetry/server-log.ts';
import { UrlPolicy } from '../wire/url-policy.ts';
import type { AppPorts } from './ports.ts';
import { cleanDeadRuns } from './serve/clean-dead-runs.ts';
import { logFileOf, makeDataFolder } from './serve/data-folder.ts';
import { openGateway } from './serve/gateway/open-gateway.ts';
import { endLeftProcesses } from './serve/left-processes.ts';
import { makeBackend } from './serve/open-backend.ts';
import { openBus } from './serve/open-bus.ts';

export interface RunningWorker {
  /** Where agents reach their model, and `/health` is. */
  readonly dataUrls: readonly string[];
  readonly dataDir: string;
  readonly backend: string;
  readonly name: string;
  readonly slots: number;
  /** Resolves when a part has ended by itself without which no rollout can go on. */
  readonly lost: Promise<Error>;
  /** Takes nothing more, lets what runs go on for the configured time or until `hurry` fires, ends what is left, closes. Idempotent. */
  stop(hurry: AbortSignal): Promise<void>;
}

export interface StartWorkerOptions {
  readonly ports: AppPorts;
  /** Gives up starting. */
  readonly signal: AbortSignal;
  /** Puts something else in the place of a part; for proofs that break it on purpose. */
  readonly replace?: { readonly claims?: (claims: ClaimBook) => ClaimBook };
}

/** CONFIG_INVALID, LISTEN_REFUSED, BACKEND_UNKNOWN, QUEUE_UNAVAILABLE, QUEUE_UNSUPPORTED, a backend's error: then nothing is left behind. */
export async function startWorker(
  config: ServeConfig,
  { ports, signal, replace = {} }: StartWorkerOptions,
): Promise<RunningWorker> {
  const { clock, machine, version } = ports;
  const { dataDir } = config;
  if (config.queue.url.length === 0)
    throw new RolloutError('CONFIG_INVALID', 'a worker needs the address of a queue', {
      ...{ phase: 'config', field: 'queue.url' },
      remedy: 'Give --queue nats://HOST:PORT, the same as the front end.',
    });
  const lost = Promise.withResolvers<Error>();
  await using scope = new Scope();
  await makeDataFolder(dataDir);
  const folder = await holdFolder(dataDir, ports.locks);
  scope.defer(() => {
    folder.release();
    return Promise.resolve();
  });
  const mask = new SecretMask();
  const log = new ServerLog(logFileOf(dataDir), {
    ...{ clock, mask, level: config.log.level },
    ...{ maxBytes: config.log.maxBytes, kept: config.log.keep },
  });
  scope.defer(() => log[Symbol.asyncDispose]());
  await endLeftProcesses(dataDir);
  const life = new AbortController();
  const looksForLabels = startsPrograms.has(config.backend.kind);
  const cleaning = cleanDeadRuns({ looksForLabels, signal: life.signal, logger: log }, ports);
  scope.defer(async () => {
    life.abort(new RolloutError('CANCELLED', 'the worker has ended', { phase: 'server' }));
    await cleaning;
  });

  const name = config.queue.hostName ?? os.hostname();
  const slots = config.admission.maxConcurrent;
  const gateway = openGateway(config, {
    ...{ ports, logger: log, policy: new UrlPolicy(config.callbacks) },
    health: () => ({ status: 'ok', worker: name, slots, running: host?.running ?? 0 }),
    onCall: ({ rolloutId }) => {
      log.log('debug', 'a model call has ended', { rolloutId });
    },
  });
  scope.defer(() => gateway.close());
  const backend = await makeBackend(config, { ports, logger: log, onLost: lost.resolve });
  scope.defer(() => backend.close());
  await backend.start(signal);
  const sources = { variables: machine.variables, baseDir: config.baseDir };
  const bus = await openBus(config, { sources, mask, name: `slipway worker ${name}` });
  scope.defer(() => bus.close());
  scope.defer(() => gateway.stopListening());
  const dataUrls = await gateway.listen();
  const claims = new Claims(bus.claims);
  let host: WorkerHost | null = null;
  host = new WorkerHost(
    { name, version, slots, leaseMs: config.queue.leaseMs },
    {
      ...{ bus, backend, clock, logger: log, gateway: gateway.control },
      claims: replace.claims?.(claims) ?? claims,
      maskSecrets: (secrets) => mask.add(secrets),
    },
  );
  const working = host;
  working.start();
  log.log('info', 'the worker is ready', { dataUrls, backend: backend.kind, name, slots });

  const owned = scope.move();
  let ending: Promise<void> | null = null;
  const end = async (hurry: AbortSignal): Promise<void> => {
    log.log('info', 'the worker stops');
    try {
      await working.stop({ drainMs: config.shutdown.drainMs, hurry });
    } finally {
      await owned[Symbol.asyncDispose]();
    }
  };
  return {
    ...{ dataUrls, dataDir, name, slots, lost: lost.promise, backend: backend.kind },
    stop: (hurry) => (ending ??= end(hurry)),
  };
}
