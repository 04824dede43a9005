/**
 * One rollout of a workflow, or of an agent with a grader, around the trial that another backend runs: the task is staged before, the sandbox gets its
 * layers, and what workflow and grader left becomes the sample.
 */
import { rm } from 'node:fs/promises';
import path from 'node:path';
import { messageOf } from '../../core/errors.ts';
import type { Logger } from '../../core/logger.ts';
import type { EnvironmentLayer } from '../../environments/environment.ts';
import { isFile } from '../../tasks/file-presence.ts';
import { taskTomlName } from '../../tasks/read-task-toml.ts';
import { TrajectoryRedactor } from '../../trajectory/redact.ts';
import { redactFolder } from '../../trial/redact.ts';
import type { TrialRequest } from '../../trial/trial-options.ts';
import type { Trial } from '../../trial/trial.ts';
import { taskEntrySchema, type TaskEntry } from '../../wire/harbor/task-entry.ts';
import type { Sample } from '../../wire/rollout/callback-payloads.ts';
import type {
  ArchivedFiles,
  Execution,
  ExecutionHooks,
  ExecutionRequest,
  ExecutionResult,
} from '../execution-backend.ts';
import type { NativePorts, NativeTrials, TrialHooks } from '../shared/trial-ports.ts';
import { readGraderEnd } from './container-sample.ts';
import { takeGraderArtifacts } from './grader-artifacts.ts';
import type { HarborOptions } from './harbor-options.ts';
import { finalResult, workflowResult, type Ending } from './harbor-result.ts';
import { runnerLayer } from './sandbox-layers.ts';
import type { SandboxPackages } from './sandbox-packages.ts';
import { containerInput, partInput, stageTask, type StagedTask } from './staged-task.ts';
import { selectTask } from './task-selection.ts';
import { trajectoryMessages } from './trajectory-messages.ts';
import { WorkflowAgent } from './workflow-agent.ts';

export interface HarborRolloutParts {
  readonly options: HarborOptions;
  readonly ports: NativePorts;
  /** Of the user's project; null = it is in the image. */
  readonly codeLayer: EnvironmentLayer | null;
  /** null = all that the code needs is in the image. */
  readonly packages: Pick<SandboxPackages, 'layersFor'> | null;
  /** Absolute; the rollout's alone. */
  readonly stagingDir: string;
  readonly baseDir: string;
  readonly logger: Logger;
}

export class HarborRollout {
  readonly #request: ExecutionRequest;
  readonly #parts: HarborRolloutParts;
  #staging: Promise<unknown> = Promise.resolve();
  #staged: StagedTask | null = null;
  #packageLayers: readonly EnvironmentLayer[] = [];
  #trialDir: string | null = null;
  #sample: Sample | null | undefined;
  /** What the trial says for itself, and what became of it here. */
  #statuses: { readonly trial: string; readonly own: string } | null = null;

  constructor(request: ExecutionRequest, parts: HarborRolloutParts) {
    this.#request = request;
    this.#parts = parts;
  }

  get id(): string {
    return this.#request.id;
  }

  /** Folder of the task that its trial works on; null = not staged yet. */
  get taskDir(): string | null {
    return this.#staged?.dir ?? null;
  }

  /** As the backend of its trial gets it: `task` stands for whatever is staged. */
  trialRequest(task: string): ExecutionRequest {
    const model = this.#request.metadata?.['harbor_model'];
    const isNamed = typeof model === 'string' ? model.trim() !== '' : Boolean(model);
    return {
      ...this.#request,
      metadata: { harbor_task: task, ...(isNamed && { harbor_model: model }) },
    };
  }

  findTask(signal: AbortSignal): ReturnType<NativePorts['findTask']> {
    const finding = this.#stage(signal);
    this.#staging = finding.catch(() => undefined);
    return finding;
  }

  createTrial(trials: NativeTrials, request: TrialRequest, hooks: TrialHooks): Trial {
    const { options, codeLayer } = this.#parts;
    const ofCode = [...(codeLayer === null ? [] : [codeLayer]), ...this.#packageLayers];
    const layers = this.#runsCode ? [runnerLayer, ...ofCode] : [];
    const { workflow } = options;
    const trial = trials.createTrial(
      {
        ...request,
        layers,
        ...(workflow !== null && {
          agent: () =>
            new WorkflowAgent({
              name: options.agent,
              python: options.sandboxPython,
              input: { ...containerInput(this.#request), ...partInput('workflow', workflow) },
              hasPrompt: options.taskMode === 'template' && this.#request.prompt.length > 0,
              route: this.#request.route,
              hostEndpoint: hooks.hostEndpoint ?? null,
              stagingDir: this.#parts.stagingDir,
              leave: (sample) => {
                this.#sample = sample;
              },
            }),
        }),
      },
      hooks,
    );
    this.#trialDir = trial.dir;
    return trial;
  }

  hooksFor(hooks: ExecutionHooks): ExecutionHooks {
    return {
      agentBegins: () => hooks.agentBegins(),
      progress: (progress) => hooks.progress(progress),
      workflowCompleted: (result) =>
        hooks.workflowCompleted(this.#cleaned(workflowResult(result, this.#ending()))),
    };
  }

  /** The rollout's result of its trial's; what is staged is removed in every case. */
  async endWith(trialResult: Promise<ExecutionResult>): Promise<ExecutionResult> {
    try {
      return this.#cleaned(await this.#end(await trialResult));
    } finally {
      await this.discard();
    }
  }

  /** Removes what was staged. */
  async discard(): Promise<void> {
    await this.#staging;
    await rm(this.#parts.stagingDir, { recursive: true, force: true }).catch((error: unknown) =>
      this.#warn(`what was staged could not be removed: ${messageOf(error)}`),
    );
  }

  /** The trial's own release knows only what the trial says: a rollout that failed keeps its folder, one that did not needs none. */
  async release(trial: Execution, archived: ArchivedFiles = { isComplete: true }): Promise<void> {
    const { trial: trialStatus = null, own = null } = this.#statuses ?? {};
    await trial.release({ isComplete: archived.isComplete && own !== 'failure' });
    const { removesSuccessfulTrials } = this.#parts.options;
    const isLeft = own === 'success' && trialStatus !== own && archived.isComplete;
    if (isLeft && removesSuccessfulTrials && this.#trialDir !== null)
      await rm(this.#trialDir, { recursive: true, force: true });
  }

  get #runsCode(): boolean {
    return this.#parts.options.workflow !== null || this.#staged?.rewardSource === 'grader';
  }

  async #stage(signal: AbortSignal): ReturnType<NativePorts['findTask']> {
    const { options, ports, stagingDir, baseDir } = this.#parts;
    const selected = await selectTask(this.#request.metadata, options, baseDir);
    const { source, warnings } = await this.#sourceOf(selected.entry, signal);
    const { isTemplate } = selected;
    const to = path.join(stagingDir, 'task');
    const query = { source, to, isTemplate, request: this.#request, options };
    this.#staged = await stageTask(query, signal);
    const { dir } = this.#staged;
    const found = await ports.findTask(taskEntrySchema.parse({ path: dir }), signal);
    const { packages } = this.#parts;
    if (packages !== null && this.#runsCode) {
      const place = JSON.stringify(selected.entry);
      this.#packageLayers = await packages.layersFor(found.task, { place, signal });
    }
    const all = [...selected.warnings, ...warnings, ...this.#staged.warnings, ...found.warnings];
    return { task: found.task, warnings: all };
  }

  /** A task of this machine is taken as it is: what its copy lacks is added there. What is no task is refused before it is copied. */
  async #sourceOf(entry: TaskEntry, signal: AbortSignal) {
    const { path: dir, git_url: gitUrl } = entry;
    if (gitUrl === null && dir !== null && (await isFile(path.join(dir, taskTomlName))))
      return { source: dir, warnings: [] };
    const { task, warnings } = await this.#parts.ports.findTask(entry, signal);
    const { task: loaded } = await task.load(signal);
    return { source: loaded.dir, warnings };
  }

  async #end(trial: ExecutionResult): Promise<ExecutionResult> {
    const dir = this.#trialDir;
    // Its folder could not be written to the end, and perhaps not be cleaned.
    if (dir !== null && trial.diagnostics?.['phase'] === 'trial_setup') await this.#scrub(dir);
    const { options } = this.#parts;
    if (options.workflow === null) this.#sample = this.#sampleOfAgent(trial);
    const grader =
      dir === null || this.#staged?.rewardSource !== 'grader'
        ? null
        : await readGraderEnd(path.join(dir, 'verifier', 'graded_sample.json'));
    const result = finalResult(trial, { ...this.#ending(), grader });
    this.#statuses = { trial: trial.status, own: result.status };
    const files = dir === null ? result.files : await this.#filesWithArtifacts(dir, result);
    // The archive makes a document of the sample's own messages.
    return { ...result, files, ...(options.workflow !== null && { trajectory: null }) };
  }

  async #filesWithArtifacts(dir: string, { files }: ExecutionResult) {
    try {
      const isTaken = await takeGraderArtifacts(dir);
      if (!isTaken || files.some(({ name }) => name === 'artifacts')) return files;
      return [...files, { name: 'artifacts', path: path.join(dir, 'artifacts') }];
    } catch (error) {
      this.#warn(`artifacts of the grader could not be taken: ${messageOf(error)}`);
      return files;
    }
  }

  /** null = a model's agent left no conversation. */
  #sampleOfAgent({ trajectory, files }: ExecutionResult): Sample | null {
    const isKept = files.some(({ name }) => name === 'trajectory.json');
    if (trajectory === null && !isKept && this.#parts.options.agent !== 'oracle') return null;
    return {
      messages: trajectory === null ? [] : trajectoryMessages(trajectory),
      trajectoryMessages: null,
      label: null,
      reward: null,
      isRemoved: false,
      metrics: {},
      extraFields: {},
    };
  }

  #ending(): Ending {
    return {
      label: this.#request.label,
      wantsGrade: this.#request.wantsGrade,
      rewardSource: this.#staged?.rewardSource ?? 'none',
      sample: this.#sample,
      grader: null,
    };
  }

  /** Nothing of a key may stay: what cannot be cleaned goes. */
  async #scrub(dir: string): Promise<void> {
    try {
      await redactFolder(dir, this.#request.secrets);
    } catch (error) {
      this.#warn(`a trial that could not be cleaned of its keys is removed: ${messageOf(error)}`);
      await rm(dir, { recursive: true, force: true });
    }
  }

  #cleaned(result: ExecutionResult): ExecutionResult {
    const { sample, errMessage } = result;
    const redactor = new TrajectoryRedactor(this.#request.secrets);
    return {
      ...result,
      errMessage: errMessage && redactor.text(errMessage),
      // It stays what it is where there is nothing to hide.
      sample:
        sample !== null && redactor.holds(sample) ? (redactor.clean(sample) as Sample) : sample,
    };
  }

  #warn(text: string): void {
    this.#parts.logger.log('warn', text, { rollout: this.#request.id });
  }
}
