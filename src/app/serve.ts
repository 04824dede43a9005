/**
 * `slipway serve`: the parts of the rollout server in their order, and their end in stages.
 *
 * Both listeners are bound before the first rollout is taken up, so that an address that is in use changes nothing; until then requests are answered
 * with 503. At the end rollouts are refused, running ones may finish for a while, what is left is ended, and every part is closed after those that use it.
 */
import { RunEnds } from '../agent-server/run-ends.ts';
import { ArchiveThread } from '../archive/archive-thread.ts';
import { FileRolloutArchive } from '../archive/file-archive.ts';
import { startsPrograms } from '../backends/registry.ts';
import type { CallbackDelivery } from '../callbacks/callback-delivery.ts';
import { CallbackSender } from '../callbacks/callback-sender.ts';
import type { ServeConfig } from '../config/serve/read-serve-config.ts';
import { messageOf, RolloutError } from '../core/errors.ts';
import { never } from '../core/linked-abort.ts';
import { Scope } from '../core/scope.ts';
import type { GatewayControl } from '../gateway/gateway-control.ts';
import { SamplesThread } from '../gateway/samples/samples-thread.ts';
import type { FleetFrontParts } from '../scheduler/jetstream/fleet-front.ts';
import { HangFinder } from '../scheduler/hang-finder.ts';
import { RolloutScheduler } from '../scheduler/rollout-scheduler.ts';
import { buildControlServer } from '../server/control-server.ts';
import { defaultServerLimits } from '../server/ports.ts';
import { healthOf } from '../server/routes/health.ts';
import { OwnKeys } from '../server/own-keys.ts';
import { openBranchPicker } from '../sessions/samples/named-picker.ts';
import type { RolloutStore } from '../store/rollout-store.ts';
import { SecretMask } from '../telemetry/secret-mask.ts';
import { ServerLog } from '../telemetry/server-log.ts';
import { Telemetry } from '../telemetry/telemetry.ts';
import { UrlPolicy } from '../wire/url-policy.ts';
import type { AppPorts } from './ports.ts';
import { openCallers } from './serve/callers.ts';
import { cleanDeadRuns } from './serve/clean-dead-runs.ts';
import { archiveDirOf, logFileOf, makeDataFolder } from './serve/data-folder.ts';
import { DiskWatch } from './serve/disk-watch.ts';
import { loadOf, openLoadEngine } from './serve/engine-load.ts';
import { watchFiles } from './serve/file-watch.ts';
import { keyFiles, otlpHeadersOf } from './serve/key-sources.ts';
import { openCollections } from './serve/open-collections.ts';
import { openFront } from './serve/open-front.ts';
import { openGateway } from './serve/gateway/open-gateway.ts';
import { endLeftProcesses } from './serve/left-processes.ts';
import { closeServer, listen } from './serve/listen.ts';
import { openAgentServer } from './serve/open-agent-server.ts';
import { makeBackend } from './serve/open-backend.ts';
import { openStore } from './serve/open-store.ts';
import { schedulerOptions } from './serve/scheduler-options.ts';

export interface RunningServer {
  /** `http://127.0.0.1:8000`. */
  readonly controlUrl: string;
  /** Where agents reach their model: one address, or one for each process of the gateway. */
  readonly dataUrls: readonly string[];
  readonly dataDir: string;
  readonly backend: string;
  /** Rollouts of an earlier life that were taken up. */
  readonly recovered: number;
  /** Resolves when a part has ended by itself without which no rollout can go on: the server is to be stopped, and started anew. */
  readonly lost: Promise<Error>;
  /**
   * Refuses new rollouts, lets running ones go on for the configured time or until `hurry` fires, ends what is left, closes. Idempotent: later calls share
   * the first one's end.
   */
  stop(hurry: AbortSignal): Promise<void>;
  /** Reads the keys again and opens the log file anew. CONFIG_INVALID leaves the keys as they were. */
  reload(): Promise<void>;
}

export interface StartServerOptions {
  readonly ports: AppPorts;
  /** Gives up starting. */
  readonly signal: AbortSignal;
  /** What, beside its keys, neither its log nor its archive may hold. */
  readonly secrets?: readonly string[];
  /** Puts something else in the place of a part; for proofs that break it on purpose. */
  readonly replace?: {
    readonly store?: (store: RolloutStore) => RolloutStore;
    readonly callbacks?: (callbacks: CallbackDelivery) => CallbackDelivery;
    readonly gateway?: (gateway: GatewayControl) => GatewayControl;
  } & Pick<FleetFrontParts, 'makePlacement'>;
}

/** How long ending running rollouts may take, and how long the last words of callbacks and spans. */
const abortMs = 5_000;
const lastWordsMs = 3_000;

/** CONFIG_INVALID, LISTEN_REFUSED, BACKEND_UNKNOWN, a store's or a backend's error: then nothing is left behind. */
export async function startServer(
  config: ServeConfig,
  { ports, signal, secrets = [], replace = {} }: StartServerOptions,
): Promise<RunningServer> {
  const { clock, machine, version } = ports;
  const { dataDir, listen: addresses } = config;
  const { instanceId } = addresses;
  const lost = Promise.withResolvers<Error>();
  const sources = { variables: machine.variables, baseDir: config.baseDir };
  await using scope = new Scope();

  const callers = await openCallers(config, sources);
  // One that cannot be loaded would cost every rollout its samples.
  await openBranchPicker(config.rollouts.picker);
  const policy = new UrlPolicy(config.callbacks);
  const loadEngine = await openLoadEngine(config, { openEngine: ports.openEngine, sources });
  if (loadEngine !== null) scope.defer(() => loadEngine.engine.destroy(stopped()));
  await makeDataFolder(dataDir);

  const otlpHeaders = await otlpHeadersOf(config, sources);
  const mask = new SecretMask();
  mask.add([
    ...(loadEngine?.key ? [loadEngine.key] : []),
    ...Object.values(otlpHeaders),
    ...secrets,
  ]);
  await callers.hideIn(mask);
  const log = new ServerLog(logFileOf(dataDir), {
    ...{ clock, mask, level: config.log.level },
    ...{ maxBytes: config.log.maxBytes, kept: config.log.keep },
  });
  scope.defer(() => log[Symbol.asyncDispose]());

  const telemetry = await Telemetry.open({
    ...{ clock, logger: log, instanceId },
    tenants: [...new Set(['default', ...Object.keys(config.tenants)])],
    otlpUrl: config.telemetry.otlpUrl,
    otlpHeaders,
    serviceName: config.telemetry.serviceName,
  });
  scope.defer(() => telemetry.close(AbortSignal.timeout(lastWordsMs)));
  const opened = await openStore(config, {
    ...{ ports, logger: log, signal, onLost: lost.resolve },
    onCommit: (commit) => telemetry.commit(commit),
  });
  scope.defer(() => opened.close());
  const store = replace.store?.(opened) ?? opened;

  // The folder is ours from here on.
  await endLeftProcesses(dataDir);
  // What a life before left is removed beside everything else, and nobody waits for it.
  const life = new AbortController();
  const disk = new DiskWatch(dataDir, config.limits.diskFloorBytes);
  const looksForLabels = config.queue.url.length === 0 && startsPrograms.has(config.backend.kind);
  const background = [
    cleanDeadRuns({ looksForLabels, signal: life.signal, logger: log }, ports),
    disk.watch({ clock, signal: life.signal }),
  ];
  scope.defer(async () => {
    life.abort(stopped());
    await Promise.all(background);
  });

  const archiveThread = new ArchiveThread();
  scope.defer(() => archiveThread.close());
  const archive = new FileRolloutArchive({
    ...{ dir: archiveDirOf(dataDir), logger: log, secrets },
    saveFolder: (task) => archiveThread.save(task),
  });
  const samples = new SamplesThread(clock);
  scope.defer(() => samples.close());
  const front =
    config.queue.url.length === 0
      ? null
      : await openFront(config, { ports, logger: log, sources, mask, scope, ...replace });
  const gateway = openGateway(config, {
    ...{ ports, logger: log, policy },
    health: () => healthOf(scheduler, { instanceId, isKnownCaller: false }),
    onCall: ({ rolloutId, ...call }) => telemetry.call(rolloutId, call),
  });
  scope.defer(() => gateway.close());
  telemetry.readGateway(() => gateway.facts());
  const routes = replace.gateway?.(gateway.control) ?? front?.gateway ?? gateway.control;
  // After the callbacks: what an acknowledgement brings last is archived before the store closes.
  let settled = (): Promise<void> => Promise.resolve();
  scope.defer(() => settled());
  const sender = new CallbackSender(
    { store, policy, clock, logger: log },
    { maxAgeMs: config.callbacks.maxAgeMs },
  );
  scope.defer(() => sender.close(AbortSignal.timeout(lastWordsMs)));
  const callbacks = replace.callbacks?.(sender) ?? sender;
  callbacks.onEnd(({ delivery, result }) => {
    const { channel, attempts } = delivery;
    telemetry.callback(delivery.rolloutId, { channel, result, attempts });
  });

  const backend =
    front?.backend ?? (await makeBackend(config, { ports, logger: log, onLost: lost.resolve }));
  scope.defer(() => backend.close());
  await backend.start(signal);
  const ends = new RunEnds();
  const scheduler = new RolloutScheduler(schedulerOptions(config, version), {
    ...{ store, backend, gateway: routes, callbacks, archive, clock, logger: log },
    observers: [telemetry, ends],
    sampleMaker: samples,
    engineLoad: loadEngine === null ? null : loadOf(loadEngine.engine),
    ...(front !== null && { hosts: front.hosts }),
    hasRoom: () => disk.hasRoom,
    maskSecrets: (secrets) => mask.add(secrets),
  });
  settled = () => scheduler.settled(lastWordsMs);
  telemetry.readAdmission(() => scheduler.admission());

  const { agentServer, adminSecret } = await openAgentServer(config, {
    ...{ service: scheduler, ends, ports, sources, mask, logger: log, looksForLabels },
    ...{ policy, signal: life.signal },
  });
  background.push(agentServer.watch(life.signal));
  const limits = { ...defaultServerLimits, bodyBytes: config.limits.bodyBytes };
  scope.defer(() => gateway.stopListening());
  const keys = new OwnKeys(callers.keys);
  const collections = openCollections({
    ...{ ports, logger: log, dir: config.collections.dir, keys, policy },
    hide: (found) => mask.add(found),
    controlUrl: () => controlUrl,
  });
  const control = buildControlServer({
    ...{ service: scheduler, logger: log, instanceId, limits, clock, version },
    ...{ keys, allowFrom: callers.allowFrom },
    files: archive,
    milesPayload: (file, layers) => samples.milesPayload(file, layers),
    metrics: telemetry,
    doctor: new HangFinder({
      ...{ service: scheduler, delivery: callbacks, backend, gateway: routes, clock },
      disk: () => disk.look(),
    }),
    ...{ addresses: policy, agentServer, adminSecret, collections },
  });
  scope.defer(() => closeServer(control));
  // Before the server that they talk to.
  scope.defer(() => collections.close());
  const dataUrls = await gateway.listen();
  const controlUrl = await listen(
    control,
    { host: addresses.host, port: addresses.port },
    'listen.port',
  );

  const reload = async (): Promise<void> => {
    log.reopen();
    await callers.keys.reload();
    await callers.hideIn(mask);
    log.log('info', 'keys were read again');
  };
  const reloadIfPossible = (): Promise<void> =>
    reload().catch((error: unknown) => {
      log.log('error', 'keys were not read again', { cause: messageOf(error) });
    });
  background.push(watchFiles(keyFiles(config), reloadIfPossible, { clock, signal: life.signal }));

  background.push(agentServer.cancelLeft());
  const { recovered } = await scheduler.start().catch(async (error: unknown) => {
    await scheduler.stop({ drainMs: 0, hurry: never, abortMs, force: never });
    throw error;
  });
  if (front !== null) background.push(front.sweep(store));
  log.log('info', 'the server is ready', {
    controlUrl,
    dataUrls,
    backend: backend.kind,
    recovered,
  });

  const owned = scope.move();
  let ending: Promise<void> | null = null;
  const end = async (hurry: AbortSignal): Promise<void> => {
    log.log('info', 'the server stops');
    // Beside the stages of the scheduler, which end what does not end by itself.
    void collections.close();
    try {
      // The process ends at a third signal: no stage of its own is needed for that.
      await scheduler.stop({ drainMs: config.shutdown.drainMs, hurry, abortMs, force: never });
    } finally {
      agentServer.close();
      await owned[Symbol.asyncDispose]();
    }
  };
  return {
    ...{ controlUrl, dataUrls, dataDir, recovered, reload },
    lost: lost.promise,
    backend: backend.kind,
    stop: (hurry) => (ending ??= end(hurry)),
  };
}

function stopped(): RolloutError {
  return new RolloutError('CANCELLED', 'the server has ended', { phase: 'server' });
}
