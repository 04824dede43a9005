import path from 'node:path';
import type { ErrorCode } from '../core/errors.ts';
import type { TaskConfig } from '../wire/harbor/task-config.ts';
import { isFile, isFolder } from './file-presence.ts';
import { findTestScript, stepFolder } from './scripts.ts';
import { toVerifier, type VerifierBase } from './task-sections.ts';

/** A required file of a task that is not there. */
export interface FileProblem {
  readonly code: Extract<ErrorCode, 'TASK_FILE_MISSING' | 'TASK_TESTS_MISSING'>;
  /** Path relative to the task folder, with forward slashes. */
  readonly field: string;
  readonly message: string;
  readonly remedy: string;
}

export interface FileQuery {
  readonly dir: string;
  readonly config: TaskConfig;
  readonly isVerificationEnabled: boolean;
}

/** Every missing file: instructions always, test scripts where a shared verifier runs them. */
export async function findFileProblems(query: FileQuery): Promise<readonly FileProblem[]> {
  const { dir, config } = query;
  if (config.steps.length === 0)
    return [
      ...(await missingInstruction(dir, 'instruction.md')),
      ...(await missingTests(query, null, verifierMode(config, null))),
    ];
  const problems: FileProblem[] = [];
  for (const [index, { name }] of config.steps.entries()) {
    if (await isFolder(stepFolder(dir, name)))
      problems.push(...(await missingInstruction(dir, `steps/${name}/instruction.md`)));
    else problems.push(missingStepFolder(name));
    problems.push(...(await missingTests(query, name, verifierMode(config, index))));
  }
  return problems;
}

function verifierMode(config: TaskConfig, stepIndex: number | null): 'shared' | 'separate' {
  const base = taskVerifierBase(config);
  const step = stepIndex === null ? undefined : config.steps[stepIndex];
  return step === undefined ? base.mode : toVerifier(step.verifier, base).mode;
}

/** What the verifiers of steps fall back to. */
export function taskVerifierBase(config: TaskConfig): VerifierBase {
  const { verifier, environment } = config;
  const { mode } = toVerifier(verifier, { mode: 'shared', table: null, environment });
  return { mode, table: verifier.environment, environment };
}

async function missingInstruction(dir: string, field: string): Promise<FileProblem[]> {
  if (await isFile(path.join(dir, field))) return [];
  return [
    {
      code: 'TASK_FILE_MISSING',
      field,
      message: `${field} is missing`,
      remedy: `Write what the agent has to do into ${field}.`,
    },
  ];
}

function missingStepFolder(name: string): FileProblem {
  return {
    code: 'TASK_FILE_MISSING',
    field: `steps/${name}`,
    message: `the folder of the step ${JSON.stringify(name)} is missing`,
    remedy: `Make steps/${name} with an instruction.md, or take the step out of task.toml.`,
  };
}

async function missingTests(
  { dir, config, isVerificationEnabled }: FileQuery,
  stepName: string | null,
  mode: 'shared' | 'separate',
): Promise<FileProblem[]> {
  const { os } = config.environment;
  if (!isVerificationEnabled || mode === 'separate') return [];
  if ((await findTestScript({ dir, os, stepName })) !== null) return [];
  const script = os === 'windows' ? 'test.bat' : 'test.sh';
  const own = stepName === null ? '' : `steps/${stepName}/tests/${script} or `;
  return [
    {
      code: 'TASK_TESTS_MISSING',
      field: stepName === null ? `tests/${script}` : `steps/${stepName}/tests/${script}`,
      message: `there is no ${own}tests/${script}`,
      remedy: `Add ${own}tests/${script}, or give the verifier its own environment.`,
    },
  ];
}
