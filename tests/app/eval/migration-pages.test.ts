/** Every command that the pages about evaluating and about coming from elsewhere show is run, in a folder with what they name. */
import assert from 'node:assert/strict';
import { cp, mkdtemp, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { after, before, describe, it } from 'node:test';
import { evalSettings } from '../../../src/config/eval/eval-settings.ts';
import { startEngineProcess, type EngineProcess } from '../../support/engine-process.ts';
import { slipwayInProcess } from '../../support/in-process-cli.ts';
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

  it('name every key of an evaluation', async () => {
    const text = await page('evaluating.md');
    for (const key of Object.keys(evalSettings))
      assert.ok(text.includes(`\`${key}\``), `${key} is not in docs/evaluating.md`);
  });
});
