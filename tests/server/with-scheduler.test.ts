/** The protocol with the real scheduler behind it, over the memory store. */
import assert from 'node:assert/strict';
import { it, describe } from 'node:test';
import { never } from '../../src/core/linked-abort.ts';
import { SchedulerBench } from '../scheduler/scheduler-bench.ts';
import { until } from '../support/until.ts';
import { rolloutBody, Serving } from './serving.ts';

const graded = (id: string, more: object = {}): object =>
  rolloutBody(id, { grader_callback_url: 'http://127.0.0.1:9/g', ...more });

describe('the routes over the scheduler', () => {
  it('see a rollout from its acceptance to its end', async () => {
    const bench = await SchedulerBench.started({ maxConcurrent: 1, maxQueueDepth: 1 });
    await using serving = new Serving({ service: bench.scheduler });
    const status = async (id: string) =>
      (await serving.ask({ url: `/rollout/${id}/status` })).json<{ status: string }>().status;
    for (const id of ['r1', 'r2'])
      assert.equal((await serving.post('/rollout', graded(id))).statusCode, 202);
    await until('r1 runs', async () => (await status('r1')) === 'running');
    assert.equal(await status('r2'), 'queued');
    const capacity = async () =>
      (await serving.ask({ url: '/health' })).json<{ capacity: object }>().capacity;
    assert.deepEqual(await capacity(), {
      ...{ max_concurrent: 1, max_queue_depth: 1, in_flight: 2, queue_depth: 1 },
      ...{ available: 0, accepting: false },
    });

    const full = await serving.post('/rollout', graded('r3'));
    assert.deepEqual(
      [full.statusCode, full.body, full.headers['retry-after']],
      [429, '{"detail":"rollout queue is full; retry later"}', '5'],
    );
    // What is known takes no place.
    assert.equal((await serving.post('/rollout', graded('r1'))).statusCode, 202);
    const other = await serving.post('/rollout', graded('r1', { label: 'other' }));
    assert.equal(other.statusCode, 409);

    bench.backend.executions.get('r1')?.succeed(0.5);
    await until('r1 ends', async () => (await status('r1')) === 'success');
    const ended = await serving.ask({ url: '/rollout/r1/status' });
    assert.equal(
      ended.body,
      '{"rollout_id":"r1","status":"success","reward":0.5,"err_message":null}',
    );
    await until('r2 runs', async () => (await status('r2')) === 'running');

    const cancelled = await serving.post('/rollout/cancel', { ids: ['r1', 'r2', 'early'] });
    assert.deepEqual(cancelled.json(), {
      dispositions: { r1: 'not_found', r2: 'cancelled_running', early: 'not_found' },
    });
    assert.equal(await status('r2'), 'cancelled');
    assert.equal((await serving.post('/rollout', graded('early'))).statusCode, 409);
    const again = await serving.post('/api/v1/rollouts/cancel', { ids: ['r2'] });
    const [receipt] = again.json<{ receipts: Record<string, unknown>[] }>().receipts;
    assert.deepEqual(
      [receipt?.['disposition'], receipt?.['model_calls_ended'], receipt?.['is_complete']],
      ['cancelled_running', 0, true],
    );
    const list = await serving.ask({ url: '/api/v1/rollouts?state=success' });
    assert.deepEqual(
      list.json<{ rollouts: { id: string }[] }>().rollouts.map(({ id }) => id),
      ['r1'],
    );
    await bench.scheduler.stop({
      ...{ drainMs: 0, abortMs: 1_000, hurry: AbortSignal.abort(), force: never },
    });
    const stopping = await serving.post('/rollout', graded('r9'));
    assert.equal(stopping.statusCode, 503);
    assert.match(String(stopping.headers['retry-after']), /^\d+$/);
    assert.match((await serving.ask({ url: '/health' })).body, /"stopping":true/);
  });
});
