import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { after, before, test } from 'node:test';
import { isRolloutError } from '../../src/core/errors.ts';
import { never } from '../../src/core/linked-abort.ts';
import { loadSkills } from '../../src/jobs/skills.ts';

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

test('a folder of skills gives each folder with a SKILL.md, by name', async () => {
  const skills = await loadSkills(['./all'], root, never);
  assert.deepEqual(
    skills.map(({ name }) => name),
    ['one', 'two'],
  );
});

test('the digest is the SHA-256 over path, NUL, SHA-256 and NUL of the sorted files', async () => {
  const sha256 = (text: string): string => createHash('sha256').update(text).digest('hex');
  const [skill] = await loadSkills(['all/one'], root, never);
  const expected = sha256(`SKILL.md\0${sha256('one')}\0more/part.txt\0${sha256('part')}\0`);
  assert.equal(skill?.lock.digest, `sha256:${expected}`);
});

test('a later source replaces a skill of the same name', async () => {
  const skills = await loadSkills(['all', 'other'], root, never);
  assert.equal(skills.find(({ name }) => name === 'two')?.dir, path.join(root, 'other/two'));
});

for (const source of ['all/notes', 'nowhere', 'org/name@main'])
  test(`${source} is REFERENCE_INVALID with a remedy`, async () => {
    await assert.rejects(
      loadSkills([source], root, never),
      (error) => isRolloutError(error, 'REFERENCE_INVALID') && error.remedy !== null,
    );
  });
