import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { LoopTurns } from '../../src/core/loop-turns.ts';

function busy(ms: number): void {
  const until = performance.now() + ms;
  while (performance.now() < until);
}

/** Pieces in the order in which they are done, with a `|` for every turn of the event loop. */
async function order(pieces: readonly (readonly [name: string, ms: number])[]): Promise<string> {
  const turns = new LoopTurns();
  let seen = '';
  let isDone = false;
  const loop = (): void => {
    seen += '|';
    if (!isDone) setImmediate(loop);
  };
  setImmediate(loop);
  await Promise.all(
    pieces.map(async ([name, ms]) => {
      await turns.next();
      seen += name;
      busy(ms);
    }),
  );
  isDone = true;
  return seen.replaceAll(/\|+/g, '|');
}

describe('turns of the event loop', () => {
  it('are one for each piece that takes long, in order of asking', async () => {
    const long = 20;
    assert.match(await order(['a', 'b', 'c'].map((name) => [name, long])), /a\|b\|c/);
  });

  it('are shared by pieces that take no time, for a while', async () => {
    const names = Array.from({ length: 2_000 }, (_, index) =>
      String.fromCharCode(97 + (index % 26)),
    );
    const seen = await order(names.map((name) => [name, 0]));
    assert.equal(seen.replaceAll('|', ''), names.join(''));
    // On a machine that stands still for a moment a turn is over before its time.
    assert.ok((seen.match(/\|/g) ?? []).length < names.length / 4, seen);
  });

  it('are given first to what ends something', async () => {
    const turns = new LoopTurns();
    const seen: string[] = [];
    await Promise.all(
      (['start', 'start', 'end'] as const).map(async (lane) => {
        await turns.next(lane);
        seen.push(lane);
      }),
    );
    assert.deepEqual(seen, ['end', 'start', 'start']);
  });

  it('are given to what ends something while starts recover, and to them afterwards', async () => {
    const turns = new LoopTurns();
    await turns.next();
    busy(30);
    const since = performance.now();
    const seen: string[] = [];
    const done = (async () => {
      await turns.next();
      seen.push('start');
    })();
    for (let index = 0; index < 5; index += 1) {
      await turns.next('end');
      seen.push('end');
    }
    await done;
    assert.deepEqual(seen.at(-1), 'start');
    assert.ok(performance.now() - since >= 20);
  });

  it('come again for who asks later', async () => {
    const turns = new LoopTurns();
    await turns.next();
    await turns.next();
    await Promise.all([turns.next(), turns.next()]);
  });
});
