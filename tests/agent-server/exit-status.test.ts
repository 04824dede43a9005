import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { exitStatusOf, type EndFacts } from '../../src/agent-server/exit-status.ts';
import { replyOf } from '../../src/agent-server/run-reply.ts';
import type { RolloutOutcome } from '../../src/wire/rollout/rollout-outcome.ts';
import { errorRegistry, type ErrorCode } from '../../src/core/error-registry.ts';

const good = { rewards: { reward: 1 } };
const rows: readonly (readonly [string, Partial<EndFacts['outcome']>, string, string?])[] = [
  ['a verdict', { verdict: good, trainable: true }, 'Submitted'],
  ['a grade', { reward: 0.5, trainable: true }, 'Submitted'],
  ['nothing at all', {}, 'Unknown'],
  ['a cancellation', { cause: 'CANCELLED' }, 'Flushed'],
  ['the end of the server', { cause: 'SERVER_STOPPING' }, 'Flushed'],
  ['an agent out of time', { cause: 'AGENT_TIMEOUT' }, 'TimeLimitExceeded'],
  [
    'an agent out of time with a verdict',
    { cause: 'AGENT_TIMEOUT', verdict: good, trainable: true },
    'TimeLimitExceeded',
  ],
  [
    'an agent out of time because its model failed',
    { cause: 'AGENT_TIMEOUT', verdict: good, trainable: false },
    'Error: AgentTimeoutError',
  ],
  ['a verifier out of time', { cause: 'VERIFIER_TIMEOUT' }, 'TimeLimitExceeded'],
  ['a sandbox out of time', { cause: 'ENVIRONMENT_START_TIMEOUT' }, 'TimeLimitExceeded'],
  ['a setup out of time', { cause: 'AGENT_SETUP_TIMEOUT' }, 'AgentError'],
  [
    'an agent that failed',
    { cause: 'AGENT_EXIT_NONZERO', verdict: good, trainable: true },
    'AgentError',
  ],
  ['no reward', { cause: 'REWARD_MISSING' }, 'AgentError'],
  ['a full context', { cause: 'CONTEXT_OVERFLOW' }, 'SequenceLengthLimitExceeded'],
  [
    'max_seq_len',
    { verdict: good, trainable: true },
    'SequenceLengthLimitExceeded',
    'max_call_tokens',
  ],
  [
    'max_seq_len and a failure',
    { cause: 'AGENT_FAILED' },
    'SequenceLengthLimitExceeded',
    'max_call_tokens',
  ],
  ['another budget', { cause: 'AGENT_FAILED' }, 'AgentError', 'max_turns'],
  ['max_seq_len and a flush', { cause: 'CANCELLED' }, 'Flushed', 'max_call_tokens'],
  ['an engine that is gone', { cause: 'ENGINE_UNAVAILABLE' }, 'Error: APIConnectionError'],
  ['a sandbox that failed', { cause: 'ENVIRONMENT_START_FAILED' }, 'Error: RuntimeError'],
  ['a task that is gone', { cause: 'TASK_NOT_FOUND' }, 'TaskNotFound'],
];

describe('exit_status', () => {
  for (const [title, outcome, status, spentLimit = null] of rows)
    it(`of ${title} is ${status}`, () => {
      const whole = { cause: null, trainable: false, verdict: null, reward: null, ...outcome };
      assert.equal(exitStatusOf({ outcome: whole, spentLimit }), status);
    });

  it('never says of a failure that is nobody’s fault but the machine’s what a trainer scores', () => {
    for (const cause of Object.keys(errorRegistry) as ErrorCode[]) {
      const { category } = errorRegistry[cause];
      const outcome = { cause, trainable: false, verdict: null, reward: null };
      const status = exitStatusOf({ outcome, spentLimit: null });
      assert.notEqual(status, 'Submitted', cause);
      if (category === 'infrastructure' && cause !== 'ENVIRONMENT_START_TIMEOUT')
        assert.match(status, /^(Error: \w+|Flushed)$/, cause);
    }
  });
});

describe('the answer to /run', () => {
  it('has the verifier’s reward beside any status, and metrics in the words of the plugin', () => {
    const outcome = {
      ...{ status: 'failure', reward: null, errMessage: 'over', errCategory: 'timeout' },
      ...{ stage: 'agent', cause: 'AGENT_TIMEOUT', trainable: true, retryable: false },
      verdict: { rewards: { format: 0.25, reward: 0.75 } },
    } as const satisfies RolloutOutcome;
    const reply = replyOf({
      outcome,
      diagnostics: { timings_sec: { trial: 9, agent: 7.5, setup: 1, verification: 'x' } },
      metrics: { input_tokens: 10, output_tokens: 2, cost_usd: 0.5 },
      agentMetadata: { n_episodes: 3 },
    });
    assert.deepEqual(reply, {
      ...{ reward: 0.75, exit_status: 'TimeLimitExceeded' },
      agent_metrics: {
        ...{ n_input_tokens: 10, n_output_tokens: 2, cost_usd: 0.5, n_episodes: 3 },
        ...{ total_time: 9, agent_run_time: 7.5 },
      },
      eval_report: { format: 0.25, reward: 0.75 },
    });
    const first = { ...outcome, verdict: { rewards: { format: 0.25 } } };
    const bare = { diagnostics: null, metrics: {}, agentMetadata: {} };
    assert.equal(replyOf({ outcome: first, ...bare }).reward, 0.25);
    assert.deepEqual(replyOf({ outcome: { ...outcome, verdict: null }, ...bare }), {
      ...{ reward: 0, exit_status: 'TimeLimitExceeded', agent_metrics: {}, eval_report: {} },
    });
  });
});
