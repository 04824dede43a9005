import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { StateWatch } from '../../../src/collector/server/state-watch.ts';
import { ManualClock } from '../../fakes/manual-clock.ts';
import { settle } from '../scripted-rollouts.ts';

describe('the watch over rollouts', () => {
  it('asks about those that have been silent for long, again after a failure, and never about others', async () => {
    const clock = new ManualClock();
    const asked: string[] = [];
    const ended: string[] = [];
    let isDown = true;
    const watch = new StateWatch({
      ...{ clock, everyMs: 100 },
      hasEnded: (id) => {
        asked.push(id);
        if (isDown) return Promise.reject(new Error('down'));
        return Promise.resolve(id === 'a');
      },
      onEnded: (id) => ended.push(id),
    });
    watch.add('a');
    watch.add('b');
    clock.advance(60);
    watch.add('young');
    clock.advance(40);
    await settle();
    assert.deepEqual(asked, ['a', 'b']);
    isDown = false;
    watch.remove('b');
    clock.advance(100);
    await settle();
    assert.deepEqual(asked, ['a', 'b', 'a', 'young']);
    assert.deepEqual(ended, ['a']);
    await watch.close();
  });

  it('tells every minute for how long nobody has answered, and begins anew when somebody does', async () => {
    const clock = new ManualClock();
    const told: number[] = [];
    let isDown = true;
    const watch = new StateWatch({
      ...{ clock, everyMs: 20_000, onEnded: () => undefined },
      hasEnded: () => (isDown ? Promise.reject(new Error('down')) : Promise.resolve(false)),
      onSilence: (minutes, problem) => {
        assert.equal(problem, 'down');
        told.push(minutes);
      },
    });
    watch.add('a');
    const pass = async (rounds: number): Promise<void> => {
      for (let round = 0; round < rounds; round += 1) {
        clock.advance(20_000);
        await settle();
      }
    };
    await pass(3);
    assert.deepEqual(told, []);
    await pass(4);
    assert.deepEqual(told, [1, 2]);
    isDown = false;
    await pass(1);
    isDown = true;
    await pass(4);
    assert.deepEqual(told, [1, 2, 1]);
    await watch.close();
  });
});
