import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { caseIds } from './case-list.ts';
import { goldenFolders, loadCases } from './golden.ts';

describe('the fixtures of the gateway', () => {
  const all = goldenFolders().flatMap((folder) =>
    loadCases(folder).map((each) => ({ ...each, title: `${folder}: ${each.title}` })),
  );

  it('cover every case', () => {
    const covered = new Set(all.map((each) => each.case));
    assert.deepEqual(
      caseIds.filter((id) => !covered.has(id)),
      [],
    );
  });

  it('are of known cases only, each with a title of its own', () => {
    const known = new Set(caseIds);
    assert.deepEqual(
      all.filter((each) => !known.has(each.case)),
      [],
    );
    assert.equal(new Set(all.map(({ title }) => title)).size, all.length);
  });
});
