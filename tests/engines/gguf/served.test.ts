import assert from 'node:assert/strict';
import { mkdtemp, rm } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { after, before, suite, test } from 'node:test';
import { serveEngine, type EngineFlags } from '../../../src/app/serve-engine.ts';
import { isRolloutError } from '../../../src/core/errors.ts';
import type { EngineServer } from '../../../src/engines/server/engine-server.ts';
import { isLlamaCached } from '../../support/cached-llama.js';
import { GenerateClient } from '../../support/generate-client.ts';
import { writeTinyGguf } from '../../support/tiny-gguf.ts';

const skip = isLlamaCached ? false : 'node-llama-cpp is not in the cache: npm run setup -- tests';

suite('real weights behind the routes of the engine', { skip, timeout: 120_000 }, () => {
  let folder = '';
  let server: EngineServer;

  before(async () => {
    folder = await mkdtemp(path.join(os.tmpdir(), 'slipway-gguf-served-'));
    const file = path.join(folder, 'tiny.gguf');
    await writeTinyGguf(file);
    server = await serveEngine({ gguf: file, model: 'small', context: '512' }, {});
  });
  after(async () => {
    await server.close();
    await rm(folder, { recursive: true, force: true });
  });

  test('a chat answers with ids whose log-probabilities scoring finds again', async () => {
    const client = new GenerateClient(server.url);
    const answer = (await client.post('/v1/chat/completions', {
      messages: [{ role: 'user', content: 'in the winter' }],
      max_tokens: 12,
      temperature: 1.2,
      logprobs: true,
      return_token_ids: true,
    })) as {
      readonly model: string;
      readonly prompt_token_ids: readonly number[];
      readonly choices: readonly [
        {
          readonly token_ids: readonly number[];
          readonly logprobs: { readonly content: readonly { readonly logprob: number }[] };
        },
      ];
    };
    assert.equal(answer.model, 'small');
    const { prompt_token_ids: prompt, choices } = answer;
    const { token_ids: ids, logprobs } = choices[0];
    assert.equal(logprobs.content.length, ids.length);
    const scored = await client.score([...prompt, ...ids], prompt.length);
    for (const [index, { logprob }] of logprobs.content.entries())
      assert.ok(Math.abs(scored[index]! - logprob) < 1e-4);

    const all = await client.distribution(prompt, Number.MAX_SAFE_INTEGER);
    const sum = [...all.values()].reduce((total, logprob) => total + Math.exp(logprob), 0);
    assert.ok(Math.abs(sum - 1) < 1e-3);
    assert.equal(all.get(ids[0]!), logprobs.content[0]!.logprob);
  });

  test('flags of the scripted model are refused beside it', async () => {
    const table: readonly (readonly [EngineFlags, string])[] = [
      [{ policy: 'echo' }, '--policy'],
      [{ tokenizer: 'x.json' }, '--tokenizer'],
      [{ nonCanonical: '0.5' }, '--non-canonical'],
    ];
    for (const [flags, field] of table)
      await assert.rejects(
        serveEngine({ gguf: 'none.gguf', ...flags }, {}),
        (error) => isRolloutError(error, 'CONFIG_INVALID') && error.describe().includes(field),
      );
  });
});
