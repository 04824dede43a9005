/** The settings of the mode tokens: from the configuration to the engine, in the server's process and across the border of another one. */
import assert from 'node:assert/strict';
import { mkdtemp, rm } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { describe, it } from 'node:test';
import { composeApp } from '../../src/app/compose.ts';
import { openGateway, type ServedGateway } from '../../src/app/serve/gateway/open-gateway.ts';
import { readMachine } from '../../src/config/machine.ts';
import { compileServeConfig } from '../../src/config/serve/read-serve-config.ts';
import { isRolloutError } from '../../src/core/errors.ts';
import { silentLogger } from '../../src/core/logger.ts';
import { UrlPolicy } from '../../src/wire/url-policy.ts';
import { says, serve } from '../engines/server/serving.ts';
import { bearer, call } from '../gateway/relay-fixture.ts';
import { ownVocabulary, qwenTemplate } from '../gateway/tokens/tokens-fixture.ts';

type Json = Readonly<Record<string, unknown>>;

async function open(
  gateway: Json,
  sessions: Json,
): Promise<AsyncDisposable & Pick<ServedGateway, 'control'>> {
  await using failing = new AsyncDisposableStack();
  const dir = await mkdtemp(path.join(os.tmpdir(), 'slipway-tokens-'));
  failing.defer(() => rm(dir, { recursive: true, force: true }));
  const variables = { HOME: dir, SLIPWAY_STATE_DIR: dir };
  const template = await qwenTemplate(dir);
  const document = {
    data_dir: dir,
    listen: { data_port: 0 },
    gateway,
    sessions: { family: 'qwen3', template, ...sessions },
    callbacks: { private_addresses: 'allow' },
  };
  const config = compileServeConfig(
    { flags: {}, document, file: null },
    readMachine(variables, dir),
  );
  const served = openGateway(config, {
    ports: await composeApp(variables, dir),
    policy: new UrlPolicy(config.callbacks),
    logger: silentLogger,
    health: () => ({ status: 'ok' }),
    onCall: () => undefined,
  });
  failing.defer(() => served.close());
  await served.listen();
  failing.defer(() => served.stopListening());
  const closing = failing.move();
  return { control: served.control, [Symbol.asyncDispose]: () => closing.disposeAsync() };
}

const tokens = { mode: 'tokens', engine_kind: 'sglang' };
const words = { tokenizer: ownVocabulary };

describe('a server whose gateway makes the ids of prompts', { timeout: 240_000 }, () => {
  for (const workers of [0, 1])
    it(`asks the engine in them, with ${workers} processes of the gateway, whatever their length`, async () => {
      await using engine = await serve({ policy: says('Grüße, 世界') });
      await using served = await open({ ...tokens, workers }, words);
      const route = await served.control.register({
        ...{ rolloutId: 'r', upstreamUrl: `${engine.url}/v1`, upstreamKey: null },
      });
      // The first one is encoded in a thread, the second one here.
      const long = Array.from({ length: 900 }, (_, n) => `word${n}`).join(' ');
      const history: Json[] = [{ role: 'user', content: long }];
      for (const next of ['and now?', 'and then?']) {
        const body = JSON.stringify({ model: 'm', max_tokens: 99, messages: history });
        const answer = await call(`${route.baseUrl}/messages`, { headers: bearer(route), body });
        assert.equal(answer.status, 200, answer.body.toString());
        const { content } = JSON.parse(answer.body.toString()) as { readonly content: unknown };
        history.push({ role: 'assistant', content }, { role: 'user', content: next });
      }
      const [first, second] = engine.log();
      const front = [...first!.prompt_ids, ...first!.output_ids];
      assert.ok(front.length > 1_800);
      assert.deepEqual(second?.prompt_ids.slice(0, front.length), front);
      assert.ok(engine.log().every((line) => line.route === '/generate'));
      await served.control.abort('r');
    });

  for (const [field, gateway, sessions] of [
    ['gateway.engine_kind', { mode: 'tokens' }, words],
    ['sessions.tokenizer', tokens, {}],
    ['sessions.family', tokens, { ...words, family: 'qwen9' }],
    ['gateway.matcher', { ...tokens, matcher: 'Strict' }, words],
  ] as const)
    it(`does not start with a wrong ${field}, and names it`, async () => {
      await assert.rejects(
        open(gateway, sessions),
        (error) => isRolloutError(error, 'CONFIG_INVALID') && error.field === field,
      );
    });
});
