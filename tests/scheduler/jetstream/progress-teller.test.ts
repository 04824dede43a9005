import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { setImmediate as settled } from 'node:timers/promises';
import { ProgressTeller } from '../../../src/scheduler/jetstream/progress-teller.ts';
import type { RolloutProgress } from '../../../src/wire/rollout/progress.ts';
import { ManualClock } from '../../fakes/manual-clock.ts';

function teller() {
  const clock = new ManualClock();
  const told: string[] = [];
  const one = new ProgressTeller(({ stage, waitingOn }) => {
    told.push(`${stage} ${waitingOn?.detail ?? ''}`);
  }, clock);
  const tell = (stage: string, detail: string): void => {
    const now = clock.now();
    const kind = 'image-build';
    const waitingOn = { kind, owner: 'environment', detail, since: now, deadline: null } as const;
    const progress: RolloutProgress = { stage, waitingOn, lastProgressAt: now };
    one.tell(progress);
  };
  const pass = async (ms: number): Promise<void> => {
    clock.advance(ms);
    await settled();
  };
  return { clock, told, tell, one, pass };
}

describe('the progress of a rollout on another host', () => {
  it('is told at once when a stage begins, then twice a second, and to its last word', async () => {
    const { told, tell, pass } = teller();
    tell('a', '1');
    for (const line of ['2', '3']) tell('a', line);
    assert.deepEqual(told, ['a 1']);
    await pass(499);
    assert.deepEqual(told, ['a 1']);
    await pass(1);
    assert.deepEqual(told, ['a 1', 'a 3']);
    tell('a', '4');
    await pass(500);
    assert.deepEqual(told, ['a 1', 'a 3', 'a 4']);
    await pass(5_000);
    tell('a', '5');
    assert.deepEqual(told, ['a 1', 'a 3', 'a 4', 'a 5']);
  });

  it('is not told of a stage any more when the next has begun, however soon', async () => {
    const { told, tell, pass } = teller();
    tell('a', '1');
    tell('a', '2');
    await pass(300);
    tell('b', '1');
    tell('b', '2');
    await pass(200);
    assert.deepEqual(told, ['a 1', 'b 1']);
    await pass(300);
    assert.deepEqual(told, ['a 1', 'b 1', 'b 2']);
  });

  it('is told before what follows it, and not after the end', async () => {
    const { clock, told, tell, one, pass } = teller();
    tell('a', '1');
    tell('a', '2');
    one.flush();
    assert.deepEqual(told, ['a 1', 'a 2']);
    tell('a', '3');
    one.close();
    tell('b', '1');
    await pass(1_000);
    assert.deepEqual(told, ['a 1', 'a 2']);
    assert.deepEqual(clock.pauses, []);
  });
});
