import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import {
  embeddedError,
  statusError,
  transportError,
} from '../../../src/engines/shared/answer-error.ts';

const at = { url: 'http://engine/v1', requestId: 'r7', secrets: ['sk-secret'] };

describe('a status of an engine', () => {
  const overflow = [
    'context length exceeded',
    '{"error":{"code":"context_length_exceeded"}}',
    "This model's maximum context length is 4096 tokens.",
    '`inputs` tokens + `max_new_tokens` must be <= 2048',
    "The input (5000 tokens) is longer than the model's context length (4096 tokens).",
    'Prompt is too long: 3 tokens',
    'Input is too long for requested model.',
  ];
  const rows: readonly (readonly [number, string, string, boolean])[] = [
    [400, 'bad', 'ENGINE_REQUEST_INVALID', false],
    [404, 'no model', 'ENGINE_REQUEST_INVALID', false],
    [422, 'field', 'ENGINE_REQUEST_INVALID', false],
    [401, 'key', 'ENGINE_UNAUTHORIZED', false],
    [403, 'key', 'ENGINE_UNAUTHORIZED', false],
    [403, '{"error":{"message":"BUDGET_EXHAUSTED"}}', 'ENGINE_UNAUTHORIZED', false],
    [403, '{"error":{"code":"BUDGET_EXHAUSTED"}}', 'BUDGET_EXHAUSTED', false],
    [408, 'slow', 'ENGINE_UNAVAILABLE', true],
    [429, 'later', 'ENGINE_OVERLOADED', true],
    [503, 'full', 'ENGINE_OVERLOADED', true],
    [500, 'broken', 'ENGINE_UNAVAILABLE', true],
    [502, 'proxy', 'ENGINE_UNAVAILABLE', true],
    [302, '', 'ENGINE_RESPONSE_INVALID', true],
    ...overflow.map((text) => [400, text, 'CONTEXT_OVERFLOW', false] as const),
    [500, 'maximum context length', 'ENGINE_UNAVAILABLE', true],
  ];
  for (const [status, body, code, retryable] of rows)
    it(`${status} ${JSON.stringify(body)} is ${code}`, () => {
      const error = statusError({ status, body }, at);
      assert.equal(error.code, code);
      assert.equal(error.retryable, retryable);
      assert.equal(error.phase, 'model-call');
      assert.match(error.message, new RegExp(`${status}.*http://engine/v1 \\(request r7\\)$`));
    });

  it('says what a user can do about statuses that have one usual cause', () => {
    assert.match(statusError({ status: 401, body: '' }, at).remedy ?? '', /OPENAI_API_KEY/);
    const spent = '{"error":{"code":"BUDGET_EXHAUSTED"}}';
    assert.match(statusError({ status: 403, body: spent }, at).remedy ?? '', /\[gateway\]/);
    assert.match(statusError({ status: 404, body: '' }, at).remedy ?? '', /\/v1.*model/);
    assert.match(statusError({ status: 429, body: '' }, at).remedy ?? '', /fewer trials.*-n/);
    assert.match(statusError({ status: 500, body: '' }, at).remedy ?? '', /log of the engine/);
    assert.equal(statusError({ status: 400, body: '' }, at).remedy, null);
  });

  it('keeps retry-after, shortens the body and shows no key', () => {
    const body = JSON.stringify({ error: { message: `bad key sk-secret ${'x'.repeat(900)}` } });
    const error = statusError({ status: 429, body, retryAfter: '7' }, at);
    assert.equal(error.detail, 'retry-after: 7');
    assert.match(error.message, /bad key \*\*\* x+…/);
    assert.ok(error.message.length < 450);
  });

  it('cuts no character in half', () => {
    const body = `${'x'.repeat(299)}👍`;
    assert.ok(statusError({ status: 400, body }, at).message.isWellFormed());
  });
});

describe('an error inside an answer', () => {
  const rows: readonly (readonly [string, unknown, string | null])[] = [
    ['a numbered one', { error: { message: 'full', code: 503 } }, 'ENGINE_OVERLOADED'],
    ['one without a number', { error: { message: 'oops', code: 'x' } }, 'ENGINE_UNAVAILABLE'],
    ['a flat one', { object: 'error', message: 'no', code: 400 }, 'ENGINE_REQUEST_INVALID'],
    ['a text', { error: 'oops' }, 'ENGINE_UNAVAILABLE'],
    ['an overflow', { error: { message: 'maximum context length' } }, 'CONTEXT_OVERFLOW'],
    ['none', { choices: [], error: null }, null],
    ['no object', [1], null],
  ];
  for (const [what, document, code] of rows)
    it(`${what} is ${code}`, () => assert.equal(embeddedError(document, at)?.code ?? null, code));
});

describe('a failure of the transport', () => {
  const rows: readonly (readonly [string, string])[] = [
    ['ECONNREFUSED', 'ENGINE_UNAVAILABLE'],
    ['UND_ERR_CONNECT_TIMEOUT', 'ENGINE_UNAVAILABLE'],
    ['UND_ERR_SOCKET', 'ENGINE_UNAVAILABLE'],
    ['HPE_INVALID_CONSTANT', 'ENGINE_RESPONSE_INVALID'],
    ['UND_ERR_INVALID_ARG', 'ENGINE_REQUEST_INVALID'],
  ];
  for (const [code, expected] of rows)
    it(`${code} is ${expected}`, () => {
      const error = transportError(Object.assign(new Error('went wrong'), { code }), at);
      assert.equal(error.code, expected);
    });

  it('of TLS is named by its code, without OpenSSL’s sentence, and with what may be wrong', () => {
    const code = 'ERR_SSL_WRONG_VERSION_NUMBER';
    const error = transportError(Object.assign(new Error('40FD:error:0A00:c:77:\n'), { code }), at);
    assert.match(error.message, /\(ERR_SSL_WRONG_VERSION_NUMBER\): http:\/\/engine\/v1/);
    assert.match(error.remedy ?? '', /http:\/\/ or https:\/\//);
    assert.match(transportError(new Error('gone'), at).remedy ?? '', /still runs/);
  });
});
