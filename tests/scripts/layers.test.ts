import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { describe, it } from 'node:test';
import { ESLint } from 'eslint';
import { adapterFolders, layers } from '../../scripts/lint/layers.js';

const root = path.resolve(import.meta.dirname, '../..');

async function complaints(file: string, source: string): Promise<readonly string[]> {
  const { layersRule } = await import('../../scripts/lint/layers-rule.js');
  const eslint = new ESLint({
    cwd: root,
    overrideConfigFile: true,
    overrideConfig: [
      {
        files: ['**/*.ts'],
        plugins: { slipway: { rules: { layers: layersRule } } },
        rules: { 'slipway/layers': 'error' },
      },
    ],
  });
  const [result] = await eslint.lintText(source, { filePath: path.join(root, file) });
  return (result?.messages ?? []).map((message) => message.message);
}

const planted: readonly [title: string, file: string, source: string][] = [
  ['core importing wire', 'src/core/x.ts', "import '../wire/outcome.ts';"],
  ['tasks importing environments', 'src/tasks/x.ts', "import '../environments/environment.ts';"],
  ['environments importing tasks', 'src/environments/local/x.ts', "import '../../tasks/task.ts';"],
  ['verifier importing trial', 'src/verifier/x.ts', "export * from '../trial/trial.ts';"],
  ['cli importing jobs', 'src/cli/x.ts', "import '../jobs/job.ts';"],
  ['a dynamic import across the table', 'src/core/x.ts', "await import('../app/run.ts');"],
  ['docker importing local', 'src/environments/docker/x.ts', "import '../local/x.ts';"],
  ['the port importing an adapter', 'src/environments/environment.ts', "import './local/x.ts';"],
  ['jobs using a registry', 'src/jobs/x.ts', "import '../agents/registry.ts';"],
  ['src importing tests', 'src/core/x.ts', "import '../../tests/fakes/x.ts';"],
  ['a folder outside the table', 'src/misc/x.ts', "import '../core/errors.ts';"],
];

const legal: readonly [title: string, file: string, source: string][] = [
  ['wire importing core', 'src/wire/x.ts', "import '../core/errors.ts';"],
  ['an adapter importing its port', 'src/environments/docker/x.ts', "import '../environment.ts';"],
  [
    'an adapter importing a shared part',
    'src/environments/docker/x.ts',
    "import '../shared/x.ts';",
  ],
  ['the registry naming an adapter', 'src/environments/registry.ts', "import('./local/x.ts');"],
  ['app using a registry', 'src/app/x.ts', "import '../environments/registry.ts';"],
  ['a package', 'src/core/x.ts', "import 'zod';"],
];

describe('the import table is enforced by lint', () => {
  for (const [title, file, source] of planted)
    it(`refuses ${title}`, async () => {
      assert.equal((await complaints(file, source)).length, 1);
    });
  for (const [title, file, source] of legal)
    it(`allows ${title}`, async () => {
      assert.deepEqual(await complaints(file, source), []);
    });
});

describe('docs/architecture.md', () => {
  it('shows the same import table as the lint rule', () => {
    const page = readFileSync(path.join(root, 'docs/architecture.md'), 'utf8');
    const rows = new Map<string, readonly string[]>();
    for (const line of page.split('\n')) {
      const row = /^\| \d+ \| `([a-z-]+)` \| (.+) \|$/.exec(line);
      if (row?.[1] === undefined || row[2] === undefined) continue;
      const names = [...row[2].matchAll(/`([a-z-]+)`/g)].map((match) => match[1] ?? '');
      rows.set(row[1], row[2].startsWith('everything') ? ['*'] : names);
    }
    assert.deepEqual(Object.fromEntries(rows), layers);
  });

  it('has a folder in the table for every adapter folder', () => {
    for (const folder of adapterFolders) assert.ok(folder in layers, folder);
  });
});
