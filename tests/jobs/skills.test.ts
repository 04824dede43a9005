import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { after, before, test } from 'node:test';
import { systemClock } from '../../src/core/clock.ts';
import { isRolloutError } from '../../src/core/errors.ts';
import { never } from '../../src/core/linked-abort.ts';
import { JobSkills } from '../../src/jobs/skills.ts';
import { FileLocks } from '../../src/store/file/file-lock.ts';
import { Git } from '../../src/tasks/references/git.ts';
import { SkillSources } from '../../src/tasks/references/skill-sources.ts';
import { GitDaemon } from '../fakes/git-daemon.ts';
import { GitRepository } from '../fakes/git-repository.ts';

let root = '';
before(async () => {
  root = await mkdtemp(path.join(os.tmpdir(), 'skills-'));
  for (const [name, text] of [
    ['all/one/SKILL.md', 'one'],
    ['all/one/more/part.txt', 'part'],
    ['all/two/SKILL.md', 'two'],
    ['all/notes/readme.txt', 'no skill'],
    ['other/two/SKILL.md', 'another two'],
  ] as const) {
    await mkdir(path.dirname(path.join(root, name)), { recursive: true });
    await writeFile(path.join(root, name), text);
  }
});
after(() => rm(root, { recursive: true, force: true }));

const jobSkills = (): JobSkills =>
  new JobSkills(
    new SkillSources({
      cacheDir: path.join(root, 'cache'),
      baseDir: root,
      locks: new FileLocks(systemClock),
      git: new Git({ variables: { PATH: process.env['PATH'] } }),
    }),
  );

const load = (...sources: string[]) => jobSkills().load(sources, never);

test('a folder of skills gives each folder with a SKILL.md, by name', async () => {
  const skills = await load('./all');
  assert.deepEqual(
    skills.map(({ name }) => name),
    ['one', 'two'],
  );
});

test('the digest is the SHA-256 over path, NUL, SHA-256 and NUL of the sorted files', async () => {
  const sha256 = (text: string): string => createHash('sha256').update(text).digest('hex');
  const [skill] = await load('all/one');
  const expected = sha256(`SKILL.md\0${sha256('one')}\0more/part.txt\0${sha256('part')}\0`);
  assert.deepEqual(skill?.lock, {
    name: 'one',
    source: 'all/one',
    digest: `sha256:${expected}`,
    git_url: null,
    git_commit_id: null,
  });
});

test('a later source replaces a skill of the same name', async () => {
  const skills = await load('all', 'other');
  assert.equal(skills.find(({ name }) => name === 'two')?.dir, path.join(root, 'other/two'));
});

test('a repository is followed once per run, locked by commit, and its branch warned about', async () => {
  await using repository = await GitRepository.make();
  const commit = await repository.commit({ 'skills/deep/SKILL.md': 'first' });
  await using daemon = await GitDaemon.serve(repository);
  const skills = jobSkills();
  const before = await skills.load([daemon.url], never);
  assert.deepEqual(
    before.map(({ name, lock }) => [name, lock.git_url, lock.git_commit_id]),
    [['deep', daemon.url, commit]],
  );
  assert.match(skills.warnings.join(), /no commit is given/);
  const moved = await repository.commit({ 'skills/deep/SKILL.md': 'second' });
  assert.deepEqual(await skills.load([daemon.url], never), before);
  const [later] = await load(daemon.url);
  assert.equal(later?.lock.git_commit_id, moved);
});

test('what could not be followed is tried again', async () => {
  const skills = jobSkills();
  await assert.rejects(skills.load(['./late'], never));
  await mkdir(path.join(root, 'late'));
  await writeFile(path.join(root, 'late/SKILL.md'), 'late');
  assert.equal((await skills.load(['./late'], never)).length, 1);
});

for (const source of ['all/notes', './nowhere', 'nowhere'])
  test(`${source} is REFERENCE_INVALID with a field`, async () => {
    await assert.rejects(
      load(source),
      (error) => isRolloutError(error, 'REFERENCE_INVALID') && error.field === 'agent.skills',
    );
  });
