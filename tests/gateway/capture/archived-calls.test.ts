import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { mkdtemp, readdir, rm } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { describe, it } from 'node:test';
import { systemClock } from '../../../src/core/clock.ts';
import { silentLogger } from '../../../src/core/logger.ts';
import { FileCapture } from '../../../src/gateway/capture/file-capture.ts';
import {
  isWholeCapture,
  readCalls,
  type ReadCall,
} from '../../../src/gateway/capture/read-calls.ts';
import { ServeFixture } from '../../app/serve-fixture.ts';
import { ChatUpstream } from '../../fakes/chat-upstream.ts';
import { until } from '../../support/until.ts';
import { bearer, openCall, startRelay } from '../relay-fixture.ts';

const first = {
  prompt_token_ids: [7, 8],
  choices: [{ index: 0, delta: { content: 'so far' }, token_ids: [1] }],
};
const whole = {
  prompt_token_ids: [7, 8],
  choices: [{ index: 0, message: { content: 'hi' }, finish_reason: 'stop', token_ids: [1, 2] }],
};

async function callsIn(file: string): Promise<readonly ReadCall[]> {
  assert.ok(await isWholeCapture(file));
  const calls: ReadCall[] = [];
  for await (const call of readCalls(file)) calls.push(call);
  return calls;
}

describe('a call that does not come to its end', { timeout: 60_000 }, () => {
  const paths = { chat: '/v1/chat/completions', messages: '/v1/messages' } as const;
  for (const [dialect, url] of Object.entries(paths))
    for (const end of ['left', 'aborted'] as const)
      it(`is captured as ${end} with what came of it, asked for as ${dialect}`, async () => {
        const dir = await mkdtemp(path.join(os.tmpdir(), 'slipway-ended-calls-'));
        try {
          await using upstream = await ChatUpstream.start((response) => {
            response.writeHead(200, { 'content-type': 'text/event-stream' });
            response.write(`data: ${JSON.stringify(first)}\n\n`);
          });
          const capture = new FileCapture({ dir, clock: systemClock, logger: silentLogger });
          await using running = await startRelay({ capture, engineKind: 'vllm' });
          const route = await running.route('r', upstream.url);
          const answer = await openCall(running.url + url, {
            headers: bearer(route),
            body: JSON.stringify({
              ...{ model: 'm', max_tokens: 9, stream: true },
              messages: [{ role: 'user', content: 'hi' }],
            }),
          });
          answer.on('error', () => undefined);
          let text = '';
          answer.on('data', (piece: Buffer) => (text += piece.toString()));
          await until('the first words came', () => text.includes('so far'));
          if (end === 'left') answer.destroy();
          else await running.relay.abort('r');
          await upstream.opened(0);
          await running.relay.revoke('r');
          const file = await running.relay.captured('r');
          const [call, ...more] = await callsIn(file ?? '');
          assert.deepEqual([call?.end, call?.facts['delivered'], more], [end, false, []]);
          assert.equal(call?.answer?.message, 'so far');
          assert.deepEqual(call.answer.metrics?.prompt_token_ids, [7, 8]);
          assert.deepEqual(call.answer.metrics.completion_token_ids, [1]);
          // The next life of the rollout begins with nothing.
          await running.route('r', upstream.url);
          await running.relay.revoke('r');
          assert.equal(await running.relay.captured('r'), null);
        } finally {
          await rm(dir, { recursive: true, force: true });
        }
      });
});

describe('the calls of a rollout', { timeout: 120_000 }, () => {
  it('are in its archive, in any dialect, unless the server is told not to keep them', async () => {
    await using upstream = await ChatUpstream.start((response) => {
      response.writeHead(200, { 'content-type': 'application/json' });
      response.end(JSON.stringify(whole));
    });
    await using fixture = await ServeFixture.create();
    const workflow = path.join(import.meta.dirname, 'asking-workflow.ts');
    const flags = {
      '--backend': 'local',
      '--backend-local-workflow': `${workflow}:AskingWorkflow`,
    };
    const run = async (more: Readonly<Record<string, string>>): Promise<string> => {
      const server = await fixture.start({ ...flags, ...more });
      const controller = await fixture.controller({ serverUrl: server.controlUrl });
      for (const [index, dialect] of ['chat/completions', 'messages'].entries())
        await controller.run({
          rollout_id: `r-${index}`,
          initial_messages: [{ role: 'user', content: 'go' }],
          metadata: { dialect },
          chat_completions_url: upstream.url,
          llm_api_key: 'upstream-key-0123456789',
        });
      const archive = path.join(server.dataDir, 'archive');
      await until('all is archived', () =>
        ['r-0', 'r-1'].every((id) => existsSync(path.join(archive, id, 'outcome.json'))),
      );
      await server.stop(AbortSignal.abort());
      return server.dataDir;
    };
    const dataDir = await run({ '--gateway-engine-kind': 'vllm' });
    for (const [id, dialect] of [
      ['r-0', 'chat'],
      ['r-1', 'messages'],
    ] as const) {
      const file = path.join(dataDir, 'archive', id, 'model-calls.steps.ndjson');
      const [call, ...more] = await callsIn(file);
      assert.deepEqual([call?.dialect, call?.end, more], [dialect, 'complete', []]);
      assert.deepEqual(call?.answer?.metrics?.completion_token_ids, [1, 2]);
    }
    assert.deepEqual(await readdir(path.join(dataDir, 'model-calls')), []);
    const other = await run({ '--gateway-capture': 'false', '--data-dir': 'other' });
    const kept = await readdir(path.join(other, 'archive'), { recursive: true });
    assert.deepEqual(kept.filter((name) => name.includes('model-calls')), []); // prettier-ignore
  });
});
