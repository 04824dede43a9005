import assert from 'node:assert/strict';
import type { GenerateRequest } from '../../../../src/engines/engine.ts';
import type { ModelResult } from '../../../../src/engines/model-call.ts';
import type { EngineBench, EngineCase } from '../adapter.ts';
import { answer, ask, inputsOf, parts, tokensOf } from '../asking.ts';

const texts = [
  'plain words, and more of them',
  'emoji 🎈👩‍💻 é 漢字 \u0000 end',
  'line\r\nline\n\n\ttabbed  spaces   ',
  'near special: < | im_end | > and think',
];

/** Without what names the request, and what only one way of answering tells. */
const bare = (result: ModelResult): ModelResult => ({ ...result, requestId: '', extra: {} });

async function bothWays(bench: EngineBench, request: GenerateRequest): Promise<ModelResult> {
  const whole = await answer(bench, { ...request, requestId: `${request.requestId}-w` });
  const streamed = await parts(bench, {
    ...request,
    requestId: `${request.requestId}-s`,
    isStreaming: true,
  });
  const last = streamed.at(-1);
  assert.ok(last?.type === 'end');
  assert.equal(streamed.filter(({ type }) => type === 'end').length, 1);
  // A stream of SGLang's chat does not name the weights; nothing else may differ.
  const weightVersion = last.result.weightVersion ?? whole.weightVersion;
  const { usage } = whole;
  const cachedTokens = last.result.usage?.cachedTokens ?? null;
  assert.deepEqual(
    { ...bare(last.result), weightVersion },
    { ...bare(whole), usage: usage === null ? null : { ...usage, cachedTokens } },
  );
  const join = (type: 'text-delta' | 'reasoning-delta'): string =>
    streamed.map((part) => (part.type === type ? part.text : '')).join('');
  assert.equal(join('text-delta'), whole.text);
  assert.equal(join('reasoning-delta'), whole.reasoning ?? '');
  const ids = streamed.flatMap((part) => (part.type === 'tokens-delta' ? part.ids : []));
  assert.deepEqual(ids, whole.outputIds ?? []);
  return whole;
}

async function exactAgainstLog(bench: EngineBench, isStreaming: boolean): Promise<void> {
  let nonCanonical = 0;
  for (const text of texts)
    for (const input of await inputsOf(bench, `SAY ${text}`)) {
      const request = ask('', { input, isStreaming });
      const result = await answer(bench, request);
      const entry = await bench.logged(request.requestId);
      if (!entry.canonical) nonCanonical += 1;
      assert.deepEqual(result.outputIds, entry.output_ids);
      assert.deepEqual(result.promptIds, entry.prompt_ids);
      assert.equal(result.logprobs?.length, entry.logprobs.length);
      for (const [index, logprob] of entry.logprobs.entries())
        assert.ok(Object.is(result.logprobs[index], logprob), `log-probability ${index}`);
      assert.equal(result.usage?.completionTokens, entry.output_ids.length);
    }
  assert.ok(nonCanonical > 0, 'every reply was canonical: encoding its text would have done');
}

export const answerCases: readonly EngineCase[] = [
  {
    id: 'text.whole',
    title: 'an answer has the text, the usage and the end that the engine gave',
    run: async (bench) => {
      for (const text of texts) {
        const result = await answer(bench, ask(`SAY ${text}`));
        assert.equal(result.text, text);
        assert.equal(result.finishReason, 'stop');
        assert.equal(result.usage?.promptTokens, result.promptIds?.length);
      }
    },
  },
  {
    id: 'text.stream',
    title: 'a streamed answer says part by part what the whole one says at once',
    run: async (bench) => {
      for (const text of texts)
        for (const input of await inputsOf(bench, `SAY ${text}`)) {
          const result = await bothWays(bench, ask('', { input }));
          assert.equal(result.text, text);
        }
    },
  },
  {
    id: 'text.empty',
    title: 'an answer without text has an empty one',
    run: async (bench) => {
      for (const input of await inputsOf(bench, 'SAY'))
        assert.equal((await bothWays(bench, ask('', { input }))).text, '');
    },
  },
  {
    id: 'reasoning',
    title: 'reasoning stands apart from the text, whole and streamed',
    run: async (bench) => {
      const result = await bothWays(bench, ask('THINK first a thought|then words'));
      assert.deepEqual([result.reasoning, result.text], ['first a thought', 'then words']);
    },
  },
  {
    id: 'tool-calls',
    title: 'tool calls come with their arguments as sampled, whole and streamed',
    run: async (bench) => {
      const call = 'CALL run_command {"cmd":"ls\\t-l","n":[1,2]}';
      const { input } = ask(call);
      assert.ok(input.kind === 'messages');
      const tools = [{ type: 'function', function: { name: 'run_command' } }] as const;
      const result = await bothWays(bench, ask('', { input: { ...input, tools } }));
      assert.equal(result.finishReason, 'tool_calls');
      const [first, ...more] = result.toolCalls;
      assert.equal(more.length, 0);
      assert.equal(first?.name, 'run_command');
      assert.deepEqual(JSON.parse(first.arguments), { cmd: 'ls\t-l', n: [1, 2] });
    },
  },
  {
    id: 'tokens.whole',
    title: 'ids and log-probabilities of whole answers are those of the engine, bit for bit',
    needs: 'tokenIds',
    run: (bench) => exactAgainstLog(bench, false),
  },
  {
    id: 'tokens.stream',
    title: 'ids and log-probabilities of streams are those of the engine, bit for bit',
    needs: 'tokenIds',
    run: (bench) => exactAgainstLog(bench, true),
  },
  {
    id: 'tokens.not-wanted',
    title: 'without a wish for tokens there are none',
    run: async (bench) => {
      const result = await answer(bench, ask('SAY hello', { wantsTokens: false }));
      assert.deepEqual([result.promptIds, result.outputIds, result.logprobs], [null, null, null]);
    },
  },
  {
    id: 'tokens.input',
    title: 'ids that go in are the prompt, unchanged',
    needs: 'tokenInput',
    run: async (bench) => {
      const input = await tokensOf(bench, 'SAY from ids');
      assert.ok(input.kind === 'tokens');
      const request = ask('', { input });
      const result = await answer(bench, request);
      assert.equal(result.text, 'from ids');
      assert.deepEqual((await bench.logged(request.requestId)).prompt_ids, input.ids);
    },
  },
  {
    id: 'finish.length',
    title: 'an answer that is cut by the limit says so and has that many ids',
    run: async (bench) => {
      for (const input of await inputsOf(bench, 'SAY one two three four five six')) {
        const sampling = { temperature: 0, maxTokens: 3 };
        const result = await bothWays(bench, ask('', { input, sampling }));
        assert.equal(result.finishReason, 'length');
        assert.equal(result.outputIds?.length, 3);
      }
    },
  },
  {
    id: 'finish.stop-string',
    title: 'a stop string ends the answer before it',
    run: async (bench) => {
      for (const input of await inputsOf(bench, 'SAY one two three')) {
        const sampling = { temperature: 0, maxTokens: 50, stop: [' three'] };
        const result = await answer(bench, ask('', { input, sampling, isStreaming: true }));
        assert.deepEqual([result.text, result.finishReason], ['one two', 'stop']);
      }
    },
  },
  {
    id: 'weights',
    title: 'an answer names the weights that sampled it',
    needs: 'weightVersion',
    run: async (bench) => {
      for (const input of await inputsOf(bench, 'SAY hi')) {
        const request = ask('', { input });
        const { weightVersion } = await answer(bench, request);
        assert.equal(weightVersion, (await bench.logged(request.requestId)).weight_version);
      }
    },
  },
  {
    id: 'unsupported',
    title: 'what is not declared rejects and names the capability',
    run: async ({ engine, signal }) => {
      const { capabilities } = engine;
      const tokens = ask('', { input: { kind: 'tokens', ids: [1, 2] } });
      const asks = {
        tokenInput: () => engine.generate(tokens, signal),
        abortById: () => engine.abort('none', signal),
        abortAll: () => engine.abortAll(signal),
        pause: () => engine.pause('retract', signal),
        tokenize: () => engine.tokenize('a', signal),
        load: () => engine.load(signal),
      };
      for (const [name, call] of Object.entries(asks))
        if (!capabilities[name as keyof typeof asks])
          await assert.rejects(call, (error) => {
            const { code, message } = error as { code?: string; message: string };
            return code === 'ENGINE_UNSUPPORTED' && message.includes(name);
          });
    },
  },
];
