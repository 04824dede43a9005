import assert from 'node:assert/strict';
import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { isRolloutError } from '../../../src/core/errors.ts';
import { never } from '../../../src/core/linked-abort.ts';
import { gitTask } from '../../../src/tasks/references/resolved-task.ts';
import { readTaskReference } from '../../../src/tasks/references/task-reference.ts';
import { taskEntry, Workbench } from './workbench.ts';

await test('a local task is used in place and a bad reference fails alone, in the order of the references', async () => {
  await using bench = await Workbench.make();
  await mkdir(join(bench.dir, 'here'));
  const settled = await bench.resolver.settleTasks(
    [
      taskEntry({ path: 'absent' }),
      taskEntry({ path: './here/', source: 'set' }),
      taskEntry({ name: 'no-organisation' }),
      taskEntry({ git_url: 'ext::sh -c true', path: 't' }),
      taskEntry({ git_url: '--upload-pack=true', path: 't' }),
      taskEntry({ git_url: 'https://git.example.org/r', path: '../t' }),
    ],
    { signal: never },
  );
  assert.deepEqual(
    settled.map((task) => (isRolloutError(task) ? `${task.code} ${task.field ?? ''}` : task.dir)),
    [
      'TASK_NOT_FOUND path',
      join(bench.dir, 'here'),
      'REFERENCE_INVALID name',
      'REFERENCE_INVALID git_url',
      'REFERENCE_INVALID git_url',
      'REFERENCE_INVALID path',
    ],
  );
  await assert.rejects(
    bench.resolver.resolveTasks([taskEntry({ path: 'absent' })], { signal: never }),
    (error) => isRolloutError(error, 'TASK_NOT_FOUND'),
  );
});

await test('what is kept of a git task holds no credentials', () => {
  const git_url = 'https://user7:hunter2@git.example.org/o/r.git?token=tok3n';
  const reference = readTaskReference(taskEntry({ git_url, path: 't' }), '/');
  assert.ok(reference.kind === 'git');
  const task = gitTask(reference, { dir: '/cache/t', commit: 'a'.repeat(40), warnings: [] });
  assert.doesNotMatch(JSON.stringify(task), /user7|hunter2|tok3n/);
  assert.equal(task.entry.git_url, 'https://git.example.org/o/r.git');
  assert.equal(task.entry.git_commit_id, 'a'.repeat(40));
});

await test('a signal that has fired stops everything with its reason', async () => {
  await using bench = await Workbench.make();
  const reason = new Error('stopped');
  const signal = AbortSignal.abort(reason);
  await assert.rejects(
    bench.resolver.resolveTasks([taskEntry({ path: '.' })], { signal }),
    (error) => error === reason,
  );
});
