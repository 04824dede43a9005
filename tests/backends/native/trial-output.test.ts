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
    assert.match(problems.join(), /steps\/one.*steps\/two.*several/);
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
    const { trajectory, problems } = await trialOutput(dir);
    assert.equal(trajectory, null);
    assert.match(problems.join(), /agent\/trajectory\.json: it is no regular file/);
  });

  it('is no trajectory that is wrong or no JSON, and what is wrong is named', async () => {
    const rows: readonly (readonly [string, RegExp])[] = [
      ['{', /agent\/trajectory\.json: .*JSON/],
      ['{"steps": 1}', /agent\/trajectory\.json: trajectory\..* \(and \d+ more\)/],
      [document.replace('"steps"', '"mine":1,"steps"'), /trajectory\.mine/],
    ];
    for (const [text, wrong] of rows) {
      await put('agent');
      await writeFile(path.join(dir, 'agent', 'trajectory.json'), text);
      const { trajectory, problems } = await trialOutput(dir);
      assert.equal(trajectory, null);
      assert.match(problems.join(), wrong);
    }
  });

  it('is a trajectory as it stands in its file, numbers in texts and nulls included', async () => {
    await put('agent');
    const text = '{"steps":[{"message":"x","source":"user","step_id":"1"}],"notes":null,';
    await writeFile(
      path.join(dir, 'agent', 'trajectory.json'),
      `${text}"agent":{"version":"1","name":"a"}}`,
    );
    const { trajectory } = await trialOutput(dir);
    assert.equal(JSON.stringify(trajectory), `${text}"agent":{"version":"1","name":"a"}}`);
  });

  it('has the artifacts of each step apart from its logs', async () => {
    for (const step of ['one', 'two'])
      for (const name of ['agent', 'artifacts', 'verifier'])
        await mkdir(path.join(dir, 'steps', step, name), { recursive: true });
    await symlink('/etc', path.join(dir, 'steps', 'linked'));
    await symlink('/etc', path.join(dir, 'steps', 'two', 'link'));
    await mkdir(path.join(dir, 'artifacts'));
    const { files } = await trialOutput(dir);
    assert.deepEqual(
      files.map(({ name }) => name),
      [
        ...['artifacts', 'artifacts/steps/one', 'artifacts/steps/two'],
        ...['logs/steps/one/agent', 'logs/steps/one/verifier', 'logs/steps/two/agent'],
        ...['logs/steps/two/link', 'logs/steps/two/verifier'],
      ],
    );
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
