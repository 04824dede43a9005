import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createServer } from 'node:net';
import type { AddressInfo } from 'node:net';
import { readFile } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { test } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { RolloutError } from '../../../src/core/errors.ts';
import { never } from '../../../src/core/linked-abort.ts';
import { GitRepository, under } from '../../fakes/git-repository.ts';
import { taskFiles } from '../../fakes/task-archive.ts';
import { datasetEntry, Workbench } from './workbench.ts';

const options = { signal: never };

/** git's own server for one repository: `--repo` takes no folders of this machine. */
class GitDaemon implements AsyncDisposable {
  readonly url: string;
  readonly #child;

  private constructor(url: string, child: ReturnType<typeof spawn>) {
    this.url = url;
    this.#child = child;
  }

  static async serve(repository: GitRepository): Promise<GitDaemon> {
    const port = await freePort();
    const base = dirname(repository.dir);
    const child = spawn(
      'git',
      [
        'daemon',
        '--export-all',
        '--listen=127.0.0.1',
        `--port=${port}`,
        `--base-path=${base}`,
        repository.dir,
      ],
      { stdio: 'ignore', detached: true },
    );
    const daemon = new GitDaemon(`git://127.0.0.1:${port}/${basename(repository.dir)}`, child);
    for (let attempt = 0; attempt < 200; attempt += 1) {
      const isUp = await repository.git('ls-remote', daemon.url).then(
        () => true,
        () => false,
      );
      if (isUp) return daemon;
      await delay(25);
    }
    return assert.fail('git daemon did not start');
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const ended = once(this.#child, 'exit');
    process.kill(-this.#child.pid!, 'SIGKILL');
    await ended;
  }
}

async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  await new Promise((resolve) => server.close(resolve));
  return port;
}

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
