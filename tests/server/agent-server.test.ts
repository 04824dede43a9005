import assert from 'node:assert/strict';
import { mkdir, mkdtemp, rm } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { describe, it } from 'node:test';
import { adminSecretOf } from '../../src/server/admin-secret.ts';
import { UrlPolicy } from '../../src/wire/url-policy.ts';
import { FakeRolloutService } from '../fakes/fake-rollout-service.ts';
import { agentServerOver, bearer, blueKey, Serving, threeKeys } from './serving.ts';

const right = { base_url: 'http://127.0.0.1:9/sessions/s/v1', model: 'openai/model' };
const reply = (exit_status: string) => ({
  ...{ reward: 0, exit_status, agent_metrics: {}, eval_report: {} },
});
const badId = '-bad-';

describe('POST /run', () => {
  const refused: readonly (readonly [string, Record<string, unknown>, string])[] = [
    ['a task that is not there', { instance_id: 'none' }, 'TaskNotFound'],
    ['no task', {}, 'InvalidInstanceId'],
    ['a task elsewhere', { instance_id: '../there' }, 'InvalidInstanceId'],
    ['a hidden task', { instance_id: '.there' }, 'InvalidInstanceId'],
    ['a task with a line behind it', { instance_id: 'there\n' }, 'InvalidInstanceId'],
    ['a server that is no server', { session_server_id: 'http://h:1' }, 'InvalidSessionServerId'],
    ['an empty server', { session_server_id: '' }, 'InvalidSessionServerId'],
    ['another server', { session_server_id: '127.0.0.1:8' }, 'InvalidSessionServerId'],
    ['a bad instance', { session_server_instance_id: badId }, 'InvalidSessionServerId'],
    [
      'an instance behind no address',
      { base_url: 'x', session_server_instance_id: 'i' },
      'InvalidSessionServerId',
    ],
  ];
  for (const [title, fields, status] of refused)
    for (const url of ['/run', '//run'])
      it(`answers 200 with ${status} for ${title} at ${url}`, async () => {
        const tasksDir = await mkdtemp(path.join(os.tmpdir(), 'slipway-tasks-'));
        try {
          await mkdir(path.join(tasksDir, 'there'));
          const service = new FakeRolloutService();
          const log = { log: () => undefined };
          const agentServer = agentServerOver(service, log, { tasksDir });
          await using serving = new Serving({ service, agentServer });
          const answer = await serving.post(url, { ...right, unknown: { key: 1 }, ...fields });
          assert.equal(answer.statusCode, 200);
          assert.deepEqual(answer.json(), reply(status));
          assert.deepEqual((await serving.ask({ url: '/clients' })).json(), {});
        } finally {
          await rm(tasksDir, { recursive: true });
        }
      });

  it('refuses a model at an address that may not be named, before any client of it is asked', async () => {
    const addresses = new UrlPolicy({ allow: [], privateAddresses: 'deny' });
    await using serving = new Serving({ addresses });
    const answer = await serving.post('/run', right);
    assert.equal(answer.statusCode, 422);
    assert.match(answer.body, /base_url names a private address: 127\.0\.0\.1/);
    assert.deepEqual((await serving.ask({ url: '/clients' })).json(), {});
  });

  const missing = (field: string, input: unknown) => ({
    ...{ type: 'missing', loc: ['body', field], msg: 'Field required', input },
  });
  const invalid: readonly (readonly [string, unknown, unknown])[] = [
    ['an empty table', {}, [missing('base_url', {}), missing('model', {})]],
    [
      'values of other types',
      { ...right, base_url: 1, sampling_params: [], instance_id: null },
      [
        {
          ...{ type: 'string_type', loc: ['body', 'base_url'], input: 1 },
          msg: 'Input should be a valid string',
        },
        {
          ...{ type: 'dict_type', loc: ['body', 'sampling_params'], input: [] },
          msg: 'Input should be a valid dictionary',
        },
        {
          ...{ type: 'string_type', loc: ['body', 'instance_id'], input: null },
          msg: 'Input should be a valid string',
        },
      ],
    ],
  ];
  for (const [title, body, detail] of invalid)
    it(`answers 422 in FastAPI's shape for ${title}`, async () => {
      await using serving = new Serving();
      const answer = await serving.post('/run', body);
      assert.equal(answer.statusCode, 422);
      assert.deepEqual(answer.json(), { detail });
    });

  it('repeats no key of a model in a refusal', async () => {
    await using serving = new Serving();
    const answer = await serving.post('/run', { api_key: 'the-key-of-the-model' });
    assert.equal(answer.statusCode, 422);
    assert.ok(!answer.body.includes('the-key-of-the-model'), answer.body);
  });
});

describe('the routes that end trials', () => {
  const flushes: readonly (readonly [string, unknown, number, unknown])[] = [
    ['nobody', {}, 400, null],
    ['a bad instance', { session_server_instance_id: badId }, 400, null],
    ['an empty instance', { session_server_instance_id: '' }, 400, null],
    ['a bad server', { session_server_id: 'h' }, 400, null],
    [
      'an instance without trials',
      { session_server_instance_id: 'i', session_server_id: null },
      200,
      { session_server_instance_id: 'i', session_server_id: null, cancelled: 0 },
    ],
    [
      'a server without trials',
      { session_server_id: 'H:1', other: 1 },
      200,
      { session_server_id: 'h:1', cancelled: 0 },
    ],
  ];
  for (const [title, body, status, expected] of flushes)
    it(`answer ${status} to a flush of ${title}`, async () => {
      await using serving = new Serving();
      const answer = await serving.post('/flush', body);
      assert.equal(answer.statusCode, status);
      if (expected === null)
        assert.equal(typeof answer.json<{ detail: unknown }>().detail, 'string');
      else assert.deepEqual(answer.json(), expected);
    });

  const alls: readonly (readonly [unknown, unknown])[] = [
    [undefined, { cancelled_tasks: 0, killed_projects: [], errors: [] }],
    [{ kill_containers: false }, { cancelled_tasks: 0 }],
    [{ cancel_tasks: false }, { killed_projects: [], errors: [] }],
    [
      { cancel_tasks: false, kill_containers: false, prune: true },
      {
        prune: {
          containers: 'removed: old-sandbox',
          volumes: 'go with their sandboxes',
          networks: 'go with their sandboxes',
        },
      },
    ],
  ];
  for (const [body, expected] of alls)
    it(`say of ${body === undefined ? 'an empty body' : JSON.stringify(body)} only what was done`, async () => {
      await using serving = new Serving();
      const payload = body === undefined ? {} : { payload: body as object };
      const answer = await serving.ask({ method: 'POST', url: '/flush_all', ...payload });
      assert.equal(answer.statusCode, 200);
      assert.deepEqual(answer.json(), expected);
    });

  const secrets: readonly (readonly [string | null, string | undefined, boolean])[] = [
    [null, undefined, true],
    [' \n', undefined, true],
    ['s3cret', undefined, false],
    ['s3cret', 'Bearer s3cre', false],
    ['s3cret', 's3cret', false],
    ['s3cret', 'Basic s3cret', false],
    ['s3cret', 'Bearer s3cret', true],
    ['s3cret\r\n', 'bearer  s3cret ', true],
  ];
  for (const [secret, authorization, isLetIn] of secrets)
    it(`${isLetIn ? 'let in' : 'refuse'} ${String(authorization)} where the secret is ${JSON.stringify(secret)}`, async () => {
      await using serving = new Serving({ adminSecret: adminSecretOf(secret) });
      for (const [method, url] of [
        ['POST', '/flush'],
        ['POST', '/flush_all'],
        ['GET', '/clients'],
        ['POST', '//flush_all'],
      ] as const) {
        const headers = authorization === undefined ? {} : { authorization };
        const answer = await serving.ask({ method, url, headers });
        if (isLetIn) assert.notEqual(answer.statusCode, 403);
        else {
          assert.equal(answer.statusCode, 403);
          assert.deepEqual(answer.json(), { detail: 'Invalid or missing admin secret' });
        }
      }
      const health = await serving.ask({ url: '/health' });
      assert.equal(health.json<{ status: string }>().status, 'ok');
      assert.equal((await serving.post('/run', right)).statusCode, 200);
    });

  it('ask for a key where no secret is set, and take the secret in its place', async () => {
    await using keyed = new Serving({ keys: threeKeys });
    assert.equal((await keyed.ask({ url: '/clients' })).statusCode, 401);
    assert.equal((await keyed.post('/run', right)).statusCode, 401);
    assert.equal((await keyed.post(`/k/${blueKey}//run`, right)).statusCode, 200);
    await using both = new Serving({ keys: threeKeys, adminSecret: adminSecretOf('s3cret') });
    const ask = async (url: string, secret: string) =>
      (await both.ask({ url, headers: bearer(secret) })).statusCode;
    assert.equal(await ask('/clients', 's3cret'), 200);
    assert.equal(await ask('/clients', blueKey), 403);
    assert.equal(await ask(`/k/${blueKey}/clients`, 's3cret'), 200);
    assert.equal(await ask('/k/not-a-key-0123456789/clients', 's3cret'), 401);
  });
});
