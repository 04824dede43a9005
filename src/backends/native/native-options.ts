/**
 * The backend's own options, validated and compiled once. Agent, environment and verifier are Harbor's complete configurations; a few short options
 * stand for the usual case. Trials get copies of them, never a text that was written and read again: that would mask secrets.
 */
import { z } from 'zod';
import { RolloutError } from '../../core/errors.ts';
import { refuseUnsupportedConfig } from '../../trial/config-checks.ts';
import { fieldPath } from '../../wire/harbor/problems.ts';
import {
  agentConfigSchema,
  environmentConfigSchema,
  verifierConfigSchema,
  type AgentConfig,
  type EnvironmentConfig,
  type VerifierConfig,
} from '../../wire/harbor/run-config.ts';
import { trialConfigSchema } from '../../wire/harbor/trial-config.ts';
import { unknownKeys } from '../../wire/harbor/unknown-keys.ts';
import type { Binding } from './bindings/binding.ts';
import {
  chooseBinding,
  hostProblems,
  ownedProblems,
  unverifiedProblems,
} from './bindings/choose-binding.ts';
import { readPrewarmTasks, type PrewarmTask } from './prewarm-tasks.ts';
import { withSkypilotContext } from './skypilot-context.ts';

export interface NativeOptions {
  readonly binding: Binding;
  /** The user's, without what belongs to a rollout. */
  readonly agent: AgentConfig;
  /** Of rows that name none. With its provider: `openai/NAME`; null = the agent calls none, and nobody named one. */
  readonly model: string | null;
  readonly environment: EnvironmentConfig;
  readonly verifier: VerifierConfig;
  readonly allowUnsandboxed: boolean;
  /** Key of the metadata that names the task. */
  readonly taskKey: string;
  /** Channel of the verifier's rewards that is the reward. */
  readonly rewardKey: string;
  /** Their sandboxes are started once, and the agent set up in them, before the server listens. */
  readonly prewarm: readonly PrewarmTask[];
  readonly removesSuccessfulTrials: boolean;
}

const defaultAgent = 'terminus-2';
const defaultEnvironment = 'local';
const defaultModel = 'openai/osmosis-rollout';

const record = z.record(z.string(), z.unknown());

export const modelNameSchema = z
  .string()
  .regex(/^openai\/\S/, 'must be openai/NAME: the address behind it speaks chat completions');

const schema = z.strictObject({
  agent: z.string().min(1).nullish(),
  agent_options: record.nullish(),
  agent_config: record.nullish(),
  binding: z.string().min(1).nullish(),
  model: z.string().nullish(),
  environment: z.string().min(1).nullish(),
  environment_options: record.nullish(),
  environment_config: record.nullish(),
  verifier_config: record.nullish(),
  allow_unsandboxed: z.boolean().default(false),
  allow_unverified_agent: z.boolean().default(false),
  task_key: z.string().min(1).default('harbor_task'),
  reward_key: z.string().min(1).default('reward'),
  agent_setup_timeout_sec: z.number().positive().nullish().default(null),
  prewarm: z.array(z.union([z.string(), record])).nullish(),
  remove_successful_trials: z.boolean().default(true),
});
type Given = z.output<typeof schema>;

/** Full tables, and the short options that each replaces. */
const shortForms = {
  agent_config: ['agent', 'agent_options'],
  environment_config: ['environment', 'environment_options'],
} as const;

/** Throws CONFIG_INVALID, which lists every problem. `hostVariables`: of this process. */
export function compileNativeOptions(
  given: Readonly<Record<string, unknown>>,
  hostVariables: Readonly<Record<string, string | undefined>> = {},
): NativeOptions {
  const parsed = schema.safeParse(given);
  if (!parsed.success)
    throw invalid(parsed.error.issues.map((issue) => `${fieldPath(issue.path)}: ${issue.message}`));
  const { data } = parsed;
  const problems = mixedForms(data);
  const read = tableReader(problems);
  const agent = read('agent_config', agentConfigSchema, agentTable(data));
  const asked = read('environment_config', environmentConfigSchema, environmentTable(data));
  const environment = asked === null ? null : withSkypilotContext(asked, hostVariables);
  const verifier = read('verifier_config', verifierConfigSchema, data.verifier_config ?? {});
  const prewarm = readPrewarmTasks(data.prewarm ?? null, problems);
  if (agent === null || environment === null || verifier === null) throw invalid(problems);
  const choice = chooseBinding(agent, data.binding ?? null);
  const { binding } = choice;
  if (binding === undefined) throw invalid([...problems, choice.problem]);
  const model = data.model ?? agent.model_name ?? (binding.wiring === 'none' ? null : defaultModel);
  problems.push(
    ...ownedProblems(binding, agent),
    ...hostProblems(binding, hostVariables),
    ...unverifiedProblems(binding, data.allow_unverified_agent),
    ...poolProblems(agent),
  );
  if (binding.wiring !== 'none') {
    const known = modelNameSchema.safeParse(model);
    if (!known.success) problems.push(`model: ${known.error.issues[0]?.message ?? ''}`);
  }
  if (problems.length > 0) throw invalid(problems);
  refuseUnsupported({ agent, environment, verifier });
  return Object.freeze({
    binding,
    agent: withSetupLimit(agent, data.agent_setup_timeout_sec),
    model,
    environment,
    verifier,
    allowUnsandboxed: data.allow_unsandboxed,
    taskKey: data.task_key,
    rewardKey: data.reward_key,
    prewarm,
    removesSuccessfulTrials: data.remove_successful_trials,
  });
}

function mixedForms(data: Given): string[] {
  return Object.entries(shortForms).flatMap(([full, names]) => {
    const mixed = names.filter((name) => data[name] != null).sort();
    return data[full as keyof typeof shortForms] == null || mixed.length === 0
      ? []
      : [`${full}: cannot be mixed with ${mixed.join(', ')}`];
  });
}

/** An empty table is Harbor's own default, which is the oracle. */
function agentTable({ agent_config: full, agent, agent_options: kwargs }: Given): unknown {
  const table: Readonly<Record<string, unknown>> = full ?? {
    name: agent ?? defaultAgent,
    kwargs: kwargs ?? {},
  };
  const { name, import_path: importPath, ...rest } = table;
  // Harbor reads a name with a colon as an import path.
  return typeof name === 'string' && name.includes(':') && importPath == null
    ? { ...rest, import_path: name }
    : table;
}

function environmentTable(data: Given): unknown {
  return (
    data.environment_config ?? {
      type: data.environment ?? defaultEnvironment,
      kwargs: data.environment_options ?? {},
    }
  );
}

/** Reads one of Harbor's tables into a copy of it, or notes what is wrong. */
function tableReader(problems: string[]) {
  return <Config>(at: string, tableSchema: z.ZodType<Config>, table: unknown): Config | null => {
    const unknown = unknownKeys(tableSchema, table);
    problems.push(...unknown.map((key) => `${at}.${key}: there is no such field`));
    const parsed = tableSchema.safeParse(structuredClone(table));
    if (parsed.success) return parsed.data;
    for (const { path, message } of parsed.error.issues)
      problems.push(`${at}.${fieldPath(path)}: ${message}`);
    return null;
  };
}

/** Fields of a job with pools and steps of its own: here the server decides how many rollouts run, and each begins anew. */
function poolProblems(agent: AgentConfig): readonly string[] {
  const has = (name: keyof AgentConfig): boolean => agent[name] !== null && agent[name] !== false;
  const refused = (['concurrency_group', 'n_concurrent', 'resume_trajectory'] as const).filter(has);
  const problems = refused.map((name) => `agent_config.${name}: cannot be set for rollouts`);
  if (agent.name !== null && agent.import_path !== null)
    problems.push('agent_config: name and import_path exclude each other');
  return problems;
}

function withSetupLimit(agent: AgentConfig, seconds: number | null): AgentConfig {
  return seconds === null ? agent : { ...agent, override_setup_timeout_sec: seconds };
}

/** What no trial could run is refused now, and by the same words. */
function refuseUnsupported(tables: Pick<NativeOptions, 'agent' | 'environment' | 'verifier'>) {
  const config = trialConfigSchema.parse({ ...structuredClone(tables), task: { path: '.' } });
  refuseUnsupportedConfig(config, () => undefined);
}

function invalid(problems: readonly string[]): RolloutError {
  return new RolloutError('CONFIG_INVALID', problems.join('; '), {
    phase: 'config',
    field: 'backend.native',
    remedy: 'Correct the options of the backend native.',
  });
}
