/** What dies: workers, the front end, the way between them. */
import assert from 'node:assert/strict';
import path from 'node:path';
import { mkdtempDisposable } from 'node:fs/promises';
import os from 'node:os';
import { describe, it } from 'node:test';
import { connect } from '@nats-io/transport-node';
import {
  fleetProtocol,
  type FrontBeat,
  type HostBeat,
} from '../../../src/scheduler/jetstream/fleet-messages.ts';
import { startServeProcess } from '../../support/serve-process.ts';
import { startWorkerProcess } from '../../support/worker-process.ts';
import { until } from '../../support/until.ts';
import { NatsCluster, whyNoNats } from '../../support/nats/nats-cluster.ts';
import {
  FleetFixture,
  hasBegun,
  post,
  runningAt,
  statusOf,
  submit,
  untilHosts,
} from './fleet-fixture.ts';

describe('when a worker dies', { skip: whyNoNats }, () => {
  it('what had begun there ends typed, and what waited goes on at another', async () => {
    await using fleet = await FleetFixture.start();
    const front = await fleet.front();
    await using root = await mkdtempDisposable(path.join(os.tmpdir(), 'slipway-mortal-'));
    await using mortal = await startWorkerProcess(
      [
        ...['--backend', 'null', '--queue', fleet.nats.url, '--queue-lease-sec', '2'],
        ...['--max-concurrent', '1'],
      ],
      { stateDir: root.path },
    );
    await untilHosts(front, 1);
    await submit(front, 'begun', { duration_ms: 60_000 });
    await until('it has begun', () => hasBegun(front, 'begun'));
    await submit(front, 'waits');
    await mortal.kill();
    await until('it ends', async () => (await statusOf(front, 'begun')) === 'failure');
    const answer = await fetch(`${front.controlUrl}/api/v1/rollouts/begun`);
    assert.match(await answer.text(), /WORKER_LOST/);
    await fleet.worker();
    await until('the other', async () => (await statusOf(front, 'waits')) === 'success');
  });

  it('a worker that is stopped gives back what has not begun and lets the rest go on', async () => {
    await using fleet = await FleetFixture.start();
    const front = await fleet.front();
    const leaving = await fleet.worker({ '--shutdown-drain-sec': '20' });
    await untilHosts(front, 1);
    await submit(front, 'r', { duration_ms: 1_500 });
    await until('it has begun', () => hasBegun(front, 'r'));
    await leaving.stop(new AbortController().signal);
    assert.equal(await statusOf(front, 'r'), 'success');
  });
});

describe('when the front end dies', { skip: whyNoNats }, () => {
  it('every rollout has one end after its restart, and workers take new work', async () => {
    await using root = await mkdtempDisposable(path.join(os.tmpdir(), 'slipway-mortal-'));
    await using nats = await NatsCluster.start();
    const queue = ['--backend', 'null', '--queue', nats.url, '--queue-lease-sec', '2'];
    const start = () =>
      startServeProcess([...queue, '--data-dir', path.join(root.path, 'data')], {
        stateDir: root.path,
      });
    await using worker = await startWorkerProcess([...queue, '--max-concurrent', '1'], {
      stateDir: root.path,
    });
    assert.equal(worker.child.exitCode, null);
    const first = await start();
    const at = (url: string) => ({ controlUrl: url }) as Parameters<typeof submit>[0];
    await submit(at(first.url), 'begun', { duration_ms: 60_000 });
    await until('it has begun', () => hasBegun(at(first.url), 'begun'));
    await submit(at(first.url), 'waits', { duration_ms: 10 });
    await first.kill();
    await using second = await start();
    await until('its end', async () => (await statusOf(at(second.url), 'begun')) === 'failure');
    await until('the other', async () => (await statusOf(at(second.url), 'waits')) === 'success');
    const { body } = await post(at(second.url), '/rollout/cancel', { ids: ['begun'] });
    assert.deepEqual(body['dispositions'], { begun: 'not_found' });
  });

  it('one whose clock is behind that of the dead one is worked for all the same', async () => {
    await using fleet = await FleetFixture.start();
    await fleet.worker();
    const connection = await connect({ servers: [fleet.nats.url] });
    const ahead: FrontBeat = {
      ...{ protocol: fleetProtocol, version: '0', epoch: 'dead', backendKind: 'null', lost: null },
      ...{ startedAt: Date.now() + 3_600_000, heard: {} },
    };
    const epochs: unknown[] = [];
    connection.subscribe('slipway.beat.host', {
      callback: (_error, message) => void epochs.push(message.json<HostBeat>().epoch),
    });
    await connection.flush();
    // It is heard once: the worker works for it, for as long as a lease is.
    connection.publish('slipway.beat.front', JSON.stringify(ahead));
    await until('the worker works for it', () => epochs.includes('dead'));
    await connection.close();
    const front = await fleet.front();
    await submit(front, 'r');
    await until('its end', async () => (await statusOf(front, 'r')) === 'success');
  });
});

describe('when a worker cannot reach the queue', { skip: whyNoNats }, () => {
  it('it ends what it runs before the rollout ends typed, and it comes back', async () => {
    await using fleet = await FleetFixture.start();
    const front = await fleet.front();
    await using doors = await fleet.nats.clientDoors();
    const worker = await fleet.worker({ '--queue': doors.urls.join(',') });
    await untilHosts(front, 1);
    await submit(front, 'r', { duration_ms: 60_000 });
    await until('it has begun', () => hasBegun(front, 'r'));
    doors.set('silent');
    await until('its end', async () => (await statusOf(front, 'r')) === 'failure');
    assert.equal(await runningAt(worker), 0);
    doors.set('open');
    await submit(front, 'next');
    await until('the next', async () => (await statusOf(front, 'next')) === 'success');
  });

  it('it does so too where it hears the front end all the same', async () => {
    await using fleet = await FleetFixture.start();
    const front = await fleet.front();
    await using doors = await fleet.nats.clientDoors();
    const worker = await fleet.worker({ '--queue': doors.urls.join(',') });
    await untilHosts(front, 1);
    await submit(front, 'r', { duration_ms: 60_000 });
    await until('it has begun', () => hasBegun(front, 'r'));
    doors.set('mute');
    await until('its end', async () => (await statusOf(front, 'r')) === 'failure');
    assert.equal(await runningAt(worker), 0);
    doors.set('open');
    await submit(front, 'next');
    await until('the next', async () => (await statusOf(front, 'next')) === 'success');
  });
});
