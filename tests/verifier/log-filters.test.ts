import assert from 'node:assert/strict';
import { readdirSync } from 'node:fs';
import { describe, test } from 'node:test';
import { applyLogFilters, type LogFilters } from '../../src/verifier/log-filters.ts';
import { taskFolder } from '../fakes/task-folder.ts';

const files = { 'reward.txt': '1', 'a.log': '', 'deep/b.log': '', 'deep/c.txt': '' };

const rows: readonly (readonly [string, LogFilters, readonly string[]])[] = [
  ['nothing given keeps everything', { include: [], exclude: [] }, Object.keys(files)],
  [
    '`*` crosses folders',
    { include: ['*.log'], exclude: [] },
    ['a.log', 'deep/b.log', 'reward.txt'],
  ],
  ['exclude wins over include', { include: ['*'], exclude: ['deep/*'] }, ['a.log', 'reward.txt']],
  ['kept files survive an exclude of everything', { include: [], exclude: ['*'] }, ['reward.txt']],
];

describe('log filters', () => {
  for (const [title, filters, expected] of rows)
    test(title, async () => {
      await using folder = await taskFolder(files);
      await applyLogFilters(folder.dir, filters, ['reward.txt']);
      const left = readdirSync(folder.dir, { recursive: true, withFileTypes: true })
        .filter((entry) => entry.isFile())
        .map((entry) => `${entry.parentPath}/${entry.name}`.slice(folder.dir.length + 1));
      assert.deepEqual(left.sort(), [...expected].sort());
    });
});
