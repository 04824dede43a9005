import path from 'node:path';
import { isRolloutError, messageOf, type ErrorCode } from '../core/errors.ts';
import { parseTaskConfig, type TaskConfig } from '../wire/harbor/task-config.ts';
import { fieldNotes, type FieldNote } from './field-notes.ts';
import { fileNotes, type FileNote } from './file-notes.ts';
import { findFileProblems } from './file-problems.ts';
import { readTaskToml, taskTomlName, type TomlDocument } from './read-task-toml.ts';

/** One thing that `slipway task check` tells the author of a task. */
export interface Finding {
  /** `error`: the task does not run, or not as meant. `warning`: it runs, but look at this. */
  readonly severity: 'error' | 'warning';
  readonly code: ErrorCode | FieldNote['code'] | FileNote['code'];
  /** Dotted path in task.toml, or a path in the task folder. */
  readonly field: string;
  readonly message: string;
  /** One imperative sentence. */
  readonly remedy: string;
}

/**
 * Everything that is wrong with a task folder, errors first. A bad task is findings, never an exception; only an aborted signal
 * rejects, with its reason. Empty = nothing to say.
 */
export async function checkTask(dir: string, signal: AbortSignal): Promise<readonly Finding[]> {
  const findings = await allFindings(path.resolve(dir), signal);
  return [
    ...findings.filter(({ severity }) => severity === 'error'),
    ...findings.filter(({ severity }) => severity === 'warning'),
  ];
}

async function allFindings(dir: string, signal: AbortSignal): Promise<readonly Finding[]> {
  try {
    const document = await readTaskToml(dir, signal);
    const parsed = parseTaskConfig(document);
    if ('value' in parsed)
      return await configuredFindings(dir, { document, config: parsed.value, signal });
    return parsed.problems.map(({ field, message }) => ({
      severity: 'error',
      code: 'TASK_CONFIG_INVALID',
      field: field === '' ? taskTomlName : field,
      message,
      remedy: `Correct the field in ${taskTomlName}.`,
    }));
  } catch (error) {
    signal.throwIfAborted();
    return [toFinding(error)];
  }
}

interface Configured {
  readonly document: TomlDocument;
  readonly config: TaskConfig;
  readonly signal: AbortSignal;
}

async function configuredFindings(
  dir: string,
  { document, config, signal }: Configured,
): Promise<readonly Finding[]> {
  const missing = await findFileProblems({ dir, config, isVerificationEnabled: true });
  return [
    ...missing.map((problem) => ({ severity: 'error' as const, ...problem })),
    ...(await fileNotes(dir, config, signal)),
    ...fieldNotes(document, config).map((note) => ({ severity: 'warning' as const, ...note })),
  ];
}

function toFinding(error: unknown): Finding {
  if (isRolloutError(error))
    return {
      severity: 'error',
      code: error.code,
      field: error.field ?? taskTomlName,
      message: error.message,
      remedy: error.remedy ?? 'Correct the task folder.',
    };
  return {
    severity: 'error',
    code: 'TASK_FILE_MISSING',
    field: '.',
    message: `the task folder cannot be read: ${messageOf(error)}`,
    remedy: 'Make every file of the task readable.',
  };
}
