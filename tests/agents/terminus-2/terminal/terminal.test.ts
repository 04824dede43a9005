/** The terminal on the real tmux, in every kind of sandbox of this machine. */
import assert from 'node:assert/strict';
import { stat } from 'node:fs/promises';
import { after, before, describe, test } from 'node:test';
import { deadlineVariable } from '../../../../src/agents/agent.ts';
import { RolloutError } from '../../../../src/core/errors.ts';
import { never } from '../../../../src/core/linked-abort.ts';
import { realProviders } from '../../../support/real-providers.ts';
import { recorded, TerminalBench, type OpenedTerminal } from './terminal-bench.ts';

/** Keys, and what the screen must show before the next read. */
const script: readonly (readonly [string, RegExp])[] = [
  ['echo one\n', /^one\nready>\s*$/m],
  [`printf '%s|' "$HOME" 'it'"'"'s' '~' '#{x}' ';' '%end 1 2 1' '\\\\'; echo\n`, /\|\nready>\s*$/],
  ['echo žluťoučký 🐧 日本\n', /^žluťoučký 🐧 日本\nready>\s*$/m],
  // It says itself that it runs: before, the shell would hear what ends it.
  ["sh -c 'echo on; exec sleep 1000'\n", /^on\s*$/m],
  ['C-c', /\^C\nready>\s*$/],
  ['-n Enter', /ready> -n Enter\s*$/],
  ['C-u', /ready>\s*$/],
  ['~/x;', /ready> ~\/x;\s*$/],
  ['C-u', /ready>\s*$/],
  ['~nobody-has-this-name \\;', /ready> ~nobody-has-this-name \\;\s*$/],
  ['C-u', /ready>\s*$/],
  [';', /ready> ;\s*$/],
  ['C-u', /ready>\s*$/],
  ['echo C-c "Enter"', /ready> echo C-c "Enter"\s*$/],
  ['Enter', /^C-c Enter\nready>\s*$/m],
  ["cat <<'END'\n\ttab\n\n  x  y\nEND\n", /x {2}y\nready>\s*$/],
  ['', /ready>\s*$/],
  [
    "printf '\\033[?1049h\\033[2J\\033[5;3Hfull screen'; read -rsn1\n",
    /^\n\n\n\n {2}full screen\s*$/,
  ],
  ['q', /ready>\s*$/],
  ['seq 1 500\n', /^500\nready>\s*$/m],
  ['seq 1 60000 | tail -n 59990\n', /^60000\nready>\s*$/m],
  ['clear\n', /^ready>\s*$/],
];

async function play({ terminal, type, until, settle }: OpenedTerminal): Promise<readonly string[]> {
  await settle();
  const seen = [await terminal.readOutput(never)];
  for (const [keys, wanted] of script) {
    await type(keys);
    await until(wanted);
    seen.push(await terminal.readOutput(never));
  }
  return seen;
}

for (const real of realProviders())
  describe(`a terminal in a sandbox of ${real.kind}`, { skip: real.skip ?? false }, () => {
    let bench: TerminalBench;
    before(async () => {
      bench = await TerminalBench.open(real);
    });
    after(async () => bench.close());

    test('shows the same through control mode and through exec, whatever is typed', async () => {
      const byControl = await bench.terminal();
      assert.equal(byControl.terminal.transport, 'control-mode');
      const byExec = await bench.terminal({ transport: 'exec' });
      assert.equal(byExec.terminal.transport, 'exec');
      const [seen, again] = await Promise.all([play(byControl), play(byExec)]);
      assert.deepEqual(seen, again);
      assert.match(seen[0] ?? '', /^Current Terminal Screen:\nready>\n/);
      assert.match(seen[1] ?? '', /^New Terminal Output:\nready> echo one\none\nready>\n/);
      for (const text of seen) assert.ok(Buffer.byteLength(text) < 10_300);
    });

    test('passes 200 KB of keys whole', async () => {
      const { type, until, settle, environment } = await bench.terminal();
      await settle();
      const text = Array.from(
        { length: 4_000 },
        (_, line) => `${line} $x \\ "ž" ${'y'.repeat(36)}\n`,
      );
      await type(`cat >/tmp/large-${real.kind} <<'END'\n${text.join('')}END\nclear; echo whole\n`);
      await until(/^whole\nready>\s*$/m);
      const command = `cat /tmp/large-${real.kind}`;
      const { stdout } = await environment.exec({ command }, never);
      assert.equal(stdout, text.join(''));
    });

    test('a flood of 50 MB stalls nothing and does not grow this process', async () => {
      const { terminal, type, until, settle, recordingFile } = await bench.terminal();
      await settle();
      const before = process.memoryUsage().rss;
      const flood = "head -c 50000000 /dev/zero | tr '\\0' x | fold -w 99";
      // In a shell of its own, which C-c ends as a whole: bash goes on behind a pipeline that ends at the same moment.
      await type(`(${flood}; echo over; sleep 1000)\n`);
      await until(/^x{99}$/m);
      for (let look = 0; look < 10; look += 1) await terminal.readOutput(never);
      await type('C-c');
      await type('echo stopped\n');
      const screen = await until(/^stopped\nready>\s*$/m);
      assert.equal(terminal.transport, 'control-mode');
      const grown = process.memoryUsage().rss - before;
      assert.ok(grown < 200e6, `${grown} bytes more`);
      await terminal.close();
      assert.ok((await stat(recordingFile)).size < 17e6);
      // Most of it was left out, and what came after is drawn on the right screen all the same.
      assert.equal(await bench.replayed(await recorded(recordingFile)), screen.trimEnd());
    });

    test('has the size, the variables and the shell that were asked for', async () => {
      const env = { EXTRA: `it's "$HOME"`, OTHER: 'žluť' };
      const { type, until, settle, environment } = await bench.terminal({ env });
      await settle();
      await type('echo "$EXTRA|$OTHER|$SHELL|$(tput cols 2>/dev/null)|$(stty size)|$0"\n');
      await until(/^it's "\$HOME"\|žluť\|\/bin\/bash\|\d*\|30 100\|bash$/m);
      const found = await environment.exec({ command: 'tmux show -gv history-limit' }, never);
      assert.equal(found.stdout, '50000\n');
    });

    test('a server that runs already gives a new session its variables', async () => {
      const first = await bench.terminal();
      const keep = await first.environment.exec({ command: 'tmux new-session -d -s other' }, never);
      assert.equal(keep.exitCode, 0);
      const { type, until, settle } = await bench.terminal({
        environment: first.environment.withEnv({ [deadlineVariable]: 'soon' }),
        env: { EXTRA: 'own' },
      });
      await settle();
      await type(`echo "$EXTRA|$${deadlineVariable}"\n`);
      await until(/^own\|soon$/m);
    });

    test('a lost client is opened once more, then every command is an exec; nothing typed is lost', async () => {
      const { terminal, type, until, settle, environment } = await bench.terminal();
      await settle();
      const dropClient = async (): Promise<void> => {
        const command = 'tmux detach-client -s =terminus-2';
        assert.equal((await environment.exec({ command }, never)).exitCode, 0);
      };
      await dropClient();
      await type('echo first\n');
      await until(/^first\nready>\s*$/m);
      assert.equal(terminal.transport, 'control-mode');
      await dropClient();
      await type('echo second\n');
      await until(/^second\nready>\s*$/m);
      assert.equal(terminal.transport, 'exec');
      assert.equal(await terminal.isAlive(never), true);
    });

    test('where no program can be opened every command is an exec', async () => {
      const { environment } = await bench.terminal();
      const refused = new RolloutError('EXEC_FAILED', 'planted', { phase: 'environment' });
      const { terminal, type, until, settle } = await bench.terminal({
        environment: { ...environment, openProcess: async () => Promise.reject(refused) },
      });
      assert.equal(terminal.transport, 'exec');
      await settle();
      await type('echo "x"\n');
      await until(/^x\nready>\s*$/m);
    });

    for (const [transport, how, keys] of [
      ['control-mode', 'the shell ends', 'exit\n'],
      ['control-mode', 'tmux is killed', 'tmux kill-server\n'],
      ['control-mode', 'tmux is killed hard', 'kill -9 $(tmux display-message -p "#{pid}")\n'],
      ['exec', 'tmux is killed', 'tmux kill-server\n'],
    ] as const)
      test(`is not alive any more when ${how}, and neither typing nor reading fails (${transport})`, async () => {
        const { terminal, type, settle } = await bench.terminal({ transport });
        await settle();
        assert.equal(await terminal.isAlive(never), true);
        await type(keys);
        const endsAt = performance.now() + 30_000;
        while (await terminal.isAlive(never)) assert.ok(performance.now() < endsAt, 'alive');
        await terminal.send('echo x\n', { durationSec: 1_000 }, never);
        assert.equal(await terminal.readOutput(never), 'Current Terminal Screen:\n');
      });

    test('a recording replays to the screen that was seen', async () => {
      const { terminal, type, until, settle, recordingFile } = await bench.terminal();
      await settle();
      await type(
        "printf '\\033[31mred\\033[0m \\033[10;20Hthere žluť🐧\\033[3;1Hback\\033[12;1H'\n",
      );
      await type('seq 1 5; echo "$((6 * 7)) end"\n');
      const screen = await until(/^42 end\nready>\s*$/m);
      await terminal.close();
      const events = await recorded(recordingFile);
      assert.ok(events.every(([at], index) => at >= (events[index - 1]?.[0] ?? 0)));
      assert.equal(await bench.replayed(events), screen.trimEnd());
    });

    test('through exec the recording holds the screens that were looked at', async () => {
      const opened = await bench.terminal({ transport: 'exec' });
      await opened.settle();
      await opened.type('echo žluť\n');
      await opened.until(/^žluť\nready>\s*$/m);
      await opened.terminal.close();
      const events = await recorded(opened.recordingFile);
      assert.match(events.at(-1)?.[2] ?? '', /\r\nžluť\r\nready>/);
    });

    test('without a recording nothing is written, and all else is the same', async () => {
      const { terminal, type, until, settle } = await bench.terminal({ recordingFile: null });
      assert.equal(terminal.transport, 'control-mode');
      await settle();
      await type('echo "x"\n');
      await until(/^x\nready>\s*$/m);
    });

    test('a wait ends with its signal, and so does a look', async () => {
      const { terminal, settle } = await bench.terminal();
      await settle();
      const controller = new AbortController();
      const reason = new Error('enough');
      const waiting = terminal.send('echo x\n', { durationSec: 1_000 }, controller.signal);
      waiting.catch(() => undefined);
      controller.abort(reason);
      await assert.rejects(waiting, reason);
      await assert.rejects(terminal.readOutput(controller.signal), reason);
      await assert.rejects(terminal.isAlive(controller.signal), reason);
      assert.equal(await terminal.isAlive(never), true);
    });
  });

for (const real of realProviders())
  test(
    `the terminal of a sandbox of ${real.kind} that is gone is not alive`,
    { skip: real.skip ?? false },
    async () => {
      const bench = await TerminalBench.open(real);
      try {
        const { terminal } = await bench.terminal();
        await bench.environment.stop(never);
        assert.equal(await terminal.isAlive(never), false);
        await assert.rejects(terminal.readOutput(never), { code: 'ENVIRONMENT_LOST' });
        await Promise.all([terminal.close(), terminal.close()]);
      } finally {
        await bench.close();
      }
    },
  );
