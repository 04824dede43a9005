/** How a rollout ended, as the answer to its `/run`: the verifier's reward travels with the exit status, whatever that is. */
import { replyWithout, type RunReply } from '../wire/agent-server/run.ts';
import { exitStatusOf } from './exit-status.ts';
import type { RunEnd } from './run-ends.ts';

/** Names of durations, from those of our diagnostics. */
const durations: Readonly<Record<string, string>> = {
  trial: 'total_time',
  environment_setup: 'env_setup_time',
  agent_setup: 'agent_setup_time',
  agent: 'agent_run_time',
  verification: 'eval_time',
};
const counts: Readonly<Record<string, string>> = {
  input_tokens: 'n_input_tokens',
  output_tokens: 'n_output_tokens',
  cost_usd: 'cost_usd',
};

export function replyOf(end: RunEnd): RunReply {
  const { outcome, diagnostics, metrics } = end;
  const rewards = outcome.verdict?.rewards ?? {};
  const [first] = Object.values(rewards);
  const spent = tableOf(diagnostics?.['model_budget'])['limit'];
  const exitStatus = exitStatusOf({
    outcome,
    spentLimit: typeof spent === 'string' ? spent : null,
  });
  return {
    ...replyWithout(exitStatus),
    reward: rewards['reward'] ?? first ?? outcome.reward ?? 0,
    agent_metrics: {
      ...renamed(metrics, counts),
      ...end.agentMetadata,
      ...renamed(tableOf(diagnostics?.['timings_sec']), durations),
    },
    eval_report: { ...rewards },
  };
}

/** Numbers only; what is not there is left out. */
function renamed(
  values: Readonly<Record<string, unknown>>,
  names: Readonly<Record<string, string>>,
): Record<string, number> {
  return Object.fromEntries(
    Object.entries(names).flatMap(([from, to]) => {
      const value = values[from];
      return typeof value === 'number' ? [[to, value] as const] : [];
    }),
  );
}

function tableOf(value: unknown): Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null
    ? (value as Readonly<Record<string, unknown>>)
    : {};
}
