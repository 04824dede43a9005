import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import path from 'node:path';
import { test } from 'node:test';

const program = path.join(import.meta.dirname, 'asking-program.ts');

/** Runs the program on a terminal of its own and types `keys` as soon as it asks. */
async function answerWith(keys: string): Promise<{ readonly said: string; readonly code: number }> {
  const command = `'${process.execPath}' '${program}'`;
  const child = spawn('script', ['--quiet', '--return', '--command', command, '/dev/null'], {
    stdio: ['pipe', 'pipe', 'inherit'],
    timeout: 20_000,
  });
  let said = '';
  let hasTyped = false;
  child.stdout.on('data', (chunk: Buffer) => {
    said += chunk.toString();
    if (hasTyped || !said.includes('Proceed?')) return;
    hasTyped = true;
    child.stdin.write(keys);
  });
  const code = await new Promise<number>((resolve, reject) => {
    child.on('error', reject);
    child.on('close', (status) => resolve(status ?? -1));
  });
  return { said, code };
}

test('a question is answered with the line that is typed', async () => {
  const { said, code } = await answerWith('no\r');
  assert.match(said, /answer no/);
  assert.equal(code, 0);
});

for (const [name, keys] of [
  ['Ctrl+C', '\x03'],
  ['Ctrl+D', '\x04'],
] as const)
  test(`${name} at a question is an interruption and no defect`, async () => {
    const { said, code } = await answerWith(keys);
    assert.match(said, /CANCELLED/);
    assert.doesNotMatch(said, /INTERNAL|defect/);
    assert.equal(code, 130);
  });
