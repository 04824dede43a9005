import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { errorOf, faultOf } from '../../src/core/error-fault.ts';
import { RolloutError } from '../../src/core/errors.ts';

const across = (error: unknown): Error => errorOf(structuredClone(faultOf(error)));

describe('an error that goes to another thread', () => {
  it('keeps all that a typed one carries, and the text of its cause', () => {
    const error = new RolloutError('EXEC_FAILED', 'no shell', {
      ...{ phase: 'agent', field: 'agent.name', remedy: 'Use another.', detail: 'line\nline' },
      ...{ retryable: false, cause: new Error('ENOENT') },
    });
    const copy = across(error);
    assert.ok(copy instanceof RolloutError);
    for (const name of [
      ...(['code', 'message', 'phase', 'field', 'remedy', 'detail', 'retryable'] as const),
      'exceptionType' as const,
    ])
      assert.equal(copy[name], error[name], name);
    assert.equal((copy.cause as Error).message, 'ENOENT');
    assert.equal(copy.describe(), error.describe());
  });

  it('adds nothing to one that carries nothing', () => {
    const copy = across(new RolloutError('CANCELLED', 'enough', { phase: 'server' }));
    assert.ok(copy instanceof RolloutError);
    assert.deepEqual(
      [copy.field, copy.remedy, copy.detail, copy.cause, copy.retryable],
      [null, null, null, undefined, false],
    );
  });

  it('keeps name, message and place of any other, and the text of what is none', () => {
    const error = new TypeError('not a function');
    const copy = across(error);
    assert.deepEqual(
      [copy.name, copy.message, copy.stack],
      [error.name, error.message, error.stack],
    );
    assert.equal(across('thrown text').message, 'thrown text');
  });
});
