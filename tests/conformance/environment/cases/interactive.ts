import assert from 'node:assert/strict';
import type {
  Environment,
  InteractiveProcess,
  ProcessRequest,
} from '../../../../src/environments/environment.ts';
import type { ConformanceCase } from '../adapter.ts';
import { eventually, hostProcessesWith } from '../looking.ts';
import { newMarker } from './exec.ts';

const waitMs = 20_000;

/** A program with what it has written so far. */
interface Opened {
  readonly program: InteractiveProcess;
  readonly stdout: () => Buffer;
  readonly stderr: () => string;
  readonly until: (text: string) => Promise<void>;
}

async function open(
  environment: Environment,
  request: string | Omit<ProcessRequest, 'onOutput'>,
  signal: AbortSignal,
): Promise<Opened> {
  const chunks = { stdout: [] as Buffer[], stderr: [] as Buffer[] };
  const program = await environment.openProcess(
    {
      ...(typeof request === 'string' ? { command: request } : request),
      onOutput: (stream, bytes) => chunks[stream].push(Buffer.from(bytes)),
    },
    signal,
  );
  const stdout = (): Buffer => Buffer.concat(chunks.stdout);
  return {
    program,
    stdout,
    stderr: () => Buffer.concat(chunks.stderr).toString('utf8'),
    until: (text) => eventually(`it wrote ${text}`, async () => stdout().includes(text), waitMs),
  };
}

export const interactiveCases: readonly ConformanceCase[] = [
  {
    id: 'interactive.echo',
    title: 'what a program answers comes while its input is open, and the end of the input ends it',
    async run({ shared, signal }) {
      const { program, until, stdout } = await open(await shared(), 'cat', signal);
      for (const line of ['one\n', 'žluťoučký 🐧\n']) {
        await program.write(line);
        await until(line);
      }
      program.endInput();
      program.endInput();
      assert.equal(await program.exited, 0);
      assert.equal(stdout().toString('utf8'), 'one\nžluťoučký 🐧\n');
    },
  },
  {
    id: 'interactive.bytes',
    title: 'bytes pass as they are in both directions: NUL, invalid UTF-8, carriage returns',
    async run({ shared, signal }) {
      const { program, stdout } = await open(await shared(), 'cat', signal);
      const bytes = Buffer.from(Array.from({ length: 1024 }, (_, index) => index % 256));
      await program.write(bytes);
      program.endInput();
      assert.equal(await program.exited, 0);
      assert.deepEqual(stdout(), bytes);
    },
  },
  {
    id: 'interactive.exit-code',
    title: 'a program gives its exit code, and its two streams apart, all of it before its end',
    async run({ shared, signal }) {
      const command = 'cat; echo out; echo err >&2; exit 7';
      const { program, stdout, stderr } = await open(await shared(), command, signal);
      program.endInput();
      assert.equal(await program.exited, 7);
      assert.deepEqual([stdout().toString(), stderr()], ['out\n', 'err\n']);
    },
  },
  {
    id: 'interactive.ends-at-once',
    title: 'a program that ends at once is one that ended, not one that could not be started',
    async run({ shared, signal }) {
      const environment = await shared();
      for (const [command, code] of [
        ['exit 3', 3],
        ['no-such-command-here', 127],
      ] as const)
        assert.equal(await (await open(environment, command, signal)).program.exited, code);
    },
  },
  {
    id: 'interactive.shell',
    title: 'a shell keeps its state from one written line to the next',
    async run({ shared, signal }) {
      const { program, until } = await open(await shared(), 'sh', signal);
      await program.write('echo "first"\n');
      await until('first\n');
      await program.write('echo $((40 + 2))\nexit 5\n');
      await until('42\n');
      assert.equal(await program.exited, 5);
    },
  },
  {
    id: 'interactive.write-after-end',
    title: 'a write to a program that has ended rejects with ENVIRONMENT_LOST',
    async run({ shared, signal }) {
      const { program } = await open(await shared(), 'exit 0', signal);
      await program.exited;
      await assert.rejects(program.write('more'), { code: 'ENVIRONMENT_LOST' });
      await program.kill();
      program.endInput();
    },
  },
  {
    id: 'interactive.kill',
    title:
      'killing a program kills its descendants, resolves when it has ended, and may be repeated',
    async run({ shared, adapter, signal }) {
      const look = adapter.processesWith ?? hostProcessesWith;
      // The kill comes while the program still forks: now and then only would one be late.
      for (let round = 0; round < 4; round += 1) {
        const marker = newMarker();
        const command = `sleep 300.${marker} & sleep 301.${marker}; true`;
        const { program } = await open(await shared(), command, signal);
        await eventually('it runs', async () => (await look(`.${marker}`)).length > 0, waitMs);
        await Promise.all([program.kill(), program.kill()]);
        assert.equal(await program.exited, null);
        await eventually('all is dead', async () => (await look(marker)).length === 0, waitMs);
        await assert.rejects(program.write('more'), { code: 'ENVIRONMENT_LOST' });
      }
    },
  },
  {
    id: 'interactive.signal',
    title: 'a signal kills the program, and one that has fired starts none',
    async run({ shared, adapter, signal }) {
      const environment = await shared();
      const marker = newMarker();
      const look = adapter.processesWith ?? hostProcessesWith;
      const controller = new AbortController();
      const command = `sleep 300.${marker}; true`;
      const { program } = await open(environment, command, controller.signal);
      await eventually('it runs', async () => (await look(marker)).length > 0, waitMs);
      const reason = new Error('enough');
      controller.abort(reason);
      assert.equal(await program.exited, null);
      await eventually('it is dead', async () => (await look(marker)).length === 0, waitMs);
      await assert.rejects(open(environment, command, controller.signal), reason);
      assert.deepEqual(await look(marker), []);
      signal.throwIfAborted();
    },
  },
  {
    id: 'interactive.kill-processes',
    title: 'a program dies with the processes of the agent, also one that was open at the snapshot',
    async run({ start, signal }) {
      const environment = await start();
      const kept = await open(environment, 'cat', signal);
      const snapshot = await environment.snapshotProcesses(signal);
      const opened = await open(environment, 'cat', signal);
      await environment.killProcesses(snapshot, signal);
      assert.equal(await opened.program.exited, null);
      await assert.rejects(opened.program.write('x'), { code: 'ENVIRONMENT_LOST' });
      assert.equal(await kept.program.exited, null);
    },
  },
  {
    id: 'interactive.stop',
    title: 'a program ends when the sandbox is stopped, and none is started afterwards',
    async run({ start, signal }) {
      const environment = await start();
      const { program } = await open(environment, 'cat', signal);
      await environment.stop(signal);
      assert.equal(await program.exited, null);
      await assert.rejects(program.write('x'), { code: 'ENVIRONMENT_LOST' });
      await assert.rejects(open(environment, 'cat', signal), { code: 'ENVIRONMENT_LOST' });
    },
  },
  {
    id: 'interactive.destroy',
    title: 'a program ends when the sandbox is destroyed',
    async run({ start, signal }) {
      const environment = await start();
      const { program } = await open(environment, 'cat', signal);
      await environment.destroy();
      assert.equal(await program.exited, null);
      await program.kill();
    },
  },
  {
    id: 'interactive.large',
    title: 'a mebibyte goes in and comes out whole and in order',
    async run({ shared, signal }) {
      const { program, stdout } = await open(await shared(), 'cat', signal);
      const bytes = Buffer.alloc(1024 * 1024);
      for (let at = 0; at < bytes.length; at += 4) bytes.writeUInt32BE(at, at);
      for (let at = 0; at < bytes.length; at += 100_000)
        await program.write(bytes.subarray(at, at + 100_000));
      program.endInput();
      assert.equal(await program.exited, 0);
      assert.ok(stdout().equals(bytes), `${stdout().length} bytes came back`);
    },
  },
  {
    id: 'interactive.backpressure',
    title: 'a program that does not read makes writes wait, and they end with it',
    async run({ shared, signal }) {
      const { program } = await open(await shared(), 'sleep 300', signal);
      const piece = Buffer.alloc(1024 * 1024, 'x');
      let taken = 0;
      const writing = (async () => {
        for (; taken < 64; taken += 1) await program.write(piece);
      })();
      writing.catch(() => undefined);
      let before = -1;
      await eventually(
        'writes wait',
        async () => {
          const isStill = taken === before;
          before = taken;
          return isStill;
        },
        waitMs,
      );
      await program.kill();
      await assert.rejects(writing, { code: 'ENVIRONMENT_LOST' });
      assert.ok(taken < 64, `${taken} MiB were taken by a program that reads nothing`);
    },
  },
  {
    id: 'interactive.parallel',
    title: 'twenty programs at once get each its own input',
    limitMs: 60_000,
    async run({ shared, signal }) {
      const environment = await shared();
      const outputs = Array.from({ length: 20 }, async (_, index) => {
        const { program, stdout } = await open(environment, 'cat', signal);
        await program.write(`number ${index}`);
        program.endInput();
        assert.equal(await program.exited, 0);
        return stdout().toString('utf8');
      });
      assert.deepEqual(
        await Promise.all(outputs),
        Array.from({ length: 20 }, (_, index) => `number ${index}`),
      );
    },
  },
  {
    id: 'interactive.env-and-cwd',
    title: 'variables and working folder are those of the request',
    async run({ shared, signal }) {
      const env = { OWN: `$HOME 'q' "d"\nline` };
      const command = 'printf "%s|" "$OWN"; pwd';
      const opened = await open(await shared(), { command, env, cwd: '/usr' }, signal);
      assert.equal(await opened.program.exited, 0);
      assert.equal(opened.stdout().toString('utf8'), `${env.OWN}|/usr\n`);
    },
  },
  {
    id: 'interactive.user',
    title: 'a program runs as the user of the request',
    needs: 'users',
    async run({ shared, signal }) {
      const request = { command: 'id -un', user: 'nobody' };
      const opened = await open(await shared(), request, signal);
      assert.equal(await opened.program.exited, 0);
      assert.equal(opened.stdout().toString('utf8'), 'nobody\n');
    },
  },
  {
    id: 'interactive.user-unknown',
    title: 'a user that the image does not have is EXEC_FAILED',
    needs: 'users',
    async run({ shared, signal }) {
      const request = { command: 'true', user: 'no-such-user' };
      await assert.rejects(open(await shared(), request, signal), { code: 'EXEC_FAILED' });
    },
  },
];
