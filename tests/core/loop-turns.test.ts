import assert from 'node:assert/strict';
import { test } from 'node:test';
import { LoopTurns } from '../../src/core/loop-turns.ts';

test('pieces are done in order, and the loop turns between two of them', async () => {
  const turns = new LoopTurns();
  const seen: string[] = [];
  let isDone = false;
  const loop = (): void => {
    seen.push('turn');
    if (!isDone) setImmediate(loop);
  };
  setImmediate(loop);
  await Promise.all(
    ['a', 'b', 'c'].map(async (name) => {
      await turns.next();
      seen.push(name);
    }),
  );
  isDone = true;
  const order = seen.join(' ');
  assert.match(order, /a( turn)+ b( turn)+ c/);
});
