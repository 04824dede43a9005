import assert from 'node:assert/strict';
import { test } from 'node:test';
import { runCompose } from '../../../../src/environments/docker/compose/compose-command.ts';

test('a cancelled run ends although a program that it started keeps the pipes open', async () => {
  const cancel = new AbortController();
  const start = performance.now();
  const result = await runCompose(['sh', '-c', 'echo begun >&2; setsid sleep 15 & sleep 15'], {
    args: [],
    variables: { PATH: process.env['PATH'] },
    input: '',
    signal: cancel.signal,
    onLine: () => cancel.abort(),
  });
  assert.equal(result.exitCode, null);
  assert.ok(performance.now() - start < 10_000);
});
