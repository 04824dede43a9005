import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { GraderEnd } from '../../../src/backends/harbor/container-sample.ts';
import { finalResult, type Ending } from '../../../src/backends/harbor/harbor-result.ts';
import type { ExecutionResult } from '../../../src/backends/execution-backend.ts';
import type { ErrorCode } from '../../../src/core/errors.ts';
import type { Sample } from '../../../src/wire/rollout/callback-payloads.ts';

const plain: Sample = {
  messages: [{ role: 'user', content: 'x' }],
  trajectoryMessages: null,
  ...{ label: null, reward: null, isRemoved: false, metrics: { own: 1, both: 1 }, extraFields: {} },
};

function trial(
  cause: ErrorCode | null,
  rewards: Readonly<Record<string, number>> | null,
): ExecutionResult {
  return {
    ...{ status: cause === null ? 'success' : 'failure', errMessage: cause, trajectory: null },
    ...{ errCategory: cause === null ? null : 'agent_error', files: [] },
    sample: { ...plain, messages: [], metrics: { tokens: 5, both: 5 } },
    outcome: {
      ...{ stage: cause === null ? 'done' : 'verifier', cause, trainable: true, retryable: false },
      verdict: rewards && { rewards },
    },
    diagnostics: { backend: 'native_harbor', phase: 'verification', timings_sec: { agent: 1 } },
  };
}

const graded = (over: Partial<Sample>): GraderEnd => ({ graded: { ...plain, ...over } });
const failedGrader: GraderEnd = { failure: { message: 'no', category: 'agent_error' } };

type Row = readonly [
  string,
  ExecutionResult,
  Partial<Ending>,
  readonly [string, ErrorCode | null, string | null, number | null],
];
const ok = (reward: number | null) => ['success', null, null, reward] as const;
const bad = (code: ErrorCode, category = 'validation_error') =>
  ['failure', code, category, null] as const;

const rows: readonly Row[] = [
  ['takes the channel reward', trial(null, { reward: 0.5, other: 1 }), {}, ok(0.5)],
  ['takes no other channel, alone or not', trial(null, { score: 1 }), {}, bad('REWARD_MISSING')],
  ['lets a reward of the sample stand in', trial(null, { score: 1 }), { sample: { ...plain, reward: 0.3 } }, ok(0.3)],
  ['prefers the verifier over the sample', trial(null, { reward: 1 }), { sample: { ...plain, reward: 0.3 } }, ok(1)],
  ['needs none of a removed sample', trial('REWARD_MISSING', null), { grader: graded({ isRemoved: true }) }, ok(null)],
  ['says what the grader said', trial('REWARD_MISSING', null), { grader: failedGrader }, bad('GRADER_FAILED', 'agent_error')],
  ['needs a sample, whatever the verdict', trial(null, { reward: 1 }), { sample: null }, bad('SAMPLE_INVALID')],
  ['keeps what failed before the verifier', trial('AGENT_TIMEOUT', { reward: 1 }), { sample: undefined }, bad('AGENT_TIMEOUT', 'agent_error')],
  ['keeps what failed in the verifier', trial('VERIFIER_TIMEOUT', null), {}, bad('VERIFIER_TIMEOUT', 'agent_error')],
  ['misses a source of a reward that is wanted', trial('REWARD_MISSING', null), { rewardSource: 'none' }, bad('REWARD_MISSING')],
  ['misses nothing where no grade is wanted', trial('REWARD_MISSING', null), { rewardSource: 'none', wantsGrade: false }, ok(null)],
]; // prettier-ignore

describe('the result of a rollout of the backend harbor', () => {
  for (const [title, given, over, expected] of rows)
    it(title, () => {
      const usual: Ending = {
        label: 'a label',
        wantsGrade: true,
        rewardSource: 'grader',
        grader: null,
        sample: plain,
      };
      const ending: Ending = { ...usual, ...over };
      const { status, outcome, errCategory, sample, diagnostics } = finalResult(given, ending);
      assert.deepEqual([status, outcome.cause, errCategory, sample?.reward ?? null], expected);
      assert.equal(diagnostics?.['backend'], 'harbor');
      assert.deepEqual(diagnostics['timings_sec'], { agent: 1 });
      if (status === 'success') {
        assert.equal(sample?.label, 'a label');
        assert.deepEqual(sample.metrics, { tokens: 5, both: 1, own: 1 });
      }
    });
});
