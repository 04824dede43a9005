/** The backend's own options, validated and compiled once. */
import path from 'node:path';
import { z } from 'zod';
import { RolloutError } from '../../core/errors.ts';

/** A class in a module. */
export interface ModuleExport {
  /** Absolute. */
  readonly file: string;
  readonly name: string;
}

export interface LocalOptions {
  readonly workflow: ModuleExport;
  readonly workflowConfig: Readonly<Record<string, unknown>>;
  /** null = rollouts are not graded. */
  readonly grader: ModuleExport | null;
  readonly graderConfig: Readonly<Record<string, unknown>>;
  /** Of a thread's JavaScript heap. */
  readonly memoryMb: number;
}

const record = z.record(z.string(), z.unknown());
const reference = z
  .string()
  .regex(/^.+:[\p{ID_Start}$_][\p{ID_Continue}$]*$/u, 'must be path/to/module.ts:ExportedClass');

const schema = z.strictObject({
  workflow: reference,
  workflow_config: record.default({}),
  grader: reference.nullish().default(null),
  grader_config: record.default({}),
  memory_mb: z.int().min(16).max(65_536).default(512),
});

/** Throws CONFIG_INVALID, which lists every problem. */
export function compileLocalOptions(
  given: Readonly<Record<string, unknown>>,
  baseDir: string,
): LocalOptions {
  const parsed = schema.safeParse(given);
  if (given['workflow'] === undefined || given['workflow'] === null) throw noWorkflow();
  if (!parsed.success)
    throw new RolloutError(
      'CONFIG_INVALID',
      parsed.error.issues.map((issue) => `${issue.path.join('.')}: ${issue.message}`).join('; '),
      {
        phase: 'config',
        field: 'backend.local',
        remedy: 'Name a class as path/to/module.ts:ExportedClass in workflow, and in grader.',
      },
    );
  const { workflow, grader, workflow_config, grader_config, memory_mb } = parsed.data;
  return Object.freeze({
    workflow: moduleExport(workflow, baseDir),
    workflowConfig: workflow_config,
    grader: grader === null ? null : moduleExport(grader, baseDir),
    graderConfig: grader_config,
    memoryMb: memory_mb,
  });
}

function noWorkflow(): RolloutError {
  return new RolloutError('CONFIG_INVALID', 'the backend local runs a workflow, and none is set', {
    phase: 'config',
    field: 'backend.local.workflow',
    remedy: 'Name the class: path/to/module.ts:ExportedClass (--backend-local-workflow).',
  });
}

function moduleExport(text: string, baseDir: string): ModuleExport {
  const at = text.lastIndexOf(':');
  return { file: path.resolve(baseDir, text.slice(0, at)), name: text.slice(at + 1) };
}
