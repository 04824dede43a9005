import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { chmodSync, existsSync, mkdtempSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { test } from 'node:test';
import {
  commandScript,
  insideArgv,
  scriptLine,
  type InsideCommand,
} from '../../../../src/environments/shared/inside/inside-script.ts';

const plain: InsideCommand = { run: 'sh', cwd: '/', env: {}, user: null, input: 'none' };

/** Runs what a sandbox would run. */
function run(
  wanted: Partial<InsideCommand>,
  input = '',
  variables: NodeJS.ProcessEnv = process.env,
) {
  const [program = 'sh', ...args] = insideArgv;
  const line = scriptLine(commandScript({ ...plain, ...wanted }));
  const { stdout, stderr, status } = spawnSync(program, args, {
    input: line + input,
    env: variables,
    encoding: 'utf8',
  });
  return { stdout, status, stderr: stderr.replace(/^slipway-pid \d+\n/m, '') };
}

test('a command passes its line unharmed: quotes, backslashes, newlines, percent signs, any script', () => {
  const text = `it's "q" \\n \\\\ %s %b $HOME \`x\` \\0101\nsecond žluť 🐧`;
  const { stdout } = run({ command: 'printf %s "$OWN"', env: { OWN: text } });
  assert.equal(stdout, text);
  const quoted = `cat <<'END'\n${text}\nEND`;
  assert.equal(run({ command: quoted }).stdout, `${text}\n`);
});

test('what comes behind the line is the input of the command, all of it or a number of bytes', () => {
  assert.equal(run({ command: 'cat', input: 'open' }, 'a\nb').stdout, 'a\nb');
  assert.equal(run({ command: 'cat', input: 3 }, 'abcdef').stdout, 'abc');
  assert.equal(run({ command: 'cat' }, 'dropped').stdout, '');
});

test('a variable of the image that is called as ours might be is left alone', () => {
  const variables = { ...process.env, s: 'kept', user: 'kept', n: 'kept' };
  assert.equal(run({ command: 'echo "$s $user $n"' }, '', variables).stdout, 'kept kept kept\n');
});

test('a folder that is not there, and a NUL byte, keep a command from beginning', () => {
  const missing = run({ command: 'echo ran', cwd: '/no/such' });
  assert.deepEqual([missing.stdout, missing.status === 0], ['', false]);
  assert.throws(() => scriptLine('a\0b'), { code: 'EXEC_FAILED' });
  assert.throws(() => commandScript({ ...plain, env: { 'a-b': '' } }), { field: 'env.a-b' });
});

const tools = ['sh', 'bash', 'id', 'cat', 'true'];

for (const by of ['setpriv', 'chroot', 'su'])
  test(
    `another user by ${by}, where the image has nothing else`,
    {
      skip: process.getuid?.() === 0 ? false : 'needs root',
    },
    () => {
      const folder = mkdtempSync(path.join(tmpdir(), 'tools-'));
      chmodSync(folder, 0o755);
      try {
        for (const tool of [...tools, by])
          for (const dir of ['/bin', '/sbin', '/usr/bin', '/usr/sbin'])
            if (existsSync(path.join(dir, tool)) && !existsSync(path.join(folder, tool)))
              symlinkSync(path.join(dir, tool), path.join(folder, tool));
        const variables = { PATH: folder };
        const command = 'id -un; id -gn; pwd; echo "$HOME $OWN"';
        const wanted = { command, user: 'nobody', cwd: '/usr', env: { OWN: 'own' } };
        const { stdout } = run(wanted, '', variables);
        assert.equal(stdout, 'nobody\nnogroup\n/usr\n/nonexistent own\n');
        const unknown = run({ command, user: 'no-such-user' }, '', variables);
        assert.match(unknown.stderr, /no user no-such-user/);
      } finally {
        rmSync(folder, { recursive: true, force: true });
      }
    },
  );
