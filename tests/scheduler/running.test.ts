import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { RolloutError } from '../../src/core/errors.ts';
import { until } from '../support/until.ts';
import { failure, fired, operator, SchedulerBench, success } from './scheduler-bench.ts';

describe('a rollout that runs', () => {
  it('goes from acceptance to both callbacks, in order, and leaves nothing', async () => {
    const bench = await SchedulerBench.started();
    assert.deepEqual(await bench.submit('r1'), { kind: 'accepted', id: 'r1', isRepeat: false });
    const execution = await bench.execution('r1');
    await execution.hooks.agentBegins();
    assert.equal((await bench.store.rollout('r1'))?.hasAgentBegun, true);
    await execution.hooks.workflowCompleted(success(null));
    assert.equal(await bench.state('r1'), 'grading');
    execution.succeed(0.5);
    await bench.reaches('r1', 'success');
    await bench.empty();
    const [completion, grader, ...others] = bench.callbacks.bodies('r1');
    assert.deepEqual(others, []);
    assert.deepEqual(completion, {
      channel: 'completion',
      body: {
        ...{ status: 'success', rollout_id: 'r1', extra_fields: { phase: 'done' } },
        ...{ err_message: null, err_category: null },
      },
    });
    assert.equal(grader?.channel, 'grader');
    assert.equal((grader.body['sample'] as { reward: number }).reward, 0.5);
    assert.deepEqual(await bench.events(), [
      'r1 rollout:queued',
      'r1 rollout:started',
      'r1 rollout:completed',
      'r1 callback:delivered',
      'r1 rollout:ended',
      'r1 callback:delivered',
    ]);
    assert.deepEqual(bench.news, [
      'r1 queued',
      'r1 started',
      'r1 completed',
      'r1 ended success',
      'r1 settled',
    ]);
    assert.deepEqual(bench.gateway.calls, ['register r1', 'revoke r1']);
    assert.equal(execution.isReleased, true);
    assert.equal(bench.scheduler.admission().running, 0);
    const status = await bench.scheduler.status('r1', operator);
    assert.deepEqual(status, {
      ...{ rolloutId: 'r1', status: 'success', reward: 0.5, errMessage: null },
    });
  });

  it('has a dead key before anybody can see that it ended', async () => {
    const bench = await SchedulerBench.started();
    await bench.submit('r1');
    const execution = await bench.execution('r1');
    const livedAt: boolean[] = [];
    bench.store.onEvents(() => livedAt.push(bench.gateway.routes.has('r1')));
    execution.succeed();
    await bench.reaches('r1', 'success');
    await bench.empty();
    assert.ok(livedAt.length > 0);
    assert.ok(!livedAt.includes(true), 'its end was told while the key lived');
  });

  it('gives its agent a key of ours, and the upstream key only to the gateway', async () => {
    const bench = await SchedulerBench.started();
    await bench.submit('r1', { llm_api_key: 'model-key' });
    const { request } = await bench.execution('r1');
    assert.deepEqual(request.route, { baseUrl: 'http://gateway/v1', apiKey: 'route-r1' });
    assert.deepEqual(bench.gateway.routes.get('r1'), {
      ...{ rolloutId: 'r1', upstreamUrl: 'http://controller/chat', upstreamKey: 'model-key' },
      rules: { pins: {}, budgets: {} },
    });
    assert.deepEqual(request.secrets, ['controller-key', 'model-key', 'route-r1']);
  });

  const keys: readonly [title: string, more: object, key: string | null][] = [
    ['the key for models', { llm_api_key: 'm' }, 'm'],
    ['the key of the controller when there is none for models', {}, 'controller-key'],
    ['no key when the only one is empty', { controller_api_key: '' }, null],
  ];
  for (const [title, more, key] of keys)
    it(`reaches its model with ${title}`, async () => {
      const bench = await SchedulerBench.started();
      await bench.submit('r1', { ...more });
      await bench.execution('r1');
      assert.equal(bench.gateway.routes.get('r1')?.upstreamKey, key);
    });

  it('has no route when the controller names no model', async () => {
    const bench = await SchedulerBench.started();
    await bench.submit('r1', { chat_completions_url: '' });
    assert.equal((await bench.execution('r1')).request.route, null);
    assert.deepEqual(bench.gateway.calls, []);
  });

  it('sends one callback only when nobody asked for a grade', async () => {
    const bench = await SchedulerBench.started();
    await bench.submit('r1', { grader_callback_url: null });
    const execution = await bench.execution('r1');
    assert.equal(execution.request.wantsGrade, false);
    execution.succeed();
    await bench.empty();
    assert.deepEqual(
      bench.callbacks.bodies('r1').map(({ channel }) => channel),
      ['completion'],
    );
  });

  it('is graded for the archive where the backend computes the reward itself', async () => {
    const bench = await SchedulerBench.started();
    bench.backend.capturesFinalResult = true;
    await bench.submit('r1', { grader_callback_url: '' });
    const execution = await bench.execution('r1');
    assert.equal(execution.request.wantsGrade, true);
    await execution.hooks.workflowCompleted(success(null));
    execution.succeed(0.25);
    await bench.empty();
    assert.deepEqual(
      bench.callbacks.bodies('r1').map(({ channel }) => channel),
      ['completion'],
    );
    assert.equal((await bench.store.rollout('r1'))?.outcome?.reward, 0.25);
  });

  it('keeps its place until the archive has it, its reservation until callbacks are settled', async () => {
    const bench = await SchedulerBench.started({ maxConcurrent: 1, maxQueueDepth: 1 });
    bench.callbacks.isHeld = true;
    await bench.submit('r1');
    await bench.submit('r2');
    (await bench.execution('r1')).succeed();
    await bench.execution('r2');
    const view = bench.scheduler.admission();
    assert.deepEqual([view.running, view.queued, view.delivering], [1, 0, 1]);
    assert.deepEqual(view.capacity, {
      ...{ max_concurrent: 1, max_queue_depth: 1, in_flight: 2, queue_depth: 1 },
      ...{ available: 0, accepting: false },
    });
    assert.equal((await bench.submit('r3')).kind, 'refused');
    bench.callbacks.release('r1');
    await until('a place is free', () => bench.scheduler.admission().capacity.available === 1);
  });

  it('says that what it left is archived only when it ended by its result', async () => {
    const bench = await SchedulerBench.started({ maxConcurrent: 3 });
    const [good, broken, stopped] = await Promise.all(
      ['r1', 'r2', 'r3'].map(async (id) => {
        await bench.submit(id);
        const execution = await bench.execution(id);
        await execution.hooks.agentBegins();
        return execution;
      }),
    );
    good?.succeed();
    broken?.break(new Error('a defect'));
    await bench.reaches('r1', 'success');
    await bench.reaches('r2', 'failure');
    await bench.stop({ hurry: fired() });
    assert.equal(await bench.state('r3'), 'failure');
    assert.deepEqual(
      [good, broken, stopped].map((execution) => execution?.archived),
      [{ isComplete: true }, { isComplete: false }, { isComplete: false }],
    );
  });

  it('has its captured calls in the archive, from where they are not needed any more once they are kept', async () => {
    const bench = await SchedulerBench.started();
    const calls = { name: 'model-calls.steps.ndjson', path: '/calls', mayBeTaken: true };
    bench.gateway.files.set('r1', calls.path).set('r2', calls.path);
    await bench.submit('r1');
    (await bench.execution('r1')).succeed();
    await bench.empty();
    assert.deepEqual(bench.archive.saved[0]?.files, [calls]);
    assert.deepEqual(bench.gateway.calls, ['register r1', 'revoke r1', 'forget r1']);
    bench.archive.unkept.push({ name: calls.name, problem: 'no space' });
    await bench.submit('r2');
    (await bench.execution('r2')).succeed();
    await bench.empty();
    assert.deepEqual(bench.archive.saved[1]?.files, [calls]);
    assert.deepEqual(bench.gateway.calls.slice(3), ['register r2', 'revoke r2']);
  });

  it('leaves its captured calls where they are when the gateway cannot say where', async () => {
    const bench = await SchedulerBench.started();
    bench.gateway.files.set('r1', '/calls');
    bench.gateway.captured = () => Promise.reject(new Error('it does not answer'));
    await bench.submit('r1');
    const execution = await bench.execution('r1');
    execution.succeed();
    await bench.empty();
    assert.deepEqual(bench.archive.saved[0]?.files, []);
    assert.deepEqual(bench.gateway.calls, ['register r1', 'revoke r1']);
    assert.deepEqual(execution.archived, { isComplete: false });
  });

  it('tells both channels of a failure before grading', async () => {
    const bench = await SchedulerBench.started();
    await bench.submit('r1');
    (await bench.execution('r1')).fail('AGENT_FAILED');
    await bench.empty();
    assert.deepEqual(
      bench.callbacks.bodies('r1').map(({ channel, body }) => [channel, body['err_message']]),
      [
        ['completion', 'because of AGENT_FAILED'],
        ['grader', 'because of AGENT_FAILED'],
      ],
    );
  });

  it('keeps a completion that is fixed when grading fails', async () => {
    const bench = await SchedulerBench.started();
    await bench.submit('r1');
    const execution = await bench.execution('r1');
    await execution.hooks.workflowCompleted(success(null));
    execution.fail('GRADER_FAILED');
    await bench.empty();
    assert.deepEqual(
      bench.callbacks.bodies('r1').map(({ channel, body }) => [channel, body['status']]),
      [
        ['completion', 'success'],
        ['grader', 'failure'],
      ],
    );
    const [saved] = bench.archive.saved;
    assert.ok(saved);
  });

  it('is a failure with the fallback bodies when its backend is broken, and others go on', async () => {
    const bench = await SchedulerBench.started();
    await bench.submit('r1');
    await bench.submit('r2');
    (await bench.execution('r1')).break(new TypeError('a secret path'));
    await bench.reaches('r1', 'failure');
    (await bench.execution('r2')).succeed();
    await bench.reaches('r2', 'success');
    await bench.empty();
    const failed = {
      ...{ status: 'failure', rollout_id: 'r1', err_message: 'Internal server error' },
      ...{ err_category: null, extra_fields: null },
    };
    assert.deepEqual(bench.callbacks.bodies('r1'), [
      { channel: 'completion', body: failed },
      { channel: 'grader', body: { ...failed, sample: null } },
    ]);
  });

  it('gets only the missing callback when its backend breaks after the completion', async () => {
    const bench = await SchedulerBench.started();
    await bench.submit('r1');
    const execution = await bench.execution('r1');
    await execution.hooks.workflowCompleted(success(null));
    execution.break(new Error('no'));
    await bench.empty();
    assert.deepEqual(
      bench.callbacks.bodies('r1').map(({ channel, body }) => [channel, body['status']]),
      [
        ['completion', 'success'],
        ['grader', 'failure'],
      ],
    );
  });

  it('ends with the code of a typed failure of the gateway', async () => {
    const bench = await SchedulerBench.started();
    bench.gateway.register = () =>
      Promise.reject(
        new RolloutError('REQUEST_INVALID', 'that address is not allowed', { phase: 'server' }),
      );
    await bench.submit('r1');
    await bench.empty();
    const { outcome } = (await bench.store.rollout('r1'))!;
    assert.equal(outcome?.cause, 'REQUEST_INVALID');
    assert.equal(outcome.errCategory, 'validation_error');
    assert.equal(outcome.errMessage, 'that address is not allowed');
  });

  it('has the pins and budgets of its metadata, and does not run without them', async () => {
    const bench = await SchedulerBench.started();
    const rules = (given: object) => ({ metadata: { slipway_gateway: given } });
    await bench.submit('r1', rules({ max_turns: 3, sampling: { temperature: 1 } }));
    await bench.execution('r1');
    assert.deepEqual(bench.gateway.routes.get('r1')?.rules, {
      ...{ pins: { temperature: 1 }, budgets: { max_turns: 3 } },
    });
    await bench.submit('r2', rules({ max_turnz: 3 }));
    await bench.reaches('r2', 'failure');
    const { outcome } = (await bench.store.rollout('r2'))!;
    assert.equal(outcome?.cause, 'CONFIG_INVALID');
    assert.equal(outcome.errCategory, 'validation_error');
    assert.match(outcome.errMessage ?? '', /max_turnz/);
  });

  it('says in all its diagnostics which budget its agent ran into', async () => {
    const bench = await SchedulerBench.started();
    const at = new Date();
    bench.gateway.spent = { limit: 'max_turns', max: 3, used: 3, refused: 2, at };
    await bench.submit('r1');
    const execution = await bench.execution('r1');
    await execution.hooks.workflowCompleted(success(null));
    execution.succeed(0.5);
    await bench.empty();
    const budget = { code: 'BUDGET_EXHAUSTED', limit: 'max_turns', max: 3, used: 3, refused: 2 };
    for (const { body } of bench.callbacks.bodies('r1'))
      assert.deepEqual(body['extra_fields'], { phase: 'done', model_budget: budget });
    assert.equal(bench.callbacks.bodies('r1').length, 2);
  });

  it('shows no reward where the wire has none', async () => {
    const bench = await SchedulerBench.started();
    const rows = [
      ['removed', { ...success(1), sample: { ...success(1).sample!, isRemoved: true } }],
      ['failed', { ...failure('VERIFIER_TIMEOUT'), sample: success(1).sample }],
    ] as const;
    for (const [id, result] of rows) {
      await bench.submit(id);
      (await bench.execution(id)).end(result);
      await bench.empty();
      assert.equal((await bench.scheduler.status(id, operator)).reward, null);
    }
  });
});
