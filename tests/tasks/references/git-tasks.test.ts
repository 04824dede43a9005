import assert from 'node:assert/strict';
import { lstat, readdir, readFile, readlink } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { isRolloutError } from '../../../src/core/errors.ts';
import { never } from '../../../src/core/linked-abort.ts';
import { shortUuid } from '../../../src/tasks/references/short-uuid.ts';
import { GitRepository, under } from '../../fakes/git-repository.ts';
import { plainTask } from '../../fakes/task-folder.ts';
import { taskFiles } from '../../fakes/task-archive.ts';
import { taskEntry, Workbench } from './workbench.ts';

const options = { signal: never };

await test('a task of a pinned commit is fetched into the folder that Harbor gives it, without the rest of the repository', async () => {
  await using repository = await GitRepository.make();
  await using bench = await Workbench.make();
  const commit = await repository.commit({
    ...under('tasks/one', taskFiles('one')),
    ...under('tasks/two', taskFiles('two')),
  });
  await repository.commit(under('tasks/one', { 'instruction.md': 'Later.\n' }));
  const entry = taskEntry({ git_url: repository.url, git_commit_id: commit, path: 'tasks/one' });
  const [task] = await bench.resolver.resolveTasks([entry], options);
  const id = `git_url='${repository.url}' git_commit_id='${commit}' path=PosixPath('tasks/one')`;
  assert.equal(task?.dir, join(bench.cacheDir, 'tasks', shortUuid(id), 'one'));
  assert.equal(await readFile(join(task.dir, 'instruction.md'), 'utf8'), 'Write one.\n');
  assert.equal((await lstat(join(task.dir, 'tests/test.sh'))).isFile(), true);
  assert.equal(task.gitCommit, commit);
  assert.deepEqual(task.warnings, []);
  const left = (await readdir(join(bench.cacheDir, 'tasks'))).filter((name) => name !== '.locks');
  assert.deepEqual(left, [shortUuid(id)]);
});

await test('a pinned task in the cache is used without asking the repository', async () => {
  await using bench = await Workbench.make();
  let commit = '';
  let url = '';
  {
    await using repository = await GitRepository.make();
    url = repository.url;
    commit = await repository.commit(under('t', taskFiles('kept')));
    const entry = taskEntry({ git_url: url, git_commit_id: commit, path: 't' });
    await bench.resolver.resolveTasks([entry], options);
  }
  const entry = taskEntry({ git_url: url, git_commit_id: commit, path: 't' });
  const [task] = await bench.resolver.resolveTasks([entry], options);
  assert.equal(await readFile(join(task!.dir, 'instruction.md'), 'utf8'), 'Write kept.\n');
  const again = taskEntry({ git_url: url, git_commit_id: commit, path: 't', overwrite: true });
  const [refused] = await bench.resolver.settleTasks([again], options);
  assert.ok(
    isRolloutError(refused, 'GIT_FAILED'),
    'overwrite asks again, and the repository is gone',
  );
});

await test('an unpinned task is resolved anew each time, warned about, and never changes under a reader', async () => {
  await using repository = await GitRepository.make();
  await using bench = await Workbench.make();
  const first = await repository.commit(under('t', taskFiles('old')));
  const entry = taskEntry({ git_url: repository.url, path: 't' });
  const [before] = await bench.resolver.resolveTasks([entry], options);
  const second = await repository.commit(under('t', taskFiles('new')));
  const [after] = await bench.resolver.resolveTasks([entry], options);
  assert.deepEqual([before?.gitCommit, after?.gitCommit], [first, second]);
  assert.equal(await readFile(join(before!.dir, 'instruction.md'), 'utf8'), 'Write old.\n');
  assert.equal(await readFile(join(after!.dir, 'instruction.md'), 'utf8'), 'Write new.\n');
  assert.equal(before?.warnings.length, 1);
  assert.match(before.warnings[0]!, /^task t: no commit is given/);
  assert.doesNotMatch(bench.log.join('\n'), /file:\/\//);
  assert.equal(after?.entry.git_commit_id, second);
});

await test('branches and tags resolve to their commit and are warned about', async () => {
  await using repository = await GitRepository.make();
  await using bench = await Workbench.make();
  const tagged = await repository.commit(under('t', taskFiles('tagged')));
  await repository.git('tag', '-a', 'v1', '-m', 'one');
  await repository.git('branch', 'side');
  await repository.commit(under('t', taskFiles('main')));
  const entries = ['v1', 'side'].map((ref) =>
    taskEntry({ git_url: repository.url, git_commit_id: ref, path: 't' }),
  );
  for (const task of await bench.resolver.resolveTasks(entries, options)) {
    assert.equal(task.gitCommit, tagged);
    assert.match(task.warnings[0]!, /may move/);
  }
});

await test('one clone serves all tasks and commits of a repository; one bad reference does not stop the others', async () => {
  await using repository = await GitRepository.make();
  await using bench = await Workbench.make();
  const first = await repository.commit(under('a/one', taskFiles('one')));
  const second = await repository.commit(under('a/two [x]*', taskFiles('two')));
  const calls = join(bench.dir, 'calls');
  const gitExecutable = await bench.script(
    'git-recorder',
    `#!/bin/sh\nfor word; do case "$word" in clone|fetch|ls-remote) echo "$word" >> '${calls}'; break;; esac; done\nexec git "$@"\n`,
  );
  await using recorded = await Workbench.make({ gitExecutable });
  const base = { git_url: repository.url };
  const settled = await recorded.resolver.settleTasks(
    [
      taskEntry({ ...base, git_commit_id: first, path: 'a/one' }),
      taskEntry({ ...base, git_commit_id: 'nowhere', path: 'a/one' }),
      taskEntry({ ...base, git_commit_id: second, path: 'a/two [x]*' }),
      taskEntry({ ...base, git_commit_id: second, path: 'a/absent' }),
      taskEntry({ ...base, git_commit_id: '0'.repeat(40), path: 'a/one' }),
    ],
    options,
  );
  const codes = settled.map((task) => (isRolloutError(task) ? task.code : task.name));
  assert.deepEqual(codes, ['one', 'REFERENCE_INVALID', 'two [x]*', 'TASK_NOT_FOUND', 'GIT_FAILED']);
  const clones = (await readFile(calls, 'utf8')).split('\n').filter((word) => word === 'clone');
  assert.equal(clones.length, 1);
});

await test('clones leave file contents out, except from Hugging Face, which does not serve that', async () => {
  await using repository = await GitRepository.make();
  await using bench = await Workbench.make();
  await repository.commit(under('t', plainTask));
  const calls = join(bench.dir, 'calls');
  // The recorder sends every host to the local repository.
  const gitExecutable = await bench.script(
    'git-recorder',
    `#!/bin/sh\necho "$*" >> '${calls}'\nexport GIT_ALLOW_PROTOCOL=file\nexec git -c url.${repository.url}.insteadOf=https://huggingface.co/datasets/o/n -c url.${repository.url}.insteadOf=https://git.example.org/o/n "$@"\n`,
  );
  await using recorded = await Workbench.make({ gitExecutable });
  for (const git_url of ['https://huggingface.co/datasets/o/n', 'https://git.example.org/o/n']) {
    const [task] = await recorded.resolver.resolveTasks(
      [taskEntry({ git_url, path: 't' })],
      options,
    );
    assert.equal(await readFile(join(task!.dir, 'instruction.md'), 'utf8'), 'Do it.\n');
  }
  const clones = (await readFile(calls, 'utf8'))
    .split('\n')
    .filter((line) => line.includes(' clone '));
  assert.equal(clones.length, 2);
  assert.doesNotMatch(clones[0]!, /--filter/);
  assert.match(clones[1]!, /--filter=blob:none --depth 1 --no-checkout/);
});

await test('a whole repository can be a task, named after it and without its .git', async () => {
  await using repository = await GitRepository.make();
  await using bench = await Workbench.make();
  await repository.commit(taskFiles('root'));
  const entry = taskEntry({ git_url: repository.url, path: '.' });
  const [task] = await bench.resolver.resolveTasks([entry], options);
  assert.deepEqual((await readdir(task!.dir)).sort(), [
    'environment',
    'instruction.md',
    'solution',
    'task.toml',
    'tests',
  ]);
  assert.match(task!.name, /^slipway-repository-/);
});

await test('links inside a task are kept; a task with a link out of its folder is refused', async () => {
  await using repository = await GitRepository.make();
  await using bench = await Workbench.make();
  await repository.commit({
    ...under('good', { ...plainTask, 'environment/also': { linkTo: 'Dockerfile' } }),
    ...under('bad', { ...plainTask, 'environment/host': { linkTo: '/etc/hostname' } }),
    ...under('sly', { ...plainTask, 'environment/up': { linkTo: '../../good/task.toml' } }),
  });
  const entries = ['good', 'bad', 'sly'].map((path) =>
    taskEntry({ git_url: repository.url, path }),
  );
  const [good, ...refused] = await bench.resolver.settleTasks(entries, options);
  assert.ok(good !== undefined && !isRolloutError(good));
  assert.equal(await readlink(join(good.dir, 'environment/also')), 'Dockerfile');
  assert.deepEqual(
    refused.map((task) => isRolloutError(task) && task.code),
    ['ARCHIVE_UNSAFE', 'ARCHIVE_UNSAFE'],
  );
});

await test('LFS pointers without git-lfs are a warning that names the task', async () => {
  await using repository = await GitRepository.make();
  await using bench = await Workbench.make();
  await repository.commit(
    under('t', {
      ...plainTask,
      'environment/weights.bin': `version https://git-lfs.github.com/spec/v1\noid sha256:${'0'.repeat(64)}\nsize 12345\n`,
    }),
  );
  const gitExecutable = await bench.script(
    'git-without-lfs',
    '#!/bin/sh\nfor word; do case "$word" in lfs) exit 1;; esac; done\nexec git "$@"\n',
  );
  await using without = await Workbench.make({ gitExecutable });
  const entry = taskEntry({ git_url: repository.url, path: 't' });
  const [task] = await without.resolver.resolveTasks([entry], options);
  assert.match(task!.warnings.join('\n'), /task t: files are stored in git LFS/);
});

await test('with git-lfs the files themselves arrive', async (t) => {
  await using repository = await GitRepository.make();
  await using bench = await Workbench.make();
  const hasLfs = await repository.git('lfs', 'install', '--local').then(
    () => true,
    () => false,
  );
  if (!hasLfs) {
    t.skip('git-lfs is not installed');
    return;
  }
  const weights = 'weights '.repeat(1000);
  await repository.commit({
    ...under('t', { ...plainTask, 'environment/weights.bin': weights }),
    ...under('u', { ...plainTask, 'environment/weights.bin': `other ${weights}` }),
    '.gitattributes': '*.bin filter=lfs diff=lfs merge=lfs -text\n',
  });
  const stored = await repository.git('cat-file', 'blob', 'HEAD:t/environment/weights.bin');
  assert.match(stored, /^version https:\/\/git-lfs/, 'the repository holds a pointer');
  const entry = taskEntry({ git_url: repository.url, path: 't' });
  const [task] = await bench.resolver.resolveTasks([entry], options);
  assert.equal(await readFile(join(task!.dir, 'environment/weights.bin'), 'utf8'), weights);
  assert.equal(task!.warnings.length, 1, 'only that no commit is given');
});

await test('a download folder of its own takes the place of the cache', async () => {
  await using repository = await GitRepository.make();
  await using bench = await Workbench.make();
  await repository.commit(under('t', plainTask));
  const entry = taskEntry({ git_url: repository.url, path: 't', download_dir: 'here' });
  const [task] = await bench.resolver.resolveTasks([entry], options);
  assert.ok(task?.dir.startsWith(join(bench.dir, 'here')));
});
