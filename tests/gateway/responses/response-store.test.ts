import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { ResponseStore } from '../../../src/gateway/response-store.ts';

const mebibyte = 1024 * 1024;

function keep(store: ResponseStore, id: string, { mebibytes }: { readonly mebibytes: number }) {
  const given = { input: 'x'.repeat(mebibytes * mebibyte) };
  store.keep({ id, output: [] }, { given, resolved: given });
}

function isKept(store: ResponseStore, id: string): boolean {
  try {
    store.resolved({ previous_response_id: id });
    return true;
  } catch {
    return false;
  }
}

describe('responses that are kept', () => {
  it('of one rollout are bounded, and the oldest go first', () => {
    const total = { bytes: 0 };
    const store = new ResponseStore(total);
    for (const id of ['a', 'b', 'c']) keep(store, id, { mebibytes: 30 });
    assert.deepEqual(
      ['a', 'b', 'c'].map((id) => isKept(store, id)),
      [false, true, true],
    );
    assert.ok(total.bytes >= 60 * mebibyte && total.bytes < 61 * mebibyte);
  });

  it('of all rollouts are bounded too, but the latest of each is kept', () => {
    const total = { bytes: 255 * mebibyte };
    const store = new ResponseStore(total);
    for (const id of ['a', 'b']) keep(store, id, { mebibytes: 2 });
    assert.deepEqual([isKept(store, 'a'), isKept(store, 'b')], [false, true]);
  });

  it('are free when their route is over, and nothing is kept afterwards', () => {
    const total = { bytes: 0 };
    const store = new ResponseStore(total);
    keep(store, 'a', { mebibytes: 1 });
    store.close();
    keep(store, 'b', { mebibytes: 1 });
    store.close();
    assert.equal(total.bytes, 0);
    assert.deepEqual([isKept(store, 'a'), isKept(store, 'b')], [false, false]);
  });
});
