/**
 * Reading a task folder. Everything downstream works on the {@link Task} made here; nothing else reads task.toml.
 *
 * - `loadTask({ dir, signal })` → a Task, or one typed error that lists everything wrong at that stage: first the document
 *   (TASK_NOT_FOUND, TASK_CONFIG_UNREADABLE), then its fields (TASK_CONFIG_INVALID), then the files it needs
 *   (TASK_FILE_MISSING, TASK_TESTS_MISSING).
 * - `isTaskDir` → whether a folder is a task at all: used to tell a task from a folder of tasks.
 * - `checkTask` (check-task.ts) → all findings of all stages, errors and warnings, never throwing for a bad task.
 *
 * What a trial asks of a Task at run time has files of its own: `environment-definition.ts` (image, Dockerfile or compose),
 * `environment-templates.ts` (`${NAME}` values), `network-plan.ts` (policy per phase), `scripts.ts`, `artifacts.ts`.
 */
import path from 'node:path';
import { boundary, messageOf, RolloutError } from '../core/errors.ts';
import type { TaskConfig } from '../wire/harbor/task-config.ts';
import { fieldNotes } from './field-notes.ts';
import { findFileProblems, taskVerifierBase, type FileProblem } from './file-problems.ts';
import { isFolder } from './file-presence.ts';
import { composeInstruction, readExtraInstructions, readInstructionText } from './instruction.ts';
import { readTaskToml, type TomlDocument } from './read-task-toml.ts';
import { compileTaskConfig } from './task-config.ts';
import { toAgent, toEnvironment, toHealthcheck, toVerifier } from './task-sections.ts';
import type { Task, TaskStep } from './task.ts';

export interface LoadTaskOptions {
  readonly dir: string;
  readonly signal: AbortSignal;
  /** Without verification no test script is needed. Default true. */
  readonly isVerificationEnabled?: boolean;
  /** Appended to every instruction, behind the files. */
  readonly extraInstructions?: readonly string[];
  /** Host files appended to every instruction; CONFIG_INVALID when one cannot be read. */
  readonly extraInstructionPaths?: readonly string[];
}

/** Reads, checks and converts a task folder; see above for its errors. Touches nothing but the files it reads. */
export async function loadTask(options: LoadTaskOptions): Promise<Task> {
  const { signal, isVerificationEnabled = true } = options;
  const dir = path.resolve(options.dir);
  const document = await readTaskToml(dir, signal);
  const config = compileTaskConfig(document);
  const at = { code: 'TASK_FILE_MISSING', phase: 'resolve', what: dir } as const;
  const query = { dir, config, isVerificationEnabled };
  throwFirst(await boundary(at, () => findFileProblems(query)));
  const sources = {
    paths: options.extraInstructionPaths ?? [],
    texts: options.extraInstructions ?? [],
  };
  const extra = await readExtraInstructions(sources, signal);
  return toTask({ dir, document, config, extra, signal });
}

/**
 * Whether a folder is a task: it has an `environment/` folder, a valid task.toml, and the files a trial needs. Never throws,
 * except the reason of an aborted signal.
 */
export async function isTaskDir(
  dir: string,
  options: { readonly signal: AbortSignal; readonly isVerificationEnabled?: boolean },
): Promise<boolean> {
  const { signal, isVerificationEnabled = true } = options;
  try {
    const config = compileTaskConfig(await readTaskToml(dir, signal));
    if (!(await isFolder(path.join(dir, 'environment')))) return false;
    return (await findFileProblems({ dir, config, isVerificationEnabled })).length === 0;
  } catch {
    signal.throwIfAborted();
    return false;
  }
}

function throwFirst(problems: readonly FileProblem[]): void {
  const [first] = problems;
  if (first === undefined) return;
  throw new RolloutError(
    first.code,
    problems.length === 1
      ? first.message
      : `${problems.length} problems: ${problems.map(({ message }) => message).join('; ')}`,
    {
      phase: 'resolve',
      field: first.field,
      remedy: first.remedy,
      detail: problems.map(({ field, message }) => `${field}: ${message}`).join('\n'),
    },
  );
}

interface LoadedParts {
  readonly dir: string;
  readonly document: TomlDocument;
  readonly config: TaskConfig;
  readonly extra: readonly string[];
  readonly signal: AbortSignal;
}

async function toTask(parts: LoadedParts): Promise<Task> {
  const { dir, config } = parts;
  const isMultiStep = config.steps.length > 0;
  const name = config.task?.name ?? path.basename(dir);
  const { environment } = config;
  return {
    dir,
    name,
    shortName: name.slice(name.lastIndexOf('/') + 1),
    package: config.task,
    metadata: config.metadata,
    source: config.source,
    environment: toEnvironment(environment),
    agent: toAgent(config.agent),
    verifier: toVerifier(config.verifier, { mode: 'shared', table: null, environment }),
    solutionEnv: config.solution.env,
    artifacts: config.artifacts,
    instruction: isMultiStep ? '' : await readInstruction('instruction.md', parts),
    steps: await readSteps(parts),
    multiStepRewardStrategy: config.multi_step_reward_strategy,
    warnings: fieldNotes(parts.document, config)
      .filter(({ code }) => code !== 'FIELD_UNKNOWN')
      .map(({ field, message }) => `${field}: ${message}`),
  };
}

async function readSteps(parts: LoadedParts): Promise<readonly TaskStep[]> {
  const { config } = parts;
  const base = taskVerifierBase(config);
  const steps: TaskStep[] = [];
  for (const step of config.steps)
    steps.push({
      name: step.name,
      instruction: await readInstruction(`steps/${step.name}/instruction.md`, parts),
      agent: toAgent(step.agent),
      verifier: toVerifier(step.verifier, base),
      minReward: step.min_reward,
      healthcheck: toHealthcheck(step.healthcheck),
      artifacts: step.artifacts,
    });
  return steps;
}

async function readInstruction(field: string, parts: LoadedParts): Promise<string> {
  const { dir, extra, signal } = parts;
  try {
    return composeInstruction(await readInstructionText(path.join(dir, field), signal), extra);
  } catch (error) {
    signal.throwIfAborted();
    throw new RolloutError(
      'TASK_FILE_MISSING',
      `${field} cannot be read as text: ${messageOf(error)}`,
      { phase: 'resolve', field, remedy: `Make ${field} a readable UTF-8 file.`, cause: error },
    );
  }
}
