/** A `/run` as a rollout: its task, its agent, its model behind our key, its limits. What else the request holds is the row's, and goes along as metadata. */
import { runRequestFields, type RunRequest } from '../wire/agent-server/run.ts';
import type { RolloutRequest } from '../wire/rollout/rollout-request.ts';
import { routeRulesKey, samplingPinsSchema } from '../wire/rollout/route-rules.ts';
import { agentKey } from '../wire/rollout/row-agent.ts';
import { sequenceLimit } from './exit-status.ts';

export interface RunPlan {
  readonly id: string;
  /** Absolute. */
  readonly taskDir: string;
  /** Key of the metadata that names the task. */
  readonly taskKey: string;
  /** Of requests that name none. */
  readonly agent: string;
  /** null = the task's own limit. */
  readonly agentTimeoutSec: number | null;
}

export function rolloutOfRun(request: RunRequest, plan: RunPlan): RolloutRequest {
  const { base_url, model, api_key, instance_id } = request;
  const { session_server_id, session_server_instance_id } = request;
  const row = Object.fromEntries(
    Object.entries(request).filter(([name]) => !runRequestFields.has(name)),
  );
  return {
    initial_messages: [],
    chat_completions_url: base_url,
    // Nobody is called back: whoever sent the request waits for its answer.
    ...{ completion_callback_url: '', grader_callback_url: null, controller_api_key: null },
    llm_api_key: api_key === '' ? null : api_key,
    ...{ label: null, rollout_id: plan.id },
    metadata: {
      ...row,
      [plan.taskKey]: plan.taskDir,
      [agentKey]: request.agent_name ?? plan.agent,
      harbor_model: model.startsWith('openai/') ? model : `openai/${model}`,
      [routeRulesKey]: rulesOf(request, row[routeRulesKey]),
    },
    ...{ agent_timeout_sec: plan.agentTimeoutSec, grader_timeout_sec: null },
    extra_fields: {
      agent_server: { instance_id, session_server_id, session_server_instance_id },
    },
  };
}

/** What the gateway can hold an agent to holds for every agent, also for programs that are told of no sampling parameters. */
function rulesOf(
  { sampling_params, max_seq_len }: RunRequest,
  given: unknown,
): Readonly<Record<string, unknown>> {
  const own = tableOf(given);
  const pins = Object.entries(sampling_params).filter(
    ([name, value]) => value !== null && samplingPinsSchema.safeParse({ [name]: value }).success,
  );
  return {
    ...own,
    sampling: { ...tableOf(own['sampling']), ...Object.fromEntries(pins) },
    ...(max_seq_len !== null && { [sequenceLimit]: Math.max(1, max_seq_len) }),
  };
}

function tableOf(value: unknown): Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
    ? (value as Readonly<Record<string, unknown>>)
    : {};
}
