/**
 * One trial: resolve → start environment → set up agent → run agent → stop agent → collect → clean → verify → destroy → write the result. The
 * order lives in `sequence.ts`, each stage in a file of its own, the limits in `timeouts.ts` and `deadlines.ts`.
 *
 * `run` answers with a record whatever happens. When its signal fires, or `cancel` is called, the sandboxes are killed and destroyed at once, beside
 * whatever stage was waiting; the receipt of that is part of the record.
 */
import { randomUUID } from 'node:crypto';
import { isRolloutError, messageOf, RolloutError } from '../core/errors.ts';
import { LinkedAbort } from '../core/linked-abort.ts';
import type { Environment } from '../environments/environment.ts';
import { dumpNonDefaultTrialConfig, dumpTrialConfig, toHarborTime } from '../wire/harbor/dump.ts';
import type { CancellationReceipt } from '../wire/harbor/slipway-record.ts';
import type { TrialResult } from '../wire/harbor/trial-result.ts';
import type { ProcessView } from '../wire/rollout/process-view.ts';
import { createAgent, describeAgent } from './agent-of-trial.ts';
import { agentSite } from './agent-site.ts';
import { cancelSandboxes } from './cancel.ts';
import { DeadlineScope, TrialWork } from './deadline-scope.ts';
import { raceSignal } from '../core/race-signal.ts';
import { redactDocument, redactFolder } from './redact.ts';
import { explain, toTrialResult } from './result.ts';
import { problemOf, Sandboxes } from './sandboxes.ts';
import { runSequence, standardSequence, type Sequence } from './sequence.ts';
import type { TrialRun } from './stage.ts';
import { regradeSequence } from './stages/take-over-source.ts';
import { StageTeller } from './stage-teller.ts';
import { ownLimits, trialSpans } from './timeouts.ts';
import type { TrialProgress } from './trial-events.ts';
import { TrialFolder } from './trial-folder.ts';
import { lockTrial } from './trial-lock.ts';
import { TrialLog } from './trial-log.ts';
import type { TrialInputs, TrialParts, TrialRequest } from './trial-options.ts';
import { planTrial, type TrialPlan } from './trial-plan.ts';
import { TrialRecord } from './trial-record.ts';
import { trialSecrets } from './trial-secrets.ts';

export interface SandboxView {
  readonly name: string;
  /** null = they cannot be looked at. */
  readonly processes: readonly ProcessView[] | null;
}

/** The times of a trial as its result has them; null = not begun, or not known yet. */
export type TrialTimings = Pick<
  TrialResult,
  | 'started_at'
  | 'finished_at'
  | 'environment_setup'
  | 'agent_setup'
  | 'agent_execution'
  | 'verifier'
  | 'step_results'
>;

/** One run of an agent on a task, from the empty folder to `result.json`. */
export interface Trial {
  readonly name: string;
  /** Absolute folder `<trials_dir>/<trial_name>`. */
  readonly dir: string;
  readonly progress: TrialProgress;
  /** What it has failed with so far, an agent that ran out of time before its verification included; null = nothing. The first failure counts. */
  readonly failure: RolloutError | null;
  /** What of its times is known so far; of several steps, those before the first one. */
  readonly timings: TrialTimings;
  /** What its sandboxes run now, by sandbox, newest last, without what belongs to the environment itself; see `Environment.inspectProcesses`. */
  inspect(signal: AbortSignal): Promise<readonly SandboxView[]>;
  /**
   * Runs all stages and resolves with the record, whatever happened: failures, timeouts and cancellation are in it. Rejects only when the
   * trial folder itself cannot be written (DISK_FULL, INTERNAL). Called once.
   */
  run(signal: AbortSignal): Promise<TrialResult>;
  /**
   * Kills the agent, destroys the environment and says what is gone, in any phase; before `run` it makes `run` end at once. Idempotent:
   * later calls share the receipt. A finished trial answers null.
   */
  cancel(): Promise<CancellationReceipt | null>;
}

/** Makes a trial; nothing is touched before `run`. Another `sequence` than the standard one is for tests of its stages. */
export function createTrial(
  request: TrialRequest,
  parts: TrialParts,
  sequence: Sequence = request.config.source_trial === null ? standardSequence : regradeSequence,
): Trial {
  return new StagedTrial(request, parts, sequence);
}

/** Begun work that ignores its signal is waited for this long once its sandbox is gone. */
const settleLimitMs = 1_500;

class StagedTrial implements Trial {
  readonly name: string;
  readonly #id = randomUUID();
  readonly #request: TrialRequest;
  readonly #parts: TrialParts;
  readonly #sequence: Sequence;
  readonly #folder: TrialFolder;
  readonly #record: TrialRecord;
  readonly #log: TrialLog;
  readonly #teller: StageTeller;
  readonly #sandboxes: Sandboxes;
  readonly #work: TrialWork;
  readonly #cancelled = new LinkedAbort([]);
  #inputs: TrialInputs | null = null;
  #plan: TrialPlan | null = null;
  #run: TrialRun | null = null;
  #sandbox: Environment | null = null;
  #siteSecrets: readonly string[] = [];
  #receipt: Promise<CancellationReceipt> | null = null;
  #end: Promise<TrialResult> | null = null;
  #hasEnded = false;

  constructor(request: TrialRequest, parts: TrialParts, sequence: Sequence) {
    const { config } = request;
    this.name = config.trial_name;
    this.#request = request;
    this.#parts = parts;
    this.#sequence = sequence;
    this.#folder = new TrialFolder(config.trials_dir, config.trial_name);
    this.#record = new TrialRecord(parts.clock);
    this.#work = new TrialWork(parts.clock);
    this.#log = new TrialLog(parts.logger, { clock: parts.clock, trialName: this.name });
    this.#log.hide(this.#secrets());
    this.#teller = new StageTeller({
      trialName: this.name,
      record: this.#record,
      clock: parts.clock,
      logger: this.#log,
      observe: parts.observe ?? (() => undefined),
    });
    this.#sandboxes = new Sandboxes({
      provider: parts.provider,
      clock: parts.clock,
      storeId: parts.storeId,
      runId: parts.runId,
      trialName: this.name,
      extraCaBundle: parts.extraCaBundle ?? null,
      hostEndpoint: parts.hostEndpoint ?? null,
      layers: request.layers ?? [],
    });
  }

  get dir(): string {
    return this.#folder.dir;
  }

  get progress(): TrialProgress {
    return this.#teller.progress;
  }

  get failure(): RolloutError | null {
    const round = this.#record.rounds.at(-1)?.record ?? null;
    return (this.#record.failure ?? round?.failure)?.error ?? null;
  }

  get timings(): TrialTimings {
    const { startedAt, environmentSetup, agentSetup, rounds } = this.#record;
    const only = rounds.find(({ step }) => step === null)?.record ?? null;
    return {
      started_at: toHarborTime(startedAt),
      finished_at: null,
      environment_setup: environmentSetup,
      agent_setup: agentSetup,
      agent_execution: only?.agentExecution ?? null,
      verifier: null,
      step_results: null,
    };
  }

  async inspect(signal: AbortSignal): Promise<readonly SandboxView[]> {
    // Keys begin with the pid.
    const base = new Set(
      [...(this.#run?.state.baseProcesses?.keys ?? [])].map((key) => Number(key.split(':')[0])),
    );
    return await Promise.all(
      this.#sandboxes.open.map(async (environment) => {
        const processes = await environment.inspectProcesses(signal);
        return {
          name: environment.name,
          processes: processes?.filter(({ pid }) => !base.has(pid)) ?? null,
        };
      }),
    );
  }

  run(signal: AbortSignal): Promise<TrialResult> {
    this.#end ??= this.#runToEnd(signal);
    return this.#end;
  }

  async cancel(): Promise<CancellationReceipt | null> {
    if (this.#hasEnded) return null;
    this.#cancelled.abort(cancelled(this.#record.phase));
    this.#receipt ??= this.#cancelNow();
    return await this.#receipt;
  }

  async #runToEnd(signal: AbortSignal): Promise<TrialResult> {
    await this.#folder.create();
    this.#log.open(this.#folder.file('trial.log'));
    this.#noteQueueTime();
    this.#teller.started(this.#request.taskName);
    await this.#runStages(signal);
    await this.#cleanUp();
    const result = await this.#writeResult();
    this.#hasEnded = true;
    this.#teller.ended(result);
    return result;
  }

  /** Everything that the signal can end. */
  async #runStages(signal: AbortSignal): Promise<void> {
    using link = new LinkedAbort([signal, this.#cancelled.signal]);
    const onAbort = (): void => {
      this.#receipt ??= this.#cancelNow();
    };
    if (link.signal.aborted) onAbort();
    else link.signal.addEventListener('abort', onAbort, { once: true });
    try {
      await this.#prepareAndRun(link.signal);
    } catch (error) {
      const reason: unknown = link.signal.reason;
      const { phase } = this.#record;
      this.#record.fail(link.signal.aborted ? asCancelled(reason, phase) : error);
    } finally {
      link.signal.removeEventListener('abort', onAbort);
    }
    if (this.#receipt !== null) this.#keepReceipt(await this.#receipt);
  }

  async #prepareAndRun(signal: AbortSignal): Promise<void> {
    const { config } = this.#request;
    const { hostVariables } = this.#parts;
    await this.#folder.writeJson('config.json', dumpNonDefaultTrialConfig(config, hostVariables));
    signal.throwIfAborted();
    const plan = await this.#record.timed('resolve_ms', () => this.#prepare(signal));
    const run = await this.#openRun(plan, signal);
    this.#run = run;
    const runStage = this.#teller.runner();
    await runSequence(run, { sequence: this.#sequence, runStage }, signal);
    signal.throwIfAborted();
  }

  async #prepare(signal: AbortSignal): Promise<TrialPlan> {
    const { config } = this.#request;
    const { hostVariables, provider } = this.#parts;
    this.#record.phase = 'resolve';
    const inputs = await raceSignal(this.#request.load(signal), signal);
    this.#inputs = inputs;
    const lock = await lockTrial(config, inputs, { hostVariables, signal });
    await this.#folder.writeJson('lock.json', lock);
    this.#record.phase = 'config';
    const warn = (text: string): void => this.#record.warn(text);
    this.#plan = await planTrial({ config, inputs, provider, hostVariables, warn, signal });
    this.#log.hide(this.#secrets());
    return this.#plan;
  }

  async #openRun(plan: TrialPlan, signal: AbortSignal): Promise<TrialRun> {
    const { config, agent: factory } = this.#request;
    const agent = await createAgent(plan, {
      parts:
        factory === undefined
          ? this.#parts
          : { ...this.#parts, resolveAgent: () => Promise.resolve(factory) },
      folder: this.#folder,
      logger: this.#log,
    });
    const ceilingMs = this.#parts.limits?.ceilingMs ?? null;
    const deadline = DeadlineScope.open(trialSpans(config, plan.task), this.#work, ceilingMs);
    const site = await agentSite(agent, { deadline, signal });
    this.#siteSecrets = site.secrets;
    this.#log.hide(this.#secrets());
    const hostEndpoint = this.#parts.hostEndpoint ?? site.hostEndpoint;
    const environment = this.#sandboxes.make(plan.sandbox, {
      part: 'env',
      forceBuild: config.environment.force_build,
      lifetimeMs: deadline.remainingMs,
      layers: site.layers,
      hostEndpoint,
    });
    this.#sandbox = environment;
    return {
      plan,
      parts: { ...this.#parts, hostEndpoint },
      folder: this.#folder,
      record: this.#record,
      agent,
      sandboxes: this.#sandboxes,
      environment,
      work: this.#work,
      deadline,
      logger: this.#log,
      progress: (line) => this.#teller.line(line),
      state: { baseProcesses: null, isEnvironmentUp: false },
    };
  }

  #cancelNow(): Promise<CancellationReceipt> {
    return cancelSandboxes({
      sandboxes: this.#sandboxes,
      agentSandbox: this.#agentSandbox(),
      agentLogs: this.#folder.current.agent,
      phase: this.#record.phase,
      clock: this.#parts.clock,
    });
  }

  #agentSandbox(): Environment | null {
    return this.#run?.state.isEnvironmentUp === true ? this.#run.environment : null;
  }

  #keepReceipt(receipt: CancellationReceipt): void {
    this.#record.cancellation = receipt;
    if (receipt.is_complete && receipt.confirmed_gone.length > 0)
      this.#record.destroyed = new Set(receipt.confirmed_gone);
    this.#teller.cancelled(receipt);
  }

  /** Under its own limit: nothing that ended the trial can end its cleanup. */
  async #cleanUp(): Promise<void> {
    this.#record.phase = 'cleanup';
    try {
      await this.#record.timed('cleanup_ms', async () => {
        const receipts = await this.#sandboxes.destroyAll(ownLimits.destroyMs);
        if (receipts.length > 0)
          this.#record.destroyed = new Set(receipts.flatMap(({ confirmedGone }) => confirmedGone));
      });
    } catch (error) {
      this.#log.log('error', 'the sandbox was not removed', { reason: problemOf(error) });
      this.#record.destroyed = null;
      this.#record.fail(error);
    }
    await this.#run?.agent.close?.();
    const busy = await this.#work.settled(settleLimitMs);
    if (busy > 0) this.#log.log('warn', 'work of this trial ignores its signal', { busy });
    if (this.#cancelled.signal.aborted && this.#record.cancellation === null && this.#receipt)
      this.#keepReceipt(await this.#receipt);
  }

  async #writeResult(): Promise<TrialResult> {
    const { hostVariables } = this.#parts;
    const record = this.#record;
    record.finishedAt = this.#parts.clock.now();
    record.spend('total_ms', record.finishedAt.getTime() - record.startedAt.getTime());
    const secrets = this.#secrets();
    const result = redactDocument(this.#toResult(), secrets);
    if (this.#plan !== null && this.#plan.task.steps.length > 0)
      await this.#folder.removeEmptyRound();
    await this.#log.close();
    if (record.failure !== null)
      await this.#folder.writeText('exception.txt', `${explain(record.failure)}\n`);
    await redactFolder(this.#folder.dir, secrets);
    // Masked from the configuration itself: a resumed job compares it with its plan, masked in the same way.
    const config = redactDocument(dumpTrialConfig(this.#request.config, hostVariables), secrets);
    await this.#folder.writeJson('result.json', { ...result, config });
    return result;
  }

  #toResult(): TrialResult {
    const { config, taskName, taskId, source } = this.#request;
    return toTrialResult({
      id: this.#id,
      config,
      dir: this.#folder.dir,
      taskName: this.#inputs?.task.name ?? taskName,
      taskId,
      source,
      checksum: this.#inputs?.checksum ?? '',
      agentInfo: describeAgent(config, this.#run?.agent ?? null),
      plan: this.#plan,
      provider: this.#parts.provider,
      sandbox: this.#sandbox?.name ?? null,
      record: this.#record,
    });
  }

  #secrets(): readonly string[] {
    const { hostVariables } = this.#parts;
    const given = trialSecrets(this.#request.config, { plan: this.#plan, hostVariables });
    return [...given, ...this.#siteSecrets];
  }

  #noteQueueTime(): void {
    const { queuedAt } = this.#request;
    if (queuedAt === undefined) return;
    const ms = this.#record.startedAt.getTime() - queuedAt.getTime();
    this.#record.spend('queue_ms', Math.max(0, ms));
  }
}

function cancelled(phase: RolloutError['phase'], cause?: unknown): RolloutError {
  return new RolloutError('CANCELLED', 'the trial was cancelled', { phase, cause });
}

/** The reason of a fired signal as the trial's failure: a typed one stays what it is. */
function asCancelled(reason: unknown, phase: RolloutError['phase']): RolloutError {
  if (isRolloutError(reason) && reason.code !== 'CANCELLED') return reason;
  return cancelled(phase, reason instanceof Error ? reason : new Error(messageOf(reason)));
}
