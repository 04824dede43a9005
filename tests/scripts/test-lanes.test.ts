import assert from 'node:assert/strict';
import { globSync } from 'node:fs';
import path from 'node:path';
import { describe, it } from 'node:test';
import { inLanes } from '../../scripts/test/lanes.js';
import { selectTestFiles } from '../../scripts/test/select-test-files.js';

const root = path.resolve(import.meta.dirname, '../..');

describe('jobs in lanes', () => {
  it('begin in their order, never more at once than there are lanes', async () => {
    const begun: number[] = [];
    let [live, most] = [0, 0];
    const jobs = Array.from({ length: 9 }, (_, index) => async () => {
      begun.push(index);
      most = Math.max(most, ++live);
      await new Promise(setImmediate);
      live -= 1;
    });
    await inLanes(jobs, 3);
    assert.deepEqual([begun, most, live], [[...jobs.keys()], 3, 0]);
  });

  it('are not begun after one has failed', async () => {
    const begun: string[] = [];
    const bad = async (): Promise<void> => {
      begun.push('bad');
      throw new Error('broken');
    };
    const late = async (): Promise<void> => void begun.push('late');
    await assert.rejects(inLanes([bad, late], 1), /broken/);
    assert.deepEqual(begun, ['bad']);
  });
});

describe('the plan of the tests', () => {
  it('holds every file once', () => {
    const { measuring, alone, engine, paired, plain } = selectTestFiles([]);
    const all = globSync('tests/**/*.test.ts', { cwd: root }).sort();
    assert.deepEqual([...measuring, ...alone, ...engine, ...paired, ...plain].sort(), all);
  });

  for (const [kind, file] of [
    ['measuring', 'tests/chaos/flood/flood.test.ts'],
    ['alone', 'tests/chaos/killed-runs.test.ts'],
    ['paired', 'tests/chaos/fleet/fleet.test.ts'],
    ['engine', 'tests/conformance/docker.test.ts'],
    ['engine', 'tests/environments/docker/docker-environment.test.ts'],
    ['paired', 'tests/conformance/local.test.ts'],
    ['plain', 'tests/hygiene.test.ts'],
  ] as const)
    it(`${file} is ${kind}`, () => {
      const plan = selectTestFiles([file]);
      assert.deepEqual(plan, {
        ...{ measuring: [], alone: [], engine: [], paired: [], plain: [] },
        [kind]: [file],
      });
    });

  it('follows parts of paths and globs', () => {
    assert.deepEqual(selectTestFiles(['hygiene', 'tests/scripts/l*.test.ts']).plain, [
      'tests/hygiene.test.ts',
      'tests/scripts/layers.test.ts',
    ]);
  });
});
