import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect, createServer } from 'node:net';
import { describe, it } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { until } from '../until.ts';
import { election, NatsCluster, whyNoNats } from './nats-cluster.ts';
import { TcpDoor } from './tcp-door.ts';

const aWhileMs = 100;

/** What an address says first; null = it refuses, or says nothing for a while. */
async function greeting(url: string): Promise<string | null> {
  const socket = connect(Number(new URL(url).port), '127.0.0.1');
  try {
    const signal = AbortSignal.timeout(2_000);
    const [bytes] = (await once(socket, 'data', { signal })) as [Buffer];
    return bytes.toString();
  } catch {
    return null;
  } finally {
    socket.destroy();
  }
}

describe('a NATS cluster for tests', { skip: whyNoNats }, () => {
  it('is one server that keeps its port over SIGKILL', async () => {
    await using cluster = await NatsCluster.start();
    const [node] = cluster.nodes;
    assert.match((await greeting(cluster.url)) ?? '', /^INFO .*"jetstream":true/);
    await node!.kill();
    assert.equal(await greeting(cluster.url), null);
    await node!.start();
    await cluster.ready();
    assert.match((await greeting(cluster.url)) ?? '', /^INFO /);
  });

  it('is three nodes, of which the others elect a leader when theirs is killed, and that can be cut off', async () => {
    await using cluster = await NatsCluster.start({ nodes: 3 });
    const leader = await cluster.nodes[0]!.metaLeader();
    const index = cluster.nodes.findIndex(({ name }) => name === leader);
    const others = cluster.nodes.filter((_, other) => other !== index);
    await cluster.nodes[index]!.kill();
    await until(
      'another leader',
      async () => {
        const seen = await Promise.all(others.map((node) => node.metaLeader()));
        return seen[0] !== null && seen[0] === seen[1] && seen[0] !== leader;
      },
      election,
    );
    await cluster.nodes[index]!.start();
    await cluster.ready();

    const cut = (index + 1) % 3;
    cluster.isolate(cut, 'reset');
    await until('no routes', async () => (await cluster.nodes[cut]!.routes()) === 0);
    const between = cluster.nodes.filter((_, other) => other !== cut);
    const left = await Promise.all(between.map((node) => node.routes()));
    assert.ok(
      left.every((count) => count > 0),
      'the two others still have each other',
    );
    cluster.isolate(cut, 'open');
    await until('routes', async () => (await cluster.nodes[cut]!.routes()) > 0);
  });

  it('has doors that shut it for one client alone', async () => {
    await using cluster = await NatsCluster.start();
    await using mine = await cluster.clientDoors();
    await using yours = await cluster.clientDoors();
    mine.set('reset');
    assert.equal(await greeting(mine.urls[0]!), null);
    assert.match((await greeting(yours.urls[0]!)) ?? '', /^INFO /);
    mine.set('open');
    assert.match((await greeting(mine.urls[0]!)) ?? '', /^INFO /);
  });
});

describe('a door', () => {
  it('holds what is sent while it is silent, and lets it through afterwards, whole', async () => {
    const far = createServer((socket) => socket.on('error', () => undefined).pipe(socket));
    far.listen(0, '127.0.0.1');
    await once(far, 'listening');
    const address = far.address();
    await using door = await TcpDoor.open(typeof address === 'object' ? address!.port : 0);
    const socket = connect(door.port, '127.0.0.1');
    let heard = '';
    socket.setEncoding('utf8').on('data', (text: string) => (heard += text));
    socket.write('one ');
    await until('the first word', () => heard === 'one ');
    door.set('silent');
    socket.write('two ');
    await delay(aWhileMs);
    assert.equal(heard, 'one ');
    door.set('open');
    await until('the second word', () => heard === 'one two ');
    door.set('deaf');
    socket.write('three ');
    await delay(aWhileMs);
    assert.equal(heard, 'one two ');
    door.set('open');
    await until('the third word', () => heard === 'one two three ');
    const broken = once(socket, 'error');
    door.set('reset');
    await broken;
    far.close();
  });
});
