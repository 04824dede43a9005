/**
 * The layer of packages that the sandbox of a task gets. Which wheels fit is asked of the image's own Python, once for each image, in a sandbox that is
 * started for the question: layers are fixed when a sandbox starts. A task whose sandbox does not come to an answer gets no layer; its trial says why.
 */
import { randomBytes } from 'node:crypto';
import { readdir, rm } from 'node:fs/promises';
import path from 'node:path';
import type { Agent, AgentEnvironment } from '../../agents/agent.ts';
import { messageOf } from '../../core/errors.ts';
import type { Logger } from '../../core/logger.ts';
import { SingleFlight } from '../../core/single-flight.ts';
import type { EnvironmentLayer } from '../../environments/environment.ts';
import type { EnvironmentConfig } from '../../wire/harbor/run-config.ts';
import { trialConfigSchema } from '../../wire/harbor/trial-config.ts';
import type { NativeTask, NativeTrials } from '../shared/trial-ports.ts';
import { sandboxPythonSchema, type PythonPackages, type SandboxPython } from './python-packages.ts';
import { inSandboxCommand, packagesAt, runnerLayer } from './sandbox-layers.ts';
import { codeCapabilities } from './workflow-agent.ts';

export interface SandboxPackagesParts {
  readonly packages: PythonPackages;
  /** Of the sandbox. */
  readonly python: string;
  /** Absolute. */
  readonly trialsDir: string;
  readonly logger: Logger;
}

interface Sandboxes {
  readonly trials: NativeTrials;
  readonly environment: EnvironmentConfig;
}

const namePrefix = 'harbor-python-';
const nameForm = /^harbor-python-[0-9a-f]{32}$/;

export class SandboxPackages {
  readonly #parts: SandboxPackagesParts;
  readonly #asking = new SingleFlight<SandboxPython | null>();
  readonly #known = new Map<string, SandboxPython>();
  #sandboxes: Sandboxes | null = null;

  constructor(parts: SandboxPackagesParts) {
    this.#parts = parts;
  }

  /** Also removes what a server that died left. CONFIG_INVALID for requirements that cannot be read. */
  async open(): Promise<void> {
    const { packages, trialsDir } = this.#parts;
    await packages.open();
    for (const name of await readdir(trialsDir).catch((): string[] => []))
      if (nameForm.test(name)) await this.#remove(name);
  }

  /** Where it starts its sandboxes. */
  use(sandboxes: Sandboxes): void {
    this.#sandboxes = sandboxes;
  }

  /** `place`: where the task comes from; what it says of its image stays as it is. REQUIREMENTS_FAILED, what loading the task throws, or the reason of `signal`. */
  async layersFor(
    task: NativeTask,
    { place, signal }: { readonly place: string; readonly signal: AbortSignal },
  ): Promise<readonly EnvironmentLayer[]> {
    const python = await this.#pythonOf(task, place, signal);
    if (python === null) return [];
    return [{ hostDir: await this.#parts.packages.install(python, signal), at: packagesAt }];
  }

  async #pythonOf(
    task: NativeTask,
    place: string,
    signal: AbortSignal,
  ): Promise<SandboxPython | null> {
    const known = this.#known.get(place);
    if (known !== undefined) return known;
    const { task: loaded } = await task.load(signal);
    // Null = it is built: only the task itself says what its image is.
    const image = loaded.environment.dockerImage;
    const found =
      (image === null ? undefined : this.#known.get(image)) ??
      (await this.#asking.run(image ?? place, signal, (shared) => this.#ask(task, shared)));
    if (found !== null)
      for (const key of image === null ? [place] : [place, image]) this.#known.set(key, found);
    return found;
  }

  /** null = there is no answer. */
  async #ask(task: NativeTask, signal: AbortSignal): Promise<SandboxPython | null> {
    if (this.#sandboxes === null) throw new TypeError('the backend has not been started');
    const { trials, environment } = this.#sandboxes;
    const { trialsDir, python, logger } = this.#parts;
    const name = `${namePrefix}${randomBytes(16).toString('hex')}`;
    const config = trialConfigSchema.parse({
      ...{ task: task.entry, trial_name: name, trials_dir: trialsDir, install_only: true },
      ...{ environment: structuredClone(environment), agent: { name: 'nop' } },
      verifier: { disable: true },
    });
    const asking = new AskingAgent(python);
    try {
      const trial = trials.createTrial(
        {
          ...{ config, taskName: task.name, taskId: task.taskId, source: task.entry.source },
          load: async (loading) => ({ ...(await task.load(loading)), skills: [] }),
          agent: () => asking,
          layers: [runnerLayer],
        },
        { observe: () => undefined, admitAgent: () => Promise.resolve(() => undefined) },
      );
      await trial.run(signal);
      signal.throwIfAborted();
      const why = trial.failure?.code ?? (asking.answer === null ? 'it does not answer' : null);
      if (why !== null)
        logger.log('warn', `what Python the sandbox of ${task.name} has is not known: ${why}`);
      return asking.answer;
    } finally {
      await this.#remove(name);
    }
  }

  async #remove(name: string): Promise<void> {
    const { trialsDir, logger } = this.#parts;
    await rm(path.join(trialsDir, name), { recursive: true, force: true }).catch((error: unknown) =>
      logger.log('warn', `the folder ${name} could not be removed: ${messageOf(error)}`),
    );
  }
}

class AskingAgent implements Agent {
  readonly name = 'asks for its Python';
  readonly version = null;
  readonly capabilities = codeCapabilities;
  readonly hostFiles = [];
  readonly hostOnlyVariables = [];
  readonly #python: string;
  answer: SandboxPython | null = null;

  constructor(python: string) {
    this.#python = python;
  }

  /** An image without a Python that can answer is not refused here: what the trial needs is told by the trial. */
  async setup(environment: AgentEnvironment, signal: AbortSignal): Promise<void> {
    const { stdout, exitCode } = await environment.exec(
      { command: inSandboxCommand(this.#python, 'python') },
      signal,
    );
    if (exitCode === 0) this.answer = readAnswer(stdout);
  }

  run(): Promise<void> {
    return Promise.reject(new TypeError('it is only set up'));
  }
}

function readAnswer(text: string): SandboxPython | null {
  try {
    return sandboxPythonSchema.parse(JSON.parse(text));
  } catch {
    return null;
  }
}
