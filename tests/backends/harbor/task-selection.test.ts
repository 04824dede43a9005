import assert from 'node:assert/strict';
import { mkdir, mkdtempDisposable, symlink } from 'node:fs/promises';
import { homedir, tmpdir } from 'node:os';
import path from 'node:path';
import { describe, it } from 'node:test';
import { selectTask } from '../../../src/backends/harbor/task-selection.ts';

const tasksDir = '/tasks/template';

describe('the task of a rollout of the backend harbor', () => {
  const found = [
    ['the template, where the row names none', { a: 1 }, { path: tasksDir }, 0],
    ['the template, without metadata', null, { path: tasksDir }, 0],
    ['the template, where the name is blank', { harbor_task: '' }, { path: tasksDir }, 0],
    ['an absolute folder', { harbor_task: '/a/b' }, { path: '/a/b' }, 0],
    ['a folder beside the configuration', { harbor_task: './b' }, { path: '/base/b' }, 0],
    ['a folder of the user', { harbor_task: '~/b' }, { path: path.join(homedir(), 'b') }, 0],
    ['a pinned package', { harbor_task: 'o/n@sha256:1' }, { name: 'o/n', ref: 'sha256:1' }, 0],
    ['a package without a ref', { harbor_task: 'o/n' }, { name: 'o/n', ref: 'latest' }, 1],
    ['the latest package', { harbor_task: 'o/n@latest' }, { name: 'o/n', ref: 'latest' }, 1],
    [
      'a path of a repository, which is the value itself',
      { harbor_task: './a/b', git_url: 'https://u:p@h/r', git_commit_id: 'c', task_path: 'no' },
      { path: './a/b', git_url: 'https://u:p@h/r', git_commit_id: 'c' },
      0,
    ],
    [
      'a repository without a commit',
      { harbor_task: 'a', git_url: 'https://u:p@h/r' },
      { path: 'a', git_url: 'https://u:p@h/r', git_commit_id: null },
      1,
    ],
  ] as const;
  for (const [title, metadata, expected, warnings] of found)
    it(`is ${title}`, async () => {
      const options = { tasksDir, taskMode: 'template' } as const;
      const selected = await selectTask(metadata, options, '/base');
      const { path: dir, name, ref, git_url, git_commit_id } = selected.entry;
      const all = { path: dir, name, ref, git_url, git_commit_id };
      const wanted = { path: null, name: null, ref: null, git_url: null, git_commit_id: null };
      assert.deepEqual(all, { ...wanted, ...expected });
      assert.equal(selected.warnings.length, warnings);
      assert.equal(selected.warnings.join().includes('u:p'), false);
      assert.equal(selected.isTemplate, expected === found[0][2] || title.startsWith('the temp'));
    });

  it('is a folder of the dataset by its id, and nothing outside of it', async () => {
    await using folder = await mkdtempDisposable(path.join(tmpdir(), 'dataset-'));
    const root = path.join(folder.path, 'root');
    await mkdir(path.join(root, 'deep', 'one'), { recursive: true });
    await mkdir(path.join(folder.path, 'outside'));
    await symlink(path.join(folder.path, 'outside'), path.join(root, 'link'));
    const select = (id: unknown) =>
      selectTask({ harbor_task_id: id }, { tasksDir: root, taskMode: 'dataset' }, '/base');
    assert.equal((await select('deep/one')).entry.path, path.join(root, 'deep', 'one'));
    for (const id of ['absent', '../outside', root, '.', '', 'link', 'deep/../../outside', 5, null])
      await assert.rejects(select(id), { code: 'REFERENCE_INVALID' }, String(id));
  });

  for (const metadata of [{ harbor_task: 'bare' }, { harbor_task: 5 }, { harbor_task: 'a/b/c' }])
    it(`is not ${JSON.stringify(metadata)}`, async () => {
      const options = { tasksDir, taskMode: 'template' } as const;
      await assert.rejects(selectTask(metadata, options, '/base'), {
        code: 'REFERENCE_INVALID',
        field: 'metadata.harbor_task',
      });
    });
});
