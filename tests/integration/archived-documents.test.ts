/** The reduced form of `npm run prove -- archive`. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { archiveDocuments, judgeDocument } from '../chaos/archive/archived-documents.ts';
import { brokenArchives } from '../chaos/archive/broken-archives.ts';

const seeds = Array.from({ length: 80 }, (_, index) => index + 1);

describe('a trajectory in the archive', () => {
  it('differs from the agent’s only where it is said to, and another difference is found', async () => {
    const all = await archiveDocuments(seeds);
    assert.equal(all.length, seeds.length);
    for (const { seed, problems } of all) assert.deepEqual(problems, [], `seed ${seed}`);
    for (const [what, change] of brokenArchives) {
      const isFound = all.some(
        ({ document, kept, expected }) =>
          judgeDocument(document, change(kept), expected).length > 0,
      );
      assert.ok(isFound, what);
    }
  });
});
