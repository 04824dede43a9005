/** Faults of a user's workflow and grader; what they do stands in `tests/backends/local/user-code.ts`. */
import type { ErrorCode } from '../../../src/core/errors.ts';
import type { OutcomeRow, WireSide } from './outcome-row.ts';

const succeeded: WireSide = { status: 'success', category: null };
const failed = (category: string): WireSide => ({ status: 'failure', category });

const doing = (act: string, grade: string, more: OutcomeRow['request'] = {}) => ({
  metadata: { act, grade },
  ...more,
});

/** The workflow failed: both callbacks say the same, without a sample. */
function workflow(
  [cause, category, retryable]: readonly [ErrorCode, string, boolean],
  part: Pick<OutcomeRow, 'name' | 'message' | 'request'>,
): OutcomeRow {
  return {
    ...{ server: 'local', completion: failed(category) },
    grader: { ...failed(category), reward: null, hasSample: false },
    api: { stage: 'agent', cause, trainable: false, retryable, verdict: null },
    ...part,
  };
}

/** The grader failed: the completion is a success, the sample stays. */
function grader(
  [cause, category, retryable]: readonly [ErrorCode, string, boolean],
  part: Pick<OutcomeRow, 'name' | 'message' | 'request'>,
): OutcomeRow {
  const row = workflow([cause, category, retryable], part);
  return {
    ...{ ...row, completion: succeeded, grader: { ...row.grader, hasSample: true } },
    api: { ...row.api, stage: 'verifier' },
  };
}

export const localRows: readonly OutcomeRow[] = [
  {
    ...{ name: 'local-no-fault', server: 'local', request: doing('list', 'seven'), message: null },
    ...{ completion: succeeded, grader: { ...succeeded, reward: 0.7, hasSample: true } },
    api: {
      ...{ stage: 'done', cause: null, trainable: true, retryable: false },
      verdict: { reward: 0.7 },
    },
  },
  workflow(['WORKFLOW_FAILED', 'agent_error', true], {
    name: 'local-throws',
    request: doing('throws', 'seven'),
    message: 'the tool broke',
  }),
  workflow(['WORKFLOW_FAILED', 'validation_error', false], {
    name: 'local-wrong-value',
    request: doing('throws-value', 'seven'),
    message: 'a wrong value',
  }),
  workflow(['WORKFLOW_FAILED', 'timeout', true], {
    name: 'local-own-timeout',
    request: doing('throws-timeout', 'seven'),
    message: 'the tool took too long',
  }),
  workflow(['WORKFLOW_FAILED', 'agent_error', true], {
    name: 'local-exits',
    request: doing('exits', 'seven'),
    message: /exit code 3/,
  }),
  workflow(['WORKFLOW_FAILED', 'agent_error', true], {
    name: 'local-out-of-memory',
    request: doing('eats-memory', 'seven'),
    message: /out of memory/,
  }),
  workflow(['WORKFLOW_TIMEOUT', 'timeout', false], {
    name: 'local-busy-loop',
    request: doing('loops', 'seven', { agent_timeout_sec: 0.5 }),
    message: /^workflow exceeded its 0\.5s deadline/,
  }),
  workflow(['WORKFLOW_TIMEOUT', 'timeout', false], {
    name: 'local-swallows',
    request: doing('swallows', 'seven', { agent_timeout_sec: 0.5 }),
    message: /^workflow exceeded its 0\.5s deadline/,
  }),
  workflow(['WORKFLOW_TIMEOUT', 'timeout', false], {
    name: 'local-without-time',
    request: doing('list', 'seven', { agent_timeout_sec: -1 }),
    message: /^workflow exceeded its -1s deadline/,
  }),
  workflow(['SAMPLE_INVALID', 'validation_error', false], {
    name: 'local-nan-metric',
    request: doing('nan-metric', 'seven'),
    message: /metrics\.loss/,
  }),
  {
    ...grader(['GRADER_FAILED', 'validation_error', false], {
      name: 'local-no-sample',
      request: doing('nothing', 'seven'),
      message: /no sample/,
    }),
    grader: { ...failed('validation_error'), reward: null, hasSample: false },
  },
  grader(['GRADER_FAILED', 'agent_error', true], {
    name: 'local-grader-throws',
    request: doing('list', 'throws'),
    message: 'the judge is not there',
  }),
  grader(['GRADER_FAILED', 'agent_error', true], {
    name: 'local-grader-exits',
    request: doing('list', 'exits'),
    message: /exit code 0/,
  }),
  grader(['GRADER_FAILED', 'validation_error', false], {
    name: 'local-grader-nan',
    request: doing('list', 'nan'),
    message: /finite/,
  }),
  grader(['SAMPLE_INVALID', 'validation_error', false], {
    name: 'local-grader-silent',
    request: doing('list', 'none'),
    message: /no reward/,
  }),
  grader(['GRADER_TIMEOUT', 'timeout', false], {
    name: 'local-grader-loops',
    request: doing('list', 'loops', { grader_timeout_sec: 0.3 }),
    message: 'grader exceeded its 0.3s deadline',
  }),
];

export const crowdedRows: readonly OutcomeRow[] = [
  {
    ...{
      name: 'queue-too-long',
      server: 'crowded',
      request: doing('list', 'seven', { agent_timeout_sec: 0.4 }),
    },
    ...{ completion: failed('timeout'), message: /waited for a running place/ },
    grader: { ...failed('timeout'), reward: null, hasSample: false },
    api: {
      ...{ stage: 'queue', cause: 'QUEUE_TIMEOUT', trainable: false, retryable: true },
      verdict: null,
    },
  },
];
