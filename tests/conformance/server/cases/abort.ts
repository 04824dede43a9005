import assert from 'node:assert/strict';
import { until } from '../../../support/until.ts';
import type { ServerCase } from '../bench.ts';

/** What the answer of a cancellation may take. */
const receiptMs = 2_000;

export const abortCases: readonly ServerCase[] = [
  {
    id: 'abort.queued',
    title: 'one that waits never starts, and sends nothing',
    async run(bench) {
      await bench.atWork('queued-1', 'queued-2');
      await bench.accepted('queued-3');
      const [receipt] = await bench.cancel({ ids: ['queued-3'] });
      assert.deepEqual([receipt?.disposition, receipt?.is_complete], ['cancelled_queued', true]);
      await bench.cancel({ ids: ['queued-1', 'queued-2'] });
      await until('all gone', async () => (await bench.capacity()).in_flight === 0);
      assert.equal((await bench.rollout('queued-3')).state, 'cancelled');
      const own = (await bench.events()).filter(({ rollout_id: id }) => id === 'queued-3');
      assert.ok(!own.some(({ type }) => type === 'rollout:started'));
      assert.deepEqual(bench.callbacks('queued-3'), []);
    },
  },
  {
    id: 'abort.calls',
    title:
      'one that waits for its model has its call ended within the time of a receipt, and sends nothing; its place is free',
    async run(bench) {
      await bench.accepted('calls-1', { agent_calls: 1 });
      await until('its call', () => bench.openCalls('calls-1') === 1);
      const began = performance.now();
      const [receipt] = await bench.cancel({ ids: ['calls-1'] });
      const ms = performance.now() - began;
      assert.deepEqual(
        [receipt?.disposition, receipt?.model_calls_ended, receipt?.is_complete, receipt?.problem],
        ['cancelled_running', 1, true, null],
      );
      assert.ok(ms < receiptMs, `${ms} ms`);
      await until('no call', () => bench.openCalls('calls-1') === 0, { limitMs: 500 });
      assert.equal((await bench.rollout('calls-1')).state, 'cancelled');
      await bench.atWork('calls-2', 'calls-3');
      assert.deepEqual(bench.callbacks('calls-1'), []);
    },
  },
  {
    id: 'abort.grading',
    title: 'one that is being graded has sent its completion, and sends no grade',
    async run(bench) {
      await bench.accepted('grading-1', { grade_ms: 600_000 });
      await bench.called('grading-1', 'completion');
      const [receipt] = await bench.cancel({ ids: ['grading-1'] });
      assert.deepEqual([receipt?.disposition, receipt?.is_complete], ['cancelled_running', true]);
      await until('all gone', async () => (await bench.capacity()).in_flight === 0);
      assert.deepEqual(
        bench.callbacks('grading-1').map(({ channel }) => channel),
        ['completion'],
      );
    },
  },
  {
    id: 'abort.twice',
    title: 'is told the same way twice, at the same time and later',
    async run(bench) {
      await bench.atWork('twice-1');
      const both = await Promise.all([1, 2].map(() => bench.cancel({ ids: ['twice-1'] })));
      const all = [...both, await bench.cancel({ ids: ['twice-1'] })].flat();
      assert.deepEqual(
        all.map(({ disposition }) => disposition),
        ['cancelled_running', 'cancelled_running', 'cancelled_running'],
      );
      assert.equal(new Set(all.map((receipt) => JSON.stringify(receipt))).size, 1);
    },
  },
  {
    id: 'abort.absent',
    title: 'buries an id that has not come, and leaves one that has ended as it is',
    async run(bench) {
      await bench.accepted('absent-1', { reward: 0.5 });
      await bench.called('absent-1', 'grader');
      const receipts = await bench.cancel({ ids: ['absent-1', 'absent-2'] });
      assert.deepEqual(
        receipts.map(({ disposition }) => disposition),
        ['not_found', 'not_found'],
      );
      assert.equal((await bench.submit('absent-2')).status, 409);
      const { state, outcome } = await bench.rollout('absent-1');
      assert.deepEqual([state, outcome?.reward], ['success', 0.5]);
    },
  },
  {
    id: 'abort.selectors',
    title: 'takes what a prefix names, or everything',
    async run(bench) {
      await bench.atWork('select-a-1', 'select-b-1');
      await bench.accepted('select-a-2', { duration_ms: 600_000 });
      await bench.accepted('select-b-2', { duration_ms: 600_000 });
      const of = async (selector: object): Promise<readonly (readonly string[])[]> =>
        (await bench.cancel(selector))
          .map(({ rollout_id: id, disposition }) => [id, disposition])
          .sort();
      assert.deepEqual(await of({ prefix: 'select-a-' }), [
        ['select-a-1', 'cancelled_running'],
        ['select-a-2', 'cancelled_queued'],
      ]);
      await bench.shows('select-b-2', 'stage', 'running agent');
      assert.deepEqual(await of({ all: true }), [
        ['select-b-1', 'cancelled_running'],
        ['select-b-2', 'cancelled_running'],
      ]);
    },
  },
];
