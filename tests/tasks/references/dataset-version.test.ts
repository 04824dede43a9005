import assert from 'node:assert/strict';
import { test } from 'node:test';
import { latestVersion } from '../../../src/tasks/references/dataset-version.ts';

await test('head wins over every number', () => {
  assert.equal(latestVersion(['9.9', 'head', '1.0']), 'head');
});

await test('versions are ordered as Python orders them', () => {
  const ascending = [
    '0.9',
    '1.0.dev1',
    '1.0a1.dev1',
    '1.0a1',
    '1.0b2',
    '1.0rc1',
    '1.0',
    '1.0+local.2',
    '1.0+local.10',
    '1.0.post1.dev3',
    '1.0.post1',
    '1.0.1',
    '1.2',
    '1.10',
    '2024.1',
    '1!0.1',
  ];
  for (let last = 1; last <= ascending.length; last += 1) {
    const versions = ascending.slice(0, last);
    assert.equal(latestVersion(versions), versions.at(-1));
    assert.equal(latestVersion(versions.toReversed()), versions.at(-1));
  }
});

await test('names that are no versions lose against versions, and among themselves the last one wins', () => {
  assert.equal(latestVersion(['nightly', '0.1']), '0.1');
  assert.equal(latestVersion(['alpha', 'zeta', 'beta']), 'zeta');
  assert.equal(latestVersion([]), null);
});
