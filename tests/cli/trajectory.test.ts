import assert from 'node:assert/strict';
import { createWriteStream } from 'node:fs';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { once } from 'node:events';
import os from 'node:os';
import path from 'node:path';
import { after, before, describe, it } from 'node:test';
import { Command, CommanderError } from 'commander';
import { addTrajectoryCommands } from '../../src/cli/commands/trajectory.ts';
import { exitCodes } from '../../src/cli/exit-codes.ts';
import { reportError } from '../../src/cli/report-error.ts';
import type { Terminal } from '../../src/cli/terminal.ts';
import { openTrajectory } from '../../src/trajectory/file-trajectory-log.ts';
import type { AtifTrajectory } from '../../src/wire/atif/atif.ts';
import { repositoryDir, startSlipway } from '../support/slipway-cli.ts';

const rich = path.join(repositoryDir, 'tests/golden/atif/valid/rich.json');
let root = '';
before(async () => {
  root = await mkdtemp(path.join(os.tmpdir(), 'slipway-trajectory-'));
});
after(() => rm(root, { recursive: true, force: true }));

interface Ended {
  readonly exitCode: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** As its own process. */
async function slipway(
  argv: readonly string[],
  variables: Readonly<Record<string, string>> = {},
): Promise<Ended> {
  const options = { stateDir: path.join(root, 'state'), cwd: root, variables };
  return await startSlipway(['trajectory', ...argv], options).ended;
}

/** The same commands in this process. */
async function trajectory(argv: readonly string[]): Promise<Ended> {
  let [exitCode, stdout, stderr] = [0, '', ''];
  const terminal: Terminal = {
    out: (text) => void (stdout += `${text}\n`),
    handOver: async (text) => void (stdout += text),
    err: (text) => void (stderr += text),
    isInteractive: false,
    columns: 80,
    ask: () => Promise.resolve(null),
  };
  const program = new Command()
    .exitOverride()
    .configureOutput({ writeErr: (text) => void (stderr += text) });
  addTrajectoryCommands(program, async (action) => {
    exitCode = await action({
      terminal,
      signal: new AbortController().signal,
      announceInterruptsBy: () => undefined,
      releaseInterrupts: () => undefined,
      ports: () => Promise.reject(new Error('no ports are needed')),
    });
  });
  try {
    await program.parseAsync(argv, { from: 'user' });
  } catch (error) {
    exitCode = error instanceof CommanderError ? exitCodes.usage : reportError(error, terminal);
  }
  return { exitCode, stdout, stderr };
}

async function written(name: string, document: unknown): Promise<string> {
  const file = path.join(root, name);
  await writeFile(file, typeof document === 'string' ? document : JSON.stringify(document));
  return file;
}

function documentWith(...steps: readonly object[]): object {
  return { agent: { name: 'a', version: '1' }, steps };
}

describe('slipway trajectory validate', { timeout: 120_000 }, () => {
  it('says that a document is valid, on standard output', async () => {
    assert.deepEqual(await slipway(['validate', rich]), {
      exitCode: 0,
      stdout: `✓ Trajectory is valid: ${rich}\n`,
      stderr: '',
    });
  });

  it('lists every error of every file on standard error, as Harbor does', async () => {
    const image = { type: 'image', source: { media_type: 'image/png', path: 'images/no.png' } };
    const bad = await written(
      'bad.json',
      documentWith({ step_id: 2, source: 'user', message: [image] }),
    );
    const broken = await written('broken.json', '{');
    const list = await written('list.json', '[]');
    const none = path.join(root, 'none.json');
    const { exitCode, stdout, stderr } = await trajectory([
      'validate',
      bad,
      rich,
      broken,
      list,
      none,
    ]);
    assert.equal(exitCode, 1);
    assert.equal(stdout, `✓ Trajectory is valid: ${rich}\n`);
    const [first = '', second = '', ...rest] = stderr.split(/^(?=✗|Error)/m);
    assert.match(
      first,
      /^✗ Trajectory validation failed: .+bad\.json\n\nFound 2 error\(s\):\n {2}- trajectory\.: Value error, .+\n {2}- trajectory\.steps\[0\]\.message\[0\]\.source\.path: referenced image file does not exist: images\/no\.png\n$/,
    );
    assert.match(
      second,
      /^✗ Trajectory validation failed: .+broken\.json\n\nFound 1 error\(s\):\n {2}- Invalid JSON: /,
    );
    assert.match(rest[0] ?? '', / {2}- Trajectory must be a JSON object\/dict\n$/);
    assert.equal(rest[1], `Error: File not found: ${none}\n`);
  });

  it('does not look for images when told so, and answers in JSON', async () => {
    const image = { type: 'image', source: { media_type: 'image/png', path: 'images/no.png' } };
    const file = await written(
      'image.json',
      documentWith({ step_id: 1, source: 'user', message: [image] }),
    );
    const { exitCode, stdout } = await trajectory([
      'validate',
      file,
      '--no-validate-images',
      '--json',
    ]);
    assert.equal(exitCode, 0);
    assert.deepEqual(JSON.parse(stdout), {
      schema_version: 1,
      files: [{ file, valid: true, errors: [] }],
    });
  });
});

describe('slipway trajectory show', { timeout: 120_000 }, () => {
  it('shows who did what, with tokens and totals, and no control characters', async () => {
    const file = await written(
      'odd.json',
      documentWith(
        { step_id: 1, source: 'user', message: 'a\u001b[31m red\nb' },
        {
          step_id: 2,
          source: 'agent',
          message: 'look',
          tool_calls: [{ tool_call_id: 'c', function_name: 'bash', arguments: { keys: 'ls\n' } }],
          observation: { results: [{ content: 'line\n'.repeat(30) }] },
          metrics: { prompt_tokens: 10, completion_tokens: 4, completion_token_ids: [1, 2, 3, 4] },
          extra: { slipway: { trainable: false } },
        },
      ),
    );
    const { exitCode, stdout } = await trajectory(['show', file]);
    assert.equal(exitCode, 0);
    assert.equal(
      stdout,
      `agent a 1

#1 user
    a [31m red
    b

#2 agent  10 in, 4 out, ids 0+4  not trainable
    look
  > bash {"keys":"ls\\n"}
${'  < line\n'.repeat(8)}  < … 22 more lines

2 steps, 1 not trainable; tokens: 10 in, 4 out, ids: 0 in, 4 out
`,
    );
  });

  it('cuts a long line between characters', async () => {
    const message = `${'x'.repeat(159)}😀 and so on`;
    const file = await written('wide.json', documentWith({ step_id: 1, source: 'user', message }));
    const { stdout } = await trajectory(['show', file]);
    assert.match(stdout, /^ {4}x{159}…$/m);
  });

  for (const [range, expected] of [
    ['2..3', [2, 3]],
    ['3..', [3, 4]],
    ['..2', [1, 2]],
    ['4', [4]],
    ['9..', []],
  ] as const)
    it(`--steps ${range} --json prints a document with those steps`, async () => {
      const { stdout } = await trajectory(['show', rich, '--steps', range, '--json']);
      const shown = JSON.parse(stdout) as AtifTrajectory;
      const whole = JSON.parse(await readFile(rich, 'utf8')) as AtifTrajectory;
      assert.deepEqual(shown, {
        ...whole,
        steps: whole.steps.filter(({ step_id }) => expected.some((id) => id === step_id)),
      });
    });

  it('shows what a killed run left, up to its torn line', async () => {
    const file = path.join(root, 'killed.json');
    const agent = { name: 'terminus-2', version: '2' };
    const head = { sessionId: 's', trajectoryId: null, agent, notes: 'n', extra: null };
    const log = await openTrajectory({ file, head, secrets: [] });
    await log.append({ source: 'user', message: 'begin' });
    await log.append({ source: 'agent', message: 'went on' });
    const spill = await readFile(path.join(root, 'killed.steps.ndjson'), 'utf8');
    await log.close({ finalMetrics: null });
    const left = await written('left.steps.ndjson', `${spill}{"step_id":3,"sou`);
    const { exitCode, stdout } = await trajectory(['show', left]);
    assert.equal(exitCode, 0);
    assert.match(stdout, /^agent terminus-2 2 {2}session s {2}format ATIF-v1\.7\n/);
    assert.match(stdout, /#2 agent\n {4}went on\n\n2 steps;/);
    assert.equal((await trajectory(['validate', left])).exitCode, 0);
  });

  it('shows the text behind the empty rows of a screen', async () => {
    const screen = `$ ls\n${' \n'.repeat(38)}\nAre you sure?\n\n`;
    const file = await written(
      'screen.json',
      JSON.stringify({ steps: [{ step_id: 1, source: 'user', message: screen }] }),
    );
    const { stdout } = await trajectory(['show', file]);
    assert.match(stdout, /\n {4}\$ ls\n {4}\n {4}Are you sure\?\n\n1 step;/);
  });

  it('refuses what is no trajectory, and a range that is none', async () => {
    const other = await written('other.json', '{"a":1}');
    const cut = await written('cut.json', '{"steps":[{"step_id":1}');
    for (const argv of [
      ['show', other],
      ['show', cut],
      ['show', path.join(root, 'none.json')],
      ['show', rich, '--steps', 'x'],
      ['show', rich, '--steps', '..'],
    ]) {
      const { exitCode, stderr } = await trajectory(argv);
      assert.equal(exitCode, 2, argv.join(' '));
      assert.match(stderr, /TRAJECTORY_INVALID|invalid/);
    }
    for (const file of [root, path.join(root, 'none.json'), other])
      assert.match((await trajectory(['show', file])).stderr, /Name a trajectory\.json/);
  });

  it('reads a document that is larger than the memory it may take', async () => {
    const file = path.join(root, 'large.json');
    const stream = createWriteStream(file);
    const message = 'x'.repeat(100_000);
    stream.write('{"agent":{"name":"a","version":"1"},"steps":[');
    for (let id = 1; id <= 1_500; id += 1) {
      const step = { step_id: id, source: 'agent', message, metrics: { prompt_tokens: 1 } };
      if (!stream.write((id === 1 ? '' : ',') + JSON.stringify(step))) await once(stream, 'drain');
    }
    stream.end(']}');
    await once(stream, 'close');
    const { exitCode, stdout, stderr } = await slipway(['show', file, '--steps', '1500'], {
      NODE_OPTIONS: '--max-old-space-size=96',
    });
    assert.equal(exitCode, 0, stderr);
    assert.match(stdout, /#1500 agent.*\n.*\n\n1500 steps; tokens: 1500 in, 0 out\n$/);
  });
});
