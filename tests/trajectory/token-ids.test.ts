import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { NewStep } from '../../src/trajectory/trajectory-log.ts';
import { lacksTokenIds, withTokenIds, type SampledCall } from '../../src/trajectory/token-ids.ts';

const calls = (...ids: readonly string[]) => ({
  tool_calls: ids.map((id) => ({ tool_call_id: id, function_name: 'sh', arguments: {} })),
});
const step = (message: string, more: Partial<NewStep> = {}): NewStep => ({
  ...{ source: 'agent', message, llm_call_count: 1 },
  ...more,
});
const named = (id: string) => ({ metrics: { extra: { response_id: id } } });
/** A call whose answer has the one id that is given. */
const call = (id: number, message: string, more: Partial<NewStep> = {}): SampledCall => ({
  answerId: `a${id}`,
  answer: {
    ...step(message, more),
    metrics: {
      prompt_tokens: 2,
      ...{ prompt_token_ids: [0, id], completion_token_ids: [id], logprobs: [-id] },
      extra: { finish_reason: 'stop' },
    },
  },
  sampledText: message,
});
const withoutIds = (one: SampledCall): SampledCall => ({
  ...one,
  answer: { ...one.answer, metrics: { prompt_tokens: 2 } },
});

/** Of each step its sampled id; null = it is not known. */
type Row = readonly [
  title: string,
  steps: readonly NewStep[],
  calls: readonly SampledCall[],
  ids: readonly (number | null)[],
];

const rows: readonly Row[] = [
  [
    'join by the id that the program was given, whatever the words are',
    [step('x', named('resp_a2')), step('x', named('msg_a1'))],
    [call(1, 'x'), call(2, 'other')],
    [2, 1],
  ],
  [
    'join by the calls of tools, in any order of them',
    [step('', calls('t2', 't1')), step('', calls('t3'))],
    [call(1, 'said', calls('t3')), call(2, '', calls('t1', 't2'))],
    [2, 1],
  ],
  [
    'join by all that was said where no tool was called',
    [step('It is done.\n')],
    [call(1, 'It is done.')],
    [1],
  ],
  [
    'stay without ids where two steps or two calls say the same',
    [step('ok'), step('ok'), step('yes')],
    [call(1, 'ok'), call(2, 'yes'), call(3, 'yes')],
    [null, null, null],
  ],
  [
    'stay without ids where an upstream calls all its answers the same and nothing else tells them apart',
    [step('a', named('same')), step('a', named('same'))],
    [1, 2].map((id) => ({ ...call(id, 'a'), answerId: 'same' })),
    [null, null],
  ],
  [
    'are told by what is left where others were told by their names',
    [step('ok', named('a2')), step('ok')],
    [call(1, 'ok'), call(2, 'ok')],
    [2, 1],
  ],
  ['stay without ids where some of the tools are others', [step('', calls('t1'))], [call(1, '', calls('t1', 't2'))], [null]], // prettier-ignore
  ['stay without ids where nothing is said', [step('')], [call(1, '')], [null]],
  [
    'stay without ids where the engine told none for the call, also where another said the same',
    [step('ok', named('a1'))],
    [withoutIds(call(1, 'ok')), call(2, 'ok')],
    [null],
  ],
  [
    'stay as they are where they are no single call of the model, or not of the agent',
    [step('a', { llm_call_count: 0 }), step('b', { llm_call_count: 2 }), { source: 'user', message: 'c' }], // prettier-ignore
    [call(1, 'a'), call(2, 'b'), call(3, 'c')],
    [null, null, null],
  ],
  [
    'have none from where a secret was taken out of their words',
    [step('one'), step('tell [REDACTED]'), step('three')],
    [call(1, 'one'), call(2, 'tell [REDACTED]'), call(3, 'three')],
    [1, null, null],
  ],
];

describe('steps of a program’s own log', () => {
  for (const [title, steps, known, ids] of rows)
    it(title, () => {
      const joined = withTokenIds(steps, known);
      assert.deepEqual(
        joined.steps.map(({ metrics }) => metrics?.completion_token_ids?.[0] ?? null),
        ids,
      );
      for (const [at, { metrics }] of joined.steps.entries()) {
        const id = ids[at];
        if (id == null) assert.equal(joined.steps[at], steps[at]);
        else assert.deepEqual([metrics?.prompt_token_ids, metrics?.logprobs], [[0, id], [-id]]);
        assert.equal(joined.callOf.get(at)?.answerId, id == null ? undefined : `a${id}`);
      }
    });

  it('keep what they say of themselves, and get what they do not', () => {
    const own = step('a', { metrics: { prompt_tokens: 9, extra: { finish_reason: 'mine' } } });
    const [joined] = withTokenIds([own], [call(1, 'a')]).steps;
    assert.equal(joined?.metrics?.prompt_tokens, 9);
    assert.deepEqual(joined.metrics.extra, { finish_reason: 'mine', response_id: 'a1' });
  });

  it('that have ids are not looked at, and lack nothing', () => {
    const own = step('a', { metrics: { completion_token_ids: [7] } });
    assert.equal(withTokenIds([own], [call(1, 'a')]).steps[0], own);
    assert.deepEqual([lacksTokenIds([own]), lacksTokenIds([own, step('b')])], [false, true]);
  });
});
