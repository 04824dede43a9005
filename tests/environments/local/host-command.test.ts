import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { PassThrough } from 'node:stream';
import { text } from 'node:stream/consumers';
import { test } from 'node:test';
import { never } from '../../../src/core/linked-abort.ts';
import { runHostCommand } from '../../../src/environments/local/host-command.ts';

const shell = (script: string): { file: string; args: string[] } => ({
  file: 'sh',
  args: ['-c', script],
});

test('a cancelled command ends although a process outside its group keeps the pipes open', async () => {
  const cancel = new AbortController();
  const reason = new Error('cancelled');
  const start = performance.now();
  const running = runHostCommand(
    {
      ...shell('setsid sleep 8 & echo started; sleep 8'),
      onLine: () => cancel.abort(reason),
    },
    cancel.signal,
  );
  await assert.rejects(running, reason);
  assert.ok(performance.now() - start < 4_000);
});

test('an input that breaks off ends the input of the command', async () => {
  const input = new PassThrough();
  const running = runHostCommand({ ...shell('cat; echo end'), input }, never);
  input.write('begun ');
  setImmediate(() => input.destroy(new Error('broken')));
  const { stdout } = await running;
  assert.match(stdout, /end\n$/);
});

test('a line without an end is kept within bounds', async () => {
  const lengths: number[] = [];
  const { exitCode } = await runHostCommand(
    {
      ...shell('head -c 300000 /dev/zero | tr "\\0" x; echo'),
      onLine: (line) => lengths.push(line.length),
    },
    never,
  );
  assert.equal(exitCode, 0);
  assert.equal(lengths.length, 1);
  assert.ok((lengths[0] ?? 0) < 200_000);
});

const hasShares = existsSync('/proc/self/autogroup');

test(
  'what ends something gets the share of the processor that we have',
  { skip: hasShares ? false : 'this kernel has no autogroups' },
  async () => {
    // In a session of its own: the share of this one is that of all tests.
    const program = `
      import { writeFileSync } from 'node:fs';
      import { runHostCommand } from ${JSON.stringify(new URL('../../../src/environments/local/host-command.ts', import.meta.url).href)};
      writeFileSync('/proc/self/autogroup', '3');
      for (const lane of ['start', 'end']) {
        const args = ['-c', 'sleep 0.3; cat /proc/self/autogroup'];
        const { stdout } = await runHostCommand({ file: 'sh', args, lane }, new AbortController().signal);
        console.log(lane, stdout.split(' ').at(-1).trim());
      }`;
    const child = spawn(process.execPath, ['--input-type=module', '--eval', program], {
      ...{ detached: true, stdio: ['ignore', 'pipe', 'inherit'] },
    });
    assert.equal(await text(child.stdout), 'start 0\nend 3\n');
  },
);
