import assert from 'node:assert/strict';
import { test } from 'node:test';
import { HeldOutput, maxHeldBytes } from '../../../src/environments/shared/held-output.ts';

test('output is held until it is released, then passed on as it comes, in order', () => {
  const seen: string[] = [];
  const output = new HeldOutput((stream, bytes) => seen.push(`${stream} ${String(bytes)}`));
  const pooled = Buffer.from('one');
  output.write('stdout', pooled);
  pooled.fill('x');
  output.write('stderr', Buffer.from('two'));
  assert.deepEqual([seen, output.text()], [[], 'onetwo']);
  output.release();
  output.write('stdout', Buffer.from('three'));
  output.ignoreRest();
  output.write('stdout', Buffer.from('four'));
  assert.deepEqual(seen, ['stdout one', 'stderr two', 'stdout three']);
});

test('a program that never begins fills no memory', () => {
  const output = new HeldOutput(() => undefined);
  const piece = Buffer.alloc(1024 * 1024, 'x');
  for (let held = 0; held < 3 * maxHeldBytes; held += piece.length) output.write('stdout', piece);
  assert.equal(output.text().length, maxHeldBytes);
});
