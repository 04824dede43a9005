import assert from 'node:assert/strict';
import { chmod, mkdir, rename, rm, symlink, utimes, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { describe, it } from 'node:test';
import type { TaskInputs } from '../../src/jobs/job-task.ts';
import { LoadedTasks } from '../../src/jobs/loaded-tasks.ts';
import { folderStamp } from '../../src/tasks/folder-stamp.ts';
import { plainTask, taskFolder } from '../fakes/task-folder.ts';

/** When the folders of these tests have not been changed for a while. */
const later = (): Date => new Date(Date.now() + 10_000);

describe('the stamp of a folder', () => {
  const changes: Readonly<Record<string, (dir: string) => Promise<void>>> = {
    'another content of the same length': (dir) =>
      writeFile(path.join(dir, 'instruction.md'), 'Do me.\n'),
    'the same content with the old time': async (dir) => {
      await writeFile(path.join(dir, 'instruction.md'), 'Do me.\n');
      await utimes(path.join(dir, 'instruction.md'), 1, 1);
    },
    'another mode': (dir) => chmod(path.join(dir, 'tests/test.sh'), 0o755),
    'a new file below': (dir) => writeFile(path.join(dir, 'tests/more.sh'), ''),
    'a file that is gone': (dir) => rm(path.join(dir, 'solution/solve.sh')),
    'another name': (dir) => rename(path.join(dir, 'tests'), path.join(dir, 'test')),
    'an empty folder': (dir) => mkdir(path.join(dir, 'steps')),
  };
  for (const [what, change] of Object.entries(changes))
    it(`tells ${what}`, async () => {
      await using task = await taskFolder(plainTask);
      const before = folderStamp(task.dir, later());
      assert.notEqual(before, null);
      assert.equal(folderStamp(task.dir, later()), before);
      // The clock of the file system must have moved on for there to be a change.
      const since = Date.now();
      while (Date.now() <= since + 20);
      await change(task.dir);
      assert.notEqual(folderStamp(task.dir, later()), before);
    });

  const untold: Readonly<Record<string, (dir: string) => Promise<void>>> = {
    'a link': (dir) => symlink('/etc/hostname', path.join(dir, 'tests/link')),
    'a crowd': async (dir) => {
      for (let at = 0; at < 401; at += 1) await writeFile(path.join(dir, String(at)), '');
    },
    'no folder': (dir) => rm(dir, { recursive: true }),
  };
  for (const [what, change] of Object.entries(untold))
    it(`is none where there is ${what}`, async () => {
      await using task = await taskFolder(plainTask);
      await change(task.dir);
      assert.equal(folderStamp(task.dir, later()), null);
    });

  it('is none of a folder that was changed a moment ago', async () => {
    await using task = await taskFolder(plainTask);
    assert.equal(folderStamp(task.dir, new Date()), null);
  });
});

describe('tasks that were loaded before', () => {
  const inputs = (checksum: string) => ({ checksum }) as TaskInputs;
  const reader = (tasks: LoadedTasks, dir: string) => {
    let reads = 0;
    const load = async (key: string): Promise<string> => {
      const read = (): Promise<TaskInputs> => Promise.resolve(inputs(`read ${(reads += 1)}`));
      return (await tasks.load(key, { dir, read })).checksum;
    };
    return load;
  };

  it('are read once, also by those who ask at the same time, until something changes', async () => {
    await using task = await taskFolder(plainTask);
    const load = reader(new LoadedTasks({ now: later }), task.dir);
    assert.deepEqual(await Promise.all([load('a'), load('a')]), ['read 1', 'read 1']);
    assert.equal(await load('a'), 'read 1');
    assert.equal(await load('other options'), 'read 2');
    await writeFile(path.join(task.dir, 'instruction.md'), 'Do it now.\n');
    assert.equal(await load('a'), 'read 3');
    assert.equal(await load('a'), 'read 3');
  });

  it('are read each time while nobody can tell whether they change', async () => {
    await using task = await taskFolder(plainTask);
    const load = reader(new LoadedTasks({ now: () => new Date() }), task.dir);
    assert.deepEqual([await load('a'), await load('a')], ['read 1', 'read 2']);
  });

  it('are read anew by whoever shared a reading that failed, and remembered only then', async () => {
    await using task = await taskFolder(plainTask);
    const { dir } = task;
    const tasks = new LoadedTasks({ now: later });
    const first = tasks.load('a', { dir, read: () => Promise.reject(new Error('given up')) });
    const second = tasks.load('a', { dir, read: () => Promise.resolve(inputs('second')) });
    await assert.rejects(first, /given up/);
    assert.equal((await second).checksum, 'second');
    const third = await tasks.load('a', { dir, read: () => Promise.resolve(inputs('third')) });
    assert.equal(third.checksum, 'second');
  });
});
