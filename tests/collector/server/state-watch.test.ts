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
});
