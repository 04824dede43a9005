import assert from 'node:assert/strict';
import { readFile, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { test } from 'node:test';
import { prepareResume } from '../../src/app/resume-job.ts';
import { isRolloutError, RolloutError } from '../../src/core/errors.ts';
import { plainTask, taskFolder } from '../fakes/task-folder.ts';
import { AppFixture } from './app-fixture.ts';

/** A job of two attempts of which one could not start. */
async function halfFailedJob(fixture: AppFixture, task: string): Promise<string> {
  const does = new RolloutError('ENVIRONMENT_START_FAILED', 'a fault', { phase: 'environment' });
  fixture.machine.faults.plant({ at: 'after-create', does, times: 1 });
  const { dir, report } = await fixture.run({
    tasks: [{ path: task }],
    n_attempts: 2,
    job_name: 'j',
  });
  assert.equal(report.result.stats.n_errored_trials, 1);
  return dir;
}

for (const [title, damage] of [
  ['', null],
  [', also when the result of the job is damaged', '{'],
] as const)
  test(`trials that ended with a chosen code run again, the others count once${title}`, async () => {
    await using fixture = await AppFixture.create();
    await using task = await taskFolder(plainTask);
    const dir = await halfFailedJob(fixture, task.dir);
    const before: unknown = JSON.parse(await readFile(path.join(dir, 'result.json'), 'utf8'));
    if (damage !== null) await writeFile(path.join(dir, 'result.json'), damage);
    const resume = { dir, types: ['ENVIRONMENT_START_FAILED'] };
    const { config, removed } = await prepareResume(resume, fixture.ports);
    assert.equal(removed.length, 1);
    const { report } = await fixture.run(config);
    assert.deepEqual(
      report.trials.map(({ rewards }) => rewards),
      [{ reward: 1 }, { reward: 1 }],
    );
    assert.equal(report.result.id, (before as { readonly id: string }).id);
  });

test('a folder without a job is JOB_UNREADABLE', async () => {
  await using fixture = await AppFixture.create();
  await assert.rejects(prepareResume({ dir: 'nowhere', types: [] }, fixture.ports), (error) =>
    isRolloutError(error, 'JOB_UNREADABLE'),
  );
});
