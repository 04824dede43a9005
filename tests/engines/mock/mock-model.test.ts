/** The scripted model: what a policy says becomes ids, whatever they are, whose bytes are what it said. */
import assert from 'node:assert/strict';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { describe, it } from 'node:test';
import { isRolloutError } from '../../../src/core/errors.ts';
import { never } from '../../../src/core/linked-abort.ts';
import type { SamplingParams } from '../../../src/engines/engine.ts';
import { MockModel, type MockModelOptions } from '../../../src/engines/mock/mock-model.ts';
import { loadPolicy, type Policy } from '../../../src/engines/mock/policy.ts';
import type { SampledToken } from '../../../src/engines/server/token-model.ts';
import { says, vocabularyOfTests } from '../server/serving.ts';

async function modelOf(policy: Policy, more: Partial<MockModelOptions> = {}): Promise<MockModel> {
  return new MockModel({
    name: 'mock',
    vocabulary: await vocabularyOfTests(),
    policy,
    contextTokens: 10_000,
    seed: 1,
    nonCanonicalShare: 0,
    ...more,
  });
}

async function sample(
  model: MockModel,
  prompt = 'hi',
  sampling: SamplingParams = {},
): Promise<SampledToken[]> {
  const promptIds = model.render({ messages: [{ role: 'user', content: prompt }], tools: [] });
  const request = { requestId: 'r', promptIds, sampling, topLogprobs: 0 };
  const tokens: SampledToken[] = [];
  for await (const token of model.sample(request, never)) tokens.push(token);
  return tokens;
}

const idsOf = (tokens: readonly SampledToken[]): number[] => tokens.map(({ id }) => id);

describe('the scripted model', () => {
  it('samples the canonical ids of a reply, reasoning and calls in their marks, and the end token', async () => {
    const model = await modelOf(() => ({
      content: 'so',
      reasoning: 'why',
      toolCalls: [{ name: 'run', arguments: { a: 1 } }],
    }));
    const { vocabulary } = model;
    const text =
      '<think>why</think>so<tool_call>\n{"name": "run", "arguments": {"a":1}}\n</tool_call>';
    assert.deepEqual(idsOf(await sample(model)), [
      ...vocabulary.encode(text, { parsesSpecial: true }),
      vocabulary.endId,
    ]);
  });

  it('repeats for a seed and a prompt; a prompt that comes again is answered anew, not at temperature 0', async () => {
    const policy = await loadPolicy('random-text');
    const series = async (sampling: SamplingParams, seed = 1): Promise<SampledToken[][]> => {
      const model = await modelOf(policy, { nonCanonicalShare: 0.5, seed });
      return [await sample(model, 'a', sampling), await sample(model, 'a', sampling)];
    };
    const warm = await series({ temperature: 1 });
    assert.deepEqual(await series({ temperature: 1 }), warm);
    assert.notDeepEqual(warm[0], warm[1]);
    const cold = await series({ temperature: 0 });
    assert.deepEqual(cold[0], cold[1]);
    assert.notDeepEqual(await series({ temperature: 1 }, 2), warm);
    const seeded = await series({ temperature: 1, seed: 5 });
    assert.deepEqual(seeded[0], seeded[1]);
    assert.notDeepEqual(await series({ temperature: 1, seed: 6 }), seeded);
  });

  it('draws the asked-for share of replies in other ids of the very same bytes', async () => {
    const policy = await loadPolicy('random-text');
    const plain = await modelOf(policy);
    const mixed = await modelOf(policy, { nonCanonicalShare: 0.3 });
    const { vocabulary } = plain;
    const bytesOf = (ids: readonly number[]): Buffer =>
      Buffer.concat(ids.map((id) => vocabulary.bytesOf(id)));
    const [think = 0] = vocabulary.encode('<think>', { parsesSpecial: true });
    let others = 0;
    let spelt = 0;
    for (let index = 0; index < 150; index += 1) {
      const canonical = idsOf(await sample(plain, `prompt ${index}`));
      const ids = idsOf(await sample(mixed, `prompt ${index}`));
      assert.ok(bytesOf(canonical).equals(bytesOf(ids)));
      assert.equal(ids.at(-1), vocabulary.endId);
      if (canonical.join() === ids.join()) continue;
      others += 1;
      if (canonical.includes(think) && !ids.includes(think)) spelt += 1;
    }
    assert.ok(others > 25 && others < 70, `${others} of 150`);
    assert.ok(spelt > 0, 'no think tag was ever spelt with ordinary tokens');
  });

  it('log-probabilities are float32, at most zero, and of every kind', async () => {
    const model = await modelOf(says('lorem ipsum dolor '.repeat(300)));
    const logprobs = (await sample(model)).map(({ logprob }) => logprob);
    assert.ok(logprobs.every((value) => value <= 0 && Object.is(Math.fround(value), value)));
    assert.ok(logprobs.some((value) => Object.is(value, -0)));
    assert.ok(logprobs.some((value) => value < 0 && value > -1e-6));
    assert.ok(logprobs.some((value) => value < -18));
    assert.ok(new Set(logprobs).size > logprobs.length / 2);
  });

  it('stops at the limit, at stop ids and strings, and breaks off where the policy says so', async () => {
    const model = await modelOf(says('one two three'));
    const { vocabulary } = model;
    const whole = idsOf(await sample(model));
    assert.deepEqual(idsOf(await sample(model, 'hi', { maxTokens: 2 })), whole.slice(0, 2));
    const second = whole[1]!;
    const stopped = idsOf(await sample(model, 'hi', { stopTokenIds: [second] }));
    assert.deepEqual(stopped, whole.slice(0, 2));
    const text = idsOf(await sample(model, 'hi', { stop: ['two'] }));
    assert.ok(vocabulary.decode(text, { skipsSpecial: false }).endsWith('two'));
    const broken = await modelOf(() => ({ content: 'one two three', finish: 'length' }));
    assert.deepEqual(idsOf(await sample(broken)), whole.slice(0, -1));
  });

  it('an abort ends it while the policy still thinks', async () => {
    const controller = new AbortController();
    const model = await modelOf(() => new Promise(() => undefined));
    const request = { requestId: 'r', promptIds: [1], sampling: {}, topLogprobs: 0 };
    const reading = (async () => {
      for await (const token of model.sample(request, controller.signal))
        assert.fail(`${token.id}`);
    })();
    controller.abort(new Error('enough'));
    await assert.rejects(reading, /enough/);
  });
});

describe('policies', () => {
  it('are given the conversation, the turn and seeded numbers', async () => {
    const seen: unknown[] = [];
    const model = await modelOf(({ messages, turn, seed, model: name, random }) => {
      seen.push([messages, turn, seed, name, random()]);
      return { content: 'ok' };
    });
    await sample(model, 'hello', { temperature: 0 });
    await sample(model, 'hello', { temperature: 0 });
    assert.deepEqual(seen[0], seen[1]);
    const [messages, turn, seed, name, drawn] = seen[0] as [
      unknown,
      number,
      number,
      string,
      number,
    ];
    assert.deepEqual(messages, [{ role: 'user', content: 'hello' }]);
    assert.deepEqual([turn, seed, name], [0, 1, 'mock']);
    assert.ok(drawn >= 0 && drawn < 1);
  });

  it('built in: echo repeats, terminus-done completes, random-text varies', async () => {
    const text = async (name: string): Promise<string> => {
      const model = await modelOf(await loadPolicy(name));
      const ids = idsOf(await sample(model, 'say 👍')).slice(0, -1);
      return model.vocabulary.decode(ids, { skipsSpecial: false });
    };
    assert.equal(await text('echo'), 'say 👍');
    assert.equal((JSON.parse(await text('terminus-done')) as { task_complete: boolean }).task_complete, true); // prettier-ignore
    assert.ok((await text('random-text')).length > 0);
  });

  it('are modules that export one as default or by name', async () => {
    const dir = await mkdtemp(path.join(os.tmpdir(), 'slipway-policy-'));
    try {
      const rows = {
        'default.mjs': 'export default () => ({ content: "d" });',
        'named.mjs': 'export const policy = () => ({ content: "n" });',
        'typed.ts': 'export const policy = (): { content: string } => ({ content: "t" });',
      };
      const said: string[] = [];
      for (const [name, source] of Object.entries(rows)) {
        await writeFile(path.join(dir, name), source);
        const policy = await loadPolicy(path.join(dir, name));
        said.push((await policy({} as Parameters<Policy>[0])).content);
      }
      assert.deepEqual(said, ['d', 'n', 't']);
      await writeFile(path.join(dir, 'empty.mjs'), 'export const x = 1;');
      await writeFile(path.join(dir, 'broken.mjs'), 'throw new Error("at load");');
      for (const name of ['empty.mjs', 'broken.mjs', 'missing.mjs'])
        await assert.rejects(loadPolicy(path.join(dir, name)), (error) =>
          isRolloutError(error, 'CONFIG_INVALID'),
        );
      await assert.rejects(loadPolicy('ecko'), /^RolloutError: ecko is neither .* nor a file$/);
    } finally {
      await rm(dir, { recursive: true, force: true });
    }
  });
});
