import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { cliFailure, failureType } from '../../../src/agents/installed/cli-failure.ts';

const rows: readonly (readonly [output: string, type: string])[] = [
  ['exceeded retry limit: Too Many Requests', 'ApiRateLimitError'],
  ["You've hit your usage limit.", 'ApiUsageLimitError'],
  ['API Error: 500 {"message":"Internal server error"}', 'ApiInternalServerError'],
  ["We're currently experiencing high demand", 'ApiOverloadedError'],
  ['stream closed before response.completed', 'ApiConnectionClosedError'],
  ['API Error: Response stalled mid-stream', 'ApiResponseStalledError'],
  ['Incomplete response returned, reason: max_output_tokens', 'OutputTokenExceededError'],
  ['Prompt is too long · the request is ~145285 tokens', 'ContextWindowExceededError'],
  ["Codex ran out of room in the model's context window.", 'ContextWindowExceededError'],
  [
    "[API Error: 400 This model's maximum context length is 9 tokens.]",
    'ContextWindowExceededError',
  ],
  ['Not logged in · Please run /login', 'AgentAuthenticationError'],
  ['"error":"model_not_found"', 'ModelNotFoundError'],
  ['curl: (7) Failed to connect', 'NetworkConnectionError'],
  ['API Error: something that nobody knows', 'UnknownApiError'],
  ['litellm.InternalServerError: OpenAIException', 'ApiInternalServerError'],
  ['litellm.RateLimitError: OpenAIException', 'ApiRateLimitError'],
  ['litellm.AuthenticationError: OpenAIException', 'AgentAuthenticationError'],
  ['m has hit a token limit!\nOutput tokens: ~0 of 0', 'ContextWindowExceededError'],
  ['m has hit a token limit!\nOutput tokens: ~15 of 0', 'OutputTokenExceededError'],
  ['Segmentation fault', 'NonZeroAgentExitCodeError'],
  ['', 'NonZeroAgentExitCodeError'],
];

describe('a program that ended with an error', () => {
  for (const [output, type] of rows)
    test(`is a ${type} when it said ${JSON.stringify(output)}`, () => {
      assert.equal(failureType(output), type);
      assert.equal(failureType(output.toUpperCase()), type, 'in whatever letters');
    });

  test('is judged by the last of what it said: what came before was overcome', () => {
    assert.equal(failureType('rate limit\nthen: not logged in'), 'AgentAuthenticationError');
    assert.equal(failureType('not logged in\nthen: rate limit'), 'ApiRateLimitError');
  });

  test('tells the beginning and the end of a long output, and is verified', () => {
    const { code, message, exceptionType } = cliFailure(
      { name: 'codex', exitCode: 3 },
      `first ${'x'.repeat(5_000)} last`,
    );
    assert.deepEqual([code, exceptionType], ['AGENT_EXIT_NONZERO', 'NonZeroAgentExitCodeError']);
    assert.match(message, /^agent codex: its program ended with 3: first x+…x+ last$/);
    assert.ok(message.length < 1_100);
    const wellEnded = cliFailure({ name: 'qwen-coder', exitCode: 0 }, 'API Error');
    assert.equal(wellEnded.message, 'agent qwen-coder: its program failed: API Error');
  });
});
