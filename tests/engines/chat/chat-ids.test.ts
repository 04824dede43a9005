/** Ids wherever engines put them, and what becomes of those that contradict something. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { ModelResult } from '../../../src/engines/model-call.ts';
import { sendEvents, sendJson } from '../shared/fake-host.ts';
import { chatRequest, resultOf, withEngine } from '../shared/requests.ts';

type Fields = Record<string, unknown>;

const usage = { prompt_tokens: 2, completion_tokens: 3 };
const values = [-0.5, -1.25e-7, -9999];
const content = values.map((logprob) => ({ token: 't', logprob }));
const message = { role: 'assistant', content: 'abc' };
const pairs = values.map((logprob, index) => [logprob, 40 + index, null]);

const wholeAnswer = (choice: Fields, top: Fields = {}): Fields => ({
  choices: [{ index: 0, message, finish_reason: 'stop', ...choice }],
  usage,
  ...top,
});

async function readWhole(document: unknown): Promise<ModelResult> {
  return await withEngine(
    'chat',
    (_, response) => sendJson(response, document),
    (engine) => resultOf(engine, chatRequest()),
  );
}

async function readStream(documents: readonly unknown[]): Promise<ModelResult> {
  return await withEngine(
    'chat',
    (_, response) => {
      sendEvents(response, [...documents, '[DONE]']);
      response.end();
    },
    (engine) => resultOf(engine, chatRequest({ isStreaming: true })),
  );
}

const delta = (choice: Fields, top: Fields = {}): Fields => ({
  choices: [{ index: 0, delta: {}, ...choice }],
  ...top,
});
const text = { delta: { content: 'abc' } };
const tail = [
  { choices: [{ index: 0, delta: {}, finish_reason: 'stop' }] },
  { choices: [], usage },
];

describe('ids of an answer that is not streamed', () => {
  const rows: readonly (readonly [string, Fields])[] = [
    [
      'as vLLM places them',
      wholeAnswer({ token_ids: [40, 41, 42], logprobs: { content } }, { prompt_token_ids: [1, 2] }),
    ],
    [
      'in the choice, as SGLang may place them',
      wholeAnswer({ token_ids: [40, 41, 42], prompt_token_ids: [1, 2], logprobs: { content } }),
    ],
    [
      'in meta_info, as SGLang places them',
      wholeAnswer({ meta_info: { output_token_logprobs: pairs }, prompt_token_ids: [1, 2] }),
    ],
    [
      'in sglext, with log-probabilities in the choice',
      wholeAnswer(
        { logprobs: { content } },
        { sglext: { input_ids: [1, 2], output_ids: [40, 41, 42] } },
      ),
    ],
    [
      'in provider_specific_fields, as LiteLLM places them',
      wholeAnswer(
        { provider_specific_fields: { token_ids: [40, 41, 42] }, logprobs: { content } },
        { prompt_token_ids: [1, 2] },
      ),
    ],
  ];
  for (const [where, document] of rows)
    it(`are read ${where}`, async () => {
      const result = await readWhole(document);
      assert.deepEqual(result.promptIds, [1, 2]);
      assert.deepEqual(result.outputIds, [40, 41, 42]);
      assert.deepEqual(result.logprobs, values);
      assert.deepEqual(result.extra, {});
    });
});

describe('ids of a stream', () => {
  const [first, second, third] = content;
  const rows: readonly (readonly [string, readonly Fields[]])[] = [
    [
      'as vLLM sends them, also with chunks that hold no text',
      [
        delta({ delta: { role: 'assistant', content: '' } }, { prompt_token_ids: [1, 2] }),
        delta({ token_ids: [40], logprobs: { content: [first] } }),
        delta({ ...text, token_ids: [41, 42], logprobs: { content: [second, third] } }),
      ],
    ],
    [
      'in the choice, as SGLang may send them',
      [
        delta({ ...text, token_ids: [40, 41], logprobs: { content: [first, second] } }),
        delta({ prompt_token_ids: [1, 2], token_ids: [42], logprobs: { content: [third] } }),
      ],
    ],
    [
      'in a last chunk with sglext, as SGLang sends them',
      [
        delta({ ...text, logprobs: { content: [first, second] } }),
        delta({ logprobs: { content: [third] } }),
        { choices: [], sglext: { input_ids: [1, 2], output_ids: [[40, 41, 42]] } },
      ],
    ],
    [
      'through LiteLLM',
      [
        delta({ ...text, logprobs: { content } }, { prompt_token_ids: [1, 2] }),
        delta({ provider_specific_fields: { token_ids: [40, 41, 42] } }),
      ],
    ],
  ];
  for (const [how, documents] of rows)
    it(`are read ${how}`, async () => {
      const result = await readStream([...documents, ...tail]);
      assert.equal(result.text, 'abc');
      assert.deepEqual(result.promptIds, [1, 2]);
      assert.deepEqual(result.outputIds, [40, 41, 42]);
      assert.deepEqual(result.logprobs, values);
      assert.deepEqual(result.extra, {});
    });
});

describe('a contradiction', () => {
  const ids = { token_ids: [40, 41, 42] };
  const prompt = { prompt_token_ids: [1, 2] };
  const rows: readonly (readonly [
    string,
    Fields,
    Partial<Pick<ModelResult, 'outputIds' | 'logprobs' | 'promptIds' | 'extra'>>,
  ])[] = [
    [
      'of ids and usage loses ids and log-probabilities',
      wholeAnswer({ token_ids: [40, 41], logprobs: { content } }, prompt),
      {
        outputIds: null,
        logprobs: null,
        promptIds: [1, 2],
        extra: { tokens_rejected: '2 ids, but 3 tokens in usage' },
      },
    ],
    [
      'of prompt ids and usage loses the prompt ids only',
      wholeAnswer({ ...ids, logprobs: { content } }, { prompt_token_ids: [1] }),
      {
        outputIds: [40, 41, 42],
        logprobs: values,
        promptIds: null,
        extra: { prompt_tokens_rejected: '1 ids, but 2 tokens in usage' },
      },
    ],
    [
      'of ids and log-probabilities loses the log-probabilities only',
      wholeAnswer({ ...ids, logprobs: { content: content.slice(1) } }, prompt),
      {
        outputIds: [40, 41, 42],
        logprobs: null,
        extra: { logprobs_rejected: '2 log-probabilities, but 3 ids' },
      },
    ],
    [
      'of a log-probability with its kind loses the log-probabilities only',
      wholeAnswer({ ...ids, logprobs: { content: [...content.slice(1), { logprob: null }] } }),
      {
        outputIds: [40, 41, 42],
        logprobs: null,
        extra: { logprobs_rejected: 'not all are finite numbers' },
      },
    ],
    [
      'of an id with its kind loses the ids',
      wholeAnswer({ token_ids: [40, '41', 42] }, prompt),
      { outputIds: null, extra: { tokens_rejected: 'token_ids are not all ids' } },
    ],
    [
      'of ids in two places loses the ids',
      wholeAnswer(ids, { ...prompt, sglext: { output_ids: [[40, 41, 43]] } }),
      { outputIds: null, extra: { tokens_rejected: 'the ids of sglext are others' } },
    ],
    [
      'of none: log-probabilities without ids are nothing to align with',
      wholeAnswer({ logprobs: { content } }),
      { outputIds: null, logprobs: null, promptIds: null, extra: {} },
    ],
  ];
  for (const [what, document, expected] of rows)
    it(what, async () => {
      const result = await readWhole(document);
      const names = Object.keys(expected) as (keyof typeof expected)[];
      assert.deepEqual(Object.fromEntries(names.map((name) => [name, result[name]])), expected);
    });

  it('without usage cannot be seen', async () => {
    const result = await readWhole({
      choices: [{ message, token_ids: [1], finish_reason: 'stop' }],
    });
    assert.deepEqual(result.outputIds, [1]);
    assert.equal(result.usage, null);
  });
});

describe('an answer', () => {
  it('has no ids when none were asked for, though they came', async () => {
    const result = await withEngine(
      'chat',
      (asked, response) => {
        assert.equal('logprobs' in asked.body || 'return_token_ids' in asked.body, false);
        sendJson(response, wholeAnswer({ token_ids: [1, 2, 3], logprobs: { content } }));
      },
      (engine) => resultOf(engine, chatRequest({ wantsTokens: false })),
    );
    assert.deepEqual([result.outputIds, result.logprobs, result.promptIds], [null, null, null]);
  });

  const finishes: readonly (readonly [string, string, Fields])[] = [
    ['stop', 'stop', {}],
    ['length', 'length', {}],
    ['tool_calls', 'tool_calls', {}],
    ['function_call', 'tool_calls', {}],
    ['abort', 'abort', {}],
    ['content_filter', 'content_filter', {}],
    ['context_length_exceeded', 'context', {}],
    ['constructor', 'stop', { finish_reason: 'constructor' }],
  ];
  for (const [said, reason, extra] of finishes)
    it(`that ends with ${said} ends with ${reason}`, async () => {
      const result = await readWhole(wholeAnswer({ finish_reason: said }));
      assert.equal(result.finishReason, reason);
      assert.deepEqual(result.extra, extra);
    });

  it('keeps what is left of its choice for extra', async () => {
    const result = await readWhole(
      wholeAnswer({
        matched_stop: 151645,
        refusal: null,
        provider_specific_fields: { token_ids: [1, 2, 3], cost: 0.5 },
        meta_info: { id: 'x', routed_experts: 'AAAA', weight_version: '7' },
      }),
    );
    assert.deepEqual(result.extra, {
      matched_stop: 151645,
      cost: 0.5,
      meta_info: { routed_experts: 'AAAA' },
    });
    assert.equal(result.weightVersion, '7');
  });

  it('has its tool calls as sampled, whole or in pieces', async () => {
    const call = (index: number, name: string, sampled: string) => ({
      index,
      id: `call-${index}`,
      type: 'function',
      function: { name, arguments: sampled },
    });
    const calls = [call(0, 'run', '{"a": 1, }'), call(1, 'look', '{}')];
    const fromWhole = await readWhole(
      wholeAnswer({ message: { content: null, tool_calls: calls }, finish_reason: 'tool_calls' }),
    );
    const piece = (index: number, sampled: string, name?: string) =>
      delta({
        delta: {
          tool_calls: [
            {
              index,
              ...(name !== undefined && { id: `call-${index}` }),
              function: { ...(name !== undefined && { name }), arguments: sampled },
            },
          ],
        },
      });
    const fromStream = await readStream([
      piece(0, '', 'run'),
      piece(0, '{"a": '),
      piece(0, '1, }'),
      piece(1, '{}', 'look'),
      delta({ finish_reason: 'tool_calls' }),
      { choices: [], usage },
    ]);
    const expected = [
      { id: 'call-0', name: 'run', arguments: '{"a": 1, }' },
      { id: 'call-1', name: 'look', arguments: '{}' },
    ];
    assert.deepEqual(fromWhole.toolCalls, expected);
    assert.deepEqual(fromStream.toolCalls, expected);
  });
});

describe('an endpoint that does not know a field of ours', () => {
  const refusals: readonly (readonly [number, unknown])[] = [
    [400, { error: { message: 'Unrecognized request argument supplied: return_token_ids' } }],
    [400, { error: { message: 'Unknown parameter: return_token_ids, session_id.' } }],
    [422, { detail: [{ type: 'extra_forbidden', loc: ['body', 'return_token_ids'] }] }],
  ];
  for (const [status, refusal] of refusals)
    it(`gets the request once more without it, and later ones too: ${JSON.stringify(refusal)}`, async () => {
      await withEngine(
        'chat',
        (asked, response) => {
          if ('return_token_ids' in asked.body) sendJson(response, refusal, { status });
          else sendJson(response, wholeAnswer({}));
        },
        async (engine, host) => {
          const extraBody = { session_id: 's', top_k: 3 };
          const first = await resultOf(engine, chatRequest({ extraBody }));
          assert.deepEqual([first.text, first.outputIds], ['abc', null]);
          assert.equal(host.asked.length, 2);
          await resultOf(engine, chatRequest({ extraBody }));
          assert.equal(host.asked.length, 3);
          assert.equal(host.asked[2]?.body['top_k'], 3);
          assert.equal(
            'session_id' in host.asked[2].body,
            !JSON.stringify(refusal).includes('session_id'),
          );
        },
      );
    });

  it('asks SGLang, which refuses the field in streams only, for sglext there', async () => {
    await withEngine(
      'chat',
      (asked, response) => {
        const isStreamed = asked.body['stream'] === true;
        if (isStreamed && 'return_token_ids' in asked.body) {
          sendJson(
            response,
            { error: { message: 'return_token_ids is not supported for streams' } },
            { status: 400 },
          );
          return;
        }
        assert.equal(asked.body['return_output_ids_in_sglext'], isStreamed ? true : undefined);
        sendJson(response, wholeAnswer(isStreamed ? {} : { token_ids: [1, 2, 3] }));
      },
      async (engine, host) => {
        await resultOf(engine, chatRequest({ isStreaming: true }));
        await resultOf(engine, chatRequest({ isStreaming: true }));
        assert.deepEqual((await resultOf(engine, chatRequest())).outputIds, [1, 2, 3]);
        assert.equal(host.asked.length, 4);
      },
    );
  });

  it('is not asked again when it refuses something else, or refuses for ever', async () => {
    for (const said of ['Unrecognized request argument: messages', 'return_token_ids is bad'])
      await withEngine(
        'chat',
        (_, response) => sendJson(response, { error: { message: said } }, { status: 400 }),
        async (engine, host) => {
          await assert.rejects(resultOf(engine, chatRequest()));
          assert.equal(host.asked.length, 1);
        },
      );
    await withEngine(
      'chat',
      (_, response) => sendJson(response, 'Unknown field return_token_ids', { status: 400 }),
      async (engine, host) => {
        await assert.rejects(resultOf(engine, chatRequest()));
        assert.equal(host.asked.length, 2);
      },
    );
  });
});
