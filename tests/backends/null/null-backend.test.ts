import assert from 'node:assert/strict';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { describe, it } from 'node:test';
import { NullBackend } from '../../../src/backends/null/null-backend.ts';
import { openBackend } from '../../../src/backends/registry.ts';
import type { ExecutionRequest, ExecutionResult } from '../../../src/backends/execution-backend.ts';
import { ManualClock } from '../../fakes/manual-clock.ts';
import { until } from '../../support/until.ts';

const clock = new ManualClock();
const limits = { maxConcurrent: 7, maxQueueDepth: 9 };

async function run(told: unknown, over: Partial<ExecutionRequest> = {}) {
  const completed: ExecutionResult[] = [];
  const backend = new NullBackend({}, { limits, clock });
  const execution = backend.execute(
    {
      ...{ id: 'r1', prompt: [{ role: 'user', content: 'work' }], label: 'l' },
      metadata: told === undefined ? null : { null: told },
      ...{ agentTimeoutMs: null, graderTimeoutMs: null, queuedMs: 0, route: null },
      ...{ wantsGrade: true, secrets: [] },
      ...over,
    },
    {
      agentBegins: () => Promise.resolve(),
      progress: () => undefined,
      workflowCompleted: (result) => {
        completed.push(result);
        return Promise.resolve();
      },
    },
  );
  let result: ExecutionResult | null = null;
  void execution.result.then((one) => (result = one));
  await until('it has ended', () => {
    clock.advance(100);
    return result !== null;
  });
  return { result: await execution.result, completed };
}

describe('the null backend', () => {
  const ends: readonly [
    title: string,
    told: unknown,
    over: Partial<ExecutionRequest>,
    end: unknown[],
  ][] = [
    ['succeeds with 1 when it is told nothing', undefined, {}, ['success', null, 1]],
    ['has the reward that it is told', { reward: 0.25 }, {}, ['success', null, 0.25]],
    ['may have no reward', { reward: null }, {}, ['failure', 'REWARD_MISSING', null]],
    ['has no reward where no grade is wanted', {}, { wantsGrade: false }, ['success', null, null]],
    ['takes its time', { duration_ms: 5_000, grade_ms: 5_000 }, {}, ['success', null, 1]],
    [
      'has a limit for the agent',
      { duration_ms: 500 },
      { agentTimeoutMs: 400 },
      ['failure', 'AGENT_TIMEOUT', null],
    ],
    [
      'has a limit for grading',
      { grade_ms: 500 },
      { graderTimeoutMs: 400 },
      ['failure', 'GRADER_TIMEOUT', null],
    ],
    [
      'fails as it is told',
      { fail: 'ENVIRONMENT_LOST' },
      {},
      ['failure', 'ENVIRONMENT_LOST', null],
    ],
    ['needs a model to call one', { agent_calls: 1 }, {}, ['failure', 'MODEL_UNSPECIFIED', null]],
    ['knows its options', { rewards: 1 }, {}, ['failure', 'CONFIG_INVALID', null]],
    ['knows the codes', { fail: 'NO_SUCH_CODE' }, {}, ['failure', 'CONFIG_INVALID', null]],
  ];
  for (const [title, told, over, end] of ends)
    it(title, async () => {
      const { result } = await run(told, over);
      assert.deepEqual([result.status, result.outcome.cause, result.sample?.reward], end);
    });

  it('fails in grading with a code of verifiers, in the agent’s part with others', async () => {
    const grading = await run({ fail: 'VERIFIER_TIMEOUT' });
    assert.equal(grading.completed.length, 1);
    assert.equal(grading.result.outcome.stage, 'verifier');
    assert.equal(grading.result.errCategory, 'timeout');
    const agent = await run({ fail: 'AGENT_FAILED' });
    assert.equal(agent.completed.length, 0);
    assert.equal(agent.result.errCategory, 'agent_error');
  });

  for (const [status, cause] of [
    [200, null],
    [503, 'ENGINE_UNAVAILABLE'],
  ] as const)
    it(`asks the model as often as it is told; an answer of ${status} is ${cause ?? 'good'}`, async () => {
      const asked: string[] = [];
      const server = createServer((request, response) => {
        asked.push(`${request.url ?? ''} ${request.headers.authorization ?? ''}`);
        response.statusCode = status;
        response.end('{}');
      });
      await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
      const { port } = server.address() as AddressInfo;
      const route = { baseUrl: `http://127.0.0.1:${port}/v1`, apiKey: 'k' };
      const { result } = await run({ agent_calls: 2 }, { route });
      server.close();
      server.closeAllConnections();
      assert.equal(result.outcome.cause, cause);
      assert.deepEqual(asked, Array(cause === null ? 2 : 1).fill('/v1/chat/completions Bearer k'));
    });

  it('fails typed where an answer of the model breaks off', async () => {
    const server = createServer((_request, response) => {
      response.writeHead(200, { 'content-length': 100 });
      response.write('{');
      setImmediate(() => response.destroy());
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const { port } = server.address() as AddressInfo;
    const route = { baseUrl: `http://127.0.0.1:${port}/v1`, apiKey: 'k' };
    const { result } = await run({ agent_calls: 1 }, { route });
    server.close();
    server.closeAllConnections();
    assert.equal(result.outcome.cause, 'ENGINE_UNAVAILABLE');
  });

  it('ends a call that outlasts the limit of the agent', async () => {
    const server = createServer(() => undefined);
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const { port } = server.address() as AddressInfo;
    const route = { baseUrl: `http://127.0.0.1:${port}/v1`, apiKey: 'k' };
    const told = { duration_ms: 100, agent_calls: 1 };
    try {
      const { result } = await run(told, { route, agentTimeoutMs: 5_000 });
      assert.equal(result.outcome.cause, 'AGENT_TIMEOUT');
    } finally {
      server.close();
      server.closeAllConnections();
    }
    assert.deepEqual(clock.pauses, []);
  });

  it('has no options of its own, and shows the limits in its health', () => {
    assert.throws(() => new NullBackend({ speed: 1 }, { limits, clock }), {
      code: 'CONFIG_INVALID',
    });
    assert.deepEqual(new NullBackend({}, { limits, clock }).health(), {
      ...{ status: 'ok', backend: 'null', running: 0, max_concurrency: 7, max_queue_depth: 9 },
    });
  });

  it('is found by its name; another name is refused with the known ones', async () => {
    const parts = { options: {}, limits, clock } as unknown as Parameters<typeof openBackend>[1];
    assert.equal((await openBackend('null', parts)).kind, 'null');
    await assert.rejects(openBackend('nul', parts), {
      code: 'BACKEND_UNKNOWN',
      remedy: 'Use one of: null, local, native, harbor.',
    });
  });
});
