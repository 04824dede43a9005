import assert from 'node:assert/strict';
import { getEventListeners } from 'node:events';
import { test } from 'node:test';
import { never } from '../../src/core/linked-abort.ts';
import { Limiter } from '../../src/core/limiter.ts';

/** Work that ends when told to. */
function gated(limiter: Limiter, log: string[], name: string, signal: AbortSignal = never) {
  const gate = Promise.withResolvers<string>();
  const running = limiter.run(signal, async () => {
    log.push(name);
    return await gate.promise;
  });
  running.catch(() => undefined);
  return { running, end: () => gate.resolve(name), fail: (error: Error) => gate.reject(error) };
}

const turn = () => new Promise(setImmediate);

test('no more than the limit runs at once, and waiters are served in order', async () => {
  const limiter = new Limiter(2);
  const log: string[] = [];
  const [a, b, c, d] = ['a', 'b', 'c', 'd'].map((name) => gated(limiter, log, name));
  await turn();
  assert.deepEqual(log, ['a', 'b']);
  assert.deepEqual([limiter.active, limiter.waiting], [2, 2]);
  b!.end();
  assert.equal(await b!.running, 'b');
  await turn();
  assert.deepEqual(log, ['a', 'b', 'c']);
  for (const work of [a, c, d]) work!.end();
  await Promise.all([a, c, d].map((work) => work!.running));
  assert.deepEqual(log, ['a', 'b', 'c', 'd']);
  assert.deepEqual([limiter.active, limiter.waiting], [0, 0]);
});

test('work that fails frees its place', async () => {
  const limiter = new Limiter(1);
  const log: string[] = [];
  const first = gated(limiter, log, 'first');
  const second = gated(limiter, log, 'second');
  first.fail(new Error('broken'));
  await assert.rejects(first.running, { message: 'broken' });
  second.end();
  assert.equal(await second.running, 'second');
});

test('a waiter whose signal fires leaves the queue with its reason, and its work never runs', async () => {
  const limiter = new Limiter(1);
  const log: string[] = [];
  const controller = new AbortController();
  const first = gated(limiter, log, 'first');
  const leaving = gated(limiter, log, 'leaving', controller.signal);
  const last = gated(limiter, log, 'last');
  const reason = new Error('gone');
  controller.abort(reason);
  await assert.rejects(leaving.running, reason);
  assert.equal(limiter.waiting, 1);
  first.end();
  last.end();
  await last.running;
  assert.deepEqual(log, ['first', 'last']);
});

test('a signal that fires before or after the wait changes nothing in the queue', async () => {
  const limiter = new Limiter(1);
  const reason = new Error('before');
  await assert.rejects(
    limiter.run(AbortSignal.abort(reason), async () => assert.fail('ran')),
    reason,
  );
  assert.equal(limiter.active, 0);
  const log: string[] = [];
  const controller = new AbortController();
  const first = gated(limiter, log, 'first');
  const served = gated(limiter, log, 'served', controller.signal);
  first.end();
  await turn();
  assert.equal(getEventListeners(controller.signal, 'abort').length, 0);
  controller.abort(new Error('after'));
  served.end();
  assert.equal(await served.running, 'served');
});

for (const limit of [0, -1, 1.5, NaN])
  test(`a limit of ${limit} is refused`, () => {
    assert.throws(() => new Limiter(limit), RangeError);
  });
