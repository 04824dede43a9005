import assert from 'node:assert/strict';
import { test } from 'node:test';
import { canonicalJson } from '../../src/core/canonical-json.ts';

test('equal values give equal text, whatever the order of their keys', () => {
  const text = '{"a":[{"c":1,"d":null},2],"b":{}}';
  assert.equal(canonicalJson({ b: {}, a: [{ d: null, c: 1 }, 2] }), text);
  assert.equal(canonicalJson({ a: [{ c: 1, d: null }, 2], b: {} }), text);
});

test('the order of a list counts', () => {
  assert.notEqual(canonicalJson([1, 2]), canonicalJson([2, 1]));
});
