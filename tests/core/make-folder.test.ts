import assert from 'node:assert/strict';
import { mkdir, mkdtemp, rm, stat, symlink, writeFile } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { after, before, describe, it } from 'node:test';
import { makeFolder, makeFolderSync, type FolderOptions } from '../../src/core/make-folder.ts';

let root = '';
before(async () => {
  root = await mkdtemp(path.join(os.tmpdir(), 'slipway-make-folder-'));
  await writeFile(path.join(root, 'file'), '');
  await mkdir(path.join(root, 'there'));
  await symlink('there', path.join(root, 'link'));
  await symlink('nowhere', path.join(root, 'broken'));
});
after(() => rm(root, { recursive: true, force: true }));

const ways: readonly (readonly [
  string,
  (dir: string, options?: FolderOptions) => Promise<void> | void,
])[] = [
  ['makeFolder', makeFolder],
  ['makeFolderSync', makeFolderSync],
];

const made: readonly (readonly [what: string, path: string])[] = [
  ['one folder', 'one'],
  ['a folder and those above it', 'a/b/c'],
  ['a folder that is there', 'there'],
  ['a link to a folder', 'link'],
  ['a folder behind a link', 'link/behind'],
];

const refused: readonly (readonly [what: string, path: string, code: string])[] = [
  ['in a file system that makes no folders', '/proc/nothing', 'ENOENT'],
  ['two below what makes no folders', '/proc/nothing/below', 'ENOENT'],
  ['where a file is', 'file', 'EEXIST'],
  ['below a file', 'file/a/b', 'EEXIST'],
  ['where a broken link is', 'broken', 'EEXIST'],
];

for (const [name, make] of ways)
  describe(name, { timeout: 30_000 }, () => {
    for (const [what, relative] of made)
      it(`makes ${what}`, async () => {
        const dir = path.join(root, relative);
        await make(dir);
        assert.equal((await stat(dir)).isDirectory(), true);
      });

    it('gives its mode to every folder that it makes, and to no other', async () => {
      const above = path.join(root, `private-${name}`);
      await make(path.join(above, 'inner'), { mode: 0o700 });
      for (const dir of [above, path.join(above, 'inner')])
        assert.equal((await stat(dir)).mode & 0o777, 0o700);
      const there = (await stat(path.join(root, 'there'))).mode;
      await make(path.join(root, 'there'), { mode: 0o700 });
      assert.equal((await stat(path.join(root, 'there'))).mode, there);
    });

    for (const [what, given, code] of refused)
      it(`ends with the system's error ${what}`, async () => {
        await assert.rejects(async () => make(path.resolve(root, given)), { code });
      });
  });

it('makeFolder does not mind who was faster', async () => {
  const dirs = Array.from({ length: 20 }, (_, at) => path.join(root, 'many/at/once', `${at % 4}`));
  await Promise.all(dirs.map((dir) => makeFolder(dir)));
});
