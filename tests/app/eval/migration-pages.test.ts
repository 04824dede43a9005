/** Every command that the pages about evaluating and about coming from elsewhere show is run, in a folder with what they name. */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { cp, mkdtemp, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { after, before, describe, it } from 'node:test';
import { evalSettings } from '../../../src/config/eval/eval-settings.ts';
import { startEngineProcess, type EngineProcess } from '../../support/engine-process.ts';
import { slipwayInProcess } from '../../support/in-process-cli.ts';
import { startServeProcess } from '../../support/serve-process.ts';
import { repositoryDir } from '../../support/slipway-cli.ts';

let root = '';
let engine: EngineProcess | null = null;

before(async () => {
  root = await mkdtemp(path.join(os.tmpdir(), 'slipway-pages-'));
  const policy = path.join(repositoryDir, 'examples/policies/terminus-quickstart.js');
  engine = await startEngineProcess(['--policy', policy]);
  await symlink(path.join(repositoryDir, 'tasks'), path.join(root, 'tasks'));
  await cp(path.join(repositoryDir, 'examples/eval'), path.join(root, 'examples/eval'), {
    recursive: true,
  });
  const example = path.join(root, 'examples/eval/tasks.toml');
  const text = await readFile(example, 'utf8');
  assert.ok(text.includes('http://127.0.0.1:30000'));
  await writeFile(example, text.replaceAll('http://127.0.0.1:30000', engine.url));
  const rows = [1, 2, 3].map((n) => `${JSON.stringify({ metadata: { null: { reward: n } } })}\n`);
  await writeFile(path.join(root, 'rows.jsonl'), rows.join(''));
  await writeFile(
    path.join(root, 'eval.toml'),
    '[experiment]\nrollout = "math"\nentrypoint = "main.py"\ndataset = "rows.jsonl"\n[secrets]\nrequired = []\n[backend]\nkind = "null"\n',
  );
});
after(async () => {
  await engine?.[Symbol.asyncDispose]();
  await rm(root, { recursive: true, force: true });
});

async function page(name: string): Promise<string> {
  return await readFile(path.join(repositoryDir, 'docs', name), 'utf8');
}

/** Lines of fenced `sh` blocks, as words. */
function commandsOf(text: string): readonly (readonly string[])[] {
  return [...text.matchAll(/^```sh\n([^]*?)^```$/gm)].flatMap(
    ([, block = '']) =>
    block
      .split('\n')
      .filter((line) => line.trim() !== '')
      .map((line) => [...line.matchAll(/'([^']*)'|(\S+)/g)].map(([, quoted, word]) => quoted ?? word ?? '')), // prettier-ignore
  );
}

describe('the commands of the pages', { timeout: 240_000 }, () => {
  for (const name of ['evaluating.md', 'from-osmosis.md', 'from-harbor-run.md'])
    it(`of ${name} run`, async () => {
      const commands = commandsOf(await page(name));
      assert.ok(commands.length > 0);
      for (const [program, ...argv] of commands) {
        assert.equal(program, 'slipway');
        const variables = { ...process.env, SLIPWAY_STATE_DIR: path.join(root, 'state') };
        const ended = await slipwayInProcess(argv, { cwd: root, variables });
        assert.equal(ended.exitCode, 0, `${argv.join(' ')}\n${ended.stdout}\n${ended.stderr}`);
      }
    });

  it('of from-miles.md run, over the settings that it shows, and its server begins and ends', async () => {
    const text = await page('from-miles.md');
    const blocks = [...text.matchAll(/^```toml\n([^]*?)^```$/gm)].map(([, block = '']) => block);
    const file = path.join(root, 'slipway.toml');
    const stateDir = path.join(root, 'state');
    const run = async (argv: readonly string[]): Promise<string> => {
      const variables = { ...process.env, SLIPWAY_STATE_DIR: stateDir, _OSMOSIS_ROLLOUT_PORT: '0' };
      const ended = await slipwayInProcess(argv, { cwd: root, variables });
      assert.equal(ended.exitCode, 0, `${argv.join(' ')}\n${ended.stdout}\n${ended.stderr}`);
      return ended.stdout;
    };
    await writeFile(file, blocks.join('\n'));
    assert.match(
      await run(['config', 'show', '--config', 'slipway.toml']),
      /sessions\.version +v2/,
    );
    await writeFile(file, blocks[0] ?? '');
    const commands = commandsOf(text).map(([, ...argv]) => argv);
    assert.deepEqual(
      commands.map(([name]) => name),
      ['config', 'preflight', 'serve'],
    );
    for (const argv of commands.slice(0, 2)) await run(argv);
    const flags = commands[2]?.slice(1) ?? [];
    await using server = await startServeProcess(flags, { stateDir, cwd: root });
    assert.deepEqual(await (await fetch(`${server.url}/clients`)).json(), {});
    assert.equal(await server.stop(), 0);
  });

  it('of from-miles.md name an agent function that a trainer finds, with its hook', async () => {
    const text = await page('from-miles.md');
    const name = /--custom-agent-function-path (\S+)/.exec(text)?.[1] ?? '';
    const folder = /PYTHONPATH=(\S+)/.exec(text)?.[1] ?? '';
    const own = /^```python\n([^]*?)^```$/m.exec(text)?.[1] ?? '';
    const program = `${own}
import importlib, inspect, sys
module, _, name = sys.argv[1].rpartition('.')
found = importlib.import_module(module)
functions = [getattr(found, name), found.abort, run, abort]
assert all(map(inspect.iscoroutinefunction, functions))`;
    const PYTHONPATH = folder.replace('node_modules/slipway', repositoryDir);
    assert.notEqual(PYTHONPATH, folder);
    execFileSync('python3', ['-B', '-c', program, name], {
      env: { PATH: process.env['PATH'], PYTHONPATH },
    });
  });

  it('name every key of an evaluation', async () => {
    const text = await page('evaluating.md');
    for (const key of Object.keys(evalSettings))
      assert.ok(text.includes(`\`${key}\``), `${key} is not in docs/evaluating.md`);
  });
});
