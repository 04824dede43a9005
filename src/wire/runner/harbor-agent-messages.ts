/**
 * What the server and a runner in the role `harbor-agent` say to each other: the settings it starts with, its orders and their report, and what it asks for
 * while it works. Paths of the host are absolute; those of the sandbox are as the agent's code wrote them.
 */
import { z } from 'zod';
import { agentResultSchema } from '../harbor/trial-result.ts';
import type { McpServerEntry } from '../harbor/run-config.ts';

/** The class, and what its constructor gets. */
export interface HarborAgentSettings {
  /** `module:Class`. */
  readonly import_path: string;
  readonly trial_dir: string;
  readonly logs_dir: string;
  readonly session_id: string;
  readonly model_name: string | null;
  readonly mcp_servers: readonly McpServerEntry[];
  readonly skills_dir: string | null;
  readonly environment_logs_dir: string;
  readonly extra_env: Readonly<Record<string, string>>;
  readonly kwargs: Readonly<Record<string, unknown>>;
}

/** What the runner says of the agent when it is ready. */
export const harborAgentDetailsSchema = z.object({
  name: z.string(),
  version: z.string().nullable(),
  supports: z.object({ resume: z.boolean(), windows: z.boolean() }),
});
export type HarborAgentDetails = z.infer<typeof harborAgentDetailsSchema>;

/** How the environment is seen while the order is carried out. */
interface View {
  readonly user: string | number | null;
  /** Replaces values of `extra_env`: addresses that are other ones inside. */
  readonly env: Readonly<Record<string, string>>;
}

export type HarborAgentOrder =
  | ({ readonly kind: 'setup' } & View)
  | ({ readonly kind: 'run'; readonly instruction: string } & View)
  /** The logs of the sandbox are on the host. */
  | { readonly kind: 'read-logs' };

const { shape } = agentResultSchema;
/** Fields of another type than theirs are left out: the class may set them to anything. */
const contextSchema = z.object({
  n_input_tokens: shape.n_input_tokens.catch(null),
  n_cache_tokens: shape.n_cache_tokens.catch(null),
  n_output_tokens: shape.n_output_tokens.catch(null),
  cost_usd: shape.cost_usd.catch(null),
  rollout_details: shape.rollout_details.catch(null),
  metadata: shape.metadata.catch(null),
});

const failureSchema = z.object({
  /** Name of the class of the exception. */
  type: z.string(),
  message: z.string(),
  traceback: z.string(),
  /** The agent's program failed: the class is Harbor's for that, or derived from it. */
  is_exit: z.boolean(),
  /** Code of the refused request that it goes back to; null = none. */
  refused: z.string().nullable(),
});
export type HarborAgentFailure = z.infer<typeof failureSchema>;

const valueSchema = z.object({
  outcome: z.enum(['done', 'failed', 'cancelled']),
  version: z.string().nullable(),
  /** null = the agent said nothing of its run. */
  context: contextSchema.nullable(),
  failure: failureSchema.nullable(),
});
export type HarborAgentReport = z.infer<typeof valueSchema>;

export const harborAgentReportSchema = z.object({
  /** null = it could not be told, for the reason in `failure`. */
  value: valueSchema.nullable(),
  failure: z.object({ message: z.string() }).nullable(),
});

const transferSchema = z.object({ source: z.string(), target: z.string() });

/** What a runner asks for, by method. */
export const harborAgentRequests = {
  exec: z.object({
    command: z.string(),
    cwd: z.string().nullable(),
    env: z.record(z.string(), z.string()),
    /** Wins over `env` and over the variables of the agent. */
    scoped_env: z.record(z.string(), z.string()),
    timeout_sec: z.number().min(0).nullable(),
    user: z.union([z.string(), z.number()]).nullable(),
  }),
  upload_file: transferSchema,
  upload_dir: transferSchema,
  download_file: transferSchema,
  download_dir: transferSchema,
  /** The context as it is now. */
  record: contextSchema,
} as const;
export type HarborAgentMethod = keyof typeof harborAgentRequests;
