/** Rollouts over a real NATS server: front end and workers composed as their commands do it. */
import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { describe, it } from 'node:test';
import { logFileOf } from '../../../src/app/serve/data-folder.ts';
import { systemClock } from '../../../src/core/clock.ts';
import { never } from '../../../src/core/linked-abort.ts';
import type { ClaimBook } from '../../../src/scheduler/jetstream/claims.ts';
import { until } from '../../support/until.ts';
import { whyNoNats } from '../../support/nats/nats-cluster.ts';
import { FleetFixture, post, statusOf, submit, untilHosts } from './fleet-fixture.ts';

describe('a front end with workers', { skip: whyNoNats }, () => {
  it('executes at the workers, as many as they have slots', async () => {
    await using fleet = await FleetFixture.start();
    const front = await fleet.front();
    await fleet.worker({ '--max-concurrent': '2' });
    await fleet.worker({ '--max-concurrent': '2' });
    await untilHosts(front, 2);
    const ids = Array.from({ length: 12 }, (_, index) => `r ${index}.ü*>`);
    for (const id of ids) await submit(front, id, { duration_ms: 50 });
    let most = 0;
    await until('all succeed', async () => {
      const states = await Promise.all(ids.map((id) => statusOf(front, id)));
      most = Math.max(most, states.filter((state) => state === 'running').length);
      return states.every((state) => state === 'success');
    });
    assert.ok(most <= 4, `${most} ran at once`);
  });

  it('waits while no worker is there, and goes on when one comes', async () => {
    await using fleet = await FleetFixture.start();
    const front = await fleet.front();
    await submit(front, 'r');
    assert.equal(await statusOf(front, 'r'), 'queued');
    await fleet.worker();
    await until('it succeeds', async () => (await statusOf(front, 'r')) === 'success');
  });

  it('gives nothing to a worker of another backend, and nobody waits for it', async () => {
    await using fleet = await FleetFixture.start();
    const front = await fleet.front();
    await fleet.worker({ '--backend': 'native', '--max-concurrent': '8' });
    await fleet.worker({ '--max-concurrent': '8' });
    await untilHosts(front, 1);
    const ids = Array.from({ length: 16 }, (_, index) => `r${index}`);
    for (const id of ids) await submit(front, id);
    await until('all succeed', async () => {
      const states = await Promise.all(ids.map((id) => statusOf(front, id)));
      return states.every((state) => state === 'success');
    });
  });

  it('cancels at once what no worker has claimed yet, and complains of nothing', async () => {
    await using fleet = await FleetFixture.start();
    const front = await fleet.front();
    const waits: ClaimBook = {
      claim: async (_claim, _isGone, signal) => {
        await systemClock.sleep(60_000, signal);
        throw new Error('it waited for too long');
      },
      begin: () => Promise.resolve(null),
      forget: () => Promise.resolve(),
    };
    await fleet.worker({}, { claims: () => waits });
    await untilHosts(front, 1);
    await submit(front, 'r');
    await until('it is given out', async () => (await statusOf(front, 'r')) === 'running');
    const { body } = await post(front, '/rollout/cancel', { ids: ['r'] });
    assert.deepEqual(body['dispositions'], { r: 'cancelled_running' });
    assert.equal(await statusOf(front, 'r'), 'cancelled');
    await front.stop(never);
    const log = await readFile(logFileOf(front.dataDir), 'utf8');
    assert.doesNotMatch(log, /"level":"(error|warn)"/);
  });

  it('cancels all that runs at its workers within the time of a cancellation', async () => {
    await using fleet = await FleetFixture.start();
    const front = await fleet.front();
    await fleet.worker({ '--max-concurrent': '3' });
    await fleet.worker({ '--max-concurrent': '3' });
    await untilHosts(front, 2);
    const ids = Array.from({ length: 8 }, (_, index) => `r${index}`);
    for (const id of ids) await submit(front, id, { duration_ms: 60_000 });
    const running = async (): Promise<number> =>
      (await Promise.all(ids.map((id) => statusOf(front, id)))).filter((s) => s === 'running')
        .length;
    await until('six run', async () => (await running()) === 6);
    const began = performance.now();
    const { body } = await post(front, '/rollout/cancel', { all: true });
    assert.ok(performance.now() - began < 2_500);
    const kinds = Object.values(body['dispositions'] as Record<string, string>).toSorted();
    assert.deepEqual(kinds, [
      ...Array<string>(2).fill('cancelled_queued'),
      ...Array<string>(6).fill('cancelled_running'),
    ]);
    // The slots are free again.
    await submit(front, 'next');
    await until('the next succeeds', async () => (await statusOf(front, 'next')) === 'success');
  });
});
