import assert from 'node:assert/strict';
import { mkdir, mkdtemp, readdir, rm, writeFile } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { after, before, describe, test } from 'node:test';
import {
  loadTrajectory,
  validateTrajectory,
  validateTrajectoryFile,
} from '../../src/trajectory/validate.ts';

const agent = { name: 'a', version: '1' };

function documentWith(...steps: readonly object[]): object {
  return { agent, steps };
}

function imageStep(image: unknown): object {
  const part = { type: 'image', source: { media_type: 'image/png', path: image } };
  return { step_id: 1, source: 'user', message: [part] };
}

describe('a trajectory is valid or says why not', () => {
  let dir = '';
  before(async () => {
    dir = await mkdtemp(path.join(os.tmpdir(), 'validate-'));
    await mkdir(path.join(dir, 'images'));
    await writeFile(path.join(dir, 'images', 'a.png'), '');
  });
  after(() => rm(dir, { recursive: true }));

  async function written(content: unknown): Promise<string> {
    const file = path.join(dir, 'trajectory.json');
    await writeFile(file, typeof content === 'string' ? content : JSON.stringify(content));
    return file;
  }

  for (const value of [null, [], 'text', 5])
    test(`${JSON.stringify(value)} is no object`, () =>
      assert.deepEqual(validateTrajectory(value), ['Trajectory must be a JSON object/dict']));

  test('every golden document is valid', async () => {
    const golden = path.resolve(import.meta.dirname, '../golden/atif/valid');
    for (const name of await readdir(golden)) {
      const file = path.join(golden, name);
      assert.deepEqual(await validateTrajectoryFile(file, { checksImages: true }), [], name);
      assert.ok((await loadTrajectory(file)).steps.length > 0);
    }
  });

  const images: readonly (readonly [string, (dir: string) => unknown, boolean])[] = [
    ['beside the document', () => 'images/a.png', true],
    ['by its absolute path', (folder) => path.join(folder, 'images/a.png'), true],
    ['behind an address', () => 's3://bucket/none.png', true],
    ['that is missing', () => 'images/none.png', false],
    ['that is missing at an absolute path', () => '/no/such/none.png', false],
    ['without a path', () => '', true],
  ];
  for (const [title, image, isFound] of images)
    test(`an image ${title} is ${isFound ? 'no error' : 'an error'}`, async () => {
      const name = image(dir);
      const file = await written(documentWith(imageStep(name)));
      const missing = `trajectory.steps[0].message[0].source.path: referenced image file does not exist: ${String(name)}`;
      assert.deepEqual(
        await validateTrajectoryFile(file, { checksImages: true }),
        isFound ? [] : [missing],
      );
      assert.deepEqual(await validateTrajectoryFile(file, { checksImages: false }), []);
    });

  test('images are looked for in observations, and when the document is wrong, not in embedded ones', async () => {
    const { message } = imageStep('none.png') as { message: unknown };
    const step = {
      step_id: 5,
      source: 'agent',
      message: '',
      observation: { results: [{}, { content: message }] },
    };
    const file = await written({
      ...documentWith(step),
      subagent_trajectories: [{ trajectory_id: 's', ...documentWith(imageStep('none.png')) }],
    });
    const errors = await validateTrajectoryFile(file, { checksImages: true });
    assert.equal(errors.length, 2);
    assert.match(errors[0] ?? '', /^trajectory\.: Value error, /);
    assert.match(
      errors[1] ?? '',
      /^trajectory\.steps\[0\]\.observation\.results\[1\]\.content\[0\]/,
    );
  });

  test('odd things in the places of steps break nothing', async () => {
    const file = await written({
      agent,
      steps: [null, 5, { observation: { results: [null, 'x'] } }],
    });
    assert.ok((await validateTrajectoryFile(file, { checksImages: true })).length > 0);
    assert.ok(
      (await validateTrajectoryFile(await written({ steps: 5 }), { checksImages: true })).length >
        0,
    );
  });

  test('loading what is not valid says the first error and has all in the detail', async () => {
    const file = await written({ steps: [], zzz: 1 });
    await assert.rejects(loadTrajectory(file), {
      code: 'TRAJECTORY_INVALID',
      message: `${file}: trajectory.agent: required field is missing (and 2 more)`,
      detail: [
        'trajectory.agent: required field is missing',
        'trajectory.steps: has fewer than 1 items',
        'trajectory.zzz: unexpected field (not part of ATIF schema)',
      ].join('\n'),
    });
    await assert.rejects(loadTrajectory(await written('NaN')), { code: 'TRAJECTORY_INVALID' });
  });

  test('a key that every object inherits is an unknown field, not a known one', () => {
    const document = JSON.parse(
      '{"agent":{"name":"a","version":"1","toString":1},"steps":[{"step_id":1,"source":"user","message":"","__proto__":{}}]}',
    ) as unknown;
    assert.deepEqual(validateTrajectory(document), [
      'trajectory.agent.toString: unexpected field (not part of ATIF schema)',
      'trajectory.steps.0.__proto__: unexpected field (not part of ATIF schema)',
    ]);
  });
});
