/** `slipway cleanup`: what dead runs left is removed, and everything else is named with the reason why it stays. */
import { silentLogger } from '../core/logger.ts';
import type { EnvironmentProvider, FoundSandbox } from '../environments/environment.ts';
import { isAbandoned } from '../environments/shared/label-sweep.ts';
import { reapDeadRuns } from '../environments/shared/reaper.ts';
import { FileSandboxJournalStore } from '../store/file/file-sandbox-journal.ts';
import type { AppPorts } from './ports.ts';
import { usableProviders } from './providers.ts';

export interface CleanedSandbox {
  readonly name: string;
  readonly provider: string;
  readonly reason: string;
}

export interface CleanUpReport {
  /** With `isDryRun` what would be removed. */
  readonly removed: readonly CleanedSandbox[];
  readonly leftAlone: readonly CleanedSandbox[];
  readonly problems: readonly { readonly provider: string; readonly problem: string }[];
}

const deadlineMs = 120_000;

export async function cleanUp(
  options: { readonly isDryRun: boolean; readonly signal: AbortSignal },
  ports: AppPorts,
): Promise<CleanUpReport> {
  const { signal } = options;
  const logger = silentLogger;
  const providers = await usableProviders(ports.environmentNames, { logger, signal }, ports);
  try {
    const journals = await FileSandboxJournalStore.open(ports.machine.stateDir, ports.locks);
    const survey = await takeSurvey(journals, providers, {
      signal,
      nowMs: ports.clock.now().getTime(),
    });
    if (options.isDryRun) return survey;
    const report = await reapDeadRuns({
      ...{ journals, providers, clock: ports.clock, logger, signal, deadlineMs },
    });
    const known = new Map(survey.removed.map((sandbox) => [sandbox.name, sandbox]));
    return {
      removed: report.removed.map(
        (name) => known.get(name) ?? { name, provider: 'unknown', reason: 'its run is dead' },
      ),
      leftAlone: survey.leftAlone,
      problems: [
        ...survey.problems,
        ...report.failed.map(({ name, error }) => ({ provider: name, problem: error.describe() })),
      ],
    };
  } finally {
    for (const provider of providers.values()) await provider.close();
  }
}

/** What is there and what would become of it. Touches nothing. */
async function takeSurvey(
  journals: FileSandboxJournalStore,
  providers: ReadonlyMap<string, EnvironmentProvider>,
  { signal, nowMs }: { readonly signal: AbortSignal; readonly nowMs: number },
): Promise<CleanUpReport> {
  const removed = new Map<string, CleanedSandbox>();
  const leftAlone: CleanedSandbox[] = [];
  const problems: { provider: string; problem: string }[] = [];
  const found: (CleanedSandbox & {
    readonly sandbox: FoundSandbox;
    readonly adapter: EnvironmentProvider;
  })[] = [];
  for (const [provider, adapter] of providers)
    try {
      for (const sandbox of await adapter.list(signal))
        found.push({ provider, name: sandbox.name, reason: '', sandbox, adapter });
    } catch (error) {
      signal.throwIfAborted();
      problems.push({ provider, problem: String(error) });
    }
  for (const run of await journals.deadRuns())
    try {
      for (const { name, provider } of run.open)
        removed.set(name, {
          name,
          provider,
          reason: `journalled by the dead run ${run.owner.runId}`,
        });
    } finally {
      run.release();
    }
  const live = new Set(await journals.liveRuns());
  for (const { name, provider, sandbox, adapter } of found) {
    const { storeId, runId, expiresAt } = sandbox.labels;
    if (storeId !== journals.storeId && isAbandoned(sandbox, adapter, nowMs))
      removed.set(name, { name, provider, reason: `of another machine, expired at ${expiresAt}` });
    else if (storeId !== journals.storeId)
      leftAlone.push({ name, provider, reason: `of another state folder (${storeId})` });
    else if (live.has(runId)) leftAlone.push({ name, provider, reason: `its run ${runId} lives` });
    else if (!removed.has(name))
      removed.set(name, { name, provider, reason: `labelled by the dead run ${runId}` });
  }
  return { removed: [...removed.values()], leftAlone, problems };
}
