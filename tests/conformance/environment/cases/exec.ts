import assert from 'node:assert/strict';
import { randomInt, randomUUID } from 'node:crypto';
import { maxCapturedBytes } from '../../../../src/environments/environment.ts';
import type { ConformanceCase } from '../adapter.ts';
import { eventually, hostProcessesWith, output, settle } from '../looking.ts';

/** Digits that make a command line unique: `sleep 300.DIGITS`. */
export const newMarker = (): string => String(randomInt(10 ** 11, 10 ** 12));

export const execCases: readonly ConformanceCase[] = [
  {
    id: 'exec.streams-and-code',
    title: 'a command gives its exit code and its two streams apart',
    async run({ shared, signal }) {
      const environment = await shared();
      const result = await environment.exec({ command: 'echo out; echo err >&2; exit 7' }, signal);
      assert.deepEqual(result, {
        exitCode: 7,
        stdout: 'out\n',
        stderr: 'err\n',
        isTruncated: false,
      });
    },
  },
  {
    id: 'exec.not-found',
    title: 'a command that does not exist is exit code 127, not an error',
    async run({ shared, signal }) {
      const environment = await shared();
      const result = await environment.exec({ command: 'no-such-command-here' }, signal);
      assert.equal(result.exitCode, 127);
    },
  },
  {
    id: 'exec.shell-syntax',
    title: 'commands run by a shell: quotes, pipes, here-documents, arithmetic, several lines',
    async run({ shared, signal }) {
      const environment = await shared();
      const command = `x='a b'\nprintf '%s|' "$x" | tr ' ' '-'\ncat <<'END'\n$x\nEND\necho $((6 * 7))`;
      assert.equal(await output(environment, command, signal), 'a-b|$x\n42');
    },
  },
  {
    id: 'exec.unicode',
    title: 'UTF-8 passes unharmed',
    async run({ shared, signal }) {
      const text = 'žluťoučký 日本 🐧';
      assert.equal(await output(await shared(), `printf '${text}'`, signal), text);
    },
  },
  {
    id: 'exec.invalid-utf8',
    title: 'bytes that are not UTF-8 are replaced',
    async run({ shared, signal }) {
      assert.equal(await output(await shared(), `printf '\\377ok'`, signal), '\ufffdok');
    },
  },
  {
    id: 'exec.truncation',
    title: 'of a large output the first bytes are kept, the rest is only seen by onOutput',
    async run({ shared, signal }) {
      const environment = await shared();
      let seen = 0;
      const sizeBytes = maxCapturedBytes + 1_500_000;
      const result = await environment.exec(
        {
          command: `head -c ${sizeBytes} /dev/zero | tr '\\0' 'x'`,
          onOutput: (_stream, text) => (seen += text.length),
        },
        signal,
      );
      assert.equal(result.exitCode, 0);
      assert.equal(result.isTruncated, true);
      assert.equal(result.stdout.length, maxCapturedBytes);
      assert.equal(seen, sizeBytes);
    },
  },
  {
    id: 'exec.output-as-it-comes',
    title: 'onOutput gets output before the command ends, by stream',
    async run({ shared, signal }) {
      const environment = await shared();
      const pieces: string[] = [];
      let isRunning = true;
      const result = environment.exec(
        {
          command: 'echo early; echo warn >&2; sleep 2; echo late',
          onOutput: (stream, text) => pieces.push(`${isRunning}:${stream}:${text.trim()}`),
        },
        signal,
      );
      await eventually('early output', async () => pieces.length >= 2, 1_500);
      isRunning = false;
      await result;
      assert.deepEqual(pieces.sort(), [
        'false:stdout:late',
        'true:stderr:warn',
        'true:stdout:early',
      ]);
    },
  },
  {
    id: 'exec.stdin',
    title: 'a command reads the bytes given as its standard input, then its end',
    async run({ shared, signal }) {
      const environment = await shared();
      const stdin = Buffer.alloc(1_048_576, 'z');
      const counted = await environment.exec({ command: 'wc -c', stdin }, signal);
      assert.equal(counted.stdout.trim(), '1048576');
      const ignored = await environment.exec({ command: 'true', stdin }, signal);
      assert.equal(ignored.exitCode, 0);
    },
  },
  {
    id: 'exec.no-stdin',
    title: 'a command without standard input reads its end at once',
    async run({ shared, signal }) {
      assert.equal((await output(await shared(), 'cat | wc -c', signal)).trim(), '0');
    },
  },
  {
    id: 'exec.env',
    title: 'variables of a call lie over those of the spec, for that call only',
    async run({ start, signal }) {
      const environment = await start({ env: { KEPT: 'kept', COVERED: 'below' } });
      const command = 'echo "$KEPT $COVERED ${OWN-unset}"';
      const env = { COVERED: 'above', OWN: '$HOME `x`' };
      const covered = await environment.exec({ command, env }, signal);
      assert.equal(covered.stdout, 'kept above $HOME `x`\n');
      assert.equal(await output(environment, command, signal), 'kept below unset');
    },
  },
  {
    id: 'exec.env-not-in-argv',
    title: 'values of variables appear on no command line of the host',
    async run({ start, adapter, signal }) {
      const [ofSpec, ofCall, marker] = [randomUUID(), randomUUID(), newMarker()];
      const environment = await start({ env: { SPEC_SECRET: ofSpec } });
      const look = adapter.processesWith ?? hostProcessesWith;
      const running = environment.exec(
        { command: `sleep 2.${marker}; printenv CALL_SECRET`, env: { CALL_SECRET: ofCall } },
        signal,
      );
      await eventually('the command runs', async () => (await look(marker)).length > 0, 1_900);
      assert.deepEqual(await hostProcessesWith(ofSpec), []);
      assert.deepEqual(await hostProcessesWith(ofCall), []);
      assert.equal((await running).stdout.trim(), ofCall);
    },
  },
  {
    id: 'exec.cwd',
    title: 'cwd of a call is its working folder; spaces and quotes in it are harmless',
    async run({ shared, signal }) {
      const environment = await shared();
      const cwd = `/tmp/it's a "folder"`;
      await environment.exec({ command: 'mkdir -p "$D"', env: { D: cwd } }, signal);
      const result = await environment.exec({ command: 'pwd', cwd }, signal);
      assert.equal(result.stdout, `${cwd}\n`);
    },
  },
  {
    id: 'exec.root-by-default',
    title: 'without a user a command runs as the user of the image',
    async run({ shared, signal }) {
      assert.equal(await output(await shared(), 'id -u', signal), '0');
    },
  },
  {
    id: 'exec.user-name',
    title: 'a command runs as a named user of the image, with its group',
    needs: 'users',
    async run({ shared, signal }) {
      const environment = await shared();
      const result = await environment.exec({ command: 'id -un; id -gn', user: 'nobody' }, signal);
      assert.equal(result.stdout, 'nobody\nnogroup\n');
    },
  },
  {
    id: 'exec.user-id',
    title: 'a command runs as a numeric user, known to the image or not',
    needs: 'users',
    async run({ shared, signal }) {
      const environment = await shared();
      for (const user of [65534, 12345, '12346']) {
        const result = await environment.exec({ command: 'id -u', user }, signal);
        assert.equal(result.stdout.trim(), String(user));
      }
    },
  },
  {
    id: 'exec.user-cannot-write',
    title: 'a command of another user cannot write what belongs to root',
    needs: 'users',
    async run({ shared, signal }) {
      const environment = await shared();
      await output(environment, 'echo mine > /root-only; chmod 600 /root-only', signal);
      const command = 'echo x >> /root-only';
      const result = await environment.exec({ command, user: 'nobody' }, signal);
      assert.notEqual(result.exitCode, 0);
      assert.equal(await output(environment, 'cat /root-only', signal), 'mine');
    },
  },
  {
    id: 'exec.user-unknown',
    title: 'a user name that the image does not know is EXEC_FAILED',
    needs: 'users',
    async run({ shared, signal }) {
      const environment = await shared();
      const running = environment.exec({ command: 'true', user: 'no-such-user' }, signal);
      await assert.rejects(running, { code: 'EXEC_FAILED' });
    },
  },
  {
    id: 'exec.timeout',
    title: 'a timeout rejects with EXEC_TIMEOUT and kills the whole tree of the command',
    async run({ shared, adapter, signal }) {
      const environment = await shared();
      const marker = newMarker();
      const look = adapter.processesWith ?? hostProcessesWith;
      const command = `sleep 300.${marker} & (sleep 300.${marker}); wait`;
      const startedAt = performance.now();
      await assert.rejects(environment.exec({ command, timeoutMs: 700 }, signal), {
        code: 'EXEC_TIMEOUT',
      });
      assert.ok(performance.now() - startedAt < 5_000);
      await eventually('the tree is dead', async () => (await look(marker)).length === 0);
      assert.equal(await output(environment, 'echo usable', signal), 'usable');
    },
  },
  {
    id: 'exec.timeout-ignoring-term',
    title: 'a timeout kills a command that ignores SIGTERM',
    async run({ shared, adapter, signal }) {
      const environment = await shared();
      const marker = newMarker();
      const look = adapter.processesWith ?? hostProcessesWith;
      const command = `trap '' TERM INT HUP; while :; do sleep 0.1; done; : ${marker}`;
      await assert.rejects(environment.exec({ command, timeoutMs: 500 }, signal), {
        code: 'EXEC_TIMEOUT',
      });
      await eventually('it is dead', async () => (await look(marker)).length === 0);
    },
  },
  {
    id: 'exec.signal',
    title: 'a signal that fires rejects with its reason and kills the whole tree of the command',
    async run({ shared, adapter, signal }) {
      const environment = await shared();
      const marker = newMarker();
      const look = adapter.processesWith ?? hostProcessesWith;
      const controller = new AbortController();
      const command = `sleep 300.${marker} & sleep 300.${marker}; wait`;
      const running = environment.exec({ command }, controller.signal);
      running.catch(() => undefined);
      await eventually('it runs', async () => (await look(`300.${marker}`)).length > 1);
      const reason = new Error('cancelled by the test');
      controller.abort(reason);
      await assert.rejects(running, reason);
      await eventually('the tree is dead', async () => (await look(marker)).length === 0);
      assert.equal(await output(environment, 'echo usable', signal), 'usable');
    },
  },
  {
    id: 'exec.already-aborted',
    title: 'a call under a signal that has fired rejects with its reason and runs nothing',
    async run({ shared, signal }) {
      const environment = await shared();
      const reason = new Error('too late');
      const running = environment.exec({ command: 'touch /tmp/ran' }, AbortSignal.abort(reason));
      await assert.rejects(running, reason);
      await settle(200);
      assert.equal(await output(environment, 'ls /tmp/ran 2>/dev/null || echo no', signal), 'no');
    },
  },
  {
    id: 'exec.parallel',
    title: 'commands run side by side: one waits for what another does',
    async run({ shared, signal }) {
      const environment = await shared();
      const wait = 'until [ -e /tmp/meet ]; do sleep 0.05; done; echo met';
      const waiting = [1, 2, 3].map(() => environment.exec({ command: wait }, signal));
      await settle(200);
      await output(environment, 'touch /tmp/meet', signal);
      const results = await Promise.all(waiting);
      assert.deepEqual(
        results.map(({ stdout }) => stdout),
        ['met\n', 'met\n', 'met\n'],
      );
    },
  },
  {
    id: 'exec.background-child',
    title: 'a command ends when its shell ends, though a child it left behind still runs',
    async run({ start, probes, signal }) {
      const environment = await start();
      const startedAt = performance.now();
      await output(environment, probes.linger('plain', newMarker()), signal);
      assert.ok(performance.now() - startedAt < 10_000);
    },
  },
];
