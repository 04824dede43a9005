import assert from 'node:assert/strict';
import { maxCapturedBytes } from '../../../../src/environments/environment.ts';
import type { ConformanceCase } from '../adapter.ts';
import { eventually, hostProcessesWith } from '../looking.ts';
import { newMarker } from './exec.ts';

export const controlCases: readonly ConformanceCase[] = [
  {
    id: 'control.streams-and-code',
    title: 'a command over the channel gives exit code and streams as exec does',
    async run({ shared, signal }) {
      const channel = await (await shared()).openControl({ signal });
      const result = await channel.exec({ command: 'printf out; echo err >&2; exit 3' }, signal);
      assert.deepEqual(result, { exitCode: 3, stdout: 'out', stderr: 'err\n', isTruncated: false });
      const next = await channel.exec({ command: 'echo "it\'s" žluťoučký' }, signal);
      assert.equal(next.stdout, "it's žluťoučký\n");
      await channel.close();
    },
  },
  {
    id: 'control.order',
    title: 'commands of one channel run one at a time in the order of the calls',
    async run({ shared, signal }) {
      const environment = await shared();
      const channel = await environment.openControl({ signal });
      const lines = Array.from({ length: 20 }, (_, index) => index);
      const results = await Promise.all(
        lines.map((line) =>
          channel.exec({ command: `echo ${line} >> /tmp/ordered; wc -l < /tmp/ordered` }, signal),
        ),
      );
      assert.deepEqual(
        results.map(({ stdout }) => Number(stdout)),
        lines.map((line) => line + 1),
      );
      await channel.close();
    },
  },
  {
    id: 'control.env-and-cwd',
    title: 'variables and working folder belong to one command and do not leak into the next',
    async run({ shared, signal }) {
      const channel = await (await shared()).openControl({ signal });
      const env = { OWN: `$HOME 'q' "d"\nline` };
      const command = 'printf "%s|" "$OWN"; pwd';
      const first = await channel.exec({ command, env, cwd: '/usr' }, signal);
      assert.equal(first.stdout, `${env.OWN}|/usr\n`);
      const second = await channel.exec({ command: 'echo "${OWN-unset}"; pwd' }, signal);
      const [own, cwd] = second.stdout.split('\n');
      assert.equal(own, 'unset');
      assert.notEqual(cwd, '/usr');
      await channel.close();
    },
  },
  {
    id: 'control.stdin',
    title: 'a command that reads its standard input does not swallow the next command',
    async run({ shared, signal }) {
      const channel = await (await shared()).openControl({ signal });
      const results = await Promise.all([
        channel.exec({ command: 'cat' }, signal),
        channel.exec({ command: 'echo next' }, signal),
      ]);
      assert.deepEqual(
        results.map(({ stdout }) => stdout),
        ['', 'next\n'],
      );
      await channel.close();
    },
  },
  {
    id: 'control.truncation',
    title: 'a large output over the channel is cut like that of exec, and the channel stays usable',
    async run({ shared, signal }) {
      const channel = await (await shared()).openControl({ signal });
      const command = `head -c ${maxCapturedBytes + 100_000} /dev/zero | tr '\\0' x`;
      const result = await channel.exec({ command }, signal);
      assert.equal(result.isTruncated, true);
      assert.equal(result.stdout.length, maxCapturedBytes);
      assert.equal((await channel.exec({ command: 'echo usable' }, signal)).stdout, 'usable\n');
      await channel.close();
    },
  },
  {
    id: 'control.user',
    title: 'a channel runs its commands as the user it was opened for',
    needs: 'users',
    async run({ shared, signal }) {
      const channel = await (await shared()).openControl({ user: 'nobody', signal });
      assert.equal((await channel.exec({ command: 'id -un' }, signal)).stdout, 'nobody\n');
      await channel.close();
    },
  },
  {
    id: 'control.timeout',
    title: 'a timeout kills the command, rejects with EXEC_TIMEOUT and leaves the channel usable',
    async run({ shared, adapter, signal }) {
      const channel = await (await shared()).openControl({ signal });
      const marker = newMarker();
      const look = adapter.processesWith ?? hostProcessesWith;
      const command = `sleep 300.${marker} & sleep 300.${marker}; wait`;
      const timedOut = channel.exec({ command, timeoutMs: 500 }, signal);
      const next = channel.exec({ command: 'echo usable' }, signal);
      await assert.rejects(timedOut, { code: 'EXEC_TIMEOUT' });
      assert.equal((await next).stdout, 'usable\n');
      await eventually('the command is dead', async () => (await look(marker)).length === 0);
      await channel.close();
    },
  },
  {
    id: 'control.signal',
    title: 'a signal rejects with its reason and kills the command of that call',
    async run({ shared, adapter, signal }) {
      const channel = await (await shared()).openControl({ signal });
      const marker = newMarker();
      const look = adapter.processesWith ?? hostProcessesWith;
      const controller = new AbortController();
      const running = channel.exec({ command: `sleep 300.${marker}; true` }, controller.signal);
      running.catch(() => undefined);
      await eventually('it runs', async () => (await look(marker)).length > 0);
      const reason = new Error('enough');
      controller.abort(reason);
      await assert.rejects(running, reason);
      await eventually('the command is dead', async () => (await look(marker)).length === 0);
      await channel.close();
    },
  },
  {
    id: 'control.dead-shell',
    title: 'a channel whose shell has died rejects with ENVIRONMENT_LOST, then and later',
    async run({ start, signal }) {
      const environment = await start();
      const channel = await environment.openControl({ signal });
      const running = channel.exec({ command: 'sleep 60' }, signal);
      running.catch(() => undefined);
      await environment.killProcesses({ keys: new Set() }, signal);
      await assert.rejects(running, { code: 'ENVIRONMENT_LOST' });
      await assert.rejects(channel.exec({ command: 'true' }, signal), { code: 'ENVIRONMENT_LOST' });
      await channel.close();
    },
  },
  {
    id: 'control.close',
    title: 'closing a channel twice is harmless, and a closed one runs nothing',
    async run({ shared, signal }) {
      const channel = await (await shared()).openControl({ signal });
      await Promise.all([channel.close(), channel.close()]);
      await channel.close();
      await assert.rejects(channel.exec({ command: 'true' }, signal), { code: 'ENVIRONMENT_LOST' });
    },
  },
  {
    id: 'control.two-channels',
    title: 'two channels of one sandbox do not wait for each other',
    async run({ shared, signal }) {
      const environment = await shared();
      const slow = await environment.openControl({ signal });
      const fast = await environment.openControl({ signal });
      const waiting = slow.exec(
        { command: 'until [ -e /tmp/channels-meet ]; do sleep 0.05; done; echo met' },
        signal,
      );
      await fast.exec({ command: 'touch /tmp/channels-meet' }, signal);
      assert.equal((await waiting).stdout, 'met\n');
      await Promise.all([slow.close(), fast.close()]);
    },
  },
];
