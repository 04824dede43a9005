/** The backend's own options, validated and compiled once. What they say of trials is handed on to the backend that runs them. */
import path from 'node:path';
import { z } from 'zod';
import { RolloutError } from '../../core/errors.ts';
import { readCodeReference, type ModuleReference } from '../../wire/runner/code-reference.ts';

type Table = Readonly<Record<string, unknown>>;

/** A class of the user, and what its objects are made with. */
export interface UserPart {
  readonly class: ModuleReference;
  readonly config: Table;
}

export interface HarborOptions {
  /** Absolute: the template, or the root of the dataset. */
  readonly tasksDir: string;
  readonly taskMode: 'template' | 'dataset';
  /** null = an agent of ours works on the tasks. */
  readonly workflow: UserPart | null;
  /** A workflow as `module:Class`, or the name of an agent. */
  readonly agent: string;
  readonly grader: UserPart | null;
  /** Absolute; null = the code is in the image. */
  readonly codeDir: string | null;
  /** Path of an executable in the sandbox, or its name there. */
  readonly sandboxPython: string;
  readonly removesSuccessfulTrials: boolean;
  /** Of the backend that runs the trials. */
  readonly trialOptions: Table;
}

const record = z.record(z.string(), z.unknown());
const moduleClass = z.string().transform((text, context): ModuleReference => {
  const found = readCodeReference(text);
  if (found?.file === null) return found;
  context.addIssue('must be module:Class, as Python imports it in the sandbox');
  return z.NEVER;
});

/** Handed on as they are. */
const ofTrials = {
  agent_options: record.nullish(),
  model: z.string().nullish(),
  environment: z.string().min(1).nullish(),
  environment_options: record.nullish(),
  allow_unsandboxed: z.boolean().nullish(),
  agent_setup_timeout_sec: z.number().positive().nullish(),
  remove_successful_trials: z.boolean().nullish(),
};

const schema = z.strictObject({
  tasks_dir: z.string().min(1),
  task_mode: z.enum(['template', 'dataset']).default('template'),
  agent: z.string().min(1),
  grader: moduleClass.nullish().default(null),
  workflow_config: record.default({}),
  grader_config: record.default({}),
  code_dir: z.string().min(1).nullish().default(null),
  sandbox_python: z.string().min(1).default('python3'),
  ...ofTrials,
});

/** How a workflow gets its model: by variables and the one address that its sandbox reaches. */
const workflowBinding = 'custom-installed-chat-completions';

/** Throws CONFIG_INVALID, which lists every problem. */
export function compileHarborOptions(given: Table, baseDir: string): HarborOptions {
  const parsed = schema.safeParse(given);
  if (!parsed.success)
    throw invalid(
      parsed.error.issues.map((issue) => `${issue.path.map(String).join('.')}: ${issue.message}`),
    );
  const { data } = parsed;
  const isWorkflow = data.agent.includes(':');
  const workflowClass = isWorkflow ? moduleClass.safeParse(data.agent) : null;
  const problems = [
    ...(workflowClass?.success === false
      ? ['agent: must be module:Class, or the name of an agent']
      : []),
    ...(isWorkflow && data.agent_options != null
      ? ['agent_options: a workflow has workflow_config instead']
      : []),
    ...(!isWorkflow && Object.keys(data.workflow_config).length > 0
      ? ['workflow_config: there is no workflow, but an agent']
      : []),
    ...(data.grader === null && Object.keys(data.grader_config).length > 0
      ? ['grader_config: there is no grader']
      : []),
  ];
  if (problems.length > 0) throw invalid(problems);
  const trialOptions = Object.fromEntries(
    Object.keys(ofTrials).flatMap((name) => {
      const value: unknown = data[name as keyof typeof ofTrials];
      return value === null || value === undefined ? [] : [[name, value]];
    }),
  );
  return Object.freeze({
    tasksDir: path.resolve(baseDir, data.tasks_dir),
    taskMode: data.task_mode,
    agent: data.agent,
    workflow:
      workflowClass?.success === true
        ? { class: workflowClass.data, config: data.workflow_config }
        : null,
    grader: data.grader === null ? null : { class: data.grader, config: data.grader_config },
    codeDir: data.code_dir === null ? null : path.resolve(baseDir, data.code_dir),
    sandboxPython: data.sandbox_python,
    removesSuccessfulTrials: data.remove_successful_trials ?? true,
    trialOptions: {
      ...trialOptions,
      ...{ agent: data.agent, reward_key: 'reward' },
      ...(isWorkflow && { binding: workflowBinding }),
    },
  });
}

function invalid(problems: readonly string[]): RolloutError {
  return new RolloutError('CONFIG_INVALID', problems.join('; '), {
    phase: 'config',
    field: 'backend.harbor',
    remedy: 'Correct the options of the backend harbor; tasks_dir and agent are needed.',
  });
}
