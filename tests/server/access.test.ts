import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { InjectOptions } from 'fastify';
import { sandboxAddress } from '../../src/wire/sandbox-address.ts';
import {
  bearer,
  blueKey,
  controlKey,
  greenKey,
  rolloutBody,
  Serving,
  threeKeys,
} from './serving.ts';

const elsewhere = { remoteAddress: '10.1.2.3' };

async function statusOf(serving: Serving, options: InjectOptions): Promise<number> {
  return (await serving.ask({ url: '/api/v1/rollouts', ...options })).statusCode;
}

describe('access without keys', () => {
  const rows: readonly (readonly [string, InjectOptions, number])[] = [
    ['this machine by IPv4', {}, 200],
    ['this machine by IPv6', { remoteAddress: '::1' }, 200],
    ['this machine by mapped IPv4', { remoteAddress: '::ffff:127.0.0.5' }, 200],
    ['what runs in a sandbox', { remoteAddress: sandboxAddress }, 403],
    ['what runs in a sandbox, mapped', { remoteAddress: `::ffff:${sandboxAddress}` }, 403],
    ['another machine', elsewhere, 403],
    ['another machine with a mapped address', { remoteAddress: '::ffff:10.1.2.3' }, 403],
    ['a key that nobody needs', { headers: bearer('any') }, 200],
    ['a page of another origin', { headers: { origin: 'http://evil.example' } }, 403],
    ['a page without an origin', { headers: { origin: 'null' } }, 403],
    ['a cross-site request', { headers: { 'sec-fetch-site': 'cross-site' } }, 403],
    [
      'a page of ours',
      { headers: { host: '127.0.0.1:8000', origin: 'http://127.0.0.1:8000' } },
      200,
    ],
    ['a name that was made to point here', { headers: { host: 'evil.example:8000' } }, 403],
    ['the name localhost', { headers: { host: 'localhost:8000' } }, 200],
    ['an IPv6 host', { headers: { host: '[::1]:8000' } }, 200],
  ];
  for (const [who, options, status] of rows)
    it(`answers ${status} to ${who}`, async () => {
      await using serving = new Serving();
      assert.equal(await statusOf(serving, options), status);
    });

  it('asks nobody from an allowed block, and still refuses others and foreign pages', async () => {
    await using serving = new Serving({ allowFrom: ['10.0.0.0/8', 'fd00::/8', '127.0.0.0/8'] });
    assert.equal(await statusOf(serving, elsewhere), 200);
    assert.equal(await statusOf(serving, { remoteAddress: 'fd12::1' }), 200);
    assert.equal(await statusOf(serving, { remoteAddress: '11.0.0.1' }), 403);
    assert.equal(await statusOf(serving, { remoteAddress: sandboxAddress }), 403);
    const page = { ...elsewhere, headers: { origin: 'http://evil.example' } };
    assert.equal(await statusOf(serving, page), 403);
  });
});

describe('access with keys', () => {
  const rows: readonly (readonly [string, InjectOptions, number])[] = [
    ['no key', {}, 401],
    ['a bearer key', { headers: bearer(controlKey) }, 200],
    ['a key in a sandbox', { remoteAddress: sandboxAddress, headers: bearer(controlKey) }, 200],
    ['a bearer key, oddly written', { headers: { authorization: `bEARER  ${blueKey} ` } }, 200],
    ['a wrong key', { headers: bearer(`${controlKey}x`) }, 401],
    ['another scheme', { headers: { authorization: `Basic ${controlKey}` } }, 401],
    ['a key in the path', { url: `/k/${controlKey}/api/v1/rollouts?limit=1` }, 200],
    ['a wrong key in the path', { url: '/k/nobody/api/v1/rollouts' }, 401],
    ['a key in the path that is not percent-encoded well', { url: '/k/%zz/api/v1/rollouts' }, 401],
    [
      'a wrong key in the path before a right one',
      { url: '/k/x/api/v1/rollouts', headers: bearer(controlKey) },
      401,
    ],
    ['two keys in the path', { url: `/k/${controlKey}/k/${controlKey}/api/v1/rollouts` }, 404],
    ['an allowed address', elsewhere, 200],
    ['an allowed address with a wrong key', { ...elsewhere, headers: bearer('wrong') }, 401],
    ['a key from anywhere', { remoteAddress: '9.9.9.9', headers: bearer(controlKey) }, 200],
    ['a key under any name', { headers: { ...bearer(controlKey), host: 'slipway.example' } }, 200],
  ];
  for (const [who, options, status] of rows)
    it(`answers ${status} to ${who}`, async () => {
      await using serving = new Serving({ keys: threeKeys, allowFrom: ['10.0.0.0/8'] });
      assert.equal(await statusOf(serving, options), status);
    });

  it('leaves every route but /health closed, before it reads a body', async () => {
    await using serving = new Serving({ keys: threeKeys, limits: { bodyBytes: 10 } });
    assert.equal((await serving.ask({ url: '/health' })).statusCode, 200);
    for (const [method, url] of [
      ['POST', '/rollout'],
      ['POST', '/rollout/cancel'],
      ['GET', '/rollout/x/status'],
      ['GET', '/metrics'],
      ['GET', '/api/v1/rollouts/x'],
      ['GET', '/api/v1/rollouts/x/files'],
      ['GET', '/api/v1/rollouts/x/files/a/b'],
      ['GET', '/api/v1/events'],
      ['GET', '/api/v1/admission'],
      ['GET', '/api/v1/callbacks/dead'],
      ['POST', '/api/v1/callbacks/dead/x/replay'],
      ['POST', '/api/v1/rollouts/cancel'],
      ['GET', '/api/v1/doctor'],
      ['GET', '/api/v1/doctor/x'],
      ['GET', '/api/v1/openapi.json'],
    ] as const) {
      const payload = method === 'POST' ? { payload: 'x'.repeat(100) } : {};
      const got = await serving.ask({ method, url, ...payload });
      assert.deepEqual(
        [url, got.statusCode, got.json()],
        [url, 401, { detail: 'a key is needed', code: 'UNAUTHORIZED' }],
      );
      assert.equal(got.headers['www-authenticate'], 'Bearer');
    }
  });

  it('says why it is paused only to those who may call', async () => {
    await using serving = new Serving({ keys: threeKeys });
    const at = serving.service.now;
    const paused = { reason: 'secret path', since: at, retryAt: at };
    serving.service.view = { ...serving.service.view, paused };
    const open = (await serving.ask({ url: '/health' })).body;
    assert.match(open, /"paused":true/);
    assert.doesNotMatch(open, /secret path/);
    const wrong = (await serving.ask({ url: '/k/nobody/health' })).body;
    assert.doesNotMatch(wrong, /secret path/);
    const known = (await serving.ask({ url: `/k/${blueKey}/health` })).body;
    assert.match(known, /"paused_reason":"secret path"/);
  });

  it('shows a tenant its own rollouts only, on every route', async () => {
    await using serving = new Serving({ keys: threeKeys });
    await serving.post('/rollout', rolloutBody('b1'), bearer(blueKey));
    await serving.post(`/k/${greenKey}/rollout`, rolloutBody('g1'));
    const ask = async (url: string, key: string) =>
      await serving.ask({ url, headers: bearer(key) });
    const idsOf = async (key: string) =>
      (await ask('/api/v1/rollouts', key))
        .json<{ rollouts: { id: string }[] }>()
        .rollouts.map(({ id }) => id);
    assert.deepEqual(await idsOf(controlKey), ['g1', 'b1']);
    assert.deepEqual(await idsOf(blueKey), ['b1']);
    assert.deepEqual(await idsOf(greenKey), ['g1']);
    for (const url of ['/api/v1/rollouts/b1', '/api/v1/rollouts/b1/files', '/api/v1/doctor/b1'])
      assert.equal((await ask(url, greenKey)).statusCode, 404);
    const events = (await ask('/api/v1/events', greenKey)).json<{
      events: { rollout_id: string }[];
    }>();
    assert.deepEqual(
      events.events.map((event) => event.rollout_id),
      ['g1'],
    );
    const foreign = await serving.post('/rollout/cancel', { ids: ['b1'] }, bearer(greenKey));
    assert.deepEqual(foreign.json(), { dispositions: { b1: 'not_found' } });
    const all = await serving.post('/rollout/cancel', { all: true }, bearer(greenKey));
    assert.deepEqual(all.json(), { dispositions: { g1: 'cancelled_queued' } });
    const state = (await ask('/rollout/b1/status', blueKey)).json<{ status: string }>().status;
    assert.equal(state, 'queued');
    const tenants = (await ask('/api/v1/admission', blueKey)).json<{
      tenants: { name: string }[];
    }>();
    assert.deepEqual(
      tenants.tenants.map(({ name }) => name),
      ['blue'],
    );
    assert.equal((await ask('/metrics', blueKey)).statusCode, 403);
    assert.equal((await ask('/metrics', controlKey)).body, 'up 1\n');
  });

  it('puts no key of a path into its log, its answers or its errors', async () => {
    await using serving = new Serving({
      keys: threeKeys,
      metrics: { contentType: 'text/plain', text: () => Promise.reject(new Error('no metrics')) },
    });
    const answers = [
      await serving.ask({ url: `/k/${controlKey}/metrics` }),
      await serving.ask({ url: `/k/${controlKey}/nowhere` }),
      await serving.ask({ method: 'PUT', url: `/k/${controlKey}/rollout` }),
      await serving.ask({ url: `/k/${controlKey}/%zz` }),
      await serving.ask({ url: '/k/some-wrong-key/metrics' }),
    ];
    assert.deepEqual(
      answers.map(({ statusCode }) => statusCode),
      [500, 404, 405, 400, 401],
    );
    const written = JSON.stringify([
      serving.lines,
      answers.map(({ body, headers }) => [body, headers]),
    ]);
    assert.doesNotMatch(written, /control-key|some-wrong-key/);
    assert.match(written, /no metrics/);
  });
});
