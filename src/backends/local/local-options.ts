/** The backend's own options, validated and compiled once. */
import path from 'node:path';
import { z } from 'zod';
import { RolloutError } from '../../core/errors.ts';
import type { PythonInterpreter } from '../../runner/interpreter.ts';
import {
  isPython,
  readCodeReference,
  type CodeReference,
  type FileReference,
} from '../../wire/runner/code-reference.ts';

/** A table, or an object of Python; with a copy of it every workflow and grader is made. */
export type UserConfig =
  { readonly table: Readonly<Record<string, unknown>> } | { readonly object: CodeReference };

interface CommonOptions {
  readonly workflowConfig: UserConfig;
  readonly graderConfig: UserConfig;
  /** Of a thread's JavaScript heap, or of the data of a process; null = the usual. */
  readonly memoryMb: number | null;
}

export interface ThreadOptions extends CommonOptions {
  readonly language: 'typescript';
  readonly workflow: FileReference;
  /** null = rollouts are not graded. */
  readonly grader: FileReference | null;
}

export interface ProcessOptions extends CommonOptions {
  readonly language: 'python';
  readonly workflow: CodeReference;
  readonly grader: CodeReference | null;
  readonly interpreter: PythonInterpreter;
}

export type LocalOptions = ThreadOptions | ProcessOptions;

const whatNames = 'path/to/module.ts:ExportedClass, path/to/file.py:Class or module:Class';
const table = z.record(z.string(), z.unknown());
const reference = z.string().transform((text, context): CodeReference => {
  const found = readCodeReference(text);
  if (found !== null) return found;
  context.addIssue(`must be ${whatNames}`);
  return z.NEVER;
});
const config = z.union([
  table.transform((given): UserConfig => ({ table: given })),
  reference.transform((object): UserConfig => ({ object })),
]);

const schema = z.strictObject({
  workflow: reference,
  workflow_config: config.default({ table: {} }),
  grader: reference.nullish().default(null),
  grader_config: config.default({ table: {} }),
  memory_mb: z.int().min(16).max(1_048_576).nullish().default(null),
});

/** Throws CONFIG_INVALID, which lists every problem. */
export function compileLocalOptions(
  given: Readonly<Record<string, unknown>>,
  { baseDir, interpreter }: { readonly baseDir: string; readonly interpreter: PythonInterpreter },
): LocalOptions {
  const parsed = schema.safeParse(given);
  if (given['workflow'] === undefined || given['workflow'] === null) throw noWorkflow();
  if (!parsed.success)
    throw invalid(
      parsed.error.issues.map((issue) => `${issue.path.join('.')}: ${issue.message}`).join('; '),
    );
  const { workflow, grader, memory_mb: memoryMb } = parsed.data;
  const common = {
    memoryMb,
    workflowConfig: locatedConfig(parsed.data.workflow_config, baseDir),
    graderConfig: locatedConfig(parsed.data.grader_config, baseDir),
  };
  return Object.freeze(
    isPython(workflow)
      ? processOptions(common, {
          workflow: located(workflow, baseDir),
          grader: grader && located(grader, baseDir),
          // Where a module is looked for as when Python is started in that folder.
          interpreter: { ...interpreter, path: [...interpreter.path, baseDir] },
        })
      : threadOptions(common, {
          workflow: located(workflow, baseDir),
          grader: grader && located(grader, baseDir),
        }),
  );
}

function processOptions(
  common: CommonOptions,
  code: Pick<ProcessOptions, 'workflow' | 'grader' | 'interpreter'>,
): ProcessOptions {
  if (code.grader !== null && !isPython(code.grader))
    throw invalid('grader: is no Python, but the workflow is');
  return { language: 'python', ...common, ...code };
}

function threadOptions(
  common: CommonOptions,
  { workflow, grader }: Pick<ProcessOptions, 'workflow' | 'grader'>,
): ThreadOptions {
  if (grader !== null && isPython(grader))
    throw invalid('grader: is Python, but the workflow is not');
  if ('object' in common.workflowConfig || 'object' in common.graderConfig)
    throw invalid('workflow_config, grader_config: only Python has objects by reference');
  // What is no Python is named by its file.
  return {
    language: 'typescript',
    ...common,
    workflow: workflow as FileReference,
    grader: grader as FileReference | null,
  };
}

function noWorkflow(): RolloutError {
  return new RolloutError('CONFIG_INVALID', 'the backend local runs a workflow, and none is set', {
    phase: 'config',
    field: 'backend.local.workflow',
    remedy: `Name the class: ${whatNames} (--backend-local-workflow).`,
  });
}

function invalid(problem: string): RolloutError {
  return new RolloutError('CONFIG_INVALID', problem, {
    phase: 'config',
    field: 'backend.local',
    remedy: `Name a class as ${whatNames} in workflow, and in grader.`,
  });
}

function located(reference: CodeReference, baseDir: string): CodeReference {
  return reference.file === null
    ? reference
    : { ...reference, file: path.resolve(baseDir, reference.file) };
}

function locatedConfig(config: UserConfig, baseDir: string): UserConfig {
  return 'object' in config ? { object: located(config.object, baseDir) } : config;
}
