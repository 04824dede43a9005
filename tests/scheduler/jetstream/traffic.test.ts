/** What a rollout sends over the queue. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { jetstreamManager } from '@nats-io/jetstream';
import { connect } from '@nats-io/transport-node';
import { until } from '../../support/until.ts';
import { whyNoNats } from '../../support/nats/nats-cluster.ts';
import { FleetFixture, post, statusOf, submit, untilHosts } from './fleet-fixture.ts';

const rollouts = 8;
/** To the host: register, execute, begun, revoke, captured, release, drop. From it: claimed, four answers, begins, a stage, the end. */
const mostPerRollout = 7 + 8;

describe('a rollout on another host', { skip: whyNoNats }, () => {
  it('asks for nothing twice, nor for what its end brings anyway', async () => {
    await using fleet = await FleetFixture.start();
    const front = await fleet.front();
    await fleet.worker();
    await untilHosts(front, 1);
    const connection = await connect({ servers: [fleet.nats.url] });
    const { streams } = await jetstreamManager(connection);
    const sent = async (): Promise<number> =>
      (await streams.info('SLIPWAY_MESSAGES')).state.last_seq;
    const before = await sent();
    for (let at = 0; at < rollouts; at += 1) {
      await submit(front, `r${at}`);
      await until('its end', async () => (await statusOf(front, `r${at}`)) === 'success');
    }
    await post(front, '/rollout/cancel', { all: true });
    const count = ((await sent()) - before) / rollouts;
    await connection.close();
    assert.ok(count > 0 && count <= mostPerRollout, `${count} messages`);
  });
});
