import assert from 'node:assert/strict';
import { mkdir, mkdtemp, rm } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { describe, it } from 'node:test';
import { AgentServer, type RunAnswer } from '../../src/agent-server/agent-server.ts';
import { RunEnds } from '../../src/agent-server/run-ends.ts';
import { rolloutOfRun } from '../../src/agent-server/run-rollout.ts';
import { never } from '../../src/core/linked-abort.ts';
import { silentLogger } from '../../src/core/logger.ts';
import { cancelledOutcome } from '../../src/scheduler/outcomes.ts';
import type { RolloutService, SubmitAnswer } from '../../src/scheduler/rollout-service.ts';
import { runRequestSchema, type RunRequest } from '../../src/wire/agent-server/run.ts';
import { routeRulesOf } from '../../src/wire/rollout/route-rules.ts';
import { FakeRolloutService } from '../fakes/fake-rollout-service.ts';
import { ManualClock } from '../fakes/manual-clock.ts';
import { until } from '../support/until.ts';

const operator = { tenant: null };
const request = (fields: Readonly<Record<string, unknown>> = {}): RunRequest =>
  runRequestSchema.parse({
    ...{ base_url: 'http://h:1/s/v1', model: 'openai/m', instance_id: 'task' },
    ...fields,
  });

/** Rollouts end when they are cancelled, and what is submitted is told. */
class Service extends FakeRolloutService {
  readonly submitted: string[] = [];
  readonly ends: RunEnds;

  constructor(ends: RunEnds) {
    super();
    this.ends = ends;
  }

  override async submit(
    submission: Parameters<RolloutService['submit']>[0],
  ): Promise<SubmitAnswer> {
    const answer = await super.submit(submission);
    if (answer.kind === 'accepted') this.submitted.push(answer.id);
    return answer;
  }

  override async cancel(
    ...[selector, caller]: Parameters<RolloutService['cancel']>
  ): ReturnType<RolloutService['cancel']> {
    const receipts = await super.cancel(selector, caller);
    const outcome = cancelledOutcome('agent');
    for (const id of receipts.keys())
      this.ends.rollout({ id }, { type: 'ended', outcome, diagnostics: null });
    return receipts;
  }
}

async function served(
  use: (parts: {
    readonly agentServer: AgentServer;
    readonly service: Service;
    readonly clock: ManualClock;
    readonly run: (
      fields?: Readonly<Record<string, unknown>>,
      signal?: AbortSignal,
    ) => Promise<RunAnswer>;
  }) => Promise<void>,
): Promise<void> {
  const tasksDir = await mkdtemp(path.join(os.tmpdir(), 'slipway-tasks-'));
  await mkdir(path.join(tasksDir, 'task'));
  const clock = new ManualClock();
  const ends = new RunEnds();
  const service = new Service(ends);
  const agentServer = new AgentServer(
    {
      ...{ tasksDir, taskKey: 'harbor_task', agent: 'oracle', agentTimeoutSec: null },
      ...{ ceilingMs: 7_140_000, heartbeat: { intervalMs: 1_000, threshold: 3 } },
      ...{ pruneIntervalMs: 1_000, maxWaiting: 2 },
    },
    {
      ...{ service, ends, clock, logger: silentLogger },
      resolve: async () => ['127.0.0.1'],
      probe: () => Promise.reject(new Error('nobody')),
      reclaim: async () => [],
    },
  );
  const run = (fields = {}, signal = never) =>
    agentServer.run(request(fields), { caller: operator, signal });
  try {
    await use({ agentServer, service, clock, run });
  } finally {
    await rm(tasksDir, { recursive: true });
  }
}

const statusOf = async (answer: Promise<RunAnswer>): Promise<string> => {
  const given = await answer;
  return given.kind === 'reply' ? given.reply.exit_status : given.kind;
};
const full: SubmitAnswer = { kind: 'refused', reason: 'full', detail: 'full', retryAfterS: 1 };
const tracked = { session_server_id: 'h:1', session_server_instance_id: 'i' };

describe('the agent server', () => {
  it('answers a trial that takes as long as its trainer waits before the trainer gives up', () =>
    served(async ({ service, clock, run }) => {
      const answer = run(tracked);
      await until('it is in', () => service.submitted.length === 1);
      clock.advance(7_140_000);
      assert.equal(await statusOf(answer), 'TimeLimitExceeded');
    }));

  it('cancels the trial of a client that hangs up, also one that waits for a place', () =>
    served(async ({ agentServer, service, run }) => {
      const gone = new AbortController();
      const first = run(tracked, gone.signal);
      await until('it is in', () => service.submitted.length === 1);
      service.refusal = full;
      const second = run(tracked, gone.signal);
      gone.abort(new Error('hung up'));
      assert.deepEqual([await statusOf(first), await statusOf(second)], ['Flushed', 'Flushed']);
      assert.equal(service.submitted.length, 1);
      assert.deepEqual(agentServer.clients(operator), {});
    }));

  it('lets requests wait in order while there is no place, and refuses what is too many', () =>
    served(async ({ agentServer, service, clock, run }) => {
      service.refusal = full;
      const waiting = [run(tracked), run(tracked)];
      await until('two wait', () => clock.pauses.filter((ms) => ms < 1_000).length === 1);
      assert.equal((await run(tracked)).kind, 'refused');
      service.refusal = null;
      clock.advance(200);
      await until('both are in', () => service.submitted.length === 2);
      assert.equal(
        agentServer.flush({ ...tracked, session_server_id: null }, operator).cancelled,
        2,
      );
      for (const answer of waiting) assert.equal(await statusOf(answer), 'Flushed');
      service.refusal = { ...full, reason: 'disk-full' };
      assert.equal((await run()).kind, 'refused');
      service.refusal = { kind: 'stopping', retryAfterS: 1 };
      assert.equal((await run()).kind, 'stopping');
    }));

  it('refuses a key that is another client’s, and knows nothing of that trial afterwards', () =>
    served(async ({ agentServer, service, run }) => {
      const answer = run(tracked);
      await until('it is in', () => service.submitted.length === 1);
      const other = { ...tracked, session_server_id: 'h:2', base_url: 'http://h:2/v1' };
      assert.equal(await statusOf(run(other)), 'InvalidSessionServerId');
      assert.deepEqual(agentServer.clients(operator), {
        i: { heartbeat_target: 'h:1', session_server_instance_id: 'i', active_tasks: 1 },
      });
      const all = { cancel_tasks: true, kill_containers: true, prune: true };
      const { cancelled_tasks: count } = await agentServer.flushAll(all, operator);
      assert.equal(count, 1);
      assert.equal(await statusOf(answer), 'Flushed');
    }));

  it('flushes a client whose server is gone, and leaves those without one', () =>
    served(async ({ agentServer, service, clock, run }) => {
      const stop = new AbortController();
      const watching = agentServer.watch(stop.signal);
      const lost = run(tracked);
      const kept = run({});
      await until('both are in', () => service.submitted.length === 2);
      for (let round = 0; round < 3; round += 1) {
        await until('it sleeps', () => clock.pauses.filter((ms) => ms === 1_000).length === 2);
        clock.advance(1_000);
      }
      assert.equal(await statusOf(lost), 'Flushed');
      stop.abort(new Error('over'));
      await watching;
      agentServer.close();
      assert.equal(await statusOf(kept), 'Flushed');
    }));
});

describe('a /run as a rollout', () => {
  const plan = {
    id: 'run-1',
    taskDir: '/t/task',
    taskKey: 'harbor_task',
    agent: 'oracle',
    agentTimeoutSec: 9,
  };

  it('has the row as metadata, and nothing of it in the place of what the server decides', () => {
    const { metadata, ...rollout } = rolloutOfRun(
      request({
        ...{ model: 'm', api_key: '', row_key: 1, harbor_task: '/etc', slipway_agent: 'nop' },
        ...{ harbor_model: 'x', agent_name: 'terminus-2' },
      }),
      plan,
    );
    assert.deepEqual(metadata, {
      ...{ row_key: 1, harbor_task: '/t/task', slipway_agent: 'terminus-2' },
      ...{ harbor_model: 'openai/m', slipway_gateway: { sampling: {} } },
    });
    assert.equal(rollout.llm_api_key, null);
    assert.equal(rollout.chat_completions_url, 'http://h:1/s/v1');
    assert.equal(rollout.agent_timeout_sec, 9);
  });

  it('holds its calls to the sampling parameters that can be pinned and to the length of its sequence', () => {
    const sampling_params = {
      ...{ temperature: 0.7, top_k: -1, max_tokens: 64, seed: 1, stop: ['x'], top_p: null },
      ...{ spaces_between_special_tokens: false, skip_special_tokens: true, min_p: 'wrong' },
    };
    const { metadata } = rolloutOfRun(
      request({ sampling_params, max_seq_len: '4096', slipway_gateway: { max_turns: 3 } }),
      plan,
    );
    assert.deepEqual(routeRulesOf(metadata), {
      pins: { temperature: 0.7, top_k: -1, max_tokens: 64, seed: 1, stop: ['x'] },
      budgets: { max_turns: 3, max_call_tokens: 4096 },
    });
  });
});
