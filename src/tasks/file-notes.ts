import { readdir, readFile } from 'node:fs/promises';
import path from 'node:path';
import { isRolloutError, messageOf, type ErrorCode } from '../core/errors.ts';
import { readTrajectory } from '../wire/atif/models.ts';
import type { TaskConfig } from '../wire/harbor/task-config.ts';
import { resolveEnvironmentDefinition } from './environment-definition.ts';
import { isFile, isFolder } from './file-presence.ts';
import { taskVerifierBase } from './file-problems.ts';
import { readInstructionText, stripCanary } from './instruction.ts';
import { findSolutionScript, findTestScript, stepFolder } from './scripts.ts';
import { toVerifier } from './task-sections.ts';

/** Something in the folder of a task that its author should look at. */
export interface FileNote {
  readonly severity: 'error' | 'warning';
  readonly code:
    | Extract<
        ErrorCode,
        | 'TASK_FILE_MISSING'
        | 'TASK_ENVIRONMENT_UNDEFINED'
        | 'TASK_SOLUTION_MISSING'
        | 'TASK_TRAJECTORY_INVALID'
      >
    | 'FILE_IGNORED'
    | 'SCRIPT_LINE_ENDS'
    | 'INSTRUCTION_EMPTY';
  readonly field: string;
  readonly message: string;
  readonly remedy: string;
}

/** What the files themselves tell, beyond those that {@link findFileProblems} misses. */
export async function fileNotes(
  dir: string,
  config: TaskConfig,
  signal: AbortSignal,
): Promise<readonly FileNote[]> {
  const notes = await Promise.all([
    environmentNotes(dir, config, signal),
    verifierEnvironmentNotes(dir, config, signal),
    instructionNotes(dir, config, signal),
    scriptNotes(dir, config),
    trajectoryNotes(dir, config),
    ignoredNotes(dir, config),
  ]);
  return notes.flat();
}

async function environmentNotes(
  dir: string,
  { environment }: TaskConfig,
  signal: AbortSignal,
): Promise<readonly FileNote[]> {
  const contextDir = path.join(dir, 'environment');
  if (!(await isFolder(contextDir)))
    return [
      {
        severity: 'error',
        code: 'TASK_FILE_MISSING',
        field: 'environment',
        message: 'the folder environment/ is missing',
        remedy: 'Make environment/ with a Dockerfile (or a .gitkeep beside a docker_image).',
      },
    ];
  return definitionNotes(contextDir, environment.docker_image, signal);
}

/** A separate verifier is built from the tests folder unless it names an image. */
async function verifierEnvironmentNotes(
  dir: string,
  config: TaskConfig,
  signal: AbortSignal,
): Promise<readonly FileNote[]> {
  const base = taskVerifierBase(config);
  const levels =
    config.steps.length === 0
      ? [{ name: null, verifier: toVerifier(config.verifier, { ...base, mode: 'shared' }) }]
      : config.steps.map(({ name, verifier }) => ({ name, verifier: toVerifier(verifier, base) }));
  const notes = new Map<string, FileNote>();
  for (const { name, verifier } of levels) {
    if (verifier.environment === null) continue;
    const own = name === null ? null : stepFolder(dir, name, 'tests');
    const contextDir = own !== null && (await isFolder(own)) ? own : path.join(dir, 'tests');
    for (const note of await definitionNotes(contextDir, verifier.environment.dockerImage, signal))
      notes.set(contextDir, { ...note, field: path.relative(dir, contextDir) });
  }
  return [...notes.values()];
}

async function definitionNotes(
  contextDir: string,
  dockerImage: string | null,
  signal: AbortSignal,
): Promise<readonly FileNote[]> {
  try {
    await resolveEnvironmentDefinition({
      contextDir,
      dockerImage,
      forceBuild: false,
      extraComposeFiles: [],
      signal,
    });
    return [];
  } catch (error) {
    if (!isRolloutError(error, 'TASK_ENVIRONMENT_UNDEFINED')) throw error;
    return [
      {
        severity: 'error',
        code: 'TASK_ENVIRONMENT_UNDEFINED',
        field: error.field ?? 'environment',
        message: error.message,
        remedy: error.remedy ?? 'Define the environment.',
      },
    ];
  }
}

/** Folder prefixes of what an agent solves: the task, or each step. */
function prefixes(config: TaskConfig): readonly string[] {
  return config.steps.length === 0 ? [''] : config.steps.map(({ name }) => `steps/${name}/`);
}

async function instructionNotes(
  dir: string,
  config: TaskConfig,
  signal: AbortSignal,
): Promise<readonly FileNote[]> {
  const notes: FileNote[] = [];
  for (const prefix of prefixes(config)) {
    const field = `${prefix}instruction.md`;
    const file = path.join(dir, field);
    if (!(await isFile(file))) continue;
    const text = await readInstructionText(file, signal).catch((error: unknown) => {
      signal.throwIfAborted();
      return error;
    });
    if (typeof text !== 'string') notes.push(unreadableNote(field, text));
    else if (stripCanary(text).trim() === '') notes.push(emptyNote(field));
  }
  return notes;
}

function unreadableNote(field: string, error: unknown): FileNote {
  return {
    severity: 'error',
    code: 'TASK_FILE_MISSING',
    field,
    message: `cannot be read as text: ${messageOf(error)}`,
    remedy: `Make ${field} a readable UTF-8 file.`,
  };
}

function emptyNote(field: string): FileNote {
  return {
    severity: 'warning',
    code: 'INSTRUCTION_EMPTY',
    field,
    message: 'tells the agent nothing',
    remedy: `Write what the agent has to do into ${field}.`,
  };
}

async function scriptNotes(dir: string, config: TaskConfig): Promise<readonly FileNote[]> {
  const { os } = config.environment;
  const stepNames = config.steps.length === 0 ? [null] : config.steps.map(({ name }) => name);
  const notes = new Map<string, FileNote>();
  for (const stepName of stepNames) {
    const solution = await findSolutionScript({ dir, os, stepName });
    if (solution === null) {
      const field = stepName === null ? 'solution' : `steps/${stepName}/solution`;
      notes.set(field, {
        severity: 'warning',
        code: 'TASK_SOLUTION_MISSING',
        field,
        message: 'there is no solution script, so the oracle cannot show that the task is solvable',
        remedy: `Add ${field}/solve.${os === 'windows' ? 'bat' : 'sh'}.`,
      });
    }
    for (const script of [solution, await findTestScript({ dir, os, stepName })])
      if (script?.endsWith('.sh') === true && (await hasCarriageReturn(script))) {
        const field = path.relative(dir, script);
        notes.set(field, lineEndNote(field));
      }
  }
  return [...notes.values()];
}

async function hasCarriageReturn(file: string): Promise<boolean> {
  const text = await readFile(file, 'latin1');
  return text.slice(0, text.indexOf('\n') + 1).endsWith('\r\n');
}

function lineEndNote(field: string): FileNote {
  return {
    severity: 'warning',
    code: 'SCRIPT_LINE_ENDS',
    field,
    message: 'has Windows line ends, with which its interpreter is not found',
    remedy: 'Save it with plain line feeds.',
  };
}

async function trajectoryNotes(dir: string, config: TaskConfig): Promise<readonly FileNote[]> {
  const [first = ''] = prefixes(config);
  const field = `${first}trajectory.json`;
  const file = path.join(dir, field);
  if (!(await isFile(file))) return [];
  const problem = trajectoryProblem(await readFile(file, 'utf8'));
  if (problem === null) return [];
  return [
    {
      severity: 'error',
      code: 'TASK_TRAJECTORY_INVALID',
      field,
      message: problem,
      remedy: 'Correct it, or remove it: agents that load trajectories cannot run this task.',
    },
  ];
}

function trajectoryProblem(content: string): string | null {
  let document: unknown;
  try {
    document = JSON.parse(content);
  } catch (error) {
    return `is not JSON: ${messageOf(error)}`;
  }
  const reading = readTrajectory(document);
  if ('trajectory' in reading) return null;
  const [first, ...others] = reading.problems;
  const more = others.length === 0 ? '' : ` (and ${others.length} more)`;
  return `is no ATIF trajectory: ${first?.location ?? ''}: ${first?.message ?? ''}${more}`;
}

/** Files that look as if they counted, and do not. */
async function ignoredNotes(dir: string, config: TaskConfig): Promise<readonly FileNote[]> {
  const ignored = (field: string, message: string, remedy: string): FileNote => ({
    severity: 'warning',
    code: 'FILE_IGNORED',
    field,
    message,
    remedy,
  });
  const notes: FileNote[] = [];
  if (await isFile(path.join(dir, 'environment', 'docker-compose.yml')))
    notes.push(
      ignored('environment/docker-compose.yml', 'is not read', 'Name it docker-compose.yaml.'),
    );
  if (config.steps.length > 0 && (await isFile(path.join(dir, 'instruction.md'))))
    notes.push(
      ignored('instruction.md', 'is not read: each step has its own', 'Move it into a step.'),
    );
  const names = new Set(config.steps.map(({ name }) => name));
  if (await isFolder(path.join(dir, 'steps')))
    for (const entry of await readdir(path.join(dir, 'steps'), { withFileTypes: true }))
      if (entry.isDirectory() && !names.has(entry.name))
        notes.push(
          ignored(
            `steps/${entry.name}`,
            'belongs to no step',
            'List it in task.toml, or remove it.',
          ),
        );
  return notes;
}
