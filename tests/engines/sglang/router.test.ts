import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { isRolloutError } from '../../../src/core/errors.ts';
import { never } from '../../../src/core/linked-abort.ts';
import { discoverWorkers } from '../../../src/engines/sglang/router.ts';
import { FakeHost, sendJson } from '../shared/fake-host.ts';

const found = ['http://a:1', 'http://b:2/x'];

describe('discovery of workers', () => {
  const rows: readonly (readonly [string, Record<string, unknown>])[] = [
    [
      'from /workers, without ranks and duplicates',
      {
        '/workers': {
          workers: [
            { id: '1', url: 'http://a:1@0' },
            { id: '2', url: 'http://a:1@1' },
            { id: '3', url: 'http://b:2/x' },
          ],
        },
      },
    ],
    ['from /list_workers', { '/list_workers': { urls: ['http://a:1', 'http://b:2/x@12'] } }],
  ];
  for (const [how, routes] of rows)
    it(`works ${how}`, async () => {
      await using host = await FakeHost.open((asked, response) => {
        assert.equal(asked.headers.authorization, 'Bearer key-1');
        const document = routes[asked.target];
        sendJson(response, document ?? {}, { status: document === undefined ? 404 : 200 });
      });
      assert.deepEqual(await discoverWorkers(host.url, { apiKey: 'key-1', signal: never }), found);
    });

  it('of a router without workers is empty', async () => {
    await using host = await FakeHost.open((_, response) => sendJson(response, { workers: [] }));
    assert.deepEqual(await discoverWorkers(host.url, { apiKey: null, signal: never }), []);
  });

  const failures = [
    [404, {}, 'ENGINE_RESPONSE_INVALID'],
    [500, {}, 'ENGINE_UNAVAILABLE'],
    [401, {}, 'ENGINE_UNAUTHORIZED'],
    [200, 'text', 'ENGINE_RESPONSE_INVALID'],
  ] as const;
  for (const [status, document, code] of failures)
    it(`at a host that answers ${status} is ${code}`, async () => {
      await using host = await FakeHost.open((_, response) =>
        sendJson(response, document, { status }),
      );
      await assert.rejects(discoverWorkers(host.url, { apiKey: null, signal: never }), (error) =>
        isRolloutError(error, code),
      );
    });
});
