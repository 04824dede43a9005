import assert from 'node:assert/strict';
import { test } from 'node:test';
import { isRolloutError } from '../../../src/core/errors.ts';
import { openGgufModel } from '../../../src/engines/gguf/gguf-model.ts';
import { installCommand } from '../../../src/engines/gguf/llama-library.ts';

test('without node-llama-cpp the error says what to run', async () => {
  await assert.rejects(
    openGgufModel({ file: 'model.gguf', name: null, contextTokens: null, seed: 0 }),
    (error) =>
      isRolloutError(error, 'CONFIG_INVALID') &&
      error.field === '--gguf' &&
      error.remedy === `Run: ${installCommand()}`,
  );
  assert.match(
    installCommand(),
    /^npm install .*--omit=optional .*node-llama-cpp@[\d.]+ @node-llama-cpp\/[a-z]+-[a-z0-9-]+@[\d.]+$/,
  );
});
