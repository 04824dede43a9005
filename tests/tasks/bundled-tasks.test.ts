import assert from 'node:assert/strict';
import { existsSync, readFileSync, statSync } from 'node:fs';
import path from 'node:path';
import { describe, it } from 'node:test';
import { bundledTasksDir, readExpectations } from '../../scripts/quickstart/expectations.js';
import { loadTask } from '../../src/tasks/load-task.ts';

const signal = AbortSignal.timeout(60_000);
const expectations = readExpectations();

/** The features that the bundled tasks are there to show. */
const features = [
  'file answer',
  'working folder',
  'non-root user',
  'multi-step with shared state',
  'separate verifier',
  'artifacts',
  'healthcheck',
  'no network',
  'side service by compose',
  'environment templates',
  'several reward channels',
  'partial reward',
  'resource limit',
  'large transfer',
  'an agent that plants a reward',
];

describe('the bundled tasks', () => {
  it('show each feature once', () => {
    const shown = expectations.map((expected) => expected.feature);
    assert.deepEqual(
      features.filter((feature) => !shown.includes(feature)),
      [],
    );
    assert.equal(new Set(shown).size, shown.length, 'two tasks show the same feature');
  });

  it('are named after their folders', () => {
    for (const { task, name } of expectations) assert.equal(name, `slipway/${task}`);
  });

  it('are refused by nobody except the one with side services, by local', () => {
    const refused = expectations.filter((expected) => expected.refusedBy.length > 0);
    assert.deepEqual(
      refused.map(({ task, refusedBy }) => [task, ...refusedBy]),
      [['side-service', 'local']],
    );
  });

  for (const expected of expectations) {
    describe(expected.task, () => {
      const dir = path.join(bundledTasksDir, expected.task);

      it('loads without a warning', async () => {
        const task = await loadTask({ dir, signal });
        assert.equal(task.name, expected.name);
        assert.deepEqual(task.warnings, []);
      });

      it('has a solution for each of its instructions, executable and with bash', async () => {
        const { steps } = await loadTask({ dir, signal });
        const folders = steps.length > 0 ? steps.map(({ name }) => `steps/${name}`) : ['.'];
        for (const folder of folders) {
          const script = path.join(dir, folder, 'solution', 'solve.sh');
          assert.ok(existsSync(script), `${folder} has no solution`);
          assert.ok((statSync(script).mode & 0o111) !== 0, `${script} is not executable`);
          assert.match(readFileSync(script, 'utf8'), /^#!\/bin\/bash\n/);
        }
      });

      it('gives nothing to an agent that does nothing, in the same channels as to the oracle', () => {
        assert.deepEqual(Object.keys(expected.nop), Object.keys(expected.oracle));
        assert.ok(Object.values(expected.nop).every((reward) => reward === 0));
      });

      it('starts from the one base image, so that one archive serves all tasks', () => {
        for (const image of baseImages(dir)) assert.equal(image, 'debian:bookworm-slim');
      });
    });
  }
});

/** Every image that the task names: in Dockerfiles, in task.toml and in its compose file. */
function baseImages(dir: string): readonly string[] {
  const sources: readonly (readonly [string, RegExp])[] = [
    ['environment/Dockerfile', /^FROM\s+(\S+)/gm],
    ['tests/Dockerfile', /^FROM\s+(\S+)/gm],
    ['task.toml', /^docker_image\s*=\s*"([^"]+)"/gm],
    ['environment/docker-compose.yaml', /^\s+image:\s*(\S+)/gm],
  ];
  const images = sources.flatMap(([file, pattern]) => {
    const full = path.join(dir, file);
    if (!existsSync(full)) return [];
    return [...readFileSync(full, 'utf8').matchAll(pattern)].map((match) => match[1] ?? '');
  });
  assert.ok(images.length > 0, `${dir} names no image`);
  return images;
}
