import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { test } from 'node:test';
import { promisify } from 'node:util';
import { commandArgv } from '../../../src/environments/docker/command-wrapper.ts';
import { PidLine } from '../../../src/environments/shared/pid-line.ts';

const run = promisify(execFile);

for (const size of [1, 5, 100])
  test(`the pid line is cut off stderr that arrives in pieces of ${size}`, () => {
    const pids: number[] = [];
    const line = new PidLine((pid) => pids.push(pid));
    const bytes = Buffer.from('slipway-pid 42\nreal error\n');
    let rest = '';
    for (let at = 0; at < bytes.length; at += size)
      rest += line.strip(bytes.subarray(at, at + size)).toString();
    assert.deepEqual([pids, rest + line.rest().toString()], [[42], 'real error\n']);
  });

test('stderr without a pid line is kept whole', () => {
  const pids: number[] = [];
  const line = new PidLine((pid) => pids.push(pid));
  const seen = [line.strip(Buffer.from('exec')), line.strip(Buffer.from(' failed')), line.rest()];
  assert.deepEqual([pids, Buffer.concat(seen).toString()], [[], 'exec failed']);
});

test('a command is given to the shell as it is, and keeps the pid that was reported', async () => {
  const command = `printf '%s' "$$ 'quoted' \\$x"; echo "$BASH_VERSION" | head -c 1 >&2`;
  const [file = '', ...args] = commandArgv(command, 'bash');
  const { stdout, stderr } = await run(file, args);
  const pid = /^slipway-pid (\d+)\n\d$/.exec(stderr.trimEnd())?.[1];
  assert.equal(stdout, `${pid} 'quoted' $x`);
});
