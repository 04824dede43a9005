import assert from 'node:assert/strict';
import { test } from 'node:test';
import { isRolloutError } from '../../src/core/errors.ts';
import { fakeTask, jobConfig, JobFixture } from './job-fixture.ts';

test('trials come attempt by attempt, task by task, agent by agent', async () => {
  await using fixture = await JobFixture.create();
  const config = jobConfig({ n_attempts: 2, agents: [{ name: 'nop' }, { name: 'oracle' }] });
  const planned = fixture.plan(config, [fakeTask('a'), fakeTask('b')]);
  assert.deepEqual(
    planned.map(({ config: trial }) => `${trial.task.path ?? ''} ${trial.agent.name ?? ''}`),
    [
      ...['/tasks/a nop', '/tasks/a oracle', '/tasks/b nop', '/tasks/b oracle'],
      ...['/tasks/a nop', '/tasks/a oracle', '/tasks/b nop', '/tasks/b oracle'],
    ],
  );
});

test('trial names are unique without regard to case and avoid folders that exist', async () => {
  await using fixture = await JobFixture.create();
  const config = jobConfig({ n_attempts: 300 });
  const planned = fixture.plan(config, [fakeTask('task')]);
  const names = planned.map(({ config: trial }) => trial.trial_name.toLowerCase());
  assert.equal(new Set(names).size, 300);
  for (const name of names) assert.match(name, /^task__[a-z0-9]{7}$/);
});

test('a long task name is cut to 32 characters and its package is left out', async () => {
  await using fixture = await JobFixture.create();
  const [planned] = fixture.plan(jobConfig(), [fakeTask(`org/${'x'.repeat(31)}-yyy`)]);
  assert.match(planned?.config.trial_name ?? '', /^x{31}__\w{7}$/);
});

test('the job’s settings reach every trial', async () => {
  await using fixture = await JobFixture.create();
  const config = jobConfig({
    timeout_multiplier: 2,
    verifier: { env: { A: '1' } },
    artifacts: ['/out'],
    environment: { type: 'docker', override_cpus: 2 },
  });
  const [planned] = fixture.plan(config, [fakeTask('a')]);
  const trial = planned?.config ?? assert.fail();
  assert.equal(trial.timeout_multiplier, 2);
  assert.deepEqual(trial.verifier.env, { A: '1' });
  assert.deepEqual(trial.artifacts, config.artifacts);
  assert.equal(trial.artifacts.length, 1);
  assert.equal(trial.environment.override_cpus, 2);
  assert.equal(trial.job_id, 'job-1');
  assert.equal(trial.trials_dir, fixture.folder.dir);
});

test('a job without tasks is refused with the flag to use', async () => {
  await using fixture = await JobFixture.create();
  assert.throws(
    () => fixture.plan(jobConfig(), []),
    (error) => isRolloutError(error, 'DATASET_EMPTY') && error.field === '--path',
  );
});
