import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { mkdir, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { after, before, describe, it } from 'node:test';
import { removeFolder } from '../../src/core/remove-folder.ts';

let root = '';
before(async () => {
  root = await mkdtemp(path.join(tmpdir(), 'slipway-remove-'));
});
after(() => rm(root, { recursive: true, force: true }));

describe('removing a folder', () => {
  for (const count of [0, 3, 400])
    it(`takes one of ${count} files in folders with it, and nothing that a link in it names`, async () => {
      const dir = path.join(root, `of-${count}`);
      const outside = path.join(root, `outside-${count}`);
      await writeFile(outside, '');
      await mkdir(path.join(dir, 'deep', 'er'), { recursive: true });
      await symlink(outside, path.join(dir, 'link'));
      for (let index = 0; index < count; index += 1)
        await writeFile(path.join(dir, 'deep', 'er', String(index)), '');
      await removeFolder(dir);
      assert.equal(existsSync(dir), false);
      assert.equal(existsSync(outside), true);
    });

  it('is nothing where there is none, and removes a file in its place', async () => {
    await removeFolder(path.join(root, 'none'));
    const file = path.join(root, 'file');
    await writeFile(file, '');
    await removeFolder(file);
    assert.equal(existsSync(file), false);
  });
});
