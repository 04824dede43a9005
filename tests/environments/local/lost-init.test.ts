import assert from 'node:assert/strict';
import { chmodSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { describe, it } from 'node:test';
import { never } from '../../../src/core/linked-abort.ts';
import { isRolloutError } from '../../../src/core/errors.ts';
import { findProgram } from '../../../src/environments/local/host-command.ts';
import { LocalBench, whyNoRunc } from './local-bench.ts';

const skip = whyNoRunc() ?? false;

/** Puts a runc before the real one on PATH whose `run` fails, as a loaded machine makes it, the first `times` times. */
function failingRunc(bench: LocalBench, times: number): Disposable & { readonly count: string } {
  const dir = path.join(bench.stateDir, 'bin');
  mkdirSync(dir, { recursive: true });
  const count = path.join(dir, 'count');
  const script = `#!/bin/sh
case " $* " in *" run --detach "*)
  n=$(cat ${count} 2>/dev/null || echo 0)
  if [ "$n" -lt ${times} ]; then
    echo $((n + 1)) > ${count}
    echo 'runc run failed: error during container init: read init-p: connection reset by peer' >&2
    exit 1
  fi;;
esac
exec ${findProgram('runc') ?? ''} "$@"
`;
  writeFileSync(path.join(dir, 'runc'), script);
  chmodSync(path.join(dir, 'runc'), 0o755);
  const before = process.env['PATH'] ?? '';
  process.env['PATH'] = `${dir}:${before}`;
  return {
    count,
    [Symbol.dispose]: () => {
      process.env['PATH'] = before;
    },
  };
}

describe('a runtime that loses the first process of a sandbox', { skip }, () => {
  it('is started once more, and the sandbox works', async () => {
    using bench = new LocalBench();
    using shim = failingRunc(bench, 1);
    const environment = bench.provider().environment(bench.spec());
    await environment.start({ signal: never });
    assert.equal((await environment.exec({ command: 'echo up' }, never)).stdout, 'up\n');
    await environment.destroy();
    assert.deepEqual(bench.leftovers(), []);
    assert.equal(readFileSync(shim.count, 'utf8'), '1\n');
  });

  it('fails typed when it happens again, and leaves nothing', async () => {
    using bench = new LocalBench();
    using shim = failingRunc(bench, 2);
    const environment = bench.provider().environment(bench.spec());
    await assert.rejects(environment.start({ signal: never }), (error) =>
      isRolloutError(error, 'ENVIRONMENT_START_FAILED'),
    );
    await environment.destroy();
    assert.deepEqual(bench.leftovers(), []);
    assert.equal(readFileSync(shim.count, 'utf8'), '2\n');
  });
});
