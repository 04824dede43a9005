import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { never } from '../../src/core/linked-abort.ts';
import type { EnvironmentProvider } from '../../src/environments/environment.ts';
import { standardSequence, type Sequence } from '../../src/trial/sequence.ts';
import { cleanLogs } from '../../src/trial/stages/clean-logs.ts';
import { stopAgent } from '../../src/trial/stages/stop-agent.ts';
import { realProviders } from '../support/real-providers.ts';
import {
  hostileAgent,
  hostileTask,
  processesBeside,
  processesWith,
  untilAlive,
} from './hostile-agent.ts';
import { runTrial, trialBench } from './trial-bench.ts';

const runId = `hostile-${process.pid}`;

function without(left: { readonly name: string }): Sequence {
  return {
    ...standardSequence,
    round: standardSequence.round.filter(({ name }) => name !== left.name),
  };
}

for (const { kind, skip, open } of realProviders())
  describe(`a hostile agent in ${kind}`, { skip: skip ?? false, concurrency: 1 }, () => {
    let provider: EnvironmentProvider;
    let close: () => Promise<void>;
    before(async () => {
      ({ provider, close } = await open());
      await provider.preflight(never);
    });
    after(async () => await close());

    test('when cancelled there is a receipt within 2 s and nothing of it is alive', async () => {
      const agent = hostileAgent({ stays: true });
      await using bench = await trialBench({
        provider,
        files: hostileTask,
        agent,
        parts: { runId },
      });
      const end = bench.trial.run(never);
      const alive = await untilAlive(agent.marker, 3);
      const since = performance.now();
      const receipt = await bench.trial.cancel();
      const tookMs = performance.now() - since;
      const survivors = [...processesWith(agent.marker), ...processesBeside(alive)];
      const result = await end;
      assert.deepEqual(survivors, []);
      assert.ok(receipt !== null);
      assert.ok(tookMs < 2_000, `the receipt took ${Math.round(tookMs)} ms`);
      assert.equal(receipt.phase, 'agent');
      assert.ok(receipt.killed >= 3, `${receipt.killed} killed`);
      assert.equal(receipt.problem, null);
      assert.ok(receipt.confirmed_gone.includes('process'));
      assert.deepEqual(result.slipway?.cancellation, receipt);
      assert.equal(result.exception_info?.exception_type, 'CancelledError');
      assert.equal(result.verifier_result, null);
      const left = (await provider.list(never)).filter(({ labels }) => labels.runId === runId);
      assert.deepEqual(left, []);
    });

    test('when not cancelled the reward is the verdict of the verifier', async () => {
      const agent = hostileAgent({ stays: false });
      const result = await runTrial({ provider, files: hostileTask, agent });
      assert.deepEqual(result.verifier_result?.rewards, { reward: 0.25 });
      assert.equal(result.slipway?.outcome.trainable, true);
      assert.ok((result.slipway.agent_stop?.killed ?? 0) >= 2);
      assert.deepEqual(processesWith(agent.marker), []);
    });

    test('when it runs out of time it is killed all the same and the verdict stands', async () => {
      const agent = hostileAgent({ stays: true });
      const config = { agent: { override_timeout_sec: 1.5 } };
      const result = await runTrial({ provider, files: hostileTask, agent, config });
      assert.equal(result.exception_info?.exception_type, 'AgentTimeoutError');
      assert.deepEqual(result.verifier_result?.rewards, { reward: 0.25 });
      assert.deepEqual(processesWith(agent.marker), []);
    });

    test('control: without the kill it writes its own reward', async () => {
      const agent = hostileAgent({ stays: false });
      const sequence = without(stopAgent);
      const result = await runTrial({ provider, files: hostileTask, agent, sequence });
      assert.deepEqual(result.verifier_result?.rewards, { reward: 1 });
    });

    test('control: without the cleaning the planted file is the reward', async () => {
      const agent = hostileAgent({ stays: false });
      const sequence = without(cleanLogs);
      const result = await runTrial({ provider, files: hostileTask, agent, sequence });
      assert.deepEqual(result.verifier_result?.rewards, { reward: 1 });
    });
  });
