import assert from 'node:assert/strict';
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { dirname, join } from 'node:path';
import { test } from 'node:test';
import { RolloutError } from '../../../src/core/errors.ts';
import { never } from '../../../src/core/linked-abort.ts';
import { datasetDigest } from '../../../src/tasks/references/dataset-digest.ts';
import { GitRepository, under } from '../../fakes/git-repository.ts';
import { RegistryServer } from '../../fakes/registry-server.ts';
import { taskFiles } from '../../fakes/task-archive.ts';
import { datasetEntry, Workbench, type WorkbenchOptions } from './workbench.ts';

const options = { signal: never };

async function write(root: string, files: Readonly<Record<string, string>>): Promise<void> {
  for (const [path, content] of Object.entries(files)) {
    await mkdir(dirname(join(root, path)), { recursive: true });
    await writeFile(join(root, path), content);
  }
}

async function failure(work: Promise<unknown>): Promise<RolloutError> {
  try {
    await work;
  } catch (error) {
    assert.ok(error instanceof RolloutError, String(error));
    return error;
  }
  return assert.fail('it should fail');
}

async function folderOf(names: readonly string[], made: WorkbenchOptions = {}): Promise<Workbench> {
  const bench = await Workbench.make(made);
  for (const name of names) await write(join(bench.dir, 'set', name), taskFiles(name));
  return bench;
}

await test('a folder is a dataset of its task folders in the order of their names', async () => {
  await using bench = await folderOf(['b-task', 'a-task', 'C-task']);
  await write(join(bench.dir, 'set'), {
    'README.md': 'x',
    'notes/x.txt': 'x',
    'bad/task.toml': '[',
  });
  const set = await bench.resolver.resolveDataset(datasetEntry({ path: 'set' }), options);
  assert.deepEqual(
    set.tasks.map((task) => task.name),
    ['C-task', 'a-task', 'b-task', 'bad'],
  );
  assert.deepEqual(new Set(set.tasks.map((task) => task.source)), new Set(['set']));
  assert.equal(set.tasks[1]?.dir, join(bench.dir, 'set/a-task'));
});

await test('filters include by glob, then exclude, then take the first', async () => {
  await using bench = await folderOf(['add-1', 'add-2', 'add-3', 'sub-1']);
  const names = async (fields: Readonly<Record<string, unknown>>): Promise<string[]> => {
    const set = await bench.resolver.resolveDataset(
      datasetEntry({ path: 'set', ...fields }),
      options,
    );
    return set.tasks.map((task) => task.name);
  };
  assert.deepEqual(await names({ task_names: ['add-*'] }), ['add-1', 'add-2', 'add-3']);
  assert.deepEqual(await names({ task_names: ['a*', 's*'], exclude_task_names: ['*-1'] }), [
    'add-2',
    'add-3',
  ]);
  assert.deepEqual(await names({ exclude_task_names: ['add-[!2]'], n_tasks: '1' }), ['add-2']);
  assert.deepEqual(await names({ task_names: [], n_tasks: 9 }), [
    'add-1',
    'add-2',
    'add-3',
    'sub-1',
  ]);
});

await test('filters that leave nothing say so, with names that exist', async () => {
  await using bench = await folderOf(['t1', 't2', 't3', 't4', 't5', 't6']);
  const none = await failure(
    bench.resolver.listDataset(datasetEntry({ path: 'set', task_names: ['x*'] }), options),
  );
  assert.equal(none.code, 'DATASET_EMPTY');
  assert.match(none.remedy ?? '', /6 tasks: t1, t2, t3, t4, t5\./);
  const excluded = { path: 'set', exclude_task_names: ['*'] };
  assert.equal(
    (await failure(bench.resolver.listDataset(datasetEntry(excluded), options))).field,
    'exclude_task_names',
  );
  await mkdir(join(bench.dir, 'empty'));
  const codes: string[] = [];
  for (const path of ['empty', 'absent'])
    codes.push((await failure(bench.resolver.listDataset(datasetEntry({ path }), options))).code);
  assert.deepEqual(codes, ['DATASET_EMPTY', 'DATASET_NOT_FOUND']);
});

function registryJson(url: string): string {
  const task = (path: string) => ({ name: path, git_url: url, path });
  return JSON.stringify([
    { name: 'sums', version: '1.9', description: 'x', tasks: [task('s/old')] },
    {
      name: 'sums',
      version: '1.10',
      description: 'x',
      tasks: [task('s/one'), task('s/two'), task('s/one')],
      metrics: [{ type: 'max' }],
      unknown: 1,
    },
  ]);
}

await test('a registry.json gives the highest version unless one is asked for, each task once', async () => {
  await using repository = await GitRepository.make();
  await repository.commit({ ...under('s/one', taskFiles('1')), ...under('s/two', taskFiles('2')) });
  await using bench = await Workbench.make();
  await write(bench.dir, { 'registry.json': registryJson(repository.url) });
  const entry = { name: 'sums', registry_path: 'registry.json' };
  const set = await bench.resolver.resolveDataset(datasetEntry(entry), options);
  assert.deepEqual([set.version, set.name], ['1.10', 'sums']);
  assert.deepEqual(
    set.tasks.map((task) => task.name),
    ['one', 'two'],
  );
  assert.deepEqual(set.metrics, [{ type: 'max', kwargs: {} }]);
  const older = await bench.resolver.listDataset(
    datasetEntry({ ...entry, version: '1.9' }),
    options,
  );
  assert.deepEqual(
    older.entries.map((task) => task.path),
    ['s/old'],
  );
  const nested = { name: 'sums', registry: { path: 'registry.json' } };
  assert.equal((await bench.resolver.listDataset(datasetEntry(nested), options)).version, '1.10');
  const absent = await failure(
    bench.resolver.listDataset(datasetEntry({ ...entry, version: '2' }), options),
  );
  assert.equal(
    absent.describe(),
    'DATASET_NOT_FOUND [version]: dataset sums has no version 2 — There is: 1.9, 1.10.',
  );
});

async function serve(body: string): Promise<{ url: string; seen: string[]; server: Server }> {
  const seen: string[] = [];
  const server = createServer((request, response) => {
    seen.push(request.headers.authorization ?? '');
    response.end(body);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return { url: `127.0.0.1:${(server.address() as AddressInfo).port}/registry.json`, seen, server };
}

await test('a registry.json is read over HTTP, but may not name folders of this machine', async () => {
  await using bench = await Workbench.make();
  const remote = await serve(registryJson('https://git.example.org/o/r'));
  const local = await serve(registryJson('file:///srv/r'));
  try {
    const entry = { name: 'sums', registry_url: `http://me:pass@${remote.url}` };
    const set = await bench.resolver.listDataset(datasetEntry(entry), options);
    assert.deepEqual(
      set.entries.map((task) => task.path),
      ['s/one', 's/two'],
    );
    assert.deepEqual(remote.seen, [`Basic ${Buffer.from('me:pass').toString('base64')}`]);
    const refused = datasetEntry({ name: 'sums', registry_url: `http://${local.url}` });
    assert.equal(
      (await failure(bench.resolver.listDataset(refused, options))).code,
      'REFERENCE_INVALID',
    );
  } finally {
    for (const { server } of [remote, local]) {
      server.closeAllConnections();
      server.close();
    }
  }
});

await test('a dataset of the registry itself is found by name, head first', async () => {
  await using registry = await RegistryServer.start();
  await using bench = await Workbench.make({ registry });
  for (const version of ['1.0', 'head'])
    registry.publishLegacyDataset({
      name: 'sums',
      version,
      description: null,
      tasks: [
        { name: 'one', git_url: 'https://git.example.org/o/r', git_commit_id: null, path: 's/one' },
      ],
      metrics: [{ name: 'mean', kwargs: null }],
    });
  const set = await bench.resolver.listDataset(datasetEntry({ name: 'sums' }), options);
  assert.equal(set.version, 'head');
  assert.deepEqual(set.metrics, [{ type: 'mean', kwargs: {} }]);
  const absent = await failure(bench.resolver.listDataset(datasetEntry({ name: 'nope' }), options));
  assert.equal(absent.code, 'DATASET_NOT_FOUND');
  const version = await failure(
    bench.resolver.listDataset(datasetEntry({ name: 'sums', version: '3' }), options),
  );
  assert.match(version.describe(), /There is: 1.0, head/);
});

await test('a dataset package is pinned by digest and brings its files', async () => {
  await using registry = await RegistryServer.start();
  await using bench = await Workbench.make({ registry });
  const tasks = [];
  for (const name of ['one', 'two', 'three'])
    tasks.push(await registry.publishTask({ org: 'acme', name, files: taskFiles(name) }));
  const files = { 'metric.py': 'print(1)\n' };
  const row = registry.publishDataset({ org: 'acme', name: 'set', tasks, files });
  await registry.publishTask({ org: 'acme', name: 'one', files: taskFiles('moved on') });
  const entry = datasetEntry({ name: 'acme/set', task_names: ['acme/t*', '*/one'] });
  const set = await bench.resolver.resolveDataset(entry, options);
  assert.deepEqual(
    set.tasks.map(({ name, digest, source }) => [name, digest, source]),
    tasks.map((task, index) => [
      ['acme/one', 'acme/two', 'acme/three'][index],
      task['content_hash'],
      'acme/set',
    ]),
  );
  assert.deepEqual([set.digest, set.entry.ref], [row['content_hash'], row['content_hash']]);
  assert.equal(await readFile(join(set.filesDir!, 'metric.py'), 'utf8'), 'print(1)\n');
  assert.deepEqual(set.warnings.length, 1, 'latest moves, and nothing else is odd');
  for (const ref of ['1', String(row['content_hash'])]) {
    const pinned = await bench.resolver.listDataset(
      datasetEntry({ name: 'acme/set', ref }),
      options,
    );
    assert.deepEqual([pinned.digest, pinned.warnings], [set.digest, []]);
  }
  assert.equal(registry.requests.filter((line) => line.includes('metric.py')).length, 1);
});

await test('a dataset package is read to its last page', async () => {
  await using registry = await RegistryServer.start();
  await using bench = await Workbench.make({ registry });
  const tasks = Array.from({ length: 2000 }, (_, index) => ({
    id: `id-${String(index).padStart(5, '0')}`,
    content_hash: `sha256:${index.toString(16).padStart(64, '0')}`,
    package: { name: `t${index}`, org: { name: 'acme' } },
  }));
  registry.publishDataset({ org: 'acme', name: 'big', tasks });
  const set = await bench.resolver.listDataset(
    datasetEntry({ name: 'acme/big', ref: '1' }),
    options,
  );
  assert.equal(new Set(set.entries.map((entry) => entry.name)).size, 2000);
  assert.deepEqual(set.warnings, [], 'the digest covers all of them');
});

await test('packages that hide tasks, are empty, withdrawn, wrong or absent say so', async () => {
  await using registry = await RegistryServer.start();
  await using bench = await Workbench.make({ registry });
  const task = await registry.publishTask({ org: 'acme', name: 'one', files: taskFiles('1') });
  registry.publishDataset({ org: 'acme', name: 'hiding', tasks: [task], hidden: 2 });
  registry.publishDataset({ org: 'acme', name: 'empty', tasks: [] });
  const withdrawn = registry.publishDataset({ org: 'acme', name: 'gone', tasks: [task] });
  registry.yank(withdrawn, 'see gone2');
  const codes: string[] = [];
  for (const name of ['acme/hiding', 'acme/empty', 'acme/absent'])
    codes.push((await failure(bench.resolver.listDataset(datasetEntry({ name }), options))).code);
  assert.deepEqual(codes, ['DATASET_TASKS_UNAVAILABLE', 'DATASET_EMPTY', 'DATASET_NOT_FOUND']);
  const set = await bench.resolver.listDataset(
    datasetEntry({ name: 'acme/gone', ref: '1' }),
    options,
  );
  assert.match(set.warnings.join('\n'), /withdrawn by its author: see gone2/);
  registry.publishDataset({ org: 'acme', name: 'wrong', tasks: [task], files: { 'a.py': 'good' } });
  registry.fail({ path: 'a.py', times: 1, how: { kind: 'body', body: Buffer.from('evil') } });
  const wrong = await failure(
    bench.resolver.listDataset(datasetEntry({ name: 'acme/wrong' }), options),
  );
  assert.equal(wrong.code, 'PACKAGE_DIGEST_MISMATCH');
});

await test('without a registry, named and packaged datasets say which variable to set', async () => {
  await using bench = await Workbench.make();
  for (const name of ['sums', 'acme/set']) {
    const missing = await failure(bench.resolver.listDataset(datasetEntry({ name }), options));
    assert.equal(missing.code, 'REGISTRY_NOT_CONFIGURED');
    assert.match(missing.describe(), /SLIPWAY_REGISTRY_URL/);
  }
});

await test('the digest of a dataset is that of the registry, whatever the order of its parts', () => {
  const [one, two, file] = ['1', '2', '3'].map((digit) => `sha256:${digit.repeat(64)}`);
  assert.ok(one && two && file);
  const parts = { tasks: [{ digest: two }, { digest: one }] };
  // The SHA-256 of `sha256:11…,sha256:22…;metric.py:sha256:33…` as Python's hashlib gives it.
  assert.equal(
    datasetDigest({ ...parts, files: [{ path: 'metric.py', digest: file }] }),
    'sha256:c56282f8b46763f5c9600780254c21841b120905acd473b64747bce0d35505de',
  );
});
