import assert from 'node:assert/strict';
import path from 'node:path';
import { describe, it } from 'node:test';
import { findScript, findSolutionScript, findTestScript } from '../../src/tasks/scripts.ts';
import { taskFolder, type FolderFiles } from '../fakes/task-folder.ts';

type Os = 'linux' | 'windows' | null;

describe('a script', () => {
  const rows: readonly (readonly [readonly string[], Os, string | null])[] = [
    [['test.sh', 'test.bat'], 'linux', 'test.sh'],
    [['test.sh', 'test.bat'], 'windows', 'test.bat'],
    [['test.bat'], 'linux', null],
    [['test.sh'], 'windows', null],
    [['test.sh', 'test.bat'], null, 'test.sh'],
    [['test.bat'], null, 'test.bat'],
    [['test.ps1', 'test.cmd', 'test'], null, null],
    [['test.sh/inside'], 'linux', null],
  ];
  for (const [names, system, expected] of rows)
    it(`among ${names.join(', ')} for ${system ?? 'any system'} is ${expected ?? 'missing'}`, async () => {
      await using folder = await taskFolder(Object.fromEntries(names.map((name) => [name, ''])));
      const found = await findScript(folder.dir, 'test', system);
      assert.equal(found, expected === null ? null : path.join(folder.dir, expected));
    });
});

describe('the scripts of a step', () => {
  const find = async (
    files: FolderFiles,
    search: typeof findTestScript,
  ): Promise<string | null> => {
    await using folder = await taskFolder(files);
    const found = await search({ dir: folder.dir, os: 'linux', stepName: 'one' });
    return found === null ? null : path.relative(folder.dir, found);
  };

  it('are its own before the shared ones', async () => {
    const files = { 'steps/one/tests/test.sh': '', 'tests/test.sh': '' };
    assert.equal(await find(files, findTestScript), 'steps/one/tests/test.sh');
  });

  it('are the shared ones where its tests hold none', async () => {
    const files = { 'steps/one/tests/fixture.txt': '', 'tests/test.sh': '' };
    assert.equal(await find(files, findTestScript), 'tests/test.sh');
  });

  it('are not the shared solution where it has a solution folder', async () => {
    const files = { 'steps/one/solution/readme': '', 'solution/solve.sh': '' };
    assert.equal(await find(files, findSolutionScript), null);
    assert.equal(await find({ 'solution/solve.sh': '' }, findSolutionScript), 'solution/solve.sh');
  });
});
