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

/** As pip reads them: a file, or a list. */
export interface Requirements {
  /** Absolute; null = a list. */
  readonly file: string | null;
  readonly list: readonly string[];
  /** Where relative paths in them begin. */
  readonly cwd: string;
}

export interface PrewarmRow {
  /** As it may be shown. */
  readonly label: string;
  readonly metadata: Table;
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
  /** Packages that the code needs; null = they are in the image. */
  readonly requirements: Requirements | null;
  /** Rows whose task is set up once before the server listens. */
  readonly prewarm: readonly PrewarmRow[];
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
  requirements: z.union([z.string().min(1), z.array(z.string().min(1))]).nullish(),
  prewarm: z.union([z.boolean(), z.array(z.union([z.string().min(1), record]))]).nullish(),
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
  const prewarm = prewarmRows(data);
  const problems = [
    ...prewarm.problems,
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
    requirements: requirementsOf(data.requirements ?? null, baseDir),
    prewarm: prewarm.rows,
    sandboxPython: data.sandbox_python,
    removesSuccessfulTrials: data.remove_successful_trials ?? true,
    trialOptions: {
      ...trialOptions,
      ...{ agent: data.agent, reward_key: 'reward' },
      ...(isWorkflow && { binding: workflowBinding }),
    },
  });
}

/** An empty list asks for nothing. */
function requirementsOf(
  given: string | readonly string[] | null,
  baseDir: string,
): Requirements | null {
  if (given === null || given.length === 0) return null;
  if (typeof given !== 'string') return { file: null, list: given, cwd: baseDir };
  const file = path.resolve(baseDir, given);
  return { file, list: [], cwd: path.dirname(file) };
}

/** `true` is the template. A text names a task as rows of the mode do, a table is the metadata of a row. */
function prewarmRows({
  prewarm,
  task_mode: mode,
}: Pick<z.output<typeof schema>, 'prewarm' | 'task_mode'>): {
  readonly rows: readonly PrewarmRow[];
  readonly problems: readonly string[];
} {
  if (prewarm === null || prewarm === undefined || prewarm === false)
    return { rows: [], problems: [] };
  if (prewarm === true)
    return mode === 'template'
      ? { rows: [{ label: 'template', metadata: {} }], problems: [] }
      : { rows: [], problems: ['prewarm: names no task of the dataset'] };
  const key = mode === 'dataset' ? 'harbor_task_id' : 'harbor_task';
  const rows = prewarm.map((task) =>
    typeof task === 'string'
      ? { label: task, metadata: { [key]: task } }
      : { label: labelOf(task), metadata: task },
  );
  return { rows, problems: rows.length === 0 ? ['prewarm: names no task'] : [] };
}

/** Without an address, which may hold a credential. */
function labelOf({ harbor_task: task, harbor_task_id: id, git_url: url }: Table): string {
  const name = typeof task === 'string' ? task : typeof id === 'string' ? id : 'template';
  return url === undefined || url === null ? name : `git:${name}`;
}

function invalid(problems: readonly string[]): RolloutError {
  return new RolloutError('CONFIG_INVALID', problems.join('; '), {
    phase: 'config',
    field: 'backend.harbor',
    remedy: 'Correct the options of the backend harbor; tasks_dir and agent are needed.',
  });
}
