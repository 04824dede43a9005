import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { describe, test } from 'node:test';
import { completionBody, graderBody } from '../../../src/wire/rollout/callback-body.ts';
import type { CallbackReport, Sample } from '../../../src/wire/rollout/callback-payloads.ts';

const golden = path.resolve(import.meta.dirname, '../../golden/rollout/callbacks');

const report: CallbackReport = {
  status: 'success',
  rolloutId: 'tenant-a::r1',
  diagnostics: null,
  errMessage: null,
  errCategory: null,
};
const sample: Sample = {
  messages: [
    { role: 'user', content: 'Sum 2 and 3 — “exactly”.' },
    { role: 'assistant', content: '5', logprobs: [-0.25, -0] },
  ],
  trajectoryMessages: [{ role: 'user', content: 'never on the wire' }],
  label: '5',
  reward: 0.7,
  isRemoved: false,
  metrics: { turns: 2, loss: -1.5e-7 },
  extraFields: { note: null },
};
const failure: CallbackReport = {
  ...report,
  status: 'failure',
  errMessage: 'workflow exceeded its 5s deadline',
  errCategory: 'timeout',
  diagnostics: { stage: 'agent', cause: 'WORKFLOW_TIMEOUT', trainable: true, retryable: false },
};

const bodies: Readonly<Record<string, string>> = {
  'completion-success.json': completionBody(report).text,
  'completion-failure.json': completionBody(failure).text,
  'completion-fallback.json': completionBody({
    ...report,
    status: 'failure',
    errMessage: 'Internal server error',
  }).text,
  'grader-success.json': graderBody({ ...report, sample }).text,
  'grader-zero.json': graderBody({ ...report, sample: { ...sample, reward: 0 } }).text,
  'grader-failed-grade.json': graderBody({ ...failure, sample }).text,
  'grader-removed.json': graderBody({ ...report, sample: { ...sample, isRemoved: true } }).text,
  'grader-fallback.json': graderBody({ ...report, status: 'failure', sample: null }).text,
  'grader-minimal.json': graderBody({
    ...report,
    sample: { ...sample, messages: [{ role: 'user', content: 10n }] },
  }).text,
};

describe('the bodies of callbacks', () => {
  test('every golden file is one of these bodies', () => {
    assert.deepEqual(readdirSync(golden).sort(), Object.keys(bodies).sort());
  });

  for (const [name, text] of Object.entries(bodies))
    test(`is byte for byte as recorded: ${name}`, () => {
      assert.equal(text, readFileSync(path.join(golden, name), 'utf8'));
    });

  test('the same report gives the same text', () => {
    assert.equal(graderBody({ ...report, sample }).text, graderBody({ ...report, sample }).text);
  });

  const noReward: readonly [string, CallbackReport, Partial<Sample>][] = [
    ['the grade failed', failure, {}],
    ['the sample is removed', report, { isRemoved: true }],
    ['there is none', report, { reward: null }],
    ['it is not a number', report, { reward: NaN }],
    ['it is infinite', report, { reward: Infinity }],
  ];
  for (const [why, base, change] of noReward)
    test(`carries no reward when ${why}, but the sample all the same`, () => {
      const wire = read(graderBody({ ...base, sample: { ...sample, ...change } }).text);
      assert.equal(wire.sample['reward'], null);
      assert.deepEqual(wire.sample['label'], '5');
    });

  test('what JSON cannot carry is left out of metrics, extra fields and diagnostics, and said once', () => {
    const odd: Record<string, unknown> = {
      kept: [1, 'two', true, null, { deep: 0.5 }],
      big: 12n,
      huge: 2n ** 2000n,
      nan: NaN,
      inf: -Infinity,
      list: [1, NaN, 2],
      typed: new Float32Array([0.5, 1]),
      date: new Date(0),
      map: new Map(),
      call: () => 0,
      none: undefined,
      symbol: Symbol('s'),
      get broken(): never {
        throw new Error('no');
      },
    };
    odd['self'] = { odd };
    const { text, losses } = graderBody({
      ...report,
      diagnostics: { nan: NaN, stage: 'agent' },
      sample: { ...sample, metrics: odd, extraFields: { nan: NaN } },
    });
    const wire = read(text);
    assert.deepEqual(wire.sample['metrics'], {
      kept: [1, 'two', true, null, { deep: 0.5 }],
      big: 12,
      list: [1, 2],
      typed: [0.5, 1],
      date: '1970-01-01T00:00:00.000Z',
      self: {},
    });
    assert.deepEqual(wire.sample['extra_fields'], {});
    assert.deepEqual(wire.extra_fields, { stage: 'agent' });
    assert.equal(wire.sample['reward'], 0.7);
    assert.deepEqual(losses, [
      'Map',
      'a number that is not finite',
      'a reference to itself',
      'a value that cannot be read',
      'function',
      'symbol',
      'undefined',
    ]);
  });

  const unencodable: readonly [string, unknown][] = [
    ['a big integer', 10n],
    ['a reference to itself', selfReference()],
    ['values nested without end', nested(200_000)],
  ];
  for (const [title, content] of unencodable)
    test(`a reward survives messages with ${title}`, () => {
      const { text, losses } = graderBody({
        ...report,
        sample: { ...sample, messages: [{ role: 'user', content }] },
      });
      assert.deepEqual(read(text).sample, {
        ...{ messages: [], label: '5', reward: 0.7, remove_sample: false },
        ...{ metrics: {}, extra_fields: {} },
      });
      assert.deepEqual(losses, ['messages that are no JSON']);
    });

  test('half a surrogate pair becomes the replacement character wherever it stands; pairs and escapes stay', () => {
    const { text, losses } = graderBody({
      ...report,
      errMessage: '\udc00 end \\ud800',
      sample: {
        ...sample,
        label: 'a\ud800',
        messages: [{ '\ud83d': '😀 \\ud83d "\ud83d"' }],
      },
    });
    assert.equal(Buffer.from(text).toString(), text, 'it is UTF-8');
    const wire = read(text);
    assert.equal(wire.err_message, '\ufffd end \\ud800');
    assert.equal(wire.sample['label'], 'a\ufffd');
    assert.deepEqual(wire.sample['messages'], [{ '\ufffd': '😀 \\ud83d "\ufffd"' }]);
    assert.deepEqual(losses, ['half a surrogate pair']);
  });

  test('values nested too deeply are dropped from metrics, not the reward', () => {
    const { text, losses } = graderBody({
      ...report,
      sample: { ...sample, metrics: { deep: nested(200_000), flat: 1 } },
    });
    assert.ok(losses.includes('values nested too deeply'));
    assert.equal(read(text).sample['reward'], 0.7);
  });
});

interface WireBody {
  readonly sample: Readonly<Record<string, unknown>>;
  readonly extra_fields: unknown;
  readonly err_message: string | null;
}

function read(text: string): WireBody {
  return JSON.parse(text) as WireBody;
}

function selfReference(): object {
  const own: Record<string, unknown> = {};
  own['own'] = own;
  return own;
}

function nested(depth: number): object {
  let value: object = {};
  for (let level = 0; level < depth; level += 1) value = [value];
  return value;
}
