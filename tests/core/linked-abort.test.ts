import assert from 'node:assert/strict';
import { getEventListeners } from 'node:events';
import { test } from 'node:test';
import { LinkedAbort } from '../../src/core/linked-abort.ts';

const listeners = (signal: AbortSignal): number => getEventListeners(signal, 'abort').length;

test('a linked signal follows whichever parent fires first, with its reason', () => {
  const [one, other] = [new AbortController(), new AbortController()];
  using link = new LinkedAbort([one.signal, other.signal]);
  assert.equal(link.signal.aborted, false);
  other.abort('other');
  one.abort('one');
  assert.equal(link.signal.reason, 'other');
});

test('a link to a parent that has fired is aborted from the start and listens to nobody', () => {
  const alive = new AbortController();
  const reason = new Error('before');
  using link = new LinkedAbort([alive.signal, AbortSignal.abort(reason)]);
  assert.equal(link.signal.reason, reason);
  link[Symbol.dispose]();
  assert.equal(listeners(alive.signal), 0);
});

test('a long-lived parent keeps no listener of links that were disposed', () => {
  const parent = new AbortController();
  for (let count = 0; count < 1_000; count += 1) {
    using link = new LinkedAbort([parent.signal], { ms: 60_000, reason: () => 'late' });
    assert.equal(listeners(parent.signal), 1);
    assert.equal(link.signal.aborted, false);
  }
  assert.equal(listeners(parent.signal), 0);
});

test('a link that fires detaches from its other parents', () => {
  const [one, other] = [new AbortController(), new AbortController()];
  const link = new LinkedAbort([one.signal, other.signal]);
  one.abort('done');
  assert.equal(link.signal.aborted, true);
  assert.equal(listeners(other.signal), 0);
});

test('a disposed link does not follow any more', () => {
  const parent = new AbortController();
  const link = new LinkedAbort([parent.signal]);
  link[Symbol.dispose]();
  parent.abort('late');
  assert.equal(link.signal.aborted, false);
});

test('the timeout fires with its own reason, made when it fires', (t) => {
  t.mock.timers.enable({ apis: ['setTimeout'] });
  let made = 0;
  using link = new LinkedAbort([], { ms: 5_000, reason: () => `reason ${(made += 1)}` });
  t.mock.timers.tick(4_999);
  assert.equal(made, 0);
  t.mock.timers.tick(1);
  assert.equal(link.signal.reason, 'reason 1');
});

test('an infinite timeout never fires, and one beyond the range of timers does not fire at once', (t) => {
  t.mock.timers.enable({ apis: ['setTimeout'] });
  using endless = new LinkedAbort([], { ms: Infinity, reason: () => 'late' });
  using long = new LinkedAbort([], { ms: 2 ** 40, reason: () => 'late' });
  t.mock.timers.tick(1_000_000);
  assert.equal(endless.signal.aborted, false);
  assert.equal(long.signal.aborted, false);
});

test('aborting by hand wins over what fires later', () => {
  const parent = new AbortController();
  using link = new LinkedAbort([parent.signal]);
  link.abort('mine');
  parent.abort('theirs');
  assert.equal(link.signal.reason, 'mine');
});
