import assert from 'node:assert/strict';
import { test } from 'node:test';
import { errorRegistry, type ErrorCode } from '../../src/core/error-registry.ts';
import {
  attribute,
  boundary,
  isRolloutError,
  messageOf,
  RolloutError,
} from '../../src/core/errors.ts';

test('an error says code, field and remedy in one line and nothing else', () => {
  const error = new RolloutError('TASK_CONFIG_INVALID', 'must be positive', {
    phase: 'resolve',
    field: 'environment.cpus',
    remedy: 'Set it to 1 or more.',
    cause: new Error('secret of the cause'),
  });
  assert.equal(
    error.describe(),
    'TASK_CONFIG_INVALID [environment.cpus]: must be positive — Set it to 1 or more.',
  );
  const plain = new RolloutError('CANCELLED', 'stopped', { phase: 'agent' });
  assert.equal(plain.describe(), 'CANCELLED: stopped');
  assert.equal('cause' in plain, false);
});

test('whether an error is retryable comes from the registry unless the edge knows better', () => {
  for (const code of Object.keys(errorRegistry) as ErrorCode[])
    assert.equal(
      new RolloutError(code, '', { phase: 'agent' }).retryable,
      errorRegistry[code].retryable,
    );
  const error = new RolloutError('GIT_FAILED', '', { phase: 'resolve', retryable: false });
  assert.equal(error.retryable, false);
});

test('isRolloutError tells our errors, and one code, from anything else', () => {
  const error = new RolloutError('DISK_FULL', '', { phase: 'agent' });
  assert.ok(isRolloutError(error) && isRolloutError(error, 'DISK_FULL'));
  assert.ok(!isRolloutError(error, 'CANCELLED'));
  assert.ok(!isRolloutError(new Error('DISK_FULL')) && !isRolloutError(undefined));
});

const foreign: readonly [string, unknown, string][] = [
  ['an error', new Error('broke'), 'copy: broke'],
  ['a string', 'broke', 'copy: broke'],
  ['undefined', undefined, 'copy: undefined'],
];
for (const [what, thrown, message] of foreign)
  test(`${what} from outside is attributed with its cause`, () => {
    const error = attribute(thrown, 'TRANSFER_FAILED', 'collect', 'copy');
    assert.deepEqual(
      [error.code, error.phase, error.message],
      ['TRANSFER_FAILED', 'collect', message],
    );
    assert.equal(error.cause, thrown);
  });

for (const code of ['ENOSPC', 'EDQUOT'])
  test(`${code} is DISK_FULL wherever it comes from`, () => {
    const error = attribute(
      Object.assign(new Error('x'), { code }),
      'GIT_FAILED',
      'resolve',
      'clone',
    );
    assert.equal(error.code, 'DISK_FULL');
    assert.notEqual(error.remedy, null);
  });

test('a typed error passes a boundary unchanged, however many there are', async () => {
  const error = new RolloutError('IMAGE_NOT_FOUND', 'none', { phase: 'environment' });
  const inner = { code: 'EXEC_FAILED', phase: 'agent', what: 'inner' } as const;
  const outer = { code: 'INTERNAL', phase: 'cleanup', what: 'outer' } as const;
  const passing = boundary(outer, () => boundary(inner, () => Promise.reject(error)));
  await assert.rejects(passing, (thrown) => thrown === error);
  assert.equal(await boundary(inner, async () => 7), 7);
});

test('messageOf takes the message of an error and the text of the rest', () => {
  assert.deepEqual([new Error('a'), 'b', 3, null].map(messageOf), ['a', 'b', '3', 'null']);
});
