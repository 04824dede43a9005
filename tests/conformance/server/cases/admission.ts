import assert from 'node:assert/strict';
import { until } from '../../../support/until.ts';
import type { ServerBench, ServerCase } from '../bench.ts';

async function states(bench: ServerBench, ids: readonly string[]): Promise<readonly string[]> {
  return await Promise.all(ids.map(async (id) => (await bench.rollout(id)).state));
}

export const admissionCases: readonly ServerCase[] = [
  {
    id: 'admission.full',
    title:
      'two run, two wait, the next is refused with the time to come back; what is known takes no place',
    async run(bench) {
      await bench.atWork('full-1', 'full-2');
      for (const id of ['full-3', 'full-4']) await bench.accepted(id, { duration_ms: 600_000 });
      const refused = await bench.submit('full-5');
      assert.deepEqual(
        [refused.status, refused.text],
        [429, '{"detail":"rollout queue is full; retry later"}'],
      );
      assert.match(refused.retryAfter ?? '', /^\d+$/);
      assert.deepEqual(await bench.capacity(), {
        ...{ max_concurrent: 2, max_queue_depth: 2, in_flight: 4, queue_depth: 2 },
        ...{ available: 0, accepting: false },
      });
      const ids = ['full-1', 'full-2', 'full-3', 'full-4'];
      assert.deepEqual(await states(bench, ids), ['running', 'running', 'queued', 'queued']);
      assert.equal((await bench.submit('full-1', { duration_ms: 600_000 })).status, 202);
      assert.equal((await bench.submit('full-1', { duration_ms: 1 })).status, 409);
      await bench.cancel({ ids: ['full-1'] });
      await bench.is('full-3', 'running');
      await until('a place', async () => (await bench.submit('full-5')).status === 202);
      assert.deepEqual(await states(bench, ['full-4', 'full-5']), ['queued', 'queued']);
    },
  },
  {
    id: 'admission.order',
    title: 'who came first starts first',
    async run(bench) {
      const ids = ['order-1', 'order-2', 'order-3', 'order-4'];
      for (const id of ids) await bench.accepted(id, { duration_ms: 20 });
      for (const id of ids) await bench.is(id, 'success');
      const started = (await bench.events()).filter(
        ({ type, rollout_id: id }) => type === 'rollout:started' && ids.includes(id),
      );
      assert.deepEqual(
        started.map(({ rollout_id: id }) => id),
        ids,
      );
    },
  },
  {
    id: 'admission.ends',
    title: 'each has one end, told once on both channels, whatever it is',
    async run(bench) {
      const rows: readonly [string, object, object, readonly unknown[]][] = [
        ['graded', { reward: 0.25, grade_ms: 20 }, {}, ['success', null, 'success', null, 0.25]],
        ['late', {}, { agent_timeout_sec: 0 }, ['failure', 'timeout', 'failure', 'timeout', null]],
        ['ungraded', { reward: null }, {}, ['success', null, 'failure', 'validation_error', null]],
        [
          'slow to grade',
          { grade_ms: 500 },
          { grader_timeout_sec: 0.1 },
          ['success', null, 'failure', 'timeout', null],
        ],
      ];
      for (const [name, does, more] of rows)
        await bench.accepted(`ends ${name}`.replaceAll(' ', '-'), does, more);
      for (const [name, , , expected] of rows) {
        const id = `ends ${name}`.replaceAll(' ', '-');
        const [completion, grader] = [
          await bench.called(id, 'completion'),
          await bench.called(id, 'grader'),
        ];
        const sample = grader.body['sample'] as { readonly reward: number | null } | null;
        assert.deepEqual(
          [
            ...[completion.body['status'], completion.body['err_category']],
            ...[grader.body['status'], grader.body['err_category'], sample?.reward ?? null],
          ],
          expected,
          name,
        );
        assert.deepEqual(
          bench.callbacks(id).map(({ channel }) => channel),
          ['completion', 'grader'],
        );
        const { state, outcome } = await bench.rollout(id);
        assert.deepEqual([state, outcome?.reward ?? null], [expected[2], expected[4]]);
      }
    },
  },
  {
    id: 'admission.wait',
    title: 'who waits for longer than its agent may work ends without having started',
    async run(bench) {
      await bench.atWork('wait-1', 'wait-2');
      await bench.accepted('wait-3', {}, { agent_timeout_sec: 0.5 });
      const { body } = await bench.called('wait-3', 'grader');
      assert.deepEqual([body['status'], body['err_category']], ['failure', 'timeout']);
      assert.equal((await bench.rollout('wait-3')).outcome?.cause, 'QUEUE_TIMEOUT');
      const types = (await bench.events())
        .filter(({ rollout_id: id }) => id === 'wait-3')
        .map(({ type }) => type);
      assert.ok(!types.includes('rollout:started'), types.join(' '));
    },
  },
];
