import assert from 'node:assert/strict';
import { test } from 'node:test';
import { TailBuffer } from '../../../../src/agents/terminus-2/terminal/tail-buffer.ts';

test('a tail buffer holds the end of what was written, however it came', () => {
  for (const limit of [1, 10, 4_096, 10_000])
    for (const size of [7, 100, 5_000, 30_000]) {
      const tail = new TailBuffer(limit);
      const all = Buffer.alloc(60_000);
      for (let at = 0; at < all.length; at += size) {
        const end = Math.min(at + size, all.length);
        all.fill(`${at},`, at, end);
        tail.write(all.subarray(at, end));
        const wanted = all.subarray(Math.max(0, end - limit), end);
        if (!tail.bytes().equals(wanted)) assert.fail(`limit ${limit}, by ${size}, at ${end}`);
      }
    }
});
