import assert from 'node:assert/strict';
import { test } from 'node:test';
import { maskOptions, secretOptions } from '../../../src/wire/harbor/sensitive.ts';

const options = {
  api_base: 'https://user:pass@host/v1?key=a',
  tokenizer: 'path/to/file',
  max_thinking_tokens: 4096,
  token: 12,
  llm_kwargs: { api_key: 'sk-0123456789', timeout: 3, list: [{ secret: 'short' }] },
  password: '',
  'X-Api-Key': '${OWN_KEY}',
};

test('options under the name of a secret and passwords in addresses are masked, nothing else is', () => {
  const masked = maskOptions(options);
  assert.deepEqual(masked, {
    ...options,
    api_base: 'https://****@host/v1?key=a',
    llm_kwargs: { api_key: 'sk-0****789', timeout: 3, list: [{ secret: '****' }] },
  });
  assert.deepEqual(maskOptions(masked), masked, 'masking again changes nothing');
});

test('the secrets among options are found at any depth', () => {
  assert.deepEqual(
    secretOptions(options).filter((value) => value !== ''),
    ['sk-0123456789', 'short'],
  );
});
