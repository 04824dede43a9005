import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { test } from 'node:test';
import { RolloutError } from '../../../src/core/errors.ts';
import { never } from '../../../src/core/linked-abort.ts';
import { GitDaemon } from '../../fakes/git-daemon.ts';
import { GitRepository, under } from '../../fakes/git-repository.ts';
import { taskFiles } from '../../fakes/task-archive.ts';
import { datasetEntry, Workbench } from './workbench.ts';

const options = { signal: never };

await test('a repository is a dataset of the task folders in it, pinned to its commit', async () => {
  await using repository = await GitRepository.make();
  const commit = await repository.commit({
    ...under('tasks/b', taskFiles('b')),
    ...under('tasks/a', taskFiles('a')),
    ...under('tasks/deeper/c', taskFiles('c')),
    ...under('other/d', taskFiles('d')),
    'tasks/README.md': 'x',
  });
  await using daemon = await GitDaemon.serve(repository);
  await using bench = await Workbench.make();
  const set = await bench.resolver.resolveDataset(datasetEntry({ repo: daemon.url }), options);
  assert.deepEqual(
    set.tasks.map((task) => [task.name, task.gitCommit]),
    [
      ['a', commit],
      ['b', commit],
    ],
  );
  assert.equal(await readFile(join(set.tasks[0]!.dir, 'instruction.md'), 'utf8'), 'Write a.\n');
  assert.equal(set.version, commit.slice(0, 12));
  assert.match(
    set.name,
    new RegExp(`^127\\.0\\.0\\.1_\\d+/${basename(repository.dir)}/tree/${commit}/tasks$`),
  );
  assert.equal(set.warnings.length, 1);
  assert.doesNotMatch(set.warnings.join(), /:\/\//);
  const other = datasetEntry({ repo: `${daemon.url}@${commit}`, path: 'other' });
  const pinned = await bench.resolver.listDataset(other, options);
  assert.deepEqual([pinned.entries.map((entry) => entry.path), pinned.warnings], [['other/d'], []]);
  const none = datasetEntry({ repo: daemon.url, path: 'nowhere' });
  await assert.rejects(
    bench.resolver.listDataset(none, options),
    (error) => error instanceof RolloutError && error.code === 'DATASET_EMPTY',
  );
});

await test('a registry.json in a repository names tasks of that commit', async () => {
  await using repository = await GitRepository.make();
  const registry = [{ name: 'sums', version: '1', tasks: [{ name: 'one', path: 's/one' }] }];
  const commit = await repository.commit({
    ...under('s/one', taskFiles('1')),
    'lists/registry.json': JSON.stringify(registry),
  });
  await using daemon = await GitDaemon.serve(repository);
  await using bench = await Workbench.make();
  const entry = datasetEntry({ repo: `${daemon.url}@main`, name: 'sums', registry_path: 'lists' });
  const set = await bench.resolver.resolveDataset(entry, options);
  assert.deepEqual(
    set.tasks.map((task) => [task.name, task.gitCommit, task.source]),
    [['one', commit, 'sums']],
  );
  const absent = datasetEntry({ repo: daemon.url, name: 'sums' });
  await assert.rejects(
    bench.resolver.listDataset(absent, options),
    (error) => error instanceof RolloutError && error.code === 'DATASET_NOT_FOUND',
  );
});
