import assert from 'node:assert/strict';
import { mkdir, mkdtemp, rm, symlink, truncate, writeFile } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { afterEach, beforeEach, describe, it } from 'node:test';
import { trialOutput } from '../../../src/backends/native/trial-output.ts';

const document = JSON.stringify({
  schema_version: 'ATIF-v1.7',
  agent: { name: 'a', version: '1' },
  steps: [{ step_id: 1, source: 'user', message: 'hi' }],
});

let dir = '';
beforeEach(async () => {
  dir = await mkdtemp(path.join(os.tmpdir(), 'slipway-output-'));
});
afterEach(() => rm(dir, { recursive: true, force: true }));

async function put(...places: readonly string[]): Promise<void> {
  for (const place of places) {
    await mkdir(path.join(dir, place), { recursive: true });
    await writeFile(path.join(dir, place, 'trajectory.json'), document);
  }
}

describe('what a trial leaves', () => {
  it('is its one trajectory, of a step too', async () => {
    await put('steps/one/agent');
    const { trajectory, problems } = await trialOutput(dir);
    assert.deepEqual([trajectory?.['schema_version'], problems], ['ATIF-v1.7', []]);
  });

  it('has no trajectory of its own when there are several', async () => {
    await put('steps/one/agent', 'steps/two/agent');
    const { trajectory, problems } = await trialOutput(dir);
    assert.equal(trajectory, null);
    assert.match(problems.join(), /2 trajectories/);
  });

  it('keeps a trajectory that is too long to be read as the agent wrote it', async () => {
    await put('agent');
    const file = path.join(dir, 'agent', 'trajectory.json');
    await truncate(file, 16 * 1024 * 1024 + 1);
    const { trajectory, files, problems } = await trialOutput(dir);
    assert.deepEqual([trajectory, problems], [null, []]);
    assert.deepEqual(files[0], { name: 'trajectory.json', path: file });
  });

  it('is nothing that a link leads to', async () => {
    await put('outside');
    await mkdir(path.join(dir, 'agent'));
    await symlink('../outside/trajectory.json', path.join(dir, 'agent', 'trajectory.json'));
    assert.equal((await trialOutput(dir)).trajectory, null);
  });

  it('goes to the archive as artifacts and logs; what a trial ran with does not', async () => {
    for (const name of ['artifacts', 'agent', 'verifier']) await mkdir(path.join(dir, name));
    for (const name of ['trial.log', 'config.json', 'lock.json'])
      await writeFile(path.join(dir, name), '');
    const { files } = await trialOutput(dir);
    assert.deepEqual(
      files.map(({ name }) => name),
      ['artifacts', 'logs/trial.log', 'logs/agent', 'logs/verifier'],
    );
  });

  it('is nothing where there is no folder', async () => {
    const nothing = await trialOutput(path.join(dir, 'none'));
    assert.deepEqual(nothing, { trajectory: null, files: [], problems: [] });
  });
});
