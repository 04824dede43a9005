import assert from 'node:assert/strict';
import { mkdir, readdir } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { test } from 'node:test';
import { systemClock } from '../../../src/core/clock.ts';
import { isRolloutError } from '../../../src/core/errors.ts';
import { never } from '../../../src/core/linked-abort.ts';
import { FileLocks } from '../../../src/store/file/file-lock.ts';
import { SkillSources } from '../../../src/tasks/references/skill-sources.ts';
import { GitDaemon } from '../../fakes/git-daemon.ts';
import { GitRepository } from '../../fakes/git-repository.ts';
import { Workbench } from './workbench.ts';

function sourcesOf({ dir, cacheDir, git }: Workbench): SkillSources {
  return new SkillSources({ cacheDir, baseDir: dir, locks: new FileLocks(systemClock), git });
}

await test('folders of this machine are used in place', async () => {
  await using bench = await Workbench.make();
  await mkdir(join(bench.dir, 'mine'));
  for (const text of ['mine', './mine', join(bench.dir, 'mine')])
    assert.deepEqual(await sourcesOf(bench).locate(text, never), {
      dir: join(bench.dir, 'mine'),
      gitUrl: null,
      gitCommit: null,
      warnings: [],
    });
  await assert.rejects(sourcesOf(bench).locate('./absent', never), (error) =>
    isRolloutError(error, 'REFERENCE_INVALID'),
  );
});

await test('skills of a repository are cached by commit and folder; an inner folder does not stand for an outer one', async () => {
  await using repository = await GitRepository.make();
  const commit = await repository.commit({
    'skills/one/SKILL.md': 'one',
    'skills/two/SKILL.md': 'two',
  });
  await using daemon = await GitDaemon.serve(repository);
  await using bench = await Workbench.make();
  const sources = sourcesOf(bench);
  const inner = await sources.locate(`${daemon.url}/tree/${commit}/skills/one`, never);
  assert.deepEqual([basename(inner.dir), inner.gitCommit, inner.warnings], ['one', commit, []]);
  const outer = await sources.locate(daemon.url, never);
  assert.deepEqual((await readdir(outer.dir)).sort(), ['one', 'two']);
  assert.match(outer.warnings.join(), /^skills of 127\.0\.0\.1_\d+\/[^:]*: no commit is given/);
  assert.ok(outer.dir.startsWith(join(bench.cacheDir, 'skills')));
  assert.ok(outer.dir.includes(`/${commit}/skills/`));
  await assert.rejects(sources.locate(`${daemon.url}/tree/main/nowhere`, never), (error) =>
    isRolloutError(error, 'REFERENCE_INVALID'),
  );
});
