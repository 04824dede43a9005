import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type {
  MadeSamples,
  SampleMaker,
  SamplesTask,
} from '../../src/gateway/samples/sample-maker.ts';
import type { RolloutSamples } from '../../src/wire/rollout/rollout-samples.ts';
import { MemoryRolloutStore } from '../../src/store/memory/memory-rollout-store.ts';
import { ManualClock } from '../fakes/manual-clock.ts';
import { until } from '../support/until.ts';
import { operator, SchedulerBench, success } from './scheduler-bench.ts';

const made: RolloutSamples = {
  ...{ count: 1, tokens: 9, trainedTokens: 4, withoutLogprobs: 0, labels: { opening: 1 } },
  ...{ calls: 2, callsWithoutIds: 0, link: 'f', notTrainable: null },
};

/** Makes nothing of anything, and remembers what it was asked for. */
class HandMaker implements SampleMaker {
  readonly tasks: SamplesTask[] = [];
  answer: Promise<MadeSamples> = Promise.resolve({ samples: made, file: '/calls/samples.ndjson' });

  make(task: SamplesTask): Promise<MadeSamples> {
    this.tasks.push(task);
    return this.answer;
  }

  milesPayload(): Promise<Uint8Array> {
    return Promise.resolve(new Uint8Array());
  }
}

async function opened() {
  const sampleMaker = new HandMaker();
  const bench = await SchedulerBench.started({ sampleMaker });
  bench.gateway.files.set('r1', '/calls/model-calls.steps.ndjson');
  await bench.submit('r1', { metadata: { slipway_train: { max_tokens: 64 } } });
  return { bench, sampleMaker, execution: await bench.execution('r1') };
}

async function reasonOf(bench: SchedulerBench): Promise<string | undefined> {
  return (await bench.store.rollout('r1'))?.outcome?.samples?.notTrainable?.reason;
}

describe('samples of a rollout', () => {
  it('are made of its agent’s calls, not of those of its grader, and are kept before its end is told', async () => {
    const { bench, sampleMaker, execution } = await opened();
    const order: string[] = [];
    bench.archive.onSave = ({ files }) => {
      const isTold = bench.news.includes('r1 ended success');
      order.push(...(isTold ? ['told'] : []), files.map(({ name }) => name).join());
    };
    bench.gateway.capture = { calls: 3, problem: null };
    await execution.hooks.workflowCompleted(success(null));
    order.length = 0;
    bench.gateway.capture = { calls: 5, problem: null };
    execution.succeed(0.5);
    await bench.empty();
    assert.deepEqual(sampleMaker.tasks, [
      {
        ...{ rolloutId: 'r1', captured: '/calls/model-calls.steps.ndjson', agentCalls: 3 },
        reward: 0.5,
        rules: {
          ...{ trainsSummaries: false, picker: 'drop_retries', maxTokens: 64 },
          ...{ routedExperts: false, indexerTopk: false },
        },
      },
    ]);
    assert.equal(order[0], 'samples.ndjson');
    assert.deepEqual((await bench.scheduler.status('r1', operator)).samples, made);
    const grader = bench.callbacks.bodies('r1')[1];
    const { samples } = grader?.body['extra_fields'] as { samples: { trained_tokens: number } };
    assert.equal(samples.trained_tokens, 4);
  });

  it('are none where they cannot be kept, and where calls are missing', async () => {
    const unkept = await opened();
    unkept.bench.archive.unkept.push({ name: 'samples.ndjson', problem: 'no space' });
    unkept.execution.succeed();
    await unkept.bench.empty();
    assert.equal(await reasonOf(unkept.bench), 'not-made');
    const missing = await opened();
    const problem = { code: 'CAPTURE_TOO_LARGE', message: 'too many' };
    missing.bench.gateway.capture = { calls: 3, problem };
    missing.execution.succeed();
    await missing.bench.empty();
    assert.equal(await reasonOf(missing.bench), 'calls-missing');
    assert.equal(missing.sampleMaker.tasks.length, 0);
  });

  it('are none where the gateway did not say how many calls there were when grading began', async () => {
    const { bench, sampleMaker, execution } = await opened();
    await execution.hooks.workflowCompleted(success(null));
    bench.gateway.capture = { calls: 5, problem: null };
    execution.succeed(0.5);
    await bench.empty();
    assert.equal(await reasonOf(bench), 'calls-missing');
    assert.equal(sampleMaker.tasks.length, 0);
  });

  it('hold up no cancellation', async () => {
    const { bench, sampleMaker, execution } = await opened();
    sampleMaker.answer = new Promise(() => undefined);
    execution.succeed();
    await until('they are being made', () => sampleMaker.tasks.length === 1);
    const receipts = await bench.scheduler.cancel({ kind: 'ids', ids: ['r1'] }, operator);
    assert.equal(receipts.get('r1')?.disposition, 'cancelled_running');
    await bench.empty();
    assert.equal(await bench.state('r1'), 'cancelled');
    assert.equal(await reasonOf(bench), 'cancelled');
  });

  it('are none of one that the death of the server ended, and that is said', async () => {
    const clock = new ManualClock();
    const store = new MemoryRolloutStore(() => clock.now());
    const dead = await SchedulerBench.started({ store, clock });
    await dead.submit('r1', { metadata: { slipway_train: true } });
    await (await dead.execution('r1')).hooks.agentBegins();
    const bench = await SchedulerBench.started({ store, clock });
    await bench.empty();
    assert.equal(await reasonOf(bench), 'outcome');
  });
});
