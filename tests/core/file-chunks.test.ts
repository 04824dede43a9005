import assert from 'node:assert/strict';
import { mkdtemp, open, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { after, before, describe, it } from 'node:test';
import { fileChunks } from '../../src/core/file-chunks.ts';

let dir = '';
before(async () => {
  dir = await mkdtemp(path.join(tmpdir(), 'slipway-chunks-'));
});
after(() => rm(dir, { recursive: true, force: true }));

const first = 16 * 1024;
const longest = 64 * 1024;

describe('the pieces of a file', () => {
  const sizes: readonly (readonly [number, readonly number[]])[] = [
    [0, []],
    [5, [5]],
    [first, [first]],
    [first + 1, [first, 1]],
    [first + longest + 7, [first, longest, 7]],
  ];
  for (const [size, pieces] of sizes)
    it(`of ${size} bytes are ${pieces.join(' and ') || 'none'}, and together the file`, async () => {
      const file = path.join(dir, String(size));
      const bytes = Buffer.from(Array.from({ length: size }, (_, at) => (at * 7) % 251));
      await writeFile(file, bytes);
      await using handle = await open(file);
      const found: Buffer[] = [];
      for await (const piece of fileChunks(handle, longest)) found.push(Buffer.from(piece));
      assert.deepEqual(
        found.map(({ length }) => length),
        pieces,
      );
      assert.ok(Buffer.concat(found).equals(bytes));
    });

  it('are never longer than asked for', async () => {
    const file = path.join(dir, 'short');
    await writeFile(file, Buffer.alloc(10));
    await using handle = await open(file);
    const lengths: number[] = [];
    for await (const { length } of fileChunks(handle, 4)) lengths.push(length);
    assert.deepEqual(lengths, [4, 4, 2]);
  });
});
