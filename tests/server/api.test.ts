import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { RolloutError } from '../../src/core/errors.ts';
import type { CallbacksDocument } from '../../src/wire/api/callback.ts';
import type { EventsDocument } from '../../src/wire/api/event.ts';
import type { RolloutDetailDocument, RolloutsDocument } from '../../src/wire/api/rollout.ts';
import type { Diagnosis } from '../../src/wire/rollout/diagnosis.ts';
import type { FakeRolloutService } from '../fakes/fake-rollout-service.ts';
import {
  bearer,
  blueKey,
  controlKey,
  greenKey,
  rolloutBody,
  Serving,
  threeKeys,
} from './serving.ts';

const at = '2026-01-02T03:04:05.678Z';

async function submit(serving: Serving, ids: readonly string[]): Promise<void> {
  for (const id of ids) await serving.post('/rollout', rolloutBody(id));
}

async function killCallbacks(service: FakeRolloutService, id: string): Promise<void> {
  await service.store.change({
    ...{ id, from: ['queued'], set: { state: 'success', endedAt: service.now } },
    deliveries: (['completion', 'grader'] as const).map((channel) => ({
      ...{ key: `${id}-${channel}`, rolloutId: id, channel },
      url: `http://user:hunter2@controller.example:81/${id}/secret?token=hunter2`,
      authorization: 'Bearer hunter2',
      body: '{"status":"success","secret":"hunter2"}',
    })),
  });
  for (const channel of ['completion', 'grader'])
    await service.store.dead(`${id}-${channel}`, { attempts: 5, error: 'answered 404' });
}

describe('the API', () => {
  it('lists rollouts newest first, by pages and filters', async () => {
    await using serving = new Serving();
    await submit(serving, ['a1', 'a2', 'b1', 'a3', 'b2']);
    await serving.post('/rollout/cancel', { ids: ['a2'] });
    const page = async (query: string) =>
      (await serving.ask({ url: `/api/v1/rollouts${query}` })).json<RolloutsDocument>();
    const idsOf = ({ rollouts }: RolloutsDocument) => rollouts.map(({ id }) => id).join(' ');
    const first = await page('?limit=2');
    assert.deepEqual([idsOf(first), first.next_after], ['b2 a3', 'a3']);
    const second = await page('?limit=2&after=a3');
    assert.deepEqual([idsOf(second), second.next_after], ['b1 a2', 'a2']);
    const third = await page('?limit=2&after=a2');
    assert.deepEqual([idsOf(third), third.next_after], ['a1', null]);
    assert.equal(idsOf(await page('?prefix=a')), 'a3 a2 a1');
    assert.equal(idsOf(await page('?state=cancelled,running')), 'a2');
    assert.equal(idsOf(await page('?tenant=nobody')), '');
    for (const query of ['?limit=0', '?limit=501', '?limit=x', '?state=done', '?state=']) {
      const got = await serving.ask({ url: `/api/v1/rollouts${query}` });
      assert.equal(got.statusCode, 422, query);
      assert.match(got.body, /"loc":\["query","(limit|state)"/);
    }
  });

  it('shows where a rollout is and what it waits for, and never its request', async () => {
    await using serving = new Serving();
    const { service } = serving;
    await submit(serving, ['r1']);
    const since = service.now;
    service.live.set('r1', {
      progress: {
        stage: 'running agent',
        waitingOn: { kind: 'engine', owner: 'engine', detail: 'silent', since, deadline: null },
        lastProgressAt: since,
      },
      calls: {
        ...{ callsRunning: 1, callsDone: 2, lastCallEndedAt: since },
        waiting: { since, bytes: 0, lastByteAt: null },
        refusal: { status: 429, message: 'slow down', at: since, count: 3 },
        spent: { limit: 'max_turns', max: 4, used: 4, refused: 2, at: since },
        capture: { calls: 3, problem: { code: 'CAPTURE_TOO_LARGE', message: 'too much' } },
      },
    });
    const got = await serving.ask({ url: '/api/v1/rollouts/r1' });
    assert.deepEqual(got.json<RolloutDetailDocument>(), {
      ...{ id: 'r1', tenant: 'default', state: 'queued', stage: 'running agent' },
      waiting_on: { kind: 'engine', owner: 'engine', detail: 'silent', since: at, deadline: null },
      ...{ last_progress_at: at, attempt: 0, has_agent_begun: false, accepted_at: at },
      ...{ started_at: null, completed_at: null, ended_at: null, outcome: null },
      calls: {
        ...{ running: 1, done: 2, last_call_ended_at: at },
        waiting: { since: at, bytes: 0, last_byte_at: null },
        refusal: { status: 429, message: 'slow down', at, count: 3 },
        spent: { limit: 'max_turns', max: 4, used: 4, refused: 2, at },
        capture: { calls: 3, problem: { code: 'CAPTURE_TOO_LARGE', message: 'too much' } },
      },
      ...{ is_tombstone: false, callbacks: [], receipts: [] },
    });
    assert.doesNotMatch(got.body, /controller-secret|initial_messages/);
    assert.equal((await serving.ask({ url: '/api/v1/rollouts/r2' })).statusCode, 404);
  });

  it('lists dead callbacks without their addresses and bodies, and sends one again', async () => {
    await using serving = new Serving({ keys: threeKeys });
    for (const [id, key] of [
      ['b1', blueKey],
      ['g1', greenKey],
    ] as const) {
      await serving.post('/rollout', rolloutBody(id), bearer(key));
      await killCallbacks(serving.service, id);
    }
    const dead = async (key: string, query = '') => {
      const url = `/api/v1/callbacks/dead${query}`;
      const got = await serving.ask({ url, headers: bearer(key) });
      assert.doesNotMatch(got.body, /hunter2|secret/);
      return got.json<CallbacksDocument>();
    };
    const all = await dead(controlKey);
    assert.deepEqual(
      all.callbacks.map(({ key }) => key),
      ['b1-completion', 'b1-grader', 'g1-completion', 'g1-grader'],
    );
    const [first] = all.callbacks;
    assert.deepEqual(
      [first?.receiver, first?.attempts, first?.last_error, first?.size_bytes],
      ['http://controller.example:81', 5, 'answered 404', 39],
    );
    const page = await dead(controlKey, '?limit=3');
    assert.deepEqual([page.callbacks.length, page.next_after], [3, page.callbacks[2]?.seq]);
    const rest = await dead(controlKey, `?limit=3&after=${page.next_after}`);
    assert.deepEqual(
      [rest.callbacks.map(({ key }) => key), rest.next_after],
      [['g1-grader'], null],
    );
    assert.equal((await dead(blueKey)).callbacks.length, 2);

    const replay = (key: string, as: string) =>
      serving.ask({
        ...{ method: 'POST', url: `/api/v1/callbacks/dead/${key}/replay`, headers: bearer(as) },
      });
    assert.equal((await replay('b1-grader', greenKey)).statusCode, 404);
    const replayed = await replay('b1-grader', blueKey);
    assert.deepEqual(
      [replayed.statusCode, replayed.json<{ state: string }>().state],
      [200, 'pending'],
    );
    assert.equal((await replay('b1-grader', blueKey)).statusCode, 404);
    assert.equal((await dead(controlKey)).callbacks.length, 3);
  });

  it('tells what holds up the server and each rollout that stands still', async () => {
    const finding = (rolloutId: string | null, kind: Diagnosis['kind']): Diagnosis => ({
      ...{ rolloutId, kind, owner: 'operator', waitingOn: 'space on the disk', deadline: null },
      ...{ since: new Date(at), evidence: ['0 bytes free'], remedy: 'Free disk space.' },
    });
    const kinds = new Map<string, Diagnosis['kind']>([
      ['r1', 'engine-silent'],
      ['r2', 'moving'],
    ]);
    await using serving = new Serving({
      doctor: {
        diagnoseServer: async () => [finding(null, 'disk-full')],
        diagnose: async (id) => {
          const kind = kinds.get(id);
          return kind === undefined ? null : finding(id, kind);
        },
      },
    });
    await submit(serving, ['r1', 'r2', 'r3']);
    const ask = async (url: string) =>
      (await serving.ask({ url })).json<{ findings: { rollout_id: string; kind: string }[] }>();
    const all = (await ask('/api/v1/doctor')).findings.map((row) => [row.rollout_id, row.kind]);
    assert.deepEqual(all, [
      [null, 'disk-full'],
      ['r1', 'engine-silent'],
    ]);
    assert.deepEqual((await ask('/api/v1/doctor/r2')).findings[0], {
      ...{ rollout_id: 'r2', kind: 'moving', owner: 'operator', waiting_on: 'space on the disk' },
      ...{ since: at, deadline: null, evidence: ['0 bytes free'], remedy: 'Free disk space.' },
    });
    assert.equal((await serving.ask({ url: '/api/v1/doctor/r3' })).statusCode, 404);
  });

  it('pages through events, and says when some are gone or have not been yet', async () => {
    await using serving = new Serving();
    const { service } = serving;
    await submit(serving, ['r1', 'r2', 'r3', 'r4']);
    const page = async (query: string) =>
      (await serving.ask({ url: `/api/v1/events${query}` })).json<EventsDocument>();
    const first = await page('?limit=3');
    assert.deepEqual(
      [first.events.map(({ cursor }) => cursor), first.next_after, first.gap],
      [[1, 2, 3], 3, null],
    );
    const second = await page('?after=3');
    assert.deepEqual(second.events, [
      {
        ...{ cursor: 4, rollout_id: 'r4', tenant: 'default', type: 'rollout:queued', at },
        payload: {},
      },
    ]);
    assert.deepEqual(
      (await page('?rollout=r2')).events.map(({ cursor }) => cursor),
      [2],
    );
    assert.deepEqual((await page('?after=9')).gap, {
      ...{ reason: 'ahead', after: 9, oldest: 1, newest: 4 },
    });
    await service.store.change({
      ...{ id: 'r1', from: ['queued'], set: { state: 'success', endedAt: new Date(0) } },
    });
    await service.store.prune({ maxAgeMs: 1_000, maxEnded: 10 }, service.now);
    assert.deepEqual((await page('?after=0')).gap, {
      ...{ reason: 'dropped', after: 0, oldest: 2, newest: 4 },
    });
    assert.equal((await page('')).gap, null);
    assert.equal((await page('?after=1')).gap, null);
    assert.equal((await serving.ask({ url: '/api/v1/events?after=-1' })).statusCode, 422);
  });
});

describe('answers to what goes wrong', () => {
  it('are JSON for paths and methods that are not there', async () => {
    await using serving = new Serving();
    for (const [method, url, status, body, allow] of [
      ['GET', '/', 404, '{"detail":"Not Found"}', undefined],
      ['GET', '/rollout/', 404, '{"detail":"Not Found"}', undefined],
      ['GET', '/rollout', 405, '{"detail":"Method Not Allowed"}', 'POST'],
      ['DELETE', '/health', 405, '{"detail":"Method Not Allowed"}', 'GET, HEAD'],
      ['POST', '/api/v1/rollouts/x', 405, '{"detail":"Method Not Allowed"}', 'GET, HEAD'],
      ['GET', '/rollout/%zz/status', 400, '{"detail":"Bad Request"}', undefined],
    ] as const) {
      const got = await serving.ask({ method, url });
      assert.deepEqual(
        [method, url, got.statusCode, got.body, got.headers.allow],
        [method, url, status, body, allow],
      );
    }
  });

  it('say 413 to a body that is too large', async () => {
    await using serving = new Serving({ limits: { bodyBytes: 1_000 } });
    const got = await serving.post('/rollout', rolloutBody('r1', { label: 'x'.repeat(1_000) }));
    assert.equal(got.statusCode, 413);
    assert.deepEqual(got.json(), {
      detail: 'The body of a request is larger than the server takes.',
      code: 'BODY_TOO_LARGE',
    });
    assert.equal((await serving.post('/rollout', rolloutBody('r1'))).statusCode, 202);
  });

  const failures: readonly (readonly [string, Error, number, object, string | undefined])[] = [
    [
      'a defect',
      new TypeError('/home/secret/path'),
      500,
      { detail: 'Internal server error', code: 'INTERNAL' },
      undefined,
    ],
    [
      'a full disk',
      new RolloutError('DISK_FULL', '/home/secret/path', { phase: 'server' }),
      503,
      { detail: 'No space is left on the host or in the sandbox.', code: 'DISK_FULL' },
      '5',
    ],
    [
      'a request that a part refuses',
      new RolloutError('REQUEST_INVALID', 'no such cursor', { phase: 'server' }),
      422,
      { detail: 'no such cursor', code: 'REQUEST_INVALID' },
      undefined,
    ],
  ];
  for (const [what, error, status, body, retryAfter] of failures)
    it(`show nothing of the inside for ${what}, which the log does`, async () => {
      await using serving = new Serving({
        metrics: { contentType: 'text/plain', text: () => Promise.reject(error) },
      });
      const got = await serving.ask({ url: '/metrics' });
      assert.deepEqual([got.statusCode, got.json()], [status, body]);
      assert.equal(got.headers['retry-after'], retryAfter);
      assert.equal(
        serving.lines.some(({ fields }) => fields['error'] === '/home/secret/path'),
        status >= 500,
      );
    });
});
