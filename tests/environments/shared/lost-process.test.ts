import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { RolloutError } from '../../../src/core/errors.ts';
import { isLostBeforeStart, retryLost } from '../../../src/environments/shared/lost-process.ts';

const failed = (detail: string): RolloutError =>
  new RolloutError('EXEC_FAILED', 'the command could not be started', {
    phase: 'environment',
    detail,
  });
const lost = failed(
  'exec failed: unable to start container process: read init-p: connection reset',
);

/** Fails with each error in turn, then answers; counts its calls. */
function attempts(...errors: readonly Error[]): {
  run: () => Promise<string>;
  calls: () => number;
} {
  let calls = 0;
  return {
    run: async () => {
      const error = errors[calls];
      calls += 1;
      if (error !== undefined) throw error;
      return 'done';
    },
    calls: () => calls,
  };
}

describe('a process that the runtime lost before it began', () => {
  it('is tried again, three times at most', async () => {
    const twice = attempts(lost, lost);
    assert.equal(await retryLost(twice.run), 'done');
    assert.equal(twice.calls(), 3);
    const always = attempts(lost, lost, lost, lost);
    await assert.rejects(retryLost(always.run), lost);
    assert.equal(always.calls(), 3);
  });

  it('is not confused with a command that cannot be started, or that failed otherwise', async () => {
    for (const error of [failed('no such file or directory'), new Error('read init-p')]) {
      const once = attempts(error);
      await assert.rejects(retryLost(once.run), error);
      assert.equal(once.calls(), 1);
    }
  });

  it('is known by what runc and engines say', () => {
    assert.equal(isLostBeforeStart('cannot start a stopped process: unknown'), true);
    const group = 'unable to apply cgroup configuration: mkdir /sys/fs/cgroup/pids/slipway-1/a';
    assert.equal(isLostBeforeStart(`${group}: no such file or directory`), true);
    assert.equal(isLostBeforeStart(`${group}: no space left on device`), false);
    assert.equal(isLostBeforeStart('exec: "nothere": executable file not found in $PATH'), false);
  });
});
