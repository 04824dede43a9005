import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { isRolloutError } from '../../src/core/errors.ts';
import { JobFolder } from '../../src/jobs/job-folder.ts';
import { never } from '../../src/core/linked-abort.ts';
import {
  checkSameConfig,
  readStoredJob,
  refuseRedacted,
  resumeTrials,
  type StoredJob,
} from '../../src/jobs/resume.ts';
import { dumpNonDefaultTrialConfig, toHarborJson } from '../../src/wire/harbor/dump.ts';
import { dumpNonDefaultJobConfig } from '../../src/wire/harbor/job-config-dump.ts';
import { jobConfigSchema, type JobConfig } from '../../src/wire/harbor/job-config.ts';
import { FakeTrials } from '../fakes/fake-trials.ts';
import { fakeTask, jobConfig, JobFixture } from './job-fixture.ts';

const won = { rewards: { reward: 1 } };
const tasks = [fakeTask('a'), fakeTask('b')];
const here = { jobId: 'job-1', hostVariables: {} };

/** A job of two tasks whose second trial died, beside folders of strangers. */
async function interruptedJob(fixture: JobFixture, config: JobConfig): Promise<StoredJob> {
  const { folder } = fixture;
  await folder.write(folder.configFile, dumpNonDefaultJobConfig(config, {}));
  const [first, second] = fixture.plan(config, tasks);
  assert.ok(first && second);
  await fixture.job(config, new FakeTrials({ ending: () => won }), { trials: [first] }).run(never);
  const result = await folder.read(folder.resultFile);
  await folder.write(folder.resultFile, { ...(result as object), n_total_trials: 2 });
  const dead = folder.trialDir(second.config.trial_name);
  await mkdir(join(dead, 'agent'), { recursive: true });
  await writeFile(
    join(dead, 'config.json'),
    toHarborJson(dumpNonDefaultTrialConfig(second.config, {})),
  );
  await mkdir(folder.trialDir('notes'));
  await writeFile(join(folder.trialDir('notes'), 'mine.txt'), 'keep');
  await mkdir(folder.trialDir('with-config'));
  await writeFile(join(folder.trialDir('with-config'), 'config.json'), '{"kind": "other"}');
  return (await readStoredJob(folder)) ?? assert.fail('no stored job');
}

test('a finished trial is kept and counted once, the incomplete one runs again', async () => {
  await using fixture = await JobFixture.create();
  const config = jobConfig();
  const stored = await interruptedJob(fixture, config);
  const planned = fixture.plan(
    config,
    tasks,
    stored.trials.map(({ name }) => name),
  );
  const { finished, remaining, incomplete, leftAlone } = resumeTrials(stored, planned, here);
  assert.deepEqual(
    finished.map(({ task_name }) => task_name),
    ['a'],
  );
  assert.deepEqual(
    remaining.map(({ task }) => task.name),
    ['b'],
  );
  assert.equal(incomplete.length, 1);
  assert.match(incomplete[0] ?? '', /^b__/);
  assert.deepEqual(
    leftAlone.map(({ name }) => name),
    ['notes', 'with-config'],
  );

  for (const name of incomplete) await fixture.folder.removeTrial(name);
  const report = await fixture
    .job(config, new FakeTrials({ ending: () => won }), { trials: remaining, finished })
    .run(never);
  assert.equal(report.result.stats.n_completed_trials, 2);
  assert.equal(report.result.n_total_trials, 2);
  assert.ok(existsSync(join(fixture.folder.trialDir('notes'), 'mine.txt')));
  assert.ok(existsSync(join(fixture.folder.trialDir('with-config'), 'config.json')));
});

test('a trial folder of another job is left alone and not counted', async () => {
  await using fixture = await JobFixture.create();
  const config = jobConfig();
  const stored = await interruptedJob(fixture, config);
  const planned = fixture.plan(config, tasks);
  const other = resumeTrials(stored, planned, { ...here, jobId: 'job-2' });
  assert.deepEqual(other.finished, []);
  assert.deepEqual(other.incomplete, []);
  assert.equal(other.remaining.length, 2);
  assert.equal(other.leftAlone.length, 4);
});

test('a folder whose configuration names another trial is foreign, even without a result', async () => {
  await using fixture = await JobFixture.create();
  const config = jobConfig();
  await interruptedJob(fixture, config);
  const { folder } = fixture;
  const [planned] = fixture.plan(config, tasks);
  assert.ok(planned);
  await mkdir(folder.trialDir('copy-of-a-trial'));
  await writeFile(
    join(folder.trialDir('copy-of-a-trial'), 'config.json'),
    toHarborJson(dumpNonDefaultTrialConfig(planned.config, {})),
  );
  const stored = await readStoredJob(folder);
  const states = stored?.trials.filter(({ name }) => name === 'copy-of-a-trial');
  assert.deepEqual(
    states?.map(({ state }) => state),
    ['foreign'],
  );
});

test('an unreadable result is left alone and its trial runs again', async () => {
  await using fixture = await JobFixture.create();
  const config = jobConfig();
  const stored = await interruptedJob(fixture, config);
  const [finished] = stored.trials.filter(({ state }) => state === 'finished');
  await writeFile(join(fixture.folder.trialDir(finished?.name ?? ''), 'result.json'), '{"id": ');
  const again = (await readStoredJob(fixture.folder)) ?? assert.fail();
  const resumption = resumeTrials(again, fixture.plan(config, tasks), here);
  assert.equal(resumption.remaining.length, 2);
  assert.ok(resumption.leftAlone.some(({ name }) => name === finished?.name));
});

test('a stored trial without a counterpart in the plan is a conflict', async () => {
  await using fixture = await JobFixture.create();
  const config = jobConfig();
  const stored = await interruptedJob(fixture, config);
  const planned = fixture.plan(config, [fakeTask('b'), fakeTask('c')]);
  assert.throws(
    () => resumeTrials(stored, planned, here),
    (error) => isRolloutError(error, 'JOB_CONFLICT'),
  );
});

test('another number of trials than before is a conflict', async () => {
  await using fixture = await JobFixture.create();
  const config = jobConfig();
  const stored = await interruptedJob(fixture, config);
  const planned = fixture.plan(config, [...tasks, fakeTask('c')]);
  assert.throws(
    () => resumeTrials(stored, planned, here),
    (error) => isRolloutError(error, 'JOB_CONFLICT'),
  );
});

const base = { agents: [{ name: 'nop', env: { API_KEY: 'sk-123456789' } }], n_attempts: 2 };

test('name, place and verbosity of a job do not make it another job', () => {
  checkSameConfig(
    jobConfigSchema.parse({ ...base, job_name: 'x', debug: true }),
    jobConfigSchema.parse({ ...base, job_name: 'y', quiet: true, jobs_dir: '/elsewhere' }),
    {},
  );
});

test('a stored job equals the configuration it was made from, secrets masked', () => {
  for (const host of [{}, { API_KEY: 'sk-123456789' }]) {
    const config = jobConfigSchema.parse(base);
    const stored = jobConfigSchema.parse(dumpNonDefaultJobConfig(config, host));
    checkSameConfig(stored, config, host);
  }
});

for (const [title, change] of [
  ['attempts', { n_attempts: 3 }],
  ['agents', { agents: [{ name: 'oracle' }] }],
  ['environment', { environment: { type: 'local' } }],
  ['a visible variable', { verifier: { env: { A: '1' } } }],
] as const)
  test(`other ${title}: JOB_CONFLICT names the field`, () => {
    assert.throws(
      () =>
        checkSameConfig(
          jobConfigSchema.parse(base),
          jobConfigSchema.parse({ ...base, ...change }),
          {},
        ),
      (error) => isRolloutError(error, 'JOB_CONFLICT') && Object.keys(change)[0] === error.field,
    );
  });

test('a redacted secret cannot be resumed from the folder alone; a template can', () => {
  const stored = (host: Record<string, string>): JobConfig =>
    jobConfigSchema.parse(dumpNonDefaultJobConfig(jobConfigSchema.parse(base), host));
  refuseRedacted(stored({ API_KEY: 'sk-123456789' }));
  assert.throws(
    () => refuseRedacted(stored({})),
    (error) =>
      isRolloutError(error, 'CONFIG_INVALID') &&
      error.field === 'agents[0].env.API_KEY' &&
      !error.message.includes('sk-1'),
  );
});

test('an empty folder holds no job', async () => {
  await using fixture = await JobFixture.create();
  assert.equal(await readStoredJob(fixture.folder), null);
});

test('a config.json that is no JSON is JOB_UNREADABLE', async () => {
  await using fixture = await JobFixture.create();
  await writeFile(fixture.folder.configFile, '{');
  await assert.rejects(readStoredJob(fixture.folder), (error) =>
    isRolloutError(error, 'JOB_UNREADABLE'),
  );
});

test('a job folder that cannot be made names its option', async () => {
  await using fixture = await JobFixture.create();
  await writeFile(fixture.folder.configFile, '');
  await assert.rejects(
    new JobFolder(`${fixture.folder.configFile}/job`).create(),
    (error) =>
      isRolloutError(error, 'JOB_UNREADABLE') &&
      error.field === 'jobs_dir' &&
      error.remedy !== null,
  );
});
