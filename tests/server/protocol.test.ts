import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { describe, it } from 'node:test';
import { FakeRolloutService } from '../fakes/fake-rollout-service.ts';
import { bearer, blueKey, controlKey, rolloutBody, Serving, threeKeys } from './serving.ts';

interface Exchange {
  readonly type: string;
  readonly body: string;
  readonly status: number;
  readonly answer: string;
}

/** Recorded from FastAPI 0.165.0 with Pydantic 2.14.4; but for keys, which come back masked, and the wording of our own rules. */
function recorded(name: string): readonly Exchange[] {
  const file = path.join(import.meta.dirname, '../golden/rollout', name);
  return JSON.parse(readFileSync(file, 'utf8')) as Exchange[];
}

describe('the rollout protocol', () => {
  for (const [url, name] of [
    ['/rollout', 'submit.json'],
    ['/rollout/cancel', 'cancel.json'],
  ] as const)
    it(`answers recorded bodies to ${url} byte for byte`, async () => {
      await using serving = new Serving();
      for (const { type, body, status, answer } of recorded(name)) {
        const headers = { 'content-type': type };
        const got = await serving.ask({ method: 'POST', url, payload: body, headers });
        assert.deepEqual([body, got.statusCode, got.body], [body, status, answer]);
      }
    });

  it('accepts with 202 and an empty object, and names the id in a header', async () => {
    await using serving = new Serving();
    for (const [id, header] of [
      [undefined, 'minted-1'],
      ['tenant-a::r1', 'tenant-a::r1'],
      ['zwölf %', 'zw%C3%B6lf%20%25'],
    ] as const) {
      const got = await serving.post('/rollout', rolloutBody(id));
      assert.deepEqual([got.statusCode, got.body], [202, '{}']);
      assert.equal(got.headers['x-slipway-rollout-id'], header);
      assert.equal(got.headers['content-type'], 'application/json; charset=utf-8');
    }
  });

  it('answers a repeat as the first, whatever the order of its keys, and another body with 409', async () => {
    await using serving = new Serving();
    const body = rolloutBody('r1');
    const reordered = Object.fromEntries(Object.entries(body).reverse());
    for (const repeat of [body, body, reordered, { ...body, label: null, unknown: 1 }])
      assert.equal((await serving.post('/rollout', repeat)).statusCode, 202);
    const got = await serving.post('/rollout', { ...body, label: 'other' });
    assert.equal(got.statusCode, 409);
    assert.deepEqual(got.json(), {
      detail: 'a rollout of this id exists with another body',
      code: 'ROLLOUT_CONFLICT',
    });
  });

  it('answers 409 to an id that was cancelled before it came', async () => {
    await using serving = new Serving();
    const cancelled = await serving.post('/rollout/cancel', { ids: ['early', '../x'] });
    assert.equal(cancelled.body, '{"dispositions":{"early":"not_found","../x":"not_found"}}');
    const got = await serving.post('/rollout', rolloutBody('early'));
    assert.equal(got.statusCode, 409);
    assert.match(got.body, /cancelled before it came/);
  });

  const refusals = [
    ['full', 4.2, 429, '{"detail":"rollout queue is full; retry later"}', '5'],
    ['full', 0, 429, '{"detail":"rollout queue is full; retry later"}', '1'],
    ['paused', 30, 429, '{"detail":"as the scheduler says"}', '30'],
    ['disk-full', 5, 429, '{"detail":"as the scheduler says"}', '5'],
  ] as const;
  for (const [reason, retryAfterS, status, body, retryAfter] of refusals)
    it(`refuses with ${status} and Retry-After ${retryAfter} when it is ${reason}`, async () => {
      await using serving = new Serving();
      const detail = 'as the scheduler says';
      serving.service.refusal = { kind: 'refused', reason, detail, retryAfterS };
      const got = await serving.post('/rollout', rolloutBody());
      assert.deepEqual([got.statusCode, got.body], [status, body]);
      assert.equal(got.headers['retry-after'], retryAfter);
    });

  it('refuses with 503 and Retry-After while it stops', async () => {
    await using serving = new Serving();
    serving.service.refusal = { kind: 'stopping', retryAfterS: 7 };
    const got = await serving.post('/rollout', rolloutBody());
    assert.deepEqual([got.statusCode, got.headers['retry-after']], [503, '7']);
    // It was told to: nothing has failed.
    assert.deepEqual(serving.lines, []);
  });

  it('refuses addresses that nothing may be sent to, and does not repeat them', async () => {
    await using serving = new Serving();
    const secret = 'http://user:hunter22@[bad';
    for (const field of [
      'chat_completions_url',
      'completion_callback_url',
      'grader_callback_url',
    ]) {
      const got = await serving.post('/rollout', rolloutBody('r1', { [field]: secret }));
      assert.equal(got.statusCode, 422);
      assert.deepEqual(got.json(), {
        detail: [
          {
            type: 'value_error',
            loc: ['body', field],
            msg: `Value error, ${field} is not an http or https URL`,
            input: null,
            ctx: { error: {} },
          },
        ],
      });
    }
    const empty = { grader_callback_url: '', chat_completions_url: '' };
    assert.equal((await serving.post('/rollout', rolloutBody('r1', empty))).statusCode, 202);
    const nowhere = await serving.post(
      '/rollout',
      rolloutBody('r2', { completion_callback_url: '' }),
    );
    assert.equal(nowhere.statusCode, 422);
  });

  it('never repeats keys of a body, nor a large body', async () => {
    await using serving = new Serving();
    const keys = { controller_api_key: 'hunter-controller', llm_api_key: 'hunter-llm' };
    const got = await serving.post('/rollout', { ...keys, metadata: { a: 1 } });
    assert.equal(got.statusCode, 422);
    assert.doesNotMatch(got.body, /hunter/);
    assert.match(got.body, /"llm_api_key":"\[REDACTED\]","metadata":\{"a":1\}/);
    const large = await serving.post('/rollout', { label: 'x'.repeat(5_000) });
    assert.ok(large.body.length < 1_000, large.body);
    const torn = await serving.ask({
      ...{ method: 'POST', url: '/rollout', headers: { 'content-type': 'application/json' } },
      payload: '{"controller_api_key":"hunter-controller",]',
    });
    assert.equal(torn.statusCode, 422);
    assert.doesNotMatch(torn.body, /hunter/);
  });

  it('refuses a body that is nested too deeply, holds too many values, or is not UTF-8', async () => {
    await using serving = new Serving();
    for (const [payload, said] of [
      [`{"metadata":${'{"a":'.repeat(60_000)}1${'}'.repeat(60_000)}}`, /nested too deeply/],
      [`{"metadata":{"a":[${'[],'.repeat(600_000)}1]}}`, /too many values/],
      [Buffer.from('{"label":"\xff"}', 'latin1'), /json_invalid/],
    ] as const) {
      const headers = { 'content-type': 'application/json' };
      const got = await serving.ask({ method: 'POST', url: '/rollout', payload, headers });
      assert.equal(got.statusCode, 422);
      assert.match(got.body, said);
    }
    const strings = { a: '[{,'.repeat(1_000_000), '[\\"[': '\\\\"' };
    const got = await serving.post('/rollout', rolloutBody('r1', { metadata: strings }));
    assert.equal(got.statusCode, 202);
  });

  it('takes no text of another type for JSON', async () => {
    await using serving = new Serving();
    for (const type of ['text/plain', 'application/x-www-form-urlencoded', 'multipart/form-data']) {
      const got = await serving.ask({
        ...{ method: 'POST', url: '/rollout', headers: { 'content-type': type } },
        payload: JSON.stringify(rolloutBody('r1')),
      });
      assert.equal(got.statusCode, 422);
      assert.match(got.body, /model_attributes_type/);
    }
  });

  it('tells the state of a rollout, and unknown for what the caller may not see', async () => {
    await using serving = new Serving({ keys: threeKeys });
    await serving.post('/rollout', rolloutBody('b::1'), bearer(blueKey));
    const status = async (id: string, key: string) =>
      (await serving.ask({ url: `/rollout/${id}/status`, headers: bearer(key) })).body;
    const queued = '{"rollout_id":"b::1","status":"queued","reward":null,"err_message":null}';
    assert.equal(await status('b%3A%3A1', blueKey), queued);
    assert.equal(await status('b::1', controlKey), queued);
    assert.equal(
      await status('g%2F..%2f', controlKey),
      '{"rollout_id":"g/../","status":"unknown","reward":null,"err_message":null}',
    );
  });

  it('cancels what a selector names, by disposition and by receipt', async () => {
    await using serving = new Serving();
    for (const id of ['a1', 'a2', 'b1']) await serving.post('/rollout', rolloutBody(id));
    const prefix = await serving.post('/rollout/cancel', { prefix: 'a' });
    assert.deepEqual(prefix.json(), {
      dispositions: { a1: 'cancelled_queued', a2: 'cancelled_queued' },
    });
    const receipts = await serving.post('/api/v1/rollouts/cancel', {
      ids: ['b1', 'b1', '__proto__'],
    });
    const { receipts: rows } = receipts.json<{ receipts: { rollout_id: string }[] }>();
    assert.deepEqual(
      rows.map((row) => row.rollout_id),
      ['b1', '__proto__'],
    );
    assert.deepEqual(rows[0], {
      ...{ rollout_id: 'b1', disposition: 'cancelled_queued', stage: 'queued' },
      ...{ model_calls_ended: 0, processes_killed: 0, confirmed_gone: [], is_complete: true },
      ...{ problem: null, duration_ms: 3, at: '2026-01-02T03:04:05.678Z' },
    });
    const again = await serving.post('/rollout/cancel', { ids: ['b1', '__proto__'] });
    assert.equal(again.body, '{"dispositions":{"b1":"not_found","__proto__":"not_found"}}');
    const many = { ids: Array.from({ length: 10_001 }, (_, index) => String(index)) };
    assert.match((await serving.post('/rollout/cancel', many)).body, /"type":"too_long"/);
  });

  it('puts its figures behind what the backend says of itself', async () => {
    const service = new FakeRolloutService();
    service.backend = { status: 'degraded', backend: 'fake', concurrency: { running: 1 } };
    const paused = { reason: '5 failures: DISK_FULL', since: service.now, retryAt: service.now };
    await using serving = new Serving({ service, instanceId: 'i-1' });
    const capacity =
      '"capacity":{"max_concurrent":2,"max_queue_depth":2,"in_flight":1,"queue_depth":0,"available":3,"accepting":true}';
    const own = '"status":"degraded","backend":"fake","concurrency":{"running":1}';
    const health = async () => (await serving.ask({ url: '/health' })).body;
    assert.equal(await health(), `{${own},${capacity},"instance_id":"i-1"}`);
    service.view = { ...service.view, paused, isStopping: true };
    assert.equal(
      await health(),
      `{${own},${capacity},"instance_id":"i-1","paused":true,"paused_reason":"5 failures: DISK_FULL","stopping":true}`,
    );
  });
});
