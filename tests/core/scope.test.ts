import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Scope } from '../../src/core/scope.ts';

test('a scope releases in reverse order, one after the other', async () => {
  const released: string[] = [];
  {
    await using scope = new Scope();
    for (const name of ['first', 'second', 'third'])
      scope.defer(async () => {
        released.push(`${name} begins`);
        await new Promise(setImmediate);
        released.push(`${name} ends`);
      });
  }
  assert.deepEqual(released, [
    'third begins',
    'third ends',
    'second begins',
    'second ends',
    'first begins',
    'first ends',
  ]);
});

test('every release is attempted, and the failures are joined', async () => {
  const released: string[] = [];
  const scope = new Scope();
  scope.defer(async () => void released.push('sound'));
  scope.defer(() => Promise.reject(new Error('one')));
  scope.defer(() => Promise.reject(new Error('two')));
  await assert.rejects(scope[Symbol.asyncDispose](), (error: unknown) => {
    assert.ok(error instanceof AggregateError);
    assert.deepEqual(
      error.errors.map((each: unknown) => (each as Error).message),
      ['two', 'one'],
    );
    return true;
  });
  assert.deepEqual(released, ['sound']);
});

test('disposing twice releases once', async () => {
  let count = 0;
  const scope = new Scope();
  scope.defer(async () => void (count += 1));
  await scope[Symbol.asyncDispose]();
  await scope[Symbol.asyncDispose]();
  assert.equal(count, 1);
});
