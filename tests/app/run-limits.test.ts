import assert from 'node:assert/strict';
import { readdir } from 'node:fs/promises';
import path from 'node:path';
import { test } from 'node:test';
import { isRolloutError } from '../../src/core/errors.ts';
import { plainTask, taskFolder } from '../fakes/task-folder.ts';
import { AppFixture } from './app-fixture.ts';

test('trials of a job with a pool find their sandboxes ready, and nothing is left of it', async () => {
  await using fixture = await AppFixture.create();
  await using task = await taskFolder(plainTask);
  const { report } = await fixture.run({
    tasks: [{ path: task.dir }],
    n_attempts: 6,
    n_concurrent_trials: 2,
    environment: { type: 'fake', kwargs: { pool_size: 2, max_live_sandboxes: 5 } },
  });
  assert.equal(report.trials.filter(({ rewards }) => rewards?.['reward'] === 1).length, 6);
  const note = fixture.notes.find((text) => text.startsWith('pool:')) ?? '';
  const [, hits = '0'] = /^pool: (\d) of 6 sandboxes were ready/.exec(note) ?? [];
  assert.ok(Number(hits) >= 4, note);
  assert.equal(fixture.machine.sandboxes.size, 0);
  assert.deepEqual(await readdir(path.join(fixture.ports.machine.stateDir, 'runs')), []);
});

test('no more sandboxes than allowed are there at once, however many trials run', async () => {
  await using fixture = await AppFixture.create();
  await using task = await taskFolder(plainTask);
  const { sandboxes } = fixture.machine;
  const counts: number[] = [];
  const add = sandboxes.set.bind(sandboxes);
  sandboxes.set = (name, sandbox) => {
    const result = add(name, sandbox);
    counts.push(sandboxes.size);
    return result;
  };
  const job = { tasks: [{ path: task.dir }], n_attempts: 5, n_concurrent_trials: 5 };
  await fixture.run({
    ...job,
    environment: { type: 'fake', kwargs: { max_live_sandboxes: 2 } },
  });
  assert.equal(Math.max(...counts), 2);
  await fixture.run(job);
  assert.ok(Math.max(...counts) > 2, 'the control found no sandbox over the limit');
});

test('an option that makes no sense is refused by name', async () => {
  await using fixture = await AppFixture.create();
  await using task = await taskFolder(plainTask);
  await assert.rejects(
    fixture.run({
      tasks: [{ path: task.dir }],
      environment: { type: 'fake', kwargs: { max_live_sandboxes: 'many' } },
    }),
    (error) =>
      isRolloutError(error, 'CONFIG_INVALID') &&
      error.field === 'environment.kwargs.max_live_sandboxes',
  );
});
