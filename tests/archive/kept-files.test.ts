import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { lstat, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { describe, it } from 'node:test';
import { FileDigests } from '../../src/archive/kept-files.ts';

const digestOf = (text: string): string => createHash('sha256').update(text).digest('hex');

describe('the digest of a kept file', () => {
  it('is read once, and again when the file is another', async () => {
    const dir = await mkdtemp(path.join(tmpdir(), 'slipway-digests-'));
    try {
      const digests = new FileDigests();
      const file = path.join(dir, 'a');
      const write = async (text: string) => {
        await rm(file, { force: true });
        await writeFile(file, text);
        return { path: 'a', stats: await lstat(file) };
      };
      const first = await write('first');
      const found = await Promise.all([1, 2].map(() => digests.describe(dir, first)));
      assert.deepEqual(
        found.map((one) => one?.sha256),
        [digestOf('first'), digestOf('first')],
      );
      const other = await write('another');
      // By the state that the first one had: nothing is read for it.
      assert.equal((await digests.describe(dir, first))?.sha256, digestOf('first'));
      assert.equal((await digests.describe(dir, other))?.sha256, digestOf('another'));
      const gone = await write('gone');
      await rm(file);
      assert.equal(await digests.describe(dir, gone), null);
      await writeFile(file, 'back');
      // What could not be read is no answer for later.
      assert.equal((await digests.describe(dir, gone))?.sha256, digestOf('back'));
    } finally {
      await rm(dir, { recursive: true, force: true });
    }
  });
});
