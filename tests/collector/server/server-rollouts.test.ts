import assert from 'node:assert/strict';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import { it } from 'node:test';
import type { MemberRequest } from '../../../src/collector/member.ts';
import { ServerRollouts } from '../../../src/collector/server/server-rollouts.ts';
import { systemClock } from '../../../src/core/clock.ts';
import { FastClock } from '../../fakes/fast-clock.ts';
import { never } from '../../../src/core/linked-abort.ts';
import { routeRulesOf } from '../../../src/wire/rollout/route-rules.ts';

const request: MemberRequest = {
  ...{ rolloutId: 'r', groupIndex: 0, memberIndex: 1, index: 1, attempt: 1, resume: [] },
  ...{ weightVersion: null, seed: 43 },
  row: {
    ...{ rowIndex: 0, epoch: 0, messages: [{ role: 'user', content: 'go' }], label: null },
    metadata: { slipway_gateway: { max_turns: 5, sampling: { temperature: 0.5, seed: 7 } } },
  },
};

const instant = '2026-01-01T00:00:00.000Z';
const grading = {
  ...{ id: 'r', tenant: 'default', state: 'grading', stage: null, waiting_on: null },
  ...{ last_progress_at: instant, attempt: 1, has_agent_begun: true, accepted_at: instant },
  ...{ started_at: instant, completed_at: instant, ended_at: null, outcome: null, calls: null },
  ...{ is_tombstone: false, callbacks: [], receipts: [] },
};
const ended = {
  ...{ ...grading, state: 'success', ended_at: instant },
  outcome: {
    ...{ status: 'success', reward: 0.25, err_message: null, err_category: null, stage: 'done' },
    ...{ cause: null, trainable: true, retryable: false, verdict: null, samples: null },
  },
};

/** A server that tells of the agent's end at once, and has the verdict when it was asked twice. */
async function rolledOut({
  failures = [],
  patienceMs = 60_000,
}: {
  /** What it answers first when it is asked how the rollout ended. */
  readonly failures?: readonly number[];
  readonly patienceMs?: number;
} = {}): Promise<{
  readonly end: Awaited<ReturnType<ServerRollouts['run']>>;
  readonly metadata: Readonly<Record<string, unknown>>;
}> {
  let asked = 0;
  const left = [...failures];
  let metadata = {};
  const server = createServer((incoming, answer) => {
    void (async () => {
      if (incoming.method === 'GET') {
        const failure = left.shift();
        if (failure !== undefined) {
          answer.writeHead(failure).end();
          return;
        }
        asked += 1;
        answer.end(JSON.stringify(asked > 2 ? ended : grading));
        return;
      }
      const body = JSON.parse(await text(incoming)) as {
        readonly completion_callback_url: string;
        readonly controller_api_key: string;
        readonly metadata: Readonly<Record<string, unknown>>;
      };
      ({ metadata } = body);
      answer.writeHead(202).end('{}');
      await fetch(body.completion_callback_url, {
        method: 'POST',
        headers: { authorization: `Bearer ${body.controller_api_key}` },
        body: JSON.stringify({ rollout_id: 'r', status: 'success' }),
      });
    })();
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  const rollouts = new ServerRollouts({
    ...{ serverUrl: `http://127.0.0.1:${port}`, serverKey: null, modelUrl: '', modelKey: null },
    ...{ train: false, isGraded: false, agentTimeoutSec: null, graderTimeoutSec: null },
    ...{ listen: {}, watchMs: 5_000, patienceMs, clock: new FastClock(500), fetch },
  });
  try {
    return { end: await rollouts.run(request, never), metadata };
  } finally {
    await rollouts.close();
    server.closeAllConnections();
    server.close();
  }
}

it('a rollout whose grade nobody is told of ends with its verdict, not when its agent is done', async () => {
  const { end } = await rolledOut();
  assert.equal(end.status, 'completed');
  assert.equal(end.reward, 0.25);
});

it('a rollout that has ended waits for a server that restarts, as long as it may', async () => {
  const failures = Array.from({ length: 12 }, () => 503);
  const { end } = await rolledOut({ failures });
  assert.equal(end.reward, 0.25);
  const impatient = rolledOut({ failures, patienceMs: 0 });
  await assert.rejects(impatient, { code: 'SERVER_UNREACHABLE' });
});

it('a refusal is not asked about again', async () => {
  const refused = rolledOut({ failures: Array.from({ length: 50 }, () => 401) });
  await assert.rejects(refused, /answered 401/);
});

it('the seed of a place is pinned beside what its row pins', async () => {
  const { metadata } = await rolledOut();
  assert.deepEqual(routeRulesOf(metadata), {
    pins: { temperature: 0.5, seed: 43 },
    budgets: { max_turns: 5 },
  });
});

it('a rollout that was cancelled before its submission came ends as cancelled, not as lost', async () => {
  const server = createServer((incoming, answer) => {
    incoming.resume();
    answer.writeHead(409).end('{"detail":"a rollout of this id was cancelled before it came"}');
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  const rollouts = new ServerRollouts({
    ...{ serverUrl: `http://127.0.0.1:${port}`, serverKey: null, modelUrl: '', modelKey: null },
    ...{ train: false, isGraded: false, agentTimeoutSec: null, graderTimeoutSec: null },
    ...{ listen: {}, watchMs: 60_000, patienceMs: 0, clock: systemClock, fetch },
  });
  try {
    const { status, fault } = await rollouts.run(request, never);
    assert.deepEqual([status, fault], ['aborted', 'cancelled']);
  } finally {
    await rollouts.close();
    server.close();
    server.closeAllConnections();
  }
});
