import assert from 'node:assert/strict';
import { PassThrough } from 'node:stream';
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
