/** The backend's own options, validated and compiled once. */
import { z } from 'zod';
import { RolloutError } from '../../core/errors.ts';
import { environmentConfigSchema, type EnvironmentConfig } from '../../wire/harbor/run-config.ts';

/** Agents that this backend knows how to give a model, or to leave without one. */
export const nativeAgents = ['terminus-2', 'oracle'] as const;
export type NativeAgent = (typeof nativeAgents)[number];

export interface NativeOptions {
  readonly agent: NativeAgent;
  /** The agent's own; where its model is belongs to the backend. */
  readonly agentOptions: Readonly<Record<string, unknown>>;
  /** With its provider: `openai/NAME`. */
  readonly model: string;
  readonly environment: EnvironmentConfig;
  readonly allowUnsandboxed: boolean;
  /** Key of the metadata that names the task. */
  readonly taskKey: string;
  /** Channel of the verifier's rewards that is the reward. */
  readonly rewardKey: string;
  /** null = the agent's own limit. */
  readonly agentSetupTimeoutSec: number | null;
  readonly removesSuccessfulTrials: boolean;
}

/** What an agent's endpoint is set by. */
const ownedOptions = ['api_base'] as const;

const record = z.record(z.string(), z.unknown());

export const modelNameSchema = z
  .string()
  .regex(/^openai\/\S/, 'must be openai/NAME: the address behind it speaks chat completions');

const schema = z.strictObject({
  agent: z.enum(nativeAgents).default('terminus-2'),
  agent_options: record.default({}),
  model: modelNameSchema.default('openai/osmosis-rollout'),
  environment: z.string().min(1).default('docker'),
  environment_options: record.default({}),
  allow_unsandboxed: z.boolean().default(false),
  task_key: z.string().min(1).default('harbor_task'),
  reward_key: z.string().min(1).default('reward'),
  agent_setup_timeout_sec: z.number().positive().nullish().default(null),
  remove_successful_trials: z.boolean().default(true),
});

/** Throws CONFIG_INVALID, which lists every problem. */
export function compileNativeOptions(given: Readonly<Record<string, unknown>>): NativeOptions {
  const parsed = schema.safeParse(given);
  const problems = parsed.success
    ? ownedProblems(parsed.data.agent_options)
    : parsed.error.issues.map((issue) => `${issue.path.join('.')}: ${issue.message}`);
  if (!parsed.success || problems.length > 0)
    throw new RolloutError('CONFIG_INVALID', problems.join('; '), {
      phase: 'config',
      field: 'backend.native',
      remedy: 'Correct the options of the backend native.',
    });
  const { data } = parsed;
  return Object.freeze({
    agent: data.agent,
    agentOptions: data.agent_options,
    model: data.model,
    environment: environmentConfigSchema.parse({
      type: data.environment,
      kwargs: data.environment_options,
    }),
    allowUnsandboxed: data.allow_unsandboxed,
    taskKey: data.task_key,
    rewardKey: data.reward_key,
    agentSetupTimeoutSec: data.agent_setup_timeout_sec,
    removesSuccessfulTrials: data.remove_successful_trials,
  });
}

/** The model's address and key come with every rollout, and win over nothing that somebody wrote here by mistake. */
function ownedProblems(kwargs: Readonly<Record<string, unknown>>): string[] {
  const owned = ownedOptions
    .filter((name) => name in kwargs)
    .map((name) => `agent_options.${name}`);
  const llm = kwargs['llm_kwargs'];
  if (typeof llm === 'object' && llm !== null && 'api_key' in llm)
    owned.push('agent_options.llm_kwargs.api_key');
  return owned.map((name) => `${name}: comes from the controller with every rollout`);
}
