import assert from 'node:assert/strict';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { after, before, describe, it } from 'node:test';
import { ArchiveThread } from '../../src/archive/archive-thread.ts';
import type { FolderTask } from '../../src/archive/rollout-folder.ts';

let root = '';
before(async () => {
  root = await mkdtemp(path.join(tmpdir(), 'slipway-archive-thread-'));
});
after(() => rm(root, { recursive: true, force: true }));

const taskOf = (folder: string, over: Partial<FolderTask> = {}): FolderTask => ({
  ...{ dir: path.join(root, 'archive'), folder, id: null, spellings: [] },
  ...{ texts: [{ name: 'a.json', text: folder }], files: [] },
  ...over,
});
const kept = (folder: string): Promise<string> =>
  readFile(path.join(root, 'archive', folder, 'a.json'), 'utf8');

describe('the thread of the archive', () => {
  it('writes folders beside each other, and says what of which could not be kept', async () => {
    const thread = new ArchiveThread();
    const folders = Array.from({ length: 20 }, (_, index) => `r${index}`);
    const [missing, ...saved] = await Promise.all([
      thread.save(taskOf('odd', { texts: [{ name: '../a', text: '' }] })),
      ...folders.map((folder) => thread.save(taskOf(folder))),
    ]);
    assert.deepEqual(
      missing.map(({ name }) => name),
      ['../a'],
    );
    assert.deepEqual(saved.flat(), []);
    for (const folder of folders) assert.equal(await kept(folder), folder);
    await thread.close();
  });

  it('writes what it was asked for before it closes, and nothing after', async () => {
    const thread = new ArchiveThread();
    const big = path.join(root, 'big');
    await writeFile(big, Buffer.alloc(4 * 1024 * 1024));
    const saving = thread.save(taskOf('last', { files: [{ name: 'big', path: big }] }));
    await Promise.all([thread.close(), thread.close()]);
    assert.deepEqual(await saving, []);
    assert.equal(await kept('last'), 'last');
    await assert.rejects(thread.save(taskOf('late')), /the thread of the archive is gone/);
  });
});
