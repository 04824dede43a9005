import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { readAcknowledgement } from '../../../src/wire/rollout/acknowledgement.ts';

const call = {
  ...{ prompt_tokens: 3, completion_tokens: 2, cached_tokens: 0, cost_usd: 0.01 },
  ...{ prompt_token_ids: [1, 2, 3], completion_token_ids: [4, 5], logprobs: [-0.1, -0.2] },
  ...{ model_name: 'm', extra: { weight_version: 7 } },
};

describe('the acknowledgement of a callback', () => {
  const silent: readonly string[] = [
    ...['', 'ok', '[]', 'null', '7', '{"ok":true}', '{"status":"ok"}', '{"trajectory":null}'],
    '{"trajectory":',
  ];
  for (const text of silent)
    test(`holds no report and nothing to complain about: ${text || 'an empty body'}`, () => {
      assert.deepEqual(readAcknowledgement(text), { report: null, warning: null });
    });

  test('holds a report with the ids of every call; unknown keys are ignored at every level', () => {
    const own = { model_name: 'm', samples: { any: { llm_call_metrics: [call] } } };
    const sample = { llm_call_metrics: [{ ...call, later: 1 }], later: 2, model_name: null };
    const text = { ok: true, trajectory: { ...own, samples: { any: sample }, later: {} } };
    const { report, warning } = readAcknowledgement(JSON.stringify(text));
    assert.deepEqual(report, {
      model_name: 'm',
      samples: { any: { model_name: null, llm_call_metrics: [call] } },
    });
    assert.equal(warning, null);
  });

  test('a report may be empty', () => {
    assert.deepEqual(readAcknowledgement('{"trajectory":{}}').report, { samples: {} });
  });

  const malformed: readonly [string, unknown, RegExp][] = [
    ['is no object', 7, /^trajectory: /],
    ['has samples that are a list', { samples: [] }, /^trajectory\.samples: /],
    [
      'has a broken call',
      { samples: { a: { llm_call_metrics: [call, { logprobs: ['x'] }] } } },
      /^trajectory\.samples\.a\.llm_call_metrics\.1\.logprobs\.0: /,
    ],
  ];
  for (const [what, trajectory, warning] of malformed)
    test(`a report that ${what} is no report, and the place is named`, () => {
      const read = readAcknowledgement(JSON.stringify({ trajectory }));
      assert.equal(read.report, null);
      assert.match(read.warning ?? '', warning);
    });
});
