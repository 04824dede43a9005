/**
 * One rollout as one trial: find the task → run the trial → read what it left. The completion is told when the verification of a single step begins,
 * by when the agent is proven stopped; of several steps, and where there is no verification, when the trial has ended.
 */
import path from 'node:path';
import type { Clock } from '../../core/clock.ts';
import { isRolloutError, RolloutError } from '../../core/errors.ts';
import { LinkedAbort } from '../../core/linked-abort.ts';
import type { Logger } from '../../core/logger.ts';
import { removeFolder } from '../../core/remove-folder.ts';
import { raceSignal } from '../../core/race-signal.ts';
import type { Task } from '../../tasks/task.ts';
import { TrajectoryRedactor } from '../../trajectory/redact.ts';
import type { TrialEvent } from '../../trial/trial-events.ts';
import type { Trial } from '../../trial/trial.ts';
import type { TrialConfig } from '../../wire/harbor/trial-config.ts';
import type { TrialResult } from '../../wire/harbor/trial-result.ts';
import type {
  AbortReceipt,
  ArchivedFiles,
  Execution,
  ExecutionHooks,
  ExecutionProbe,
  ExecutionRequest,
  ExecutionResult,
} from '../execution-backend.ts';
import type { UsedFolder } from '../shared/rollout-folders.ts';
import { TrialPhases } from '../shared/trial-diagnostics.ts';
import { readHarborTask } from './harbor-task.ts';
import type { NativeOptions } from './native-options.ts';
import { noHostEndpoint, type OptionsOfRow } from './row-agents.ts';
import type { NativePorts, NativeTask, NativeTrials } from './native-ports.ts';
import {
  agentStopped,
  overBefore,
  setUpFailed,
  trialEnded,
  type NativeEnding,
  type Setting,
} from './native-result.ts';
import { hostEndpointOf, nativeTrialConfig, trialName } from './native-trial-config.ts';
import { trialOutput } from './trial-output.ts';
import { TrialProgressMap } from './trial-progress.ts';

/** Of an abort that finds no trial: what is under way heeds its signal. */
const abortLimitMs = 1_800;

export interface NativeExecutionParts {
  readonly options: NativeOptions;
  /** Those of the agent that a row names. */
  readonly optionsOf: OptionsOfRow;
  readonly trials: NativeTrials;
  readonly findTask: NativePorts['findTask'];
  readonly loadSkills: NativePorts['loadSkills'];
  readonly trialsDir: string;
  /** Where relative folders of tasks begin. */
  readonly baseDir: string;
  /** Of its trial. */
  readonly folder: UsedFolder;
  readonly clock: Clock;
  readonly logger: Logger;
}

export class NativeExecution implements Execution {
  readonly result: Promise<ExecutionResult>;
  readonly #request: ExecutionRequest;
  readonly #hooks: ExecutionHooks;
  readonly #parts: NativeExecutionParts;
  readonly #aborted = new LinkedAbort([]);
  readonly #progress = new TrialProgressMap();
  readonly #phases = new TrialPhases();
  readonly #redactor: TrajectoryRedactor;
  readonly #since: number;
  /** Until the trial was made. */
  #setupSec = 0;
  #config: TrialConfig | null = null;
  #task: Task | null = null;
  #trial: Trial | null = null;
  /** The one call of `workflowCompleted`. */
  #completion: Promise<void> | null = null;
  #beginning: Promise<void> | null = null;
  #receipt: Promise<AbortReceipt> | null = null;
  /** Of the trial's folder: a failed trial stays, and so does one of which something could not be read. */
  #stays: 'always' | 'unless archived' | 'never' = 'always';

  constructor(request: ExecutionRequest, hooks: ExecutionHooks, parts: NativeExecutionParts) {
    this.#request = request;
    this.#hooks = hooks;
    this.#parts = parts;
    this.#redactor = new TrajectoryRedactor(request.secrets);
    this.#since = parts.clock.monotonicMs();
    this.result = this.#run();
    this.result.catch(() => undefined); // nobody looks at it after an abort
  }

  get id(): string {
    return this.#request.id;
  }

  /** null before there is a trial. */
  async probe(signal: AbortSignal): Promise<ExecutionProbe | null> {
    return this.#trial === null ? null : { sandboxes: await this.#trial.inspect(signal) };
  }

  async release(archived: ArchivedFiles = { isComplete: true }): Promise<void> {
    // An abort is answered before the trial has written its last file.
    if (this.#aborted.signal.aborted) await this.result.catch(() => undefined);
    try {
      if (this.#stays === 'never' || (this.#stays === 'unless archived' && archived.isComplete))
        await removeFolder(this.#dir);
      else if (this.#stays === 'unless archived')
        this.#parts.logger.log('warn', 'not everything of a trial was archived: its folder stays', {
          ...{ rollout: this.#request.id, folder: path.basename(this.#dir) },
        });
    } finally {
      await this.#parts.folder.leave();
    }
  }

  abort(reason: Error): Promise<AbortReceipt> {
    // A controller that cancels has no use for what is there; after any other abort somebody may.
    if (isRolloutError(reason, 'CANCELLED')) this.#stays = 'never';
    this.#receipt ??= this.#abortNow(reason);
    return this.#receipt;
  }

  get #dir(): string {
    return path.join(this.#parts.trialsDir, trialName(this.#request.id));
  }

  async #abortNow(reason: Error): Promise<AbortReceipt> {
    const stage = this.#trial?.progress.stage ?? 'finding task';
    this.#aborted.abort(reason);
    const receipt = (await this.#trial?.cancel()) ?? null;
    if (receipt !== null)
      return {
        stage,
        processesKilled: receipt.killed,
        confirmedGone: receipt.confirmed_gone,
        isComplete: receipt.is_complete,
        problem: receipt.problem,
      };
    using limit = new LinkedAbort([], { ms: abortLimitMs, reason: () => new Error('busy') });
    await raceSignal(this.result, limit.signal).catch(() => undefined);
    const isOver = !limit.signal.aborted;
    const problem = isOver ? null : 'the rollout does not end';
    return { stage, processesKilled: 0, confirmedGone: [], isComplete: isOver, problem };
  }

  async #run(): Promise<ExecutionResult> {
    const { agentTimeoutMs } = this.#request;
    if (agentTimeoutMs !== null && agentTimeoutMs <= 0)
      return this.#without(overBefore(timeIsOver(agentTimeoutMs)));
    let trial: Trial;
    try {
      trial = await this.#makeTrial(this.#aborted.signal);
    } catch (error) {
      this.#aborted.signal.throwIfAborted();
      return this.#without(setUpFailed(error, { phase: 'setup', setupSec: this.#elapsedSec() }));
    }
    this.#trial = trial;
    this.#setupSec = this.#elapsedSec();
    const setting = this.#setting();
    let result: TrialResult;
    try {
      result = await trial.run(this.#aborted.signal);
    } catch (error) {
      // Its folder cannot be written: nothing of it is there.
      this.#aborted.signal.throwIfAborted();
      return this.#without(setUpFailed(error, { phase: 'trial_setup', setupSec: this.#setupSec }));
    }
    const { workflow, final, warnings } = trialEnded(result, setting);
    this.#warn(warnings);
    const { trajectory, files, problems } = await trialOutput(trial.dir);
    this.#warn(problems);
    if (problems.length > 0) this.#warn([`the folder of the trial stays: ${trial.name}`]);
    const isCancelled = final.outcome.cause === 'CANCELLED';
    if (!isCancelled && this.#completion === null && workflow !== final) this.#complete(workflow);
    await this.#completion;
    const isGood = final.status === 'success' && this.#parts.options.removesSuccessfulTrials;
    // A controller that cancelled while the trial was read has said already what stays of it.
    if (isCancelled) this.#stays = 'never';
    else if (isGood && problems.length === 0 && this.#stays !== 'never')
      this.#stays = 'unless archived';
    // Of a sandbox that is kept a process may still write.
    const mayBeTaken = this.#stays === 'unless archived' && result.slipway?.destroyed != null;
    const given = files.map((file) => ({ ...file, mayBeTaken }));
    const agentMetadata = result.agent_result?.metadata ?? null;
    return {
      ...{ ...this.#cleaned(final), trajectory, files: given },
      ...(agentMetadata !== null && { agentMetadata }),
    };
  }

  async #makeTrial(signal: AbortSignal): Promise<Trial> {
    const { optionsOf, trials, trialsDir, baseDir, findTask, clock } = this.#parts;
    const options = optionsOf(this.#request.metadata);
    if (options.binding.callsFromSandbox && !trials.hasHostEndpoint)
      throw noHostEndpoint(options.binding.name, options.environment.type ?? '');
    const since = clock.now();
    this.#hooks.progress({
      stage: 'finding task',
      waitingOn: { kind: 'task', owner: 'task', detail: null, since, deadline: null },
      lastProgressAt: since,
    });
    const reference = readHarborTask(this.#request.metadata, {
      taskKey: options.taskKey,
      baseDir,
    });
    this.#warn(reference.warnings);
    // Before anything is fetched: what the request lacks costs nobody a download.
    nativeTrialConfig(this.#request, options, { entry: reference.entry, trialsDir });
    const { task, warnings } = await raceSignal(findTask(reference.entry, signal), signal);
    this.#warn(warnings);
    const config = nativeTrialConfig(this.#request, options, { entry: task.entry, trialsDir });
    this.#config = config;
    await raceSignal(this.#parts.folder.isFree, signal);
    // Of a server that died before the agent began.
    await removeFolder(this.#dir);
    signal.throwIfAborted();
    return trials.createTrial(
      {
        config,
        taskName: task.name,
        taskId: task.taskId,
        source: task.entry.source,
        load: (loading) => this.#load(task, config.agent.skills, loading),
      },
      {
        observe: (event) => this.#observe(event),
        admitAgent: async () => {
          // Once per rollout: a later step is no beginning.
          this.#beginning ??= this.#hooks.agentBegins();
          await this.#beginning;
          return () => undefined;
        },
        hostEndpoint: hostEndpointOf(this.#request, options),
      },
    );
  }

  async #load(task: NativeTask, skills: readonly string[], signal: AbortSignal) {
    const inputs = await task.load(signal);
    this.#task = inputs.task;
    return { ...inputs, skills: await this.#parts.loadSkills(skills, signal) };
  }

  #observe(event: TrialEvent): void {
    const { clock } = this.#parts;
    this.#phases.heed(event, this.#trial?.failure ?? null);
    const isVerified = event.type === 'stage:started' && event.phase === 'verifier';
    if (isVerified && event.step === null && this.#trial !== null)
      this.#complete(agentStopped(this.#trial.failure, this.#trial.timings, this.#setting()));
    if (this.#config === null) return;
    const facts = { config: this.#config, task: this.#task };
    const progress = this.#progress.after(event, facts, clock.now());
    if (progress !== null) this.#hooks.progress(progress);
  }

  /** A completion that cannot be made durable ends the rollout when its result is awaited. */
  #complete(ending: NativeEnding): void {
    if (this.#aborted.signal.aborted) return;
    this.#completion ??= this.#hooks.workflowCompleted(this.#without(ending));
    this.#completion.catch(() => undefined);
  }

  #without(ending: NativeEnding): ExecutionResult {
    return { ...this.#cleaned(ending), trajectory: null, files: [] };
  }

  #cleaned(ending: NativeEnding): NativeEnding {
    const { errMessage } = ending;
    return { ...ending, errMessage: errMessage && this.#redactor.text(errMessage) };
  }

  #setting(): Setting {
    const { rewardKey } = this.#parts.options;
    return {
      ...{ label: this.#request.label, rewardKey },
      ...{ setupSec: this.#setupSec, phases: this.#phases },
    };
  }

  #elapsedSec(): number {
    return Math.max(0, Math.round(this.#parts.clock.monotonicMs() - this.#since)) / 1000;
  }

  #warn(warnings: readonly string[]): void {
    for (const warning of warnings)
      this.#parts.logger.log('warn', this.#redactor.text(warning), { rollout: this.#request.id });
  }
}

function timeIsOver(agentTimeoutMs: number): RolloutError {
  const message = `the agent's ${agentTimeoutMs / 1000} s were over before it began`;
  return new RolloutError('AGENT_TIMEOUT', message, { phase: 'agent' });
}
