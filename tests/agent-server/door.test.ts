import assert from 'node:assert/strict';
import { it } from 'node:test';
import { Door } from '../../src/agent-server/door.ts';
import type { SubmitAnswer } from '../../src/scheduler/rollout-service.ts';
import { ManualClock } from '../fakes/manual-clock.ts';
import { until } from '../support/until.ts';

it('a tenant whose share is used up keeps nobody else waiting, and takes nobody’s place in the line', async () => {
  const door = new Door(2, new ManualClock());
  const gone = new AbortController();
  const full: SubmitAnswer = { kind: 'refused', reason: 'full', detail: 'full', retryAfterS: 1 };
  const taken: SubmitAnswer = { kind: 'accepted', id: 'r', isRepeat: false };
  const signal = gone.signal;
  let asked = 0;
  const greedy = Array.from({ length: 3 }, () =>
    door.enter(
      () => {
        asked += 1;
        return Promise.resolve(full);
      },
      { tenant: 'blue', signal },
    ),
  );
  await until('blue waits', () => asked > 3);
  const others = await Promise.all([
    door.enter(() => Promise.resolve(taken), { tenant: 'green', signal }),
    door.enter(() => Promise.resolve(taken), { tenant: null, signal }),
  ]);
  assert.deepEqual(others, [taken, taken]);
  gone.abort(new Error('over'));
  const settled = await Promise.allSettled(greedy);
  assert.deepEqual(
    settled.map(({ status }) => status),
    ['rejected', 'rejected', 'fulfilled'],
  );
});
