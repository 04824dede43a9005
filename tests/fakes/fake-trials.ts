/** Trials that take turns instead of time: each waits at its gate, then ends as its script says and leaves a real trial folder. */
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { errorRegistry } from '../../src/core/error-registry.ts';
import { isRolloutError, RolloutError, type ErrorCode } from '../../src/core/errors.ts';
import type { TrialFactory } from '../../src/jobs/job.ts';
import type { Trial } from '../../src/trial/trial.ts';
import type { TrialRequest } from '../../src/trial/trial-options.ts';
import {
  dumpNonDefaultTrialConfig,
  dumpTrialConfig,
  toHarborJson,
} from '../../src/wire/harbor/dump.ts';
import { trialResultSchema, type TrialResult } from '../../src/wire/harbor/trial-result.ts';

/** What one try of a trial does: a reward, a failure, or a folder that cannot be written. */
export type FakeEnding =
  | { readonly rewards: Readonly<Record<string, number>> }
  | { readonly code: ErrorCode }
  | { readonly rejects: RolloutError };

export interface FakeTrialsOptions {
  /** Called once per try. */
  readonly ending: (request: TrialRequest, attempt: number) => FakeEnding;
  /** Keeps a try from ending until it resolves. */
  readonly gate?: (request: TrialRequest, signal: AbortSignal) => Promise<void>;
}

export class FakeTrials {
  readonly tries: string[] = [];
  running = 0;
  mostRunning = 0;
  readonly #attempts = new Map<string, number>();
  readonly #options: FakeTrialsOptions;

  constructor(options: FakeTrialsOptions) {
    this.#options = options;
  }

  readonly factory: TrialFactory = (request, hooks): Trial => {
    const { trial_name: name, trials_dir } = request.config;
    const dir = join(trials_dir, name);
    return {
      name,
      dir,
      progress: {
        phase: 'agent',
        stage: 'running',
        step: null,
        since: new Date(0),
        lastEventAt: new Date(0),
      },
      failure: null,
      timings: {
        ...{ started_at: null, finished_at: null, environment_setup: null, agent_setup: null },
        ...{ agent_execution: null, verifier: null, step_results: null },
      },
      inspect: () => Promise.resolve([]),
      run: async (signal) => {
        this.running += 1;
        this.mostRunning = Math.max(this.mostRunning, this.running);
        const release = await hooks.admitAgent?.(signal);
        try {
          const result = await this.#run(request, dir, signal);
          hooks.observe({ type: 'trial:ended', trialName: name, result });
          return result;
        } finally {
          release?.();
          this.running -= 1;
        }
      },
      cancel: () => Promise.resolve(null),
    };
  };

  async #run(request: TrialRequest, dir: string, signal: AbortSignal): Promise<TrialResult> {
    const { config } = request;
    const attempt = (this.#attempts.get(config.trial_name) ?? 0) + 1;
    this.#attempts.set(config.trial_name, attempt);
    this.tries.push(config.trial_name);
    await mkdir(dir, { recursive: true });
    await writeFile(join(dir, 'config.json'), toHarborJson(dumpNonDefaultTrialConfig(config, {})));
    let ending: FakeEnding;
    try {
      await request.load(signal);
      await this.#options.gate?.(request, signal);
      ending = signal.aborted ? { code: 'CANCELLED' } : this.#options.ending(request, attempt);
    } catch (error) {
      ending = { code: isRolloutError(error) ? error.code : 'INTERNAL' };
    }
    if ('rejects' in ending) throw ending.rejects;
    const result = fakeResult(request, ending, attempt);
    await writeFile(
      join(dir, 'result.json'),
      toHarborJson({ ...result, config: dumpTrialConfig(result.config, {}) }),
    );
    return result;
  }
}

/** A result as a trial writes it. */
export function fakeResult(
  { config, taskName, taskId, source }: Omit<TrialRequest, 'load'>,
  ending: Exclude<FakeEnding, { readonly rejects: RolloutError }>,
  attempt = 1,
): TrialResult {
  const code = 'code' in ending ? ending.code : null;
  const rewards = 'rewards' in ending ? ending.rewards : null;
  const failure = code && {
    code,
    phase: 'environment',
    message: `it ended with ${code}`,
    field: null,
    remedy: null,
    detail: null,
    retryable: false,
  };
  return trialResultSchema.parse({
    id: `${config.trial_name}-${attempt}`,
    task_name: taskName,
    trial_name: config.trial_name,
    trial_uri: 'file:///fake',
    task_id: taskId,
    source,
    task_checksum: 'none',
    config,
    agent_info: { name: config.agent.name, version: '1' },
    verifier_result: rewards && { rewards },
    exception_info: code && {
      exception_type: errorRegistry[code].harborType,
      exception_message: `it ended with ${code}`,
    },
    started_at: new Date(attempt).toISOString(),
    finished_at: new Date(attempt + 1).toISOString(),
    slipway: {
      schema_version: 1,
      outcome: {
        stage: code === null ? 'done' : 'environment',
        cause: code,
        trainable: rewards !== null,
        retryable: false,
        verdict: rewards && { rewards },
      },
      failure,
      environment: null,
      phase_times: { total_ms: 5 },
      agent_stop: null,
      verifier_exit_code: null,
      cancellation: null,
      destroyed: [],
      steps: [],
      warnings: [],
    },
  });
}
