import assert from 'node:assert/strict';
import { mkdir, symlink, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { describe, it } from 'node:test';
import { readGraderEnd, readWorkflowEnd } from '../../../src/backends/harbor/container-sample.ts';
import { taskFolder } from '../../fakes/task-folder.ts';

const nested = (depth: number): string => '['.repeat(depth) + ']'.repeat(depth);
const success = (inside: string): string =>
  `{"status":"success","sample":{"messages":[{"role":"user","content":${inside}}]}}`;

describe('what a sandbox says of its workflow', () => {
  const rows = [
    ['is a sample', success('"go"'), true],
    ['may be nested', success(nested(900)), true],
    ['is nothing when it is nested without end', success(nested(100_000)), false],
    ['is nothing when it holds values without end', success(`[${'0,'.repeat(4_000_001)}0]`), false],
    ['is nothing when it is no JSON', '{"status":', false],
    [
      'is nothing when its reward is not finite',
      '{"status":"success","sample":{"reward":1e999}}',
      false,
    ],
  ] as const;
  for (const [title, content, isSample] of rows)
    it(title, async () => {
      await using folder = await taskFolder({ 'result.json': content });
      const end = await readWorkflowEnd(path.join(folder.dir, 'result.json'));
      assert.equal(end?.sample !== undefined, isSample);
    });

  it('is nothing when it is a link or a folder', async () => {
    await using folder = await taskFolder({});
    await writeFile(path.join(folder.dir, 'host.json'), success('"of the host"'));
    await symlink('host.json', path.join(folder.dir, 'link.json'));
    await mkdir(path.join(folder.dir, 'folder.json'));
    for (const name of ['link.json', 'folder.json', 'absent.json'])
      assert.equal(await readWorkflowEnd(path.join(folder.dir, name)), null);
  });
});

describe('what a sandbox says of its grader', () => {
  it('is what it changed, or why it failed', async () => {
    await using folder = await taskFolder({
      'graded.json': '{"status":"success","reward":0.5,"metrics":{"seen":1}}',
      'failed.json': '{"status":"failure","err_message":"no","err_category":"of its own"}',
    });
    const graded = await readGraderEnd(path.join(folder.dir, 'graded.json'));
    assert.deepEqual([graded?.graded?.reward, graded?.graded?.metrics], [0.5, { seen: 1 }]);
    assert.deepEqual(await readGraderEnd(path.join(folder.dir, 'failed.json')), {
      failure: { message: 'no', category: 'agent_error' },
    });
  });
});
