import assert from 'node:assert/strict';
import { until } from '../../../support/until.ts';
import type { ServerBench, ServerCase } from '../bench.ts';

/** `server`: what is asked over HTTP, and executes where the queue is its memory. */
type Dead = 'server' | 'workers' | 'all';

async function killAndStart({ service }: ServerBench, dead: Dead): Promise<void> {
  const { workerIndices } = service;
  const isServerDead = dead !== 'workers';
  await Promise.all([
    isServerDead ? service.front.kill() : null,
    ...(dead === 'server' ? [] : workerIndices.map((index) => service.worker(index).kill())),
  ]);
  if (isServerDead) await service.startFront();
  if (dead !== 'server')
    await Promise.all(workerIndices.map((index) => service.startWorker(index)));
  await service.untilWhole();
}

/** What is to be told once more, what works, what is being graded and what waits. */
function killed(dead: Dead, cause: string): ServerCase['run'] {
  return async (bench) => {
    const own = (name: string): string => `killed-${dead}-${name}`;
    const [told, works, graded, waits] = ['told', 'works', 'graded', 'waits'].map(own) as [
      ...[string, string, string, string],
    ];
    bench.refuse(told, 'grader');
    await bench.accepted(told, { reward: 0.5 });
    await bench.called(told, 'grader', false);
    await bench.atWork(works);
    await bench.accepted(graded, { grade_ms: 600_000 });
    await bench.called(graded, 'completion');
    await bench.accepted(waits, { reward: 0.75 });
    await killAndStart(bench, dead);
    bench.take();

    const [last, grade] = [await bench.called(waits, 'grader'), await bench.called(told, 'grader')];
    assert.equal((last.body['sample'] as { reward: number }).reward, 0.75);
    assert.equal((grade.body['sample'] as { reward: number }).reward, 0.5);
    for (const id of [works, graded]) {
      const { body } = await bench.called(id, 'grader');
      assert.equal(body['status'], 'failure', id);
      const { state, outcome } = await bench.rollout(id);
      assert.deepEqual([state, outcome?.cause], ['failure', cause], id);
    }
    await until('nothing is held', async () => (await bench.capacity()).in_flight === 0);
    for (const id of [told, works, graded, waits])
      for (const channel of ['completion', 'grader']) {
        const sent = bench.callbacks(id).filter((one) => one.channel === channel);
        const kinds = new Set(sent.map(({ key, text }) => `${key} ${text}`));
        assert.equal(kinds.size, 1, `${channel} of ${id}: ${[...kinds].join(' and ')}`);
        assert.equal(sent.filter(({ isTaken }) => isTaken).length, 1, `${channel} of ${id}`);
      }
    assert.equal(bench.callbacks(works)[0]?.body['status'], 'failure');
    assert.equal(bench.callbacks(graded)[0]?.body['status'], 'success');
  };
}

export const deathCases: readonly ServerCase[] = [
  {
    id: 'death.server',
    title:
      'a server that is killed brings all it had accepted to one end: again what waited, typed what had begun, byte for byte what was to be told',
    run: killed('server', 'ROLLOUT_INTERRUPTED'),
  },
  {
    id: 'death.workers',
    title:
      'workers that are killed leave the same behind, and what waited goes on at their next life',
    queues: ['jetstream'],
    run: killed('workers', 'WORKER_LOST'),
  },
  {
    id: 'death.all',
    title: 'all of them killed at once leave what a server alone does',
    queues: ['jetstream'],
    isLong: true,
    run: killed('all', 'ROLLOUT_INTERRUPTED'),
  },
  {
    id: 'death.stopped',
    title:
      'a server that is stopped refuses what comes, lets work go on for a while, ends the rest typed, and keeps what waits for its next life',
    async run(bench) {
      const { service } = bench;
      await bench.atWork('stopped-long');
      await bench.accepted('stopped-short', { duration_ms: 400, reward: 0.5 });
      await bench.accepted('stopped-waits', { reward: 0.75 });
      await bench.shows('stopped-short', 'stage', 'running agent');
      const stopped = service.front.stop();
      await until('it stops', () => bench.isStopping());
      const late = await bench.submit('stopped-late');
      assert.equal(late.status, 503);
      assert.match(late.retryAfter ?? '', /^\d+$/);
      assert.equal(await stopped, 0);
      const grade = async (id: string): Promise<readonly unknown[]> => {
        const { body } = await bench.called(id, 'grader');
        return [body['status'], (body['sample'] as { reward: number | null } | null)?.reward];
      };
      assert.deepEqual(await grade('stopped-short'), ['success', 0.5]);
      assert.equal((await grade('stopped-long'))[0], 'failure');
      assert.deepEqual(bench.callbacks('stopped-waits'), []);
      await service.startFront();
      await service.untilWhole();
      assert.deepEqual(await grade('stopped-waits'), ['success', 0.75]);
      assert.equal((await bench.rollout('stopped-long')).outcome?.cause, 'SERVER_STOPPING');
      assert.equal(bench.callbacks('stopped-long').length, 2);
    },
  },
];
