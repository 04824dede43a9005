import assert from 'node:assert/strict';
import { test } from 'node:test';
import { nativeRequest } from '../../../src/gateway/tokens/native-request.ts';

const schema = { type: 'object', properties: { title: { type: 'string' } } };
const format = { type: 'json_schema', json_schema: { name: 'title', schema } };
const chat = {
  model: 'm',
  messages: [],
  tools: [],
  stream: true,
  max_tokens: 5,
  temperature: 0.5,
  top_k: 3,
  stop: 'END',
  seed: 7,
  min_tokens: 2,
  repetition_penalty: 1.1,
  ignore_eos: true,
  return_routed_experts: true,
  parallel_tool_calls: false,
};
const sampling = { maxTokens: 5, temperature: 0.5, topK: 3, stop: ['END'], seed: 7 };

test('the fields of a chat request go to a route of ids in the words of its engine', () => {
  assert.deepEqual(nativeRequest('sglang', chat), {
    sampling,
    extraBody: {
      return_routed_experts: true,
      sampling_params: { min_new_tokens: 2, repetition_penalty: 1.1, ignore_eos: true },
    },
  });
  assert.deepEqual(nativeRequest('vllm', chat), {
    sampling,
    extraBody: {
      ...{ min_tokens: 2, repetition_penalty: 1.1, ignore_eos: true },
      return_routed_experts: true,
    },
  });
});

test('without a limit none is said, in place of the few tokens that the route would take for one', () => {
  assert.deepEqual(nativeRequest('sglang', {}).extraBody, {
    sampling_params: { max_new_tokens: null },
  });
  assert.deepEqual(nativeRequest('vllm', {}).extraBody, { max_tokens: null });
});

test('an answer in a schema is asked for as the engine knows it', () => {
  const limited = { max_tokens: 1, response_format: format };
  assert.deepEqual(nativeRequest('vllm', limited).extraBody, { response_format: format });
  assert.deepEqual(nativeRequest('sglang', limited).extraBody, {
    sampling_params: { json_schema: JSON.stringify(schema) },
  });
  const anyObject = { max_tokens: 1, response_format: { type: 'json_object' } };
  assert.deepEqual(nativeRequest('sglang', anyObject).extraBody, {
    sampling_params: { json_schema: '{"type": "object"}' },
  });
});
