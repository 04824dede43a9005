/** What the trials of one run share: the journal, the environment, the engines, the creation limit. Opening it removes what dead runs left. */
import { lowerId } from '../core/ids.ts';
import { Limiter } from '../core/limiter.ts';
import { silentLogger, type Logger } from '../core/logger.ts';
import { Scope } from '../core/scope.ts';
import type { EnvironmentProvider } from '../environments/environment.ts';
import { ownedProvider } from '../environments/shared/owned-provider.ts';
import { splitOptions } from '../environments/shared/provider-settings.ts';
import { remoteGateway } from '../environments/shared/remote-gateway.ts';
import { WarmPool, type PoolUse } from '../environments/shared/warm-pool.ts';
import { reapDeadRuns, type ReapReport } from '../environments/shared/reaper.ts';
import type { TrialFactory } from '../jobs/job.ts';
import type { PlannedTrial } from '../jobs/plan.ts';
import { FileSandboxJournalStore } from '../store/file/file-sandbox-journal.ts';
import type { EnvironmentConfig } from '../wire/harbor/run-config.ts';
import { noteLogger } from './note-logger.ts';
import type { AppPorts } from './ports.ts';
import { makeProvider, usableProviders } from './providers.ts';
import { RunEngines } from './run-engines.ts';
import { trialSchedule } from './trial-schedule.ts';
import { RunGateway } from './run-gateway.ts';

/** Creations at once, however many trials run: creating is what overloads a machine. Another machine is held to the rate that its provider takes. */
const concurrentCreations = 8;
const remoteCreations = 256;

/** For removing what dead runs left, at the start of a run. */
const reapDeadlineMs = 30_000;

export interface SandboxRun extends AsyncDisposable {
  readonly provider: EnvironmentProvider;
  /** What was cleaned up when the run was opened. */
  readonly cleaning: ReapReport;
  /** Of the pool of ready sandboxes; null = there is none. */
  poolUse(): PoolUse | null;
  /** Sandboxes of these trials are made before they are asked for, where there is a pool. Called once. */
  expect(trials: readonly PlannedTrial[]): void;
  trialFactory(logger: Logger): TrialFactory;
}

export interface SandboxRunOptions {
  readonly environment: EnvironmentConfig;
  readonly allowUnsandboxed: boolean;
  /** Of the opening, and of the run where it has no signal of its own. */
  readonly signal: AbortSignal;
  readonly runSignal?: AbortSignal;
  /** What dead runs left is somebody else's business. */
  readonly leavesCleaning?: boolean;
  /** Hears what the environment warns of. */
  readonly note: (text: string) => void;
}

/** ENVIRONMENT_UNKNOWN, ENVIRONMENT_UNAVAILABLE, JOURNAL_FAILED. Disposing ends the engines, closes the journal, then the provider. */
export async function openSandboxRun(
  options: SandboxRunOptions,
  ports: AppPorts,
): Promise<SandboxRun> {
  const { environment, allowUnsandboxed, signal, note } = options;
  const { clock, locks, machine } = ports;
  await using scope = new Scope();
  const logger = noteLogger(note);
  const kind = environment.type ?? '';
  const inner = await makeProvider(
    kind,
    { allowUnsandboxed, kwargs: environment.kwargs, logger },
    ports,
  );
  scope.defer(() => inner.close());
  await inner.preflight(signal);
  const journals = await FileSandboxJournalStore.open(machine.stateDir, locks);
  const cleaning =
    options.leavesCleaning === true
      ? nothingCleaned
      : await reapAtStart([inner], journals, { signal, ports });
  const runId = `run-${lowerId(16)}`;
  const journal = await journals.open(runId);
  scope.defer(() => journal.close());
  const { settings } = splitOptions(environment.kwargs);
  const isGatewayNamed = inner.isRemote === true && settings.gatewayUrl !== null;
  const engines = new RunEngines(ports.openEngine, options.runSignal ?? signal);
  scope.defer(() => engines[Symbol.asyncDispose]());
  const gateway = new RunGateway({
    ...{ clock, logger, openEngine: ports.openEngine },
    firstPort: isGatewayNamed ? settings.gatewayPort : null,
  });
  scope.defer(() => gateway[Symbol.asyncDispose]());
  const limiter = new Limiter(inner.isRemote === true ? remoteCreations : concurrentCreations);
  const owned = ownedProvider(inner, { journal, limiter, clock, logger });
  const { poolSize: size, poolIdleMs: idleMs } = settings;
  const pool = size === 0 ? null : new WarmPool(owned, { size, idleMs, clock, logger });
  if (pool !== null) scope.defer(() => pool.close());
  const provider = remoteGateway(pool ?? owned, settings.gatewayUrl);
  const kept = scope.move();
  return {
    provider,
    cleaning,
    poolUse: () => pool?.use ?? null,
    expect: (trials) =>
      pool?.fill(
        trialSchedule(trials, {
          ...{ provider: owned, storeId: journals.storeId, runId, signal },
          hostVariables: machine.variables,
          extraCaBundle: machine.extraCaBundle,
          now: () => clock.now(),
        }),
      ),
    trialFactory:
      (trialLogger) =>
      (request, { observe, admitAgent, hostEndpoint }) =>
        ports.createTrial(request, {
          provider,
          resolveAgent: ports.resolveAgent,
          openEngine: engines.open,
          clock,
          logger: trialLogger,
          hostVariables: machine.variables,
          storeId: journals.storeId,
          runId,
          observe,
          extraCaBundle: machine.extraCaBundle,
          hostEndpoint: hostEndpoint ?? null,
          programs: ports.programs,
          openRoute: gateway.open,
          ...(admitAgent !== undefined && { admitAgent }),
        }),
    [Symbol.asyncDispose]: () => kept[Symbol.asyncDispose](),
  };
}

const nothingCleaned: ReapReport = { runs: [], removed: [], failed: [], expiredForeign: [] };

/** Removes what dead runs left, with the providers that are open and with all others that work on this machine. */
export async function reapAtStart(
  open: readonly EnvironmentProvider[],
  journals: FileSandboxJournalStore,
  { signal, ports }: { readonly signal: AbortSignal; readonly ports: AppPorts },
): Promise<ReapReport> {
  const others = ports.environmentNames.filter((name) => open.every(({ kind }) => kind !== name));
  const logger = silentLogger;
  const usable = await usableProviders(others, { logger, signal }, ports);
  try {
    return await reapDeadRuns({
      journals,
      providers: new Map([...usable, ...open.map((one) => [one.kind, one] as const)]),
      clock: ports.clock,
      logger,
      signal,
      deadlineMs: reapDeadlineMs,
    });
  } finally {
    for (const provider of usable.values()) await provider.close();
  }
}
