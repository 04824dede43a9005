import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { describe, it, type TestContext } from 'node:test';
import { isRolloutError } from '../../../src/core/errors.ts';
import { never } from '../../../src/core/linked-abort.ts';
import { killTreeScript } from '../../../src/environments/shared/kill-tree.ts';
import { ShellChannel, type RunningShell } from '../../../src/environments/shared/shell-channel.ts';

/** A shell that ends with its test, also when the test fails. */
function openShell(program: 'sh' | 'bash', t: TestContext): { channel: ShellChannel; pid: number } {
  const child = spawn(program, [], { stdio: 'pipe' });
  const ended = once(child, 'exit').then(() => undefined);
  const shell: RunningShell = {
    stdin: child.stdin,
    stdout: child.stdout,
    stderr: child.stderr,
    ended,
    killTree: async (pid) => {
      await once(spawn('sh', ['-c', killTreeScript(pid)]), 'close');
    },
    kill: async () => {
      child.kill('SIGKILL');
    },
  };
  const channel = new ShellChannel(shell, { defaultCwd: '/' });
  t.after(async () => channel.close());
  return { channel, pid: child.pid! };
}

for (const program of ['sh', 'bash'] as const) {
  describe(`a control channel over ${program}`, () => {
    it('gives exit code, stdout and stderr of each command in order', async (t) => {
      const { channel } = openShell(program, t);
      const results = await Promise.all(
        [1, 2, 3].map(async (n) =>
          channel.exec({ command: `printf out${n}; printf 'err\n' >&2; exit ${n}` }, never),
        ),
      );
      assert.deepEqual(
        results.map((r) => [r.exitCode, r.stdout, r.stderr]),
        [1, 2, 3].map((n) => [n, `out${n}`, 'err\n']),
      );
      await channel.close();
    });

    it('keeps quotes, newlines and unicode, sets cwd and variables for one command only', async (t) => {
      const { channel } = openShell(program, t);
      const first = await channel.exec(
        {
          command: `printf '%s|' "$A" "$PWD" 'ü\n"'"'"`,
          cwd: '/usr',
          env: { A: `it's "x" $HOME\n` },
        },
        never,
      );
      assert.equal(first.stdout, `it's "x" $HOME\n|/usr|ü\n"'|`);
      const second = await channel.exec({ command: 'printf "%s" "${A-unset}$PWD"' }, never);
      assert.equal(second.stdout, 'unset/');
      await channel.close();
    });

    it('drops what goes over the capture limit and says so', async (t) => {
      const { channel } = openShell(program, t);
      const result = await channel.exec(
        { command: 'head -c 6000000 /dev/zero | tr "\\0" a; printf end >&2' },
        never,
      );
      assert.equal(result.stdout.length, 4 * 1024 * 1024);
      assert.equal(result.isTruncated, true);
      assert.equal(result.stderr, 'end');
      await channel.close();
    });

    it('kills a command with its children at the timeout and stays usable', async (t) => {
      const { channel } = openShell(program, t);
      await assert.rejects(
        channel.exec(
          {
            command: `trap "" TERM; sleep 301.${process.pid} & sleep 302.${process.pid}; true`,
            timeoutMs: 100,
          },
          never,
        ),
        (error) => isRolloutError(error, 'EXEC_TIMEOUT'),
      );
      const left = await channel.exec(
        { command: `pgrep -f '^sleep 30[12].${process.pid}$' | wc -l` },
        never,
      );
      assert.equal(left.stdout.trim(), '0');
      await channel.close();
    });

    it('rejects with the reason of the signal and leaves no listener on it', async (t) => {
      const { channel } = openShell(program, t);
      const abort = new AbortController();
      const reason = new Error('stop');
      const running = channel.exec({ command: 'sleep 30' }, abort.signal);
      setTimeout(() => abort.abort(reason), 50);
      await assert.rejects(running, reason);
      assert.equal((await channel.exec({ command: 'echo ok' }, never)).stdout, 'ok\n');
      await channel.close();
    });

    it('reports a dead shell as ENVIRONMENT_LOST, to running and to later commands', async (t) => {
      const { channel, pid } = openShell(program, t);
      const running = channel.exec({ command: `kill -KILL ${pid}; sleep 0.2` }, never);
      await assert.rejects(running, (error) => isRolloutError(error, 'ENVIRONMENT_LOST'));
      await assert.rejects(channel.exec({ command: 'true' }, never), (error) =>
        isRolloutError(error, 'ENVIRONMENT_LOST'),
      );
      await channel.close();
      await channel.close();
    });

    it('refuses names that are no variables and commands with NUL', async (t) => {
      const { channel } = openShell(program, t);
      await assert.rejects(
        channel.exec({ command: 'true', env: { 'A;reboot': '1' } }, never),
        (error) => isRolloutError(error, 'EXEC_FAILED') && error.field === 'env.A;reboot',
      );
      await assert.rejects(channel.exec({ command: 'a\0b' }, never), (error) =>
        isRolloutError(error, 'EXEC_FAILED'),
      );
      await channel.close();
    });
  });
}
