/** Claims in a bucket of a real NATS server. */
import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { jetstreamManager } from '@nats-io/jetstream';
import { Kvm, type KV } from '@nats-io/kv';
import { connect, type NatsConnection } from '@nats-io/transport-node';
import { never } from '../../../src/core/linked-abort.ts';
import { Claims, type Claim } from '../../../src/scheduler/jetstream/claims.ts';
import { NatsCluster, whyNoNats } from '../../support/nats/nats-cluster.ts';

const claimOf = (over: Partial<Claim> = {}): Claim => ({
  ...{ rolloutId: 'r ü.*>', epoch: 'e', lease: 'l1', host: 'a', hasBegun: false },
  ...over,
});
const nobody = (): boolean => false;

describe('a claim', { skip: whyNoNats }, () => {
  let nats: NatsCluster;
  let connection: NatsConnection;
  let count = 0;
  before(async () => {
    nats = await NatsCluster.start();
    connection = await connect({ servers: [...nats.urls] });
  });
  after(async () => {
    await connection.close();
    await nats[Symbol.asyncDispose]();
  });
  const bucket = async (): Promise<KV> => await new Kvm(connection).create(`claims${(count += 1)}`);

  it('is one host’s, also when that host asks twice', async () => {
    const claims = new Claims(await bucket());
    assert.equal((await claims.claim(claimOf(), nobody, never)).kind, 'ours');
    assert.equal((await claims.claim(claimOf(), nobody, never)).kind, 'ours');
    const other = await claims.claim(claimOf({ host: 'b' }), nobody, never);
    assert.deepEqual([other.kind, other.kind === 'taken' && other.by.host], ['taken', 'a']);
  });

  it('of a host that is gone can be taken over until it has begun; then the agent of neither begins twice', async () => {
    const claims = new Claims(await bucket());
    const first = await claims.claim(claimOf(), nobody, never);
    const second = await claims.claim(claimOf({ host: 'b', lease: 'l2' }), () => true, never);
    assert.ok(first.kind === 'ours' && second.kind === 'ours');
    assert.equal(await claims.begin(first.held, never), null);
    assert.equal((await claims.begin(second.held, never))?.claim.hasBegun, true);
    const third = await claims.claim(claimOf({ host: 'c', lease: 'l3' }), () => true, never);
    assert.equal(third.kind, 'taken');
  });

  it('is forgotten under its own lease alone', async () => {
    const claims = new Claims(await bucket());
    await claims.claim(claimOf({ lease: 'l2' }), nobody, never);
    await claims.forget('r ü.*>', 'l1');
    assert.equal((await claims.claim(claimOf({ host: 'b' }), nobody, never)).kind, 'taken');
    await claims.forget('r ü.*>', 'l2');
    assert.equal((await claims.claim(claimOf({ host: 'b' }), nobody, never)).kind, 'ours');
    await claims.forget('never claimed', 'l1');
  });

  it('is asked for with pauses where the bucket takes nothing, and no longer than the signal says', async () => {
    const real = await bucket();
    const held = await new Claims(real).claim(claimOf(), nobody, never);
    assert.ok(held.kind === 'ours');
    const manager = await jetstreamManager(connection);
    await manager.streams.update(`KV_claims${count}`, { max_msg_size: 1 });
    let looks = 0;
    const counted = new Proxy(real, {
      get: (target, name) => {
        if (name === 'get') looks += 1;
        const value = Reflect.get(target, name) as unknown;
        return typeof value === 'function' ? (value.bind(target) as unknown) : value;
      },
    });
    const claims = new Claims(counted);
    for (const work of [
      (signal: AbortSignal) => claims.claim(claimOf({ rolloutId: 'new' }), nobody, signal),
      (signal: AbortSignal) => claims.begin(held.held, signal),
    ]) {
      looks = 0;
      await assert.rejects(work(AbortSignal.timeout(500)));
      assert.ok(looks > 0 && looks <= 11, `${looks} looks`);
    }
  });
});
