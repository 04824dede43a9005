/**
 * `POST /run` as Miles' Harbor plugin sends it, and its answer. Unknown keys are kept: they are the row's. The answer has four keys, always, and no null
 * in the place of a table.
 */
import { z } from 'zod';
import { laxInteger } from '../harbor/lax.ts';

const jsonObject = z.record(z.string(), z.unknown());
const optionalText = z.string().nullish().default(null);

export const runRequestSchema = z.looseObject({
  /** OpenAI base URL of the trial's model, opaque. */
  base_url: z.string(),
  model: z.string(),
  sampling_params: jsonObject.default({}),
  api_key: z.string().default('dummy'),
  /** Folder of the task below the folder of tasks. */
  instance_id: z.string().default(''),
  /** null = the server's own choice. */
  agent_name: optionalText,
  /** Tokens of prompt and answer of one model call together; null = no limit of its own. */
  max_seq_len: laxInteger.meta({ type: 'integer' }).nullish().default(null),
  /** `host:port` of the session server that the trial's calls go to. */
  session_server_id: optionalText,
  session_server_instance_id: optionalText,
});
export type RunRequest = z.output<typeof runRequestSchema>;

/** Fields of a request that are not the row's. */
export const runRequestFields: ReadonlySet<string> = new Set(Object.keys(runRequestSchema.shape));

export const runReplySchema = z.object({
  reward: z.number(),
  exit_status: z.string(),
  agent_metrics: jsonObject,
  eval_report: jsonObject,
});
export type RunReply = z.output<typeof runReplySchema>;

/** An answer without a trial, or of a trial without a result. */
export function replyWithout(exitStatus: string): RunReply {
  return { reward: 0, exit_status: exitStatus, agent_metrics: {}, eval_report: {} };
}
