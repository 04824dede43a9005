import assert from 'node:assert/strict';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { after, before, suite, test } from 'node:test';
import { isRolloutError } from '../../../src/core/errors.ts';
import type { SamplingParams } from '../../../src/engines/engine.ts';
import { openGgufModel } from '../../../src/engines/gguf/gguf-model.ts';
import type { SampledToken, TokenModel } from '../../../src/engines/server/token-model.ts';
import { parseChat } from '../../../src/engines/server/vocabulary/parse-chat.ts';
import { isLlamaCached } from '../../support/cached-llama.js';
import { type TinyGgufOptions, writeTinyGguf } from '../../support/tiny-gguf.ts';

const skip = isLlamaCached ? false : 'node-llama-cpp is not in the cache: npm run setup -- tests';

suite('a model from a GGUF file', { skip, timeout: 120_000 }, () => {
  let folder = '';
  let model: TokenModel;
  const never = new AbortController().signal;

  const open = async (name: string, options: TinyGgufOptions = {}): Promise<TokenModel> => {
    const file = path.join(folder, `${name}.gguf`);
    await writeTinyGguf(file, options);
    return await openGgufModel({ file, name: null, contextTokens: 256, seed: 1 });
  };
  const sampleFrom = async (
    promptIds: readonly number[],
    sampling: SamplingParams,
    topLogprobs = 0,
  ): Promise<SampledToken[]> => {
    const request = { requestId: 'r', promptIds, sampling, topLogprobs };
    const tokens: SampledToken[] = [];
    for await (const token of model.sample(request, never)) tokens.push(token);
    return tokens;
  };
  const promptOf = (text: string): number[] =>
    model.vocabulary.encode(text, { parsesSpecial: true });
  const idsOf = (tokens: readonly SampledToken[]): number[] => tokens.map(({ id }) => id);

  before(async () => {
    folder = await mkdtemp(path.join(os.tmpdir(), 'slipway-gguf-'));
    model = await open('tiny');
  });
  after(async () => {
    await model.close();
    await rm(folder, { recursive: true, force: true });
  });

  test('it is called like its file and has the context that was asked for', () => {
    assert.deepEqual([model.name, model.contextTokens], ['tiny', 256]);
  });

  test('text goes to ids and back, and yields no control token unless asked for', () => {
    const { vocabulary } = model;
    const start = vocabulary.encode('<|im_start|>', { parsesSpecial: true });
    assert.equal(start.length, 1);
    for (const text of ['the thin winter', 'a\r\n\t', '👩‍💻 é 命', '<|im_start|>x<|im_end|>', '']) {
      const ids = vocabulary.encode(text, { parsesSpecial: false });
      assert.equal(vocabulary.decode(ids, { skipsSpecial: true }), text);
      assert.ok(!ids.includes(start[0]!));
    }
    assert.equal(vocabulary.decode(start, { skipsSpecial: false }), '<|im_start|>');
    assert.equal(vocabulary.decode([vocabulary.endId], { skipsSpecial: false }), '<|im_end|>');
  });

  test('log-probabilities are those of a distribution over the whole vocabulary', async () => {
    const tokens = await sampleFrom(
      promptOf('the winter'),
      { maxTokens: 8 },
      model.vocabulary.size,
    );
    assert.ok(tokens.length > 0);
    for (const { id, logprob, top } of tokens) {
      assert.equal(new Set(top.map((entry) => entry.id)).size, model.vocabulary.size);
      const total = top.reduce((sum, entry) => sum + Math.exp(entry.logprob), 0);
      assert.ok(Math.abs(total - 1) < 1e-5, `${total}`);
      assert.equal(top.find((entry) => entry.id === id)?.logprob, logprob);
      const sorted = top.toSorted((a, b) => b.logprob - a.logprob);
      assert.deepEqual(
        top.map((entry) => entry.logprob),
        sorted.map((entry) => entry.logprob),
      );
    }
  });

  test('scoring finds what sampling reported, however the text was cut', async () => {
    for (const length of [1, 2, 7, 63, 64, 65, 66, 130]) {
      const prompt = promptOf('the thin winter in there. '.repeat(20)).slice(0, length);
      const tokens = await sampleFrom(prompt, { maxTokens: 20, temperature: 1.3 });
      await sampleFrom(promptOf('something else'), { maxTokens: 1 });
      const scored = await model.score(
        { ids: [...prompt, ...idsOf(tokens)], from: prompt.length, topLogprobs: 0 },
        never,
      );
      assert.deepEqual(
        scored.map(({ id }) => id),
        idsOf(tokens),
      );
      // Kernels for float32 weights add up in an order that depends on how many tokens come together.
      for (const [index, { logprob }] of tokens.entries())
        assert.ok(
          Math.abs(scored[index]!.logprob! - logprob) < 1e-4,
          `${length}+${index}: ${logprob} and ${scored[index]!.logprob}`,
        );
    }
  });

  test('another id has another log-probability', async () => {
    const prompt = promptOf('the winter');
    const [{ id, logprob }] = (await sampleFrom(prompt, { maxTokens: 1 })) as [SampledToken];
    const wrong = (id + 1) % model.vocabulary.size;
    const [scored] = await model.score(
      { ids: [...prompt, wrong], from: prompt.length, topLogprobs: 0 },
      never,
    );
    assert.ok(Math.abs(scored!.logprob! - logprob) > 1e-3);
  });

  test('a whole text is scored from its first token, which nothing precedes', async () => {
    const ids = promptOf('in the winter');
    const scored = await model.score({ ids, from: 0, topLogprobs: 2 }, never);
    assert.deepEqual(
      scored.map(({ id }) => id),
      ids,
    );
    assert.equal(scored[0]!.logprob, null);
    for (const { logprob, top } of scored.slice(1)) {
      assert.ok(logprob! < 0);
      assert.equal(top.length, 2);
    }
    assert.deepEqual(await model.score({ ids, from: ids.length, topLogprobs: 0 }, never), []);
  });

  test('temperature 0 takes the likeliest id', async () => {
    for (const { id, top } of await sampleFrom(
      promptOf('the'),
      { maxTokens: 12, temperature: 0 },
      1,
    ))
      assert.equal(id, top[0]!.id);
  });

  test('a seed gives the same ids, other seeds and repeated prompts others', async () => {
    const prompt = promptOf('winter');
    const drawn = async (seed?: number): Promise<string> => {
      const sampling = { maxTokens: 24, temperature: 1.5, ...(seed === undefined ? {} : { seed }) };
      return idsOf(await sampleFrom(prompt, sampling)).join();
    };
    const seven = await drawn(7);
    assert.equal(await drawn(7), seven);
    assert.notEqual(await drawn(8), seven);
    assert.notEqual(await drawn(), await drawn());
  });

  test('no more than maxTokens and no more than the context', async () => {
    const prompt = promptOf('the '.repeat(60));
    assert.equal((await sampleFrom(prompt, { maxTokens: 0 })).length, 0);
    const whole = await sampleFrom(promptOf('e'.repeat(250)), { temperature: 0 });
    assert.ok(whole.length <= 6);
  });

  test('stop ids and stop strings end it, and so does everything that the file calls an end', async () => {
    const { vocabulary } = model;
    const prompt = promptOf('the winter');
    const whole = idsOf(await sampleFrom(prompt, { maxTokens: 30, seed: 3 }));
    const third = whole[2]!;
    const upToThird = whole.slice(0, whole.indexOf(third) + 1);
    for (const rule of [
      { stopTokenIds: [third] },
      { stop: [vocabulary.decode([third], { skipsSpecial: false })] },
    ])
      assert.deepEqual(idsOf(await sampleFrom(prompt, { maxTokens: 30, seed: 3, ...rule })), upToThird); // prettier-ignore
    for (const name of ['<|im_end|>', '<|endoftext|>']) {
      const [id] = promptOf(name);
      assert.equal(vocabulary.isEnd(id!), true, name);
    }
    assert.equal(vocabulary.isEnd(promptOf('<|im_start|>')[0]!), false);
  });

  test('a fired signal ends waiting and sampling with its reason', async () => {
    const reason = new Error('enough');
    const controller = new AbortController();
    const request = { requestId: 'r', promptIds: promptOf('the'), sampling: {}, topLogprobs: 0 };
    const begun = model.sample(request, never)[Symbol.asyncIterator]();
    await begun.next();
    const waiting = model.sample(request, controller.signal)[Symbol.asyncIterator]().next();
    controller.abort(reason);
    await assert.rejects(waiting, reason);
    await begun.return?.();

    const second = new AbortController();
    const seen: number[] = [];
    await assert.rejects(async () => {
      for await (const { id } of model.sample(request, second.signal)) {
        seen.push(id);
        second.abort(reason);
      }
    }, reason);
    assert.equal(seen.length, 1);
  });

  test('requests that come together each get their own answer', async () => {
    const prompts = ['the winter', 'in there', 'thin'].map(promptOf);
    const sampling = { maxTokens: 10, seed: 3 };
    const alone: number[][] = [];
    for (const prompt of prompts) alone.push(idsOf(await sampleFrom(prompt, sampling)));
    const together = await Promise.all(prompts.map((prompt) => sampleFrom(prompt, sampling)));
    assert.deepEqual(together.map(idsOf), alone);
  });

  test('chats are our ChatML unless the file brings a template', async () => {
    const messages = [
      { role: 'user' as const, content: [{ type: 'text', text: 'in the winter' }] },
    ];
    const ids = model.render({ messages, tools: [] });
    assert.deepEqual(parseChat(model.vocabulary, ids).messages, messages);

    const chatTemplate =
      '{{ bos_token }}{% for m in messages %}{{ m.role + ": " + m.content + "\\n" }}{% endfor %}{% if messages|length > 1 %}{{ raise_exception("one only") }}{% endif %}';
    const templated = await open('templated', { chatTemplate });
    try {
      const rendered = templated.render({ messages, tools: [] });
      assert.equal(
        templated.vocabulary.decode(rendered, { skipsSpecial: false }),
        '<|endoftext|>user: in the winter\n',
      );
      assert.throws(
        () => templated.render({ messages: [...messages, ...messages], tools: [] }),
        (error) =>
          isRolloutError(error, 'ENGINE_REQUEST_INVALID') && error.message.includes('one only'),
      );
    } finally {
      await templated.close();
    }
  });

  test('files that cannot be used are refused by name', async () => {
    const named = (name: string): string => path.join(folder, `${name}.gguf`);
    await writeFile(named('text'), 'This is a text and not a model at all.');
    await writeFile(named('short'), 'GGUF');
    await writeFile(named('version'), Buffer.concat([Buffer.from('GGUF'), Buffer.alloc(40, 9)]));
    await writeTinyGguf(named('kind'), { vocabularyModel: 'bert' });
    for (const file of ['text', 'short', 'version', 'kind', 'none'].map(named))
      await assert.rejects(
        openGgufModel({ file, name: null, contextTokens: null, seed: 0 }),
        (error) => isRolloutError(error, 'CONFIG_INVALID') && error.message.includes(file),
      );
  });

  test('closing twice is closing once', async () => {
    const other = await open('other');
    await Promise.all([other.close(), other.close()]);
  });
});
