import { LinkedAbort } from '../core/linked-abort.ts';
import type { Clock } from '../core/clock.ts';
import type { Phase } from '../core/errors.ts';
import { agentLogsDir } from '../agents/agent.ts';
import type { Environment } from '../environments/environment.ts';
import type { CancellationReceipt } from '../wire/harbor/slipway-record.ts';
import { raceSignal } from '../core/race-signal.ts';
import { problemOf, type Sandboxes } from './sandboxes.ts';

/** Killing, saving a last log and destroying together stay within this. */
const cancelLimitMs = 2_000;
const killShareMs = 400;
const logsShareMs = 200;

export interface CancelOptions {
  readonly sandboxes: Sandboxes;
  /** Sandbox whose agent logs are worth a last look; null = none is up. */
  readonly agentSandbox: Environment | null;
  /** Host folder for them. */
  readonly agentLogs: string;
  /** Where the trial is. */
  readonly phase: Phase;
  readonly clock: Clock;
}

/**
 * Kills everything in every sandbox of the trial, saves the agent's log if that is quick, destroys the sandboxes, and says what was confirmed gone.
 * Never rejects and never takes much longer than its limit: what is not gone by then is named, and the trial's cleanup goes on with it.
 */
export async function cancelSandboxes(options: CancelOptions): Promise<CancellationReceipt> {
  const { sandboxes, clock, phase } = options;
  const since = clock.monotonicMs();
  const elapsed = (): number => clock.monotonicMs() - since;
  const open = [...sandboxes.open];
  const outcomes = await Promise.all(
    open.map(async (environment): Promise<SandboxOutcome> => {
      const killed = await kill(environment);
      if (environment === options.agentSandbox) await saveLogs(environment, options.agentLogs);
      return await destroy(sandboxes, environment, { killed, limitMs: cancelLimitMs - elapsed() });
    }),
  );
  const problems = outcomes.flatMap(({ problem }) => (problem === null ? [] : [problem]));
  return {
    phase,
    killed: outcomes.reduce((sum, { killed }) => sum + killed, 0),
    confirmed_gone: [...new Set(outcomes.flatMap(({ gone }) => gone))].sort(),
    is_complete: problems.length === 0,
    problem: problems.length === 0 ? null : problems.join('; '),
    duration_ms: Math.round(elapsed()),
  };
}

interface SandboxOutcome {
  readonly killed: number;
  readonly gone: readonly string[];
  readonly problem: string | null;
}

/** Killing first is a courtesy to whoever shares the machine; destroying is what counts, so a failure here is none. */
async function kill(environment: Environment): Promise<number> {
  try {
    const { killed } = await within(killShareMs, (signal) =>
      environment.killProcesses({ keys: new Set() }, signal),
    );
    return killed;
  } catch {
    return 0;
  }
}

async function saveLogs(environment: Environment, to: string): Promise<void> {
  await within(logsShareMs, (signal) => environment.downloadDir(agentLogsDir, to, signal)).catch(
    () => undefined,
  );
}

async function destroy(
  sandboxes: Sandboxes,
  environment: Environment,
  { killed, limitMs }: { readonly killed: number; readonly limitMs: number },
): Promise<SandboxOutcome> {
  try {
    const deadlineMs = Math.max(200, limitMs);
    const receipt = await within(deadlineMs, () => sandboxes.destroy(environment, deadlineMs));
    return { killed, gone: receipt.confirmedGone, problem: null };
  } catch (error) {
    return { killed, gone: [], problem: `${environment.name}: ${problemOf(error)}` };
  }
}

async function within<T>(ms: number, work: (signal: AbortSignal) => Promise<T>): Promise<T> {
  using link = new LinkedAbort([], { ms, reason: () => new Error(`not done within ${ms} ms`) });
  return await raceSignal(work(link.signal), link.signal);
}
