/** Samples are wanted and nobody has said what answers behind the address: it is asked in every engine's words, and without those that it refuses. */
import assert from 'node:assert/strict';
import { mkdtemp, rm } from 'node:fs/promises';
import { Agent } from 'node:http';
import os from 'node:os';
import path from 'node:path';
import { describe, it } from 'node:test';
import { systemClock } from '../../../src/core/clock.ts';
import { silentLogger } from '../../../src/core/logger.ts';
import { FileCapture } from '../../../src/gateway/capture/file-capture.ts';
import { serve } from '../../engines/server/serving.ts';
import { talk } from '../capture/talking-clients.ts';
import { startRelay } from '../relay-fixture.ts';
import { callsInSamples } from './calls-in-samples.ts';

const hidden = ['token_ids', '"logprob"', 'sglext', 'meta_info'];

describe('an engine of which nothing is known', { timeout: 120_000 }, () => {
  for (const engine of ['sglang', 'vllm', 'openai'] as const)
    for (const dialect of ['chat', 'messages'] as const)
      it(`that is ${engine}, asked in ${dialect}, says ${engine === 'openai' ? 'no ids, and answers all the same' : 'its ids, which the agent does not see'}`, async () => {
        const dir = await mkdtemp(path.join(os.tmpdir(), 'slipway-unknown-engine-'));
        const agent = new Agent({ keepAlive: false });
        try {
          await using serving = await serve({ dialect: engine, model: { name: 'm' } });
          const capture = new FileCapture({ dir, clock: systemClock, logger: silentLogger });
          await using running = await startRelay({ capture });
          const route = await running.relay.register({
            ...{ rolloutId: 'r', upstreamUrl: `${serving.url}/v1`, upstreamKey: null },
            train: { routedExperts: false, indexerTopk: false },
          });
          const seen: string[] = [];
          await talk(dialect, {
            ...{ ...route, agent, item: 1, turns: 2, isStreaming: (turn) => turn === 1 },
            onBody: (body) => void seen.push(...hidden.filter((word) => body.includes(word))),
          });
          assert.deepEqual(seen, []);
          await running.relay.revoke('r');
          const captured = (await running.relay.captured('r')) ?? '';
          const { calls, problems } = await callsInSamples(captured, { rolloutId: 'r', flip: 1 });
          const logged = serving.log().map((line) => [line.prompt_ids, line.output_ids, line.logprobs]); // prettier-ignore
          const sampled = [...calls.values()].map((call) => [call.prompt, call.sampled, call.logprobs]); // prettier-ignore
          if (engine === 'openai')
            assert.deepEqual(problems, ['the engine said no ids of any of its calls']); // prettier-ignore
          else assert.deepEqual([problems, sampled], [[], logged]);
        } finally {
          agent.destroy();
          await rm(dir, { recursive: true, force: true });
        }
      });
});
