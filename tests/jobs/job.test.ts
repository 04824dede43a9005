import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { readdir } from 'node:fs/promises';
import { test } from 'node:test';
import { RolloutError } from '../../src/core/errors.ts';
import { never } from '../../src/core/linked-abort.ts';
import { jobResultSchema, type JobResult } from '../../src/wire/harbor/job-result.ts';
import { FakeTrials } from '../fakes/fake-trials.ts';
import { fakeTask, jobConfig, JobFixture } from './job-fixture.ts';

const won = { rewards: { reward: 1 } };
const lost = { rewards: { reward: 0 } };

async function storedResult(fixture: JobFixture): Promise<JobResult> {
  return jobResultSchema.parse(await fixture.folder.read(fixture.folder.resultFile));
}

test('every planned trial runs once, at most n_concurrent_trials at a time', async () => {
  await using fixture = await JobFixture.create();
  const config = jobConfig({ n_attempts: 4, n_concurrent_trials: 3 });
  const trials = fixture.plan(config, [fakeTask('a'), fakeTask('b'), fakeTask('c')]);
  const fakes = new FakeTrials({
    ending: () => won,
    gate: () => new Promise((resolve) => setImmediate(resolve)),
  });
  const report = await fixture.job(config, fakes, { trials }).run(never);
  assert.equal(new Set(fakes.tries).size, 12);
  assert.equal(fakes.tries.length, 12);
  assert.equal(fakes.mostRunning, 3);
  assert.equal(report.result.stats.n_completed_trials, 12);
  assert.equal((await storedResult(fixture)).stats.n_completed_trials, 12);
});

test('a bad task fails its own trials and no sibling’s', async () => {
  await using fixture = await JobFixture.create();
  const config = jobConfig({ n_attempts: 2 });
  const problem = new RolloutError('TASK_CONFIG_INVALID', 'broken', { phase: 'resolve' });
  const trials = fixture.plan(config, [fakeTask('bad', problem), fakeTask('good')]);
  const report = await fixture
    .job(config, new FakeTrials({ ending: () => won }), { trials })
    .run(never);
  const byTask = Map.groupBy(report.trials, ({ taskName }) => taskName);
  assert.deepEqual(
    byTask.get('good')?.map(({ rewards }) => rewards),
    [{ reward: 1 }, { reward: 1 }],
  );
  assert.deepEqual(
    byTask.get('bad')?.map(({ failure }) => failure?.code),
    ['TASK_CONFIG_INVALID', 'TASK_CONFIG_INVALID'],
  );
  assert.equal(report.result.stats.n_errored_trials, 2);
});

test('infrastructure failures stand apart: Harbor’s mean counts them as 0, ours leaves them out', async () => {
  await using fixture = await JobFixture.create();
  const config = jobConfig();
  const trials = fixture.plan(
    config,
    ['a', 'b', 'c', 'd'].map((name) => fakeTask(name)),
  );
  const fakes = new FakeTrials({
    ending: ({ taskName }) =>
      taskName === 'a'
        ? won
        : taskName === 'b'
          ? { code: 'ENVIRONMENT_LOST' }
          : taskName === 'c'
            ? { code: 'AGENT_FAILED' }
            : { code: 'REWARD_MISSING' },
  });
  const { result } = await fixture.job(config, fakes, { trials }).run(never);
  const stats = result.stats.evals['nop__adhoc'];
  assert.deepEqual(stats?.metrics, [{ mean: 0.25 }]);
  assert.deepEqual(stats.slipway?.metrics, [{ mean: 0.5 }]);
  assert.equal(stats.slipway.n_counted, 2);
  assert.equal(stats.slipway.n_uncounted, 2);
  assert.equal(stats.slipway.n_infrastructure_failures, 1);
  assert.deepEqual(Object.keys(stats.slipway.failures).sort(), [
    'AGENT_FAILED',
    'ENVIRONMENT_LOST',
    'REWARD_MISSING',
  ]);
  assert.equal(stats.n_trials, 1);
  assert.equal(stats.n_errors, 3);
});

test('reward and exception statistics name the trials', async () => {
  await using fixture = await JobFixture.create();
  const config = jobConfig();
  const trials = fixture.plan(config, [fakeTask('a'), fakeTask('b')]);
  const fakes = new FakeTrials({
    ending: ({ taskName }) => (taskName === 'a' ? won : { code: 'AGENT_TIMEOUT' }),
  });
  const { result } = await fixture.job(config, fakes, { trials }).run(never);
  const stats = result.stats.evals['nop__adhoc'];
  assert.deepEqual(stats?.reward_stats, { reward: { '1.0': [trials[0]?.config.trial_name] } });
  assert.deepEqual(stats.exception_stats, { AgentTimeoutError: [trials[1]?.config.trial_name] });
});

test('a failed trial is tried again with growing waits; only its last result counts', async () => {
  await using fixture = await JobFixture.create();
  const config = jobConfig({ retry: { max_retries: 3, wait_multiplier: 2, min_wait_sec: 1 } });
  const trials = fixture.plan(config, [fakeTask('a')]);
  const fakes = new FakeTrials({
    ending: (_request, attempt) => (attempt < 3 ? { code: 'ENVIRONMENT_START_FAILED' } : won),
  });
  const { result } = await fixture.job(config, fakes, { trials }).run(never);
  assert.deepEqual(fixture.clock.sleeps, [1000, 2000]);
  assert.equal(result.stats.n_retries, 2);
  assert.equal(result.stats.n_completed_trials, 1);
  assert.equal(result.stats.n_errored_trials, 0);
  assert.equal(fixture.events.filter(({ type }) => type === 'trial:settled').length, 1);
});

test('excluded exception types are not tried again', async () => {
  await using fixture = await JobFixture.create();
  const config = jobConfig({ retry: { max_retries: 3 } });
  const trials = fixture.plan(config, [fakeTask('a')]);
  const fakes = new FakeTrials({ ending: () => ({ code: 'REWARD_MISSING' }) });
  const { result } = await fixture.job(config, fakes, { trials }).run(never);
  assert.equal(fakes.tries.length, 1);
  assert.equal(result.stats.n_retries, 0);
});

test('a trial whose folder cannot be written fails alone and leaves no result', async () => {
  await using fixture = await JobFixture.create();
  const config = jobConfig();
  const trials = fixture.plan(config, [fakeTask('a'), fakeTask('b')]);
  const full = new RolloutError('DISK_FULL', 'no space left', { phase: 'queue' });
  const fakes = new FakeTrials({
    ending: ({ taskName }) => (taskName === 'a' ? { rejects: full } : lost),
  });
  const report = await fixture.job(config, fakes, { trials }).run(never);
  assert.deepEqual(report.trials.map(({ failure }) => failure?.code ?? null).sort(), [
    'DISK_FULL',
    null,
  ]);
});

test('cancelling ends the running trials and leaves the others pending', async () => {
  await using fixture = await JobFixture.create();
  const config = jobConfig({ n_concurrent_trials: 2, n_attempts: 5 });
  const trials = fixture.plan(config, [fakeTask('a')]);
  const abort = new AbortController();
  const fakes = new FakeTrials({
    ending: () => won,
    gate: async (_request, signal) => {
      if (fakes.running === 2)
        abort.abort(new RolloutError('CANCELLED', 'stop', { phase: 'queue' }));
      if (!signal.aborted)
        await new Promise((resolve) => signal.addEventListener('abort', resolve, { once: true }));
    },
  });
  const report = await fixture.job(config, fakes, { trials }).run(abort.signal);
  assert.equal(report.notStarted, 3);
  assert.equal(report.result.stats.n_cancelled_trials, 2);
  assert.equal(report.result.stats.n_pending_trials, 3);
  assert.equal(report.result.finished_at, null);
});

test('an agent with n_concurrent 1 runs one trial at a time though three are in work', async () => {
  await using fixture = await JobFixture.create();
  const config = jobConfig({
    n_concurrent_trials: 3,
    n_attempts: 4,
    agents: [{ name: 'nop', n_concurrent: 1 }],
  });
  const trials = fixture.plan(config, [fakeTask('a')]);
  let inAgent = 0;
  let most = 0;
  const fakes = new FakeTrials({
    ending: () => won,
    gate: async () => {
      inAgent += 1;
      most = Math.max(most, inAgent);
      await new Promise((resolve) => setImmediate(resolve));
      inAgent -= 1;
    },
  });
  await fixture.job(config, fakes, { trials }).run(never);
  assert.equal(most, 1);
  assert.equal(fakes.mostRunning, 3);
});

test('result.json exists before the first trial begins', async () => {
  await using fixture = await JobFixture.create();
  const config = jobConfig();
  const trials = fixture.plan(config, [fakeTask('a')]);
  const seen: JobResult[] = [];
  const fakes = new FakeTrials({
    ending: () => won,
    gate: async () => void seen.push(await storedResult(fixture)),
  });
  await fixture.job(config, fakes, { trials }).run(never);
  assert.deepEqual(
    seen.map(({ n_total_trials, finished_at }) => [n_total_trials, finished_at]),
    [[1, null]],
  );
});

test('a throwing observer breaks nothing', async () => {
  await using fixture = await JobFixture.create();
  const config = jobConfig();
  const trials = fixture.plan(config, [fakeTask('a')]);
  fixture.events.push = () => {
    throw new Error('display broken');
  };
  const { result } = await fixture
    .job(config, new FakeTrials({ ending: () => won }), { trials })
    .run(never);
  assert.equal(result.stats.n_completed_trials, 1);
});

test('script metrics run once, at the end', async () => {
  await using fixture = await JobFixture.create();
  const config = jobConfig({ metrics: [{ type: 'uv-script', kwargs: { script_path: 'm.py' } }] });
  const trials = fixture.plan(config, [fakeTask('a')]);
  const { result } = await fixture
    .job(config, new FakeTrials({ ending: () => won }), { trials })
    .run(never);
  assert.deepEqual(result.stats.evals['nop__adhoc']?.metrics, [{ scripted: 1 }]);
});

test('no draft of result.json is left', async () => {
  await using fixture = await JobFixture.create();
  const config = jobConfig({ n_attempts: 6 });
  const trials = fixture.plan(config, [fakeTask('a')]);
  await fixture.job(config, new FakeTrials({ ending: () => won }), { trials }).run(never);
  const names = await readdir(fixture.folder.dir);
  assert.ok(existsSync(fixture.folder.resultFile));
  assert.deepEqual(
    names.filter((name) => name.endsWith('.tmp')),
    [],
  );
});
