import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { findEndpoint } from '../../../src/agents/shared/endpoint.ts';
import { compileOptions, endpointModel } from '../../../src/agents/terminus-2/options.ts';
import { isRolloutError } from '../../../src/core/errors.ts';
import { silentLogger, type Logger } from '../../../src/core/logger.ts';

const compile = (
  kwargs: Readonly<Record<string, unknown>>,
  modelName: string | null = 'openai/m',
) => compileOptions({ kwargs, modelName, logger: silentLogger });

const vllmInfo = {
  max_input_tokens: 1,
  max_output_tokens: 1,
  input_cost_per_token: 0,
  output_cost_per_token: 0,
};

describe('options of terminus-2', () => {
  test('are Harbor’s defaults when none are given', () => {
    assert.deepEqual(compile({}), {
      maxTurns: 1_000_000,
      parser: 'json',
      modelName: 'openai/m',
      apiBase: null,
      temperature: null,
      collectsRolloutDetails: false,
      sessionId: null,
      isSummarizing: true,
      summarizeBelowTokens: 8000,
      modelInfo: {},
      isRaw: false,
      isLinear: false,
      paneWidth: 160,
      paneHeight: 40,
      storesMessages: false,
      isRecording: true,
      sendsReasoning: false,
      call: { body: {}, headers: {}, apiKey: null, stallMs: null, shown: null },
      retryWaitMs: { min: 4000, max: 15_000 },
    });
  });

  test('may be words, as flags give them, and null unsets one', () => {
    const options = compile({
      max_turns: '7',
      enable_summarize: 'False',
      collect_rollout_details: 1,
      temperature: '0.5',
      tmux_pane_width: '80',
      session_id: 12,
      parser_name: null,
    });
    assert.equal(options.maxTurns, 7);
    assert.equal(options.isSummarizing, false);
    assert.equal(options.collectsRolloutDetails, true);
    assert.equal(options.temperature, 0.5);
    assert.equal(options.paneWidth, 80);
    assert.equal(options.sessionId, '12');
    assert.equal(options.parser, 'json');
  });

  const refused: readonly (readonly [
    title: string,
    kwargs: Readonly<Record<string, unknown>>,
    field: string,
    text: RegExp,
  ])[] = [
    [
      'an unknown name, with the names there are',
      { max_turn: 3 },
      'max_turn',
      /max_turns.*parser_name/,
    ],
    [
      'an unknown name in a table',
      { trajectory_config: { raw: 1 } },
      'trajectory_config.raw',
      /raw_content/,
    ],
    ['another parser', { parser_name: 'yaml' }, 'parser_name', /json/],
    ['no turns', { max_turns: 0 }, 'max_turns', /at least 1/],
    ['a pane without width', { tmux_pane_width: 0 }, 'tmux_pane_width', /positive/],
    ['a pane of half a line', { tmux_pane_height: 1.5 }, 'tmux_pane_height', /whole/],
    ['a temperature that is a word', { temperature: 'hot' }, 'temperature', /number/],
    ['another backend', { llm_backend: 'tinker' }, 'llm_backend', /not available.*api_base/],
    ['the responses API', { use_responses_api: true }, 'use_responses_api', /chat completions/],
    ['streaming', { llm_kwargs: { stream: true } }, 'llm_kwargs.stream', /Leave it out/],
    ['several choices', { llm_call_kwargs: { n: 2 } }, 'llm_call_kwargs.n', /Leave it out/],
    ['a key that is no text', { llm_kwargs: { api_key: 3 } }, 'llm_kwargs.api_key', /text/],
    ['a timeout of nothing', { llm_kwargs: { timeout: 0 } }, 'llm_kwargs.timeout', /seconds/],
  ];
  for (const [title, kwargs, field, text] of refused)
    test(`refuse ${title}`, () => {
      assert.throws(
        () => compile(kwargs),
        (error) => {
          assert.ok(isRolloutError(error, 'CONFIG_INVALID'));
          assert.equal(error.field, `agent.kwargs.${field}`);
          assert.match(error.describe(), text);
          return true;
        },
      );
    });

  test('report every problem at once', () => {
    assert.throws(
      () => compile({ a: 1, b: 2, parser_name: 3 }),
      (error) => {
        assert.ok(isRolloutError(error, 'CONFIG_INVALID'));
        for (const name of ['a', 'b', 'parser_name'])
          assert.ok(error.detail?.includes(`[agent.kwargs.${name}]`));
        // A line of a run's progress has the message only.
        assert.match(error.message, /^3 problems: parser_name: (?!Invalid input).*; a: .*; b: /);
        return true;
      },
    );
  });

  test('need a model', () => {
    for (const name of [null, ''])
      assert.throws(
        () => compile({}, name),
        (error) => isRolloutError(error, 'MODEL_UNSPECIFIED'),
      );
  });

  const hosted: readonly (readonly [name: string, info: unknown, isFine: boolean])[] = [
    ['hosted_vllm/qwen', vllmInfo, true],
    ['hosted_vllm/qwen', undefined, false],
    ['hosted_vllm/qwen', { ...vllmInfo, output_cost_per_token: null }, false],
    ['hosted_vllm/org/qwen', vllmInfo, false],
    ['hosted_vllm/', vllmInfo, false],
    ['openai/org/qwen', undefined, true],
  ];
  for (const [name, info, isFine] of hosted)
    test(`${isFine ? 'take' : 'refuse'} ${name} with ${JSON.stringify(info)}`, () => {
      const attempt = () => compile(info === undefined ? {} : { model_info: info }, name);
      if (isFine) assert.equal(attempt().modelName, name);
      else assert.throws(attempt, (error) => isRolloutError(error, 'CONFIG_INVALID'));
    });

  test('warn of a limit of turns and of old names, unless told not to', () => {
    const warnings = (kwargs: Readonly<Record<string, unknown>>): string[] => {
      const lines: string[] = [];
      const logger: Logger = { log: (_, message) => lines.push(message) };
      compileOptions({ kwargs, modelName: 'm', logger });
      return lines;
    };
    assert.equal(warnings({}).length, 0);
    assert.match(warnings({ max_turns: 3 }).join(), /after 3 turns/);
    assert.match(warnings({ episodes: 3 }).join(), /deprecated.*after 3 turns/);
    assert.equal(warnings({ max_turns: 3, suppress_max_turns_warning: true }).length, 0);
    assert.equal(compile({ max_turns: 2, max_episodes: 5, episodes: 9 }).maxTurns, 2);
    assert.equal(compile({ episodes: 9 }).maxTurns, 9);
  });

  test('become fields of each request, those of a call over those of the client', () => {
    const { call } = compile({
      reasoning_effort: 'high',
      max_thinking_tokens: 10,
      session_id: 's',
      llm_kwargs: {
        litellm_debug: true,
        api_key: 'k',
        timeout: 2,
        top_p: 0.5,
        seed: 1,
        extra_headers: { A: '1' },
      },
      llm_call_kwargs: { seed: 2, extra_body: { chat_template_kwargs: { x: 1 } } },
    });
    assert.deepEqual(call, {
      body: {
        reasoning_effort: 'high',
        thinking: { type: 'enabled', budget_tokens: 1024 },
        session_id: 's',
        top_p: 0.5,
        seed: 2,
        chat_template_kwargs: { x: 1 },
      },
      headers: { 'X-Session-ID': 's', A: '1' },
      apiKey: 'k',
      stallMs: 2000,
      shown: { litellm_debug: true, timeout: 2, top_p: 0.5, seed: 1 },
    });
  });

  test('name the model as its endpoint knows it', () => {
    assert.equal(endpointModel('openai/m'), 'm');
    assert.equal(endpointModel('hosted_vllm/m'), 'm');
    assert.equal(endpointModel('openai/org/m'), 'org/m');
    assert.equal(endpointModel('m'), 'm');
  });
});

describe('the endpoint of terminus-2', () => {
  const none = { apiBase: null, apiKey: null };
  const rows: readonly (readonly [
    title: string,
    at: Parameters<typeof findEndpoint>[0],
    given: Parameters<typeof findEndpoint>[1],
    expected: readonly [url: string, key: string | null] | RegExp,
  ])[] = [
    [
      'the option wins',
      { env: { OPENAI_BASE_URL: 'http://b' }, hostVariables: {} },
      { apiBase: 'http://a/x%2Fy?z=1', apiKey: null },
      ['http://a/x%2Fy?z=1', null],
    ],
    [
      'then the agent’s variables',
      {
        env: { OPENAI_API_BASE: 'http://b', OPENAI_API_KEY: 'k1' },
        hostVariables: { OPENAI_BASE_URL: 'http://c', OPENAI_API_KEY: 'k2' },
      },
      none,
      ['http://b', 'k1'],
    ],
    [
      'then those of this process',
      { env: {}, hostVariables: { OPENAI_API_BASE: 'http://c', OPENAI_API_KEY: 'k2' } },
      none,
      ['http://c', 'k2'],
    ],
    [
      'a key given as an option wins',
      { env: { OPENAI_API_KEY: 'k1' }, hostVariables: {} },
      { apiBase: 'http://a', apiKey: 'k0' },
      ['http://a', 'k0'],
    ],
    [
      'an empty key is none',
      { env: { OPENAI_API_KEY: '' }, hostVariables: { OPENAI_API_KEY: 'k2' } },
      { apiBase: 'http://a', apiKey: null },
      ['http://a', null],
    ],
    [
      'none is refused, naming every place',
      { env: {}, hostVariables: {} },
      none,
      /api_base.*agent\.env.*process/,
    ],
    [
      'an empty option never falls back',
      { env: {}, hostVariables: { OPENAI_BASE_URL: 'http://c' } },
      { apiBase: ' ', apiKey: null },
      /api_base is set but empty/,
    ],
    [
      'an empty variable never falls back',
      { env: { OPENAI_BASE_URL: '' }, hostVariables: { OPENAI_BASE_URL: 'http://c' } },
      none,
      /agent\.env\.OPENAI_BASE_URL is set but empty/,
    ],
    [
      'an address without a scheme is refused, naming where it stands',
      { env: {}, hostVariables: { OPENAI_BASE_URL: '127.0.0.1:30000' } },
      none,
      /CONFIG_INVALID.*the variable OPENAI_BASE_URL is not.*http:\/\/.*\/v1/,
    ],
  ];
  for (const [title, at, given, expected] of rows)
    test(title, () => {
      if (!(expected instanceof RegExp)) {
        const [baseUrl, apiKey] = expected;
        assert.deepEqual(findEndpoint(at, given), { baseUrl, apiKey });
        return;
      }
      assert.throws(
        () => findEndpoint(at, given),
        (error) =>
          (isRolloutError(error, 'MODEL_UNSPECIFIED') || isRolloutError(error, 'CONFIG_INVALID')) &&
          expected.test(error.describe()),
      );
    });
});
