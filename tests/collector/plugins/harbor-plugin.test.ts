import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { AgentAbortInput, AgentRunInput } from '../../../src/collector/agent-plugin.ts';
import { faultOfExit, harborPlugin } from '../../../src/collector/plugins/harbor-plugin.ts';
import type { Variables } from '../../../src/collector/plugins/harbor-settings.ts';
import { never } from '../../../src/core/linked-abort.ts';
import { RecordedLogger } from '../recorded-logger.ts';
import { rows } from '../scripted-rollouts.ts';

interface Sent {
  readonly url: string;
  readonly secret: string | null;
  readonly body: Readonly<Record<string, unknown>>;
}

function host(answers: readonly (object | number)[] = [{ cancelled: 2 }]) {
  const sent: Sent[] = [];
  const logger = new RecordedLogger();
  const send = ((url: string, init: RequestInit) => {
    sent.push({
      url,
      secret: new Headers(init.headers).get('authorization'),
      body: JSON.parse(init.body as string) as Sent['body'],
    });
    const answer = answers[Math.min(sent.length, answers.length) - 1];
    return Promise.resolve(
      typeof answer === 'number'
        ? new Response('no', { status: answer })
        : Response.json(answer ?? {}),
    );
  }) as typeof fetch;
  return {
    ...{ sent, logger },
    abort: async (options: Readonly<Record<string, unknown>>, variables: Variables) => {
      const input: AgentAbortInput = {
        ...{ reason: 'batch-full', rolloutIds: [], options, logger, signal: never },
      };
      return await harborPlugin({ variables, fetch: send }).abort(input);
    },
    run: async (input: Partial<AgentRunInput>, variables: Variables = {}) => {
      const row = { ...rows(1)[0]!, epoch: 0 };
      return await harborPlugin({ variables, fetch: send }).run({
        request: {
          ...{ rolloutId: 'r', groupIndex: 0, memberIndex: 0, index: 0, attempt: 1, row },
          ...{ weightVersion: null, seed: null, resume: [] },
        },
        ...{ baseUrl: 'http://s:1/sessions/x/v1', messages: [], sampling: {}, metadata: {} },
        ...{ session: null, options: {}, logger, signal: never, ...input },
      });
    },
  };
}

const id = { session_server_instance_id: 'i1' };

describe('abort at a Harbor agent server', () => {
  for (const { title, options, variables, url, secret } of [
    {
      title: 'a line break at the end',
      options: {},
      variables: { AGENT_SERVER_URL: 'http://h:1\n', HARBOR_ADMIN_SECRET: 's3\n' },
      ...{ url: 'http://h:1/flush', secret: 'Bearer s3' },
    },
    {
      title: 'CRLF',
      options: {},
      variables: { AGENT_SERVER_URL: 'http://h:1/\r\n', HARBOR_ADMIN_SECRET: 's3\r\n' },
      ...{ url: 'http://h:1/flush', secret: 'Bearer s3' },
    },
    {
      title: 'spaces around, slashes at the end, a path kept',
      options: {},
      variables: { AGENT_SERVER_URL: '  http://h:1/base//  ', HARBOR_ADMIN_SECRET: '\t s3 ' },
      ...{ url: 'http://h:1/base/flush', secret: 'Bearer s3' },
    },
    {
      title: 'a secret of white space alone',
      options: {},
      variables: { AGENT_SERVER_URL: 'http://h:1', HARBOR_ADMIN_SECRET: ' \r\n' },
      ...{ url: 'http://h:1/flush', secret: null },
    },
    {
      title: 'an empty secret',
      options: { secret: '' },
      variables: { AGENT_SERVER_URL: 'http://h:1', HARBOR_ADMIN_SECRET: '' },
      ...{ url: 'http://h:1/flush', secret: null },
    },
    {
      title: 'the option before both variables',
      options: { url: ' http://option:1/\n', secret: 'own' },
      variables: {
        ...{ AGENT_SERVER_URL: 'http://first:1', SWE_AGENT_URL: 'http://second:1' },
        HARBOR_ADMIN_SECRET: 'other',
      },
      ...{ url: 'http://option:1/flush', secret: 'Bearer own' },
    },
    {
      title: 'the first variable before the second, an option of white space being none',
      options: { url: ' \n' },
      variables: { AGENT_SERVER_URL: 'http://first:1', SWE_AGENT_URL: 'http://second:1' },
      ...{ url: 'http://first:1/flush', secret: null },
    },
    {
      title: 'the second where the first is white space',
      options: {},
      variables: { AGENT_SERVER_URL: ' \r\n ', SWE_AGENT_URL: 'http://second:1' },
      ...{ url: 'http://second:1/flush', secret: null },
    },
  ])
    it(`takes ${title}`, async () => {
      const { sent, abort } = host();
      await abort({ ...options, ...id }, variables);
      assert.deepEqual(sent, [{ url, secret, body: { session_server_instance_id: 'i1' } }]);
    });

  const url = { url: 'http://h:1' };
  for (const { title, options, missing } of [
    { title: 'the address', options: id, missing: /address of the agent server/ },
    { title: 'an address of white space', options: { url: ' \n', ...id }, missing: /address/ },
    { title: 'the id', options: url, missing: /missing the id of the session server/ },
    {
      title: 'an id that is white space',
      options: { ...url, session_server_instance_id: ' \r\n' },
      missing: /missing the id/,
    },
    { title: 'both', options: {}, missing: /address .* and the id/ },
  ])
    it(`sends nothing without ${title}, and warns once which is missing`, async () => {
      const { sent, logger, abort } = host();
      await abort(options, {});
      assert.deepEqual(sent, []);
      assert.equal(logger.lines.length, 1);
      assert.equal(logger.lines[0]?.level, 'warn');
      assert.match(logger.lines[0].message, missing);
    });

  for (const { title, given } of [
    { title: 'a map of ports', given: { '8001': 'a', '8002': 'b' } },
    { title: 'a list', given: ['a', ' b\n', 'a', ''] },
    { title: 'a list of objects', given: [{ instance_id: 'a' }, { instance_id: 'b', port: 1 }] },
  ])
    it(`flushes every instance of ${title}`, async () => {
      const { sent, abort } = host();
      const answer = await abort({ ...url, session_server_instance_ids: given }, {});
      assert.deepEqual(
        sent.map(({ body }) => body['session_server_instance_id']),
        ['a', 'b'],
      );
      assert.equal(answer?.cancelled, 4);
    });

  it('tries a host that fails three times, then says so', async () => {
    const { sent, abort } = host([503]);
    await assert.rejects(abort({ ...url, ...id }, {}), /\/flush answered 503/);
    assert.equal(sent.length, 3);
  });

  for (const { title, options, named } of [
    {
      title: 'an address with a line break inside',
      options: { url: 'http://h\n:1' },
      named: 'url',
    },
    { title: 'an address of no scheme', options: { url: 'h:1' }, named: 'url' },
    {
      title: 'a secret with a line break inside',
      options: { ...url, secret: 'a\r\nb' },
      named: 'secret',
    },
  ])
    it(`sends nothing for ${title}, and names it`, async () => {
      const { sent, abort } = host();
      await assert.rejects(abort({ ...options, ...id }, {}), {
        code: 'PLUGIN_INVALID',
        field: `agent_options.${named}`,
      });
      assert.deepEqual(sent, []);
    });
});

describe('run at a Harbor agent server', () => {
  it('sends the row beside what is the collector’s own, which wins', async () => {
    const answer = { reward: 0.5, exit_status: 'Submitted', agent_metrics: { turns: 3 }, more: 1 };
    const { sent, run } = host([answer]);
    const result = await run(
      {
        metadata: { instance_id: 'task-1', api_key: 'k', model: 'row', max_seq_len: '4096' },
        sampling: { temperature: 1 },
        session: { serverId: 'h:2', instanceId: 'i1' },
      },
      { AGENT_SERVER_URL: 'http://h:1/ ', AGENT_MODEL_NAME: ' policy\n' },
    );
    assert.deepEqual(sent, [
      {
        ...{ url: 'http://h:1/run', secret: null },
        body: {
          ...{ instance_id: 'task-1', api_key: 'k', max_seq_len: 4096 },
          ...{ model: 'openai/policy', base_url: 'http://s:1/sessions/x/v1' },
          ...{ sampling_params: { temperature: 1 }, session_server_id: 'h:2' },
          session_server_instance_id: 'i1',
        },
      },
    ]);
    assert.deepEqual(result, {
      ...{ reward: 0.5, exit_status: 'Submitted', agent_metrics: { turns: 3 }, eval_report: {} },
    });
  });

  it('goes to this machine when no address is named', async () => {
    const { sent, run } = host([{}]);
    await run({});
    assert.equal(sent[0]?.url, 'http://localhost:11000/run');
  });

  it('rejects for an answer that is none', async () => {
    await assert.rejects(host([500]).run({}), /\/run answered 500/);
  });

  for (const [exitStatus, fault] of [
    ['Flushed', 'cancelled'],
    ['TaskNotFound', 'task'],
    ['InvalidInstanceId', 'task'],
    ['InvalidSessionServerId', 'infrastructure'],
    ['ImportError', 'infrastructure'],
    ['Error: no daemon', 'infrastructure'],
    ['TimeLimitExceeded', null],
    ['SequenceLengthLimitExceeded', null],
    ['AgentError', null],
    ['Submitted', null],
    ['Unknown', null],
  ] as const)
    it(`takes ${exitStatus} for ${fault ?? 'the policy’s own'}`, () => {
      assert.equal(faultOfExit(exitStatus), fault);
    });
});
