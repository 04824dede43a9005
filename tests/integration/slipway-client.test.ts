/** The client in Python before a real server: single rollouts with their samples, and batches over connections that are cut. */
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { once } from 'node:events';
import { connect, createServer, type AddressInfo } from 'node:net';
import path from 'node:path';
import { it } from 'node:test';
import { promisify } from 'node:util';
import { ServeFixture } from '../app/serve-fixture.ts';
import { serve } from '../engines/server/serving.ts';
import { repositoryDir } from '../support/slipway-cli.ts';

type Fields = Readonly<Record<string, unknown>>;

/** Passes connections on to `port`. Of streams of groups the first few end in the middle of a line. */
async function cuttingProxy(port: number) {
  let cuts = 0;
  const server = createServer((client) => {
    const upstream = connect(port, '127.0.0.1');
    client.on('error', () => upstream.destroy());
    upstream.on('error', () => client.destroy());
    client.once('data', (head) => {
      const isStream = head.toString().includes('/groups');
      upstream.write(head);
      client.pipe(upstream);
      let left = isStream && cuts < 3 ? 500 + 150 * cuts : Infinity;
      upstream.on('data', (piece) => {
        if (left === 0) return;
        client.write(piece.subarray(0, Math.min(left, piece.length)));
        left = Math.max(0, left - piece.length);
        if (left > 0) return;
        cuts += 1;
        client.end();
        upstream.destroy();
      });
      upstream.on('end', () => client.end());
    });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    cuts: () => cuts,
    [Symbol.asyncDispose]: async () => void server.close(),
  };
}

it(
  'waits, cancels, reads samples, and loses no batch with its connection',
  { timeout: 120_000 },
  async () => {
    await using fixture = await ServeFixture.create();
    const server = await fixture.start();
    await using engine = await serve({});
    await using proxy = await cuttingProxy(Number(new URL(server.controlUrl).port));
    const script = path.join(repositoryDir, 'tests/support/slipway-client.py');
    const { stdout } = await promisify(execFile)(
      'python3',
      [
        '-B',
        script,
        path.join(repositoryDir, 'python'),
        server.controlUrl,
        proxy.url,
        `${engine.url}/v1`,
      ],
      { env: { PATH: process.env['PATH'] } },
    );
    const { samples, ...said } = JSON.parse(stdout) as Fields & {
      readonly samples: readonly Fields[];
    };
    assert.ok(samples.length > 0, 'there are samples');
    assert.deepEqual(said, {
      ...{ status: 'success', cancelled: ['endless é'], state: 'cancelled' },
      refused: [
        [409, 'SAMPLES_UNAVAILABLE'],
        [404, null],
        [400, 'CONFIG_INVALID'],
        [null, null],
      ],
      batches: [
        [
          [0, null],
          [1, null],
        ],
        [
          [2, 0],
          [3, 0],
        ],
        [
          [4, 1],
          [5, 1],
        ],
      ],
      ...{ end: ['ended', 0], paused: 'paused', resumed: 'collecting' },
      ...{ groups: [], all: [true, true] },
    });
    assert.equal(proxy.cuts(), 3);
  },
);
