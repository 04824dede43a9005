import assert from 'node:assert/strict';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { after, before, describe, it } from 'node:test';
import { isRolloutError } from '../../src/core/errors.ts';
import { deterministicReward } from '../../src/rewards/deterministic-reward.ts';
import type { RewardSample } from '../../src/rewards/reward.ts';
import { scoreSamples, type ScoringOptions } from '../../src/rewards/score-samples.ts';

const options: ScoringOptions = { type: null, custom: null, remote: null, random: () => 0.7 };
const { signal } = new AbortController();

function sample(own: Partial<RewardSample> = {}): RewardSample {
  return { prompt: 'p', response: '\\boxed{1}', label: '1', tokens: [1], metadata: {}, ...own };
}

const typed = (type: string) => sample({ metadata: { rm_type: type } });

describe('scoring', () => {
  it('takes the type of a sample before that of the configuration, trimmed', async () => {
    const samples = [sample(), typed(' f1 '), typed('dapo')];
    const values = await scoreSamples(samples, { ...options, type: 'math' }, signal);
    assert.deepEqual(values, [1, 0, { score: -1, acc: false, pred: '[INVALID]' }]);
  });

  it('gives a boxed_ type the content of the last box', async () => {
    const boxed = { response: 'so \\boxed{hello}', label: 'hello world' };
    const [value] = await scoreSamples([sample(boxed)], { ...options, type: 'boxed_f1' }, signal);
    assert.equal(value, 2 / 3);
  });

  it('asks a function of the trainer once for all, whatever their types', async () => {
    const asked: number[] = [];
    const custom = (samples: readonly RewardSample[]) => {
      asked.push(samples.length);
      return samples.map(() => 0.5);
    };
    const values = await scoreSamples([typed('math'), typed('no')], { ...options, custom }, signal);
    assert.deepEqual([values, asked], [[0.5, 0.5], [2]]);
  });

  it('scores no sample without asking anybody', async () => {
    assert.deepEqual(await scoreSamples([], options, signal), []);
  });

  it('takes chance from its port', async () => {
    const random = { ...options, type: 'random' };
    assert.deepEqual(await scoreSamples([sample()], random, signal), [1]);
    assert.deepEqual(await scoreSamples([sample()], { ...random, random: () => 0.2 }, signal), [0]);
  });

  it('by deterministic chance gives both values, and always the same', () => {
    const values = [1, 2, 3, 4, 5, 6, 7, 8].map((token) =>
      deterministicReward(sample({ tokens: [token, 9] })),
    );
    assert.deepEqual([...new Set(values)].sort(), [0, 1]);
    // printf '[1, 2, 3]hi' | sha256sum begins with ff
    const fixed = sample({ tokens: [1, 2, 3], response: 'hi' });
    assert.equal(deterministicReward(fixed), 1);
  });

  const refused: readonly (readonly [string, RewardSample, Partial<ScoringOptions>, string])[] = [
    ['no type', sample(), {}, 'REWARD_TYPE_INVALID'],
    ['an unknown type', typed('nonsense'), {}, 'REWARD_TYPE_INVALID'],
    ['remote_rm without an address', typed('remote_rm'), {}, 'REWARD_TYPE_INVALID'],
    ['a label that dapo cannot read', { ...typed('dapo'), label: 'x' }, {}, 'REWARD_LABEL_INVALID'],
    ['a function with too few', sample(), { custom: () => [] }, 'REWARD_FUNCTION_INVALID'],
    ['a function with NaN', sample(), { custom: () => [NaN] }, 'REWARD_FUNCTION_INVALID'],
  ];
  for (const [title, one, own, code] of refused)
    it(`refuses ${title}`, async () => {
      await assert.rejects(
        scoreSamples([one], { ...options, ...own }, signal),
        (error) => isRolloutError(error, code as 'REWARD_TYPE_INVALID') && error.remedy !== null,
      );
    });
});

describe('a remote reward', () => {
  const bodies: string[] = [];
  let answers: (readonly [status: number, body: string] | 'silence')[] = [];
  const server = createServer((request, response) => {
    let body = '';
    request.on('data', (piece: Buffer) => (body += piece.toString()));
    request.on('end', () => {
      bodies.push(body);
      const answer = answers.shift() ?? [200, '1'];
      if (answer !== 'silence') response.writeHead(answer[0]).end(answer[1]);
    });
  });
  let remote = { url: '', timeoutMs: 30_000, attempts: 3, pauseMs: 1, fetch };

  before(async () => {
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    remote = { ...remote, url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/rm` };
  });
  after(() => {
    server.close();
    server.closeAllConnections();
  });

  const scored = async (limits: Partial<typeof remote> = {}, within = signal) => {
    const one = { ...typed('remote_rm'), label: { any: 'thing' } };
    return (await scoreSamples([one], { ...options, remote: { ...remote, ...limits } }, within))[0];
  };

  it('posts prompt, response and label, and takes the JSON as it is', async () => {
    bodies.length = 0;
    answers = [[200, '{"score": 0.25}']];
    assert.deepEqual(await scored(), { score: 0.25 });
    assert.deepEqual(JSON.parse(bodies[0] ?? ''), {
      prompt: 'p',
      response: '\\boxed{1}',
      label: { any: 'thing' },
    });
  });

  it('asks again after 503, 429 and silence', async () => {
    answers = [
      [503, ''],
      [429, ''],
      [200, '0.5'],
    ];
    assert.equal(await scored(), 0.5);
    answers = ['silence', [200, '2']];
    assert.equal(await scored({ timeoutMs: 200 }), 2);
  });

  const final: readonly (readonly [string, readonly [number, string], boolean])[] = [
    ['a refusal', [400, 'no'], false],
    ['no JSON', [200, 'one'], false],
    ['something that is no reward', [200, '"1"'], false],
    ['503 to the last', [503, ''], true],
  ];
  for (const [title, answer, retryable] of final)
    it(`fails on ${title}`, async () => {
      answers = [answer, answer, answer];
      await assert.rejects(
        scored(),
        (error) => isRolloutError(error, 'REWARD_REMOTE_FAILED') && error.retryable === retryable,
      );
      assert.equal(answers.length, retryable ? 0 : 2);
      answers = [];
    });

  it('ends with its signal, by the signal’s reason', async () => {
    answers = ['silence'];
    const abort = new AbortController();
    const ending = scored({}, abort.signal);
    abort.abort(new Error('enough'));
    await assert.rejects(ending, /enough/);
  });
});
