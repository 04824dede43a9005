/**
 * Runs a user's workflow, or an agent of ours, and a user's grader inside the environment of a task. The trial itself is run by a backend that knows
 * trials only; what it is given, and what comes of it, is decided here.
 */
import { rm } from 'node:fs/promises';
import path from 'node:path';
import { folderName } from '../../archive/folder-name.ts';
import type { Clock } from '../../core/clock.ts';
import { isRolloutError, messageOf } from '../../core/errors.ts';
import type { Logger } from '../../core/logger.ts';
import { Scope } from '../../core/scope.ts';
import type { EnvironmentLayer } from '../../environments/environment.ts';
import type { TrialRequest } from '../../trial/trial-options.ts';
import type { Trial } from '../../trial/trial.ts';
import type {
  ArchivedFiles,
  Execution,
  ExecutionBackend,
  ExecutionHooks,
  ExecutionProbe,
  ExecutionRequest,
} from '../execution-backend.ts';
import type { PythonInterpreter } from '../../runner/interpreter.ts';
import type { NativePorts, NativeTrials, TrialHooks } from '../shared/trial-ports.ts';
import { compileHarborOptions, type HarborOptions } from './harbor-options.ts';
import { HarborRollout } from './harbor-rollout.ts';
import { prewarmRequest, toldAsOurs } from './harbor-prewarm.ts';
import { PythonPackages } from './python-packages.ts';
import { projectLayer } from './sandbox-layers.ts';
import { SandboxPackages } from './sandbox-packages.ts';

export interface HarborBackendParts {
  readonly ports: NativePorts;
  /** A backend that runs each rollout as the trial that `metadata.harbor_task` names. */
  readonly trialBackend: (
    options: Readonly<Record<string, unknown>>,
    ports: NativePorts,
  ) => ExecutionBackend;
  /** Tasks are staged in `rollouts/` of it, the user's project is in `layers/`, packages are in `packages/`. */
  readonly dataDir: string;
  /** Where relative paths begin. */
  readonly baseDir: string;
  /** Its pip installs packages. */
  readonly interpreter: PythonInterpreter;
  readonly variables: Readonly<Record<string, string | undefined>>;
  readonly clock: Clock;
  readonly logger: Logger;
}

/** No folder of this name exists: what it stands for is looked up. */
const standIn = '/slipway-rollout/';
const preparedAs = (index: number): string => `${standIn}prewarm-${index}`;

export class HarborBackend implements ExecutionBackend {
  readonly kind = 'harbor';
  readonly capturesFinalResult = true;
  readonly #options: HarborOptions;
  readonly #parts: HarborBackendParts;
  readonly #trials: ExecutionBackend;
  /** By what stands for their tasks. */
  readonly #rollouts = new Map<string, HarborRollout>();
  /** null = the image has all that the code needs. */
  readonly #packages: SandboxPackages | null;
  #codeLayer: EnvironmentLayer | null = null;
  #count = 0;

  /** CONFIG_INVALID lists every option that is wrong. */
  constructor(options: Readonly<Record<string, unknown>>, parts: HarborBackendParts) {
    this.#options = compileHarborOptions(options, parts.baseDir);
    this.#parts = parts;
    this.#packages = packagesFor(this.#options, parts);
    const { trialOptions, prewarm } = this.#options;
    const prepared = prewarm.map((_row, index) => preparedAs(index));
    this.#trials = parts.trialBackend(
      { ...trialOptions, ...(prepared.length > 0 && { prewarm: prepared }) },
      this.#ports(),
    );
  }

  health(): Readonly<Record<string, unknown>> {
    const { agent, workflow, grader } = this.#options;
    return {
      ...this.#trials.health(),
      ...{ backend: 'harbor', agent, grader: grader !== null },
      ...(workflow !== null && { binding: 'workflow' }),
    };
  }

  /**
   * Copies the project, opens the environment, installs what the template's Python needs, then prepares the tasks of `prewarm`. CONFIG_INVALID,
   * REQUIREMENTS_FAILED, PREWARM_FAILED, and what opening an environment throws.
   */
  async start(signal: AbortSignal): Promise<void> {
    const { codeDir, prewarm } = this.#options;
    if (codeDir !== null) this.#codeLayer = await projectLayer(codeDir, this.#parts.dataDir);
    await this.#packages?.open();
    const prepared = prewarm.map((row, index) => {
      const rollout = this.#rollout(prewarmRequest(row.metadata));
      this.#rollouts.set(preparedAs(index), rollout);
      return rollout;
    });
    try {
      await this.#trials.start(signal).catch(toldAsOurs);
    } finally {
      for (const [index, rollout] of prepared.entries()) {
        this.#rollouts.delete(preparedAs(index));
        await rollout.discard();
      }
    }
  }

  execute(request: ExecutionRequest, hooks: ExecutionHooks): Execution {
    this.#count += 1;
    const task = `${standIn}${this.#count}`;
    const rollout = this.#rollout(request);
    this.#rollouts.set(task, rollout);
    const trial = this.#trials.execute(rollout.trialRequest(task), rollout.hooksFor(hooks));
    const result = rollout.endWith(trial.result).finally(() => this.#rollouts.delete(task));
    result.catch(() => undefined); // nobody looks at it after an abort
    return {
      result,
      abort: (reason) => trial.abort(reason),
      release: async (archived?: ArchivedFiles) => {
        await rollout.release(trial, archived);
        // What was staged goes after the trial: an abort does not wait for it.
        await result.catch(() => undefined);
      },
    };
  }

  async probe(id: string, signal: AbortSignal): Promise<ExecutionProbe | null> {
    return (await this.#trials.probe?.(id, signal)) ?? null;
  }

  async forget(ids: readonly string[]): Promise<void> {
    await this.#trials.forget?.(ids);
    const live = new Set([...this.#rollouts.values()].map(({ id }) => id));
    for (const id of ids)
      if (!live.has(id)) await rm(this.#stagingDir(id), { recursive: true, force: true });
  }

  close(): Promise<void> {
    return this.#trials.close();
  }

  #rollout(request: ExecutionRequest): HarborRollout {
    const { ports, baseDir, logger } = this.#parts;
    return new HarborRollout(request, {
      options: this.#options,
      codeLayer: this.#codeLayer,
      packages: this.#packages,
      stagingDir: this.#stagingDir(request.id),
      ...{ ports, baseDir, logger },
    });
  }

  /** The template is known, and so is the image of most rollouts. What else is wrong with it, its rollouts say. */
  async #installForTemplate(signal: AbortSignal): Promise<void> {
    if (this.#packages === null || this.#options.taskMode !== 'template') return;
    const rollout = this.#rollout(prewarmRequest({}));
    try {
      await rollout.findTask(signal);
    } catch (error) {
      signal.throwIfAborted();
      if (isRolloutError(error, 'REQUIREMENTS_FAILED')) throw error;
      this.#parts.logger.log('warn', `no packages for the template: ${messageOf(error)}`);
    } finally {
      await rollout.discard();
    }
  }

  #stagingDir(id: string): string {
    return path.join(this.#parts.dataDir, 'rollouts', folderName(id));
  }

  #ports(): NativePorts {
    const { ports } = this.#parts;
    return {
      loadSkills: (sources, signal) => ports.loadSkills(sources, signal),
      openTrials: async (options, signal) => {
        await using scope = new Scope();
        const trials = await ports.openTrials(options, signal);
        scope.defer(async () => await trials[Symbol.asyncDispose]());
        this.#packages?.use({ trials, environment: options.environment });
        await this.#installForTemplate(signal);
        scope.move();
        return {
          hasHostEndpoint: trials.hasHostEndpoint,
          createTrial: (request, hooks) => this.#createTrial(trials, request, hooks),
          [Symbol.asyncDispose]: () => trials[Symbol.asyncDispose](),
        };
      },
      // A workflow gets its model in its context, and never hears of the variables of the binding that it goes by.
      warnsOfBinding: this.#options.workflow === null,
      labelOf: ({ path: task }) =>
        this.#options.prewarm.find((_row, index) => task === preparedAs(index))?.label ?? null,
      findTask: (entry, signal) =>
        this.#rollouts.get(entry.path ?? '')?.findTask(signal) ?? ports.findTask(entry, signal),
    };
  }

  #createTrial(trials: NativeTrials, request: TrialRequest, hooks: TrialHooks): Trial {
    const { path: dir } = request.config.task;
    const rollout = [...this.#rollouts.values()].find(({ taskDir }) => taskDir === dir);
    if (rollout === undefined) throw new TypeError('a trial belongs to a rollout');
    return rollout.createTrial(trials, request, hooks);
  }
}

function packagesFor(
  { requirements, sandboxPython }: HarborOptions,
  parts: HarborBackendParts,
): SandboxPackages | null {
  if (requirements === null) return null;
  const { dataDir, logger } = parts;
  return new SandboxPackages({
    packages: new PythonPackages(requirements, parts),
    python: sandboxPython,
    trialsDir: path.join(dataDir, 'trials'),
    logger,
  });
}
