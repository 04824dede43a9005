import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { fastify, type FastifyInstance, type FastifyReply } from 'fastify';
import {
  RolloutController,
  type RolloutControllerOptions,
} from '../../src/callbacks/rollout-controller.ts';
import { SubmissionRefused } from '../../src/callbacks/rollout-submitter.ts';
import {
  rolloutRequestSchema,
  type RolloutRequest,
} from '../../src/wire/rollout/rollout-request.ts';
import { ManualClock } from '../fakes/manual-clock.ts';
import { until } from '../support/until.ts';

/** A rollout server that answers what a test says. */
class FakeServer implements AsyncDisposable {
  readonly bodies: string[] = [];
  readonly keys: (string | undefined)[] = [];
  readonly cancelled: unknown[] = [];
  submit: (request: RolloutRequest, reply: FastifyReply) => unknown = () => undefined;
  url = '';
  readonly #server: FastifyInstance = fastify({ forceCloseConnections: true });

  static async start(): Promise<FakeServer> {
    const fake = new FakeServer();
    const server = fake.#server;
    server.removeAllContentTypeParsers();
    server.addContentTypeParser('*', { parseAs: 'string' }, (_request, body, done) =>
      done(null, body),
    );
    server.post('/k/key/rollout', async (request, reply) => {
      fake.bodies.push(String(request.body));
      fake.keys.push(request.headers.authorization);
      const answer = fake.submit(
        rolloutRequestSchema.parse(JSON.parse(String(request.body))),
        reply,
      );
      if (reply.sent) return reply;
      await Promise.resolve(answer);
      return await reply.code(202).send({});
    });
    server.post('/k/key/rollout/cancel', async (request, reply) => {
      fake.cancelled.push(JSON.parse(String(request.body)));
      return await reply.send({ dispositions: { r: 'cancelled_running' } });
    });
    fake.url = `${await server.listen({ port: 0, host: '127.0.0.1' })}/k/key/`;
    return fake;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#server.close();
  }
}

async function callBack(
  url: string | null,
  request: RolloutRequest,
  body: object,
): Promise<number> {
  const answer = await fetch(url ?? '', {
    method: 'POST',
    headers: {
      authorization: `Bearer ${request.controller_api_key ?? ''}`,
      'content-type': 'application/json',
      'idempotency-key': 'k1',
    },
    body: JSON.stringify({ rollout_id: request.rollout_id, ...body }),
  });
  return answer.status;
}

async function started(options: RolloutControllerOptions): Promise<RolloutController> {
  const controller = new RolloutController(options);
  await controller.start();
  return controller;
}

const request = { initial_messages: [{ role: 'user', content: 'go' }], rollout_id: 'r' };

describe('the controller', () => {
  test('runs a rollout from its submission to its reward', async () => {
    await using server = await FakeServer.start();
    await using controller = await started({ serverUrl: server.url, serverKey: 'inbound' });
    server.submit = (body) => {
      assert.equal(body.chat_completions_url, '');
      assert.equal(body.label, '5');
      void callBack(body.completion_callback_url, body, { status: 'success' }).then(() =>
        callBack(body.grader_callback_url, body, { status: 'success', sample: { reward: 0.5 } }),
      );
    };
    const result = await controller.run({ ...request, label: '5' });
    assert.deepEqual(
      [result.id, result.status, result.reward, result.attempts],
      ['r', 'success', 0.5, 1],
    );
    assert.equal(result.completion?.['status'], 'success');
    assert.deepEqual(
      result.bodies.map(({ channel, key }) => [channel, key]),
      [
        ['completion', 'k1'],
        ['grader', 'k1'],
      ],
    );
    assert.deepEqual(server.keys, ['Bearer inbound']);
    assert.deepEqual(controller.received('other'), []);
  });

  test('without a grader the completion is the end', async () => {
    await using server = await FakeServer.start();
    await using controller = await started({ serverUrl: server.url });
    server.submit = (body) => {
      assert.equal(body.grader_callback_url, null);
      void callBack(body.completion_callback_url, body, { status: 'failure' });
    };
    const result = await controller.run({ ...request, isGraded: false });
    assert.deepEqual([result.status, result.reward], ['failure', null]);
  });

  test('a full server is asked again as it says, with the same bytes', async () => {
    await using server = await FakeServer.start();
    const clock = new ManualClock();
    await using controller = await started({ serverUrl: () => server.url, clock });
    const headers = ['7', '0', 'soon', '1e9'];
    server.submit = (body, reply) => {
      const header = headers[server.bodies.length - 1];
      if (header !== undefined) void reply.code(429).header('retry-after', header).send({});
      else void callBack(body.grader_callback_url, body, { status: 'success', sample: null });
    };
    const running = controller.run(request);
    for (const ms of [7_000, 50, 1_000, 60_000]) {
      await until(`a pause of ${ms}`, () => clock.pauses.includes(ms));
      clock.advance(ms);
    }
    const { attempts, reward } = await running;
    assert.deepEqual([attempts, reward], [5, null]);
    assert.equal(new Set(server.bodies).size, 1);
  });

  test('a server that stays full is given up when the time for that is over', async () => {
    await using server = await FakeServer.start();
    const limits = { admissionTimeoutMs: 1_000, clock: new ManualClock() };
    await using controller = await started({ serverUrl: server.url, ...limits });
    server.submit = (_body, reply) => reply.code(429).header('retry-after', '2').send({});
    await assert.rejects(
      controller.run(request),
      (error) => error instanceof SubmissionRefused && error.status === null,
    );
  });

  for (const status of [200, 404, 409, 422, 500, 503])
    test(`${status} is no acceptance`, async () => {
      await using server = await FakeServer.start();
      await using controller = await started({ serverUrl: server.url });
      server.submit = (_body, reply) => reply.code(status).send({ detail: 'why' });
      await assert.rejects(
        controller.run(request),
        (error) => error instanceof SubmissionRefused && error.status === status,
      );
    });

  test('an id whose submission was refused can be used again, one that has ended only when it is forgotten', async () => {
    await using server = await FakeServer.start();
    await using controller = await started({ serverUrl: server.url });
    server.submit = (body, reply) => {
      if (server.bodies.length === 1) void reply.code(422).send({});
      else void callBack(body.grader_callback_url, body, { status: 'success', sample: null });
    };
    await assert.rejects(controller.run(request), SubmissionRefused);
    assert.equal((await controller.run(request)).status, 'success');
    await assert.rejects(controller.run(request), /is or was under way/);
    controller.forget('r');
    assert.deepEqual(controller.received('r'), []);
    assert.equal((await controller.run(request)).status, 'success');
  });

  test('callbacks are asked for at the address by which the server reaches it', async () => {
    await using server = await FakeServer.start();
    await using controller = new RolloutController({ serverUrl: server.url });
    const first = await controller.start();
    await controller.close();
    const port = Number(new URL(first.url).port);
    await using behind = new RolloutController({ serverUrl: server.url });
    const publicUrl = `http://localhost:${port}/`;
    await behind.start({ host: '0.0.0.0', port, publicUrl });
    server.submit = (body) => {
      const url = body.grader_callback_url ?? '';
      assert.equal(url, `${publicUrl}v1/rollouts/r/grader`);
      void callBack(url, body, { status: 'success', sample: null });
    };
    assert.equal((await behind.run(request)).status, 'success');
  });

  test('a submission without an answer is sent again when that was asked for, byte for byte', async () => {
    await using server = await FakeServer.start();
    const clock = new ManualClock();
    await using controller = await started({ serverUrl: server.url, resubmits: true, clock });
    server.submit = (body, reply) => {
      if (server.bodies.length === 1) reply.hijack().raw.socket?.destroy();
      else if (server.bodies.length === 2) void reply.code(503).send({});
      else void callBack(body.grader_callback_url, body, { status: 'success', sample: null });
    };
    const running = controller.run(request);
    for (const count of [1, 2]) {
      await until('a pause', () => server.bodies.length === count && clock.pauses.includes(100));
      clock.advance(100);
    }
    assert.equal((await running).status, 'success');
    assert.equal(server.bodies.length, 3);
    assert.equal(new Set(server.bodies).size, 1);
  });

  test('a rollout that takes too long is cancelled at the server; a late grade is acknowledged', async () => {
    await using server = await FakeServer.start();
    const clock = new ManualClock();
    await using controller = await started({
      serverUrl: server.url,
      callbackTimeoutMs: 9_000,
      clock,
    });
    let body: RolloutRequest | null = null;
    server.submit = (accepted) => void (body = accepted);
    const running = controller.run(request);
    await until('it waits', () => clock.pauses.includes(9_000));
    clock.advance(9_000);
    assert.equal((await running).status, 'timeout');
    assert.deepEqual(server.cancelled, [{ ids: ['r'] }]);
    const late = body as RolloutRequest | null;
    assert.equal(await callBack(late!.grader_callback_url, late!, { status: 'success' }), 200);
    assert.equal(controller.received('r').length, 1);
  });

  test('a signal ends the wait and cancels at the server', async () => {
    await using server = await FakeServer.start();
    await using controller = await started({ serverUrl: server.url });
    const abort = new AbortController();
    const running = controller.run(request, abort.signal);
    await until('it is accepted', () => server.bodies.length === 1);
    abort.abort(new Error('enough'));
    await assert.rejects(running, /enough/);
    assert.deepEqual(server.cancelled, [{ ids: ['r'] }]);
    assert.deepEqual(await controller.cancel(['r']), { r: 'cancelled_running' });
  });

  test('a fault of the receiver is played: the acknowledgement is lost, the callback is taken', async () => {
    await using server = await FakeServer.start();
    let faults = 1;
    await using controller = await started({
      serverUrl: server.url,
      onReceived: () => (faults-- > 0 ? { status: null, isTaken: true } : undefined),
    });
    const grade = { status: 'success', sample: { reward: 1 } };
    server.submit = (body) =>
      void callBack(body.grader_callback_url, body, grade).catch(() =>
        callBack(body.grader_callback_url, body, grade),
      );
    assert.equal((await controller.run(request)).reward, 1);
    await until('the repeated one', () => controller.received('r').length === 2);
  });
});
