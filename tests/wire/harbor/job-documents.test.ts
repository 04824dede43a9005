import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  dumpJobConfig,
  dumpNonDefaultJobConfig,
} from '../../../src/wire/harbor/job-config-dump.ts';
import { defaultRetryExcludes, jobConfigSchema } from '../../../src/wire/harbor/job-config.ts';
import { jobLockSchema, keepsLock, type JobLock } from '../../../src/wire/harbor/job-lock.ts';
import { jobResultSchema } from '../../../src/wire/harbor/job-result.ts';

test('an empty job has Harbor’s defaults', () => {
  const job = jobConfigSchema.parse({});
  assert.equal(job.jobs_dir, 'jobs');
  assert.equal(job.n_attempts, 1);
  assert.equal(job.n_concurrent_trials, 4);
  assert.deepEqual(
    job.agents.map(({ name }) => name),
    ['oracle'],
  );
  assert.deepEqual(job.retry, {
    max_retries: 0,
    include_exceptions: null,
    exclude_exceptions: [...defaultRetryExcludes],
    wait_multiplier: 1,
    min_wait_sec: 1,
    max_wait_sec: 60,
  });
});

test('numbers may be written as text, unknown keys are dropped', () => {
  const job = jobConfigSchema.parse({ n_attempts: '3', n_concurrent_trials: 2.0, colour: 'red' });
  assert.deepEqual([job.n_attempts, job.n_concurrent_trials], [3, 2]);
  assert.ok(!('colour' in job));
});

test('the older orchestrator section is lifted, newer fields win', () => {
  const job = jobConfigSchema.parse({
    orchestrator: { n_concurrent_trials: 9, quiet: true, retry: { max_retries: 2 } },
    n_concurrent_trials: 3,
  });
  assert.deepEqual([job.n_concurrent_trials, job.quiet, job.retry.max_retries], [3, true, 2]);
});

for (const [title, fields] of [
  ['no attempts', { n_attempts: 0 }],
  ['half an attempt', { n_attempts: 1.5 }],
  ['a name with a slash', { job_name: 'a/b' }],
  ['a name that is a parent folder', { job_name: '..' }],
  [
    'more agents than trials',
    { n_concurrent_trials: 1, agents: [{ name: 'nop', n_concurrent: 2 }] },
  ],
  ['an unknown metric', { metrics: [{ type: 'median' }] }],
  ['a task without path and name', { tasks: [{}] }],
] as const)
  test(`${title} is refused`, () => {
    assert.ok(!jobConfigSchema.safeParse(fields).success);
  });

test('config.json holds what differs from the defaults and reads back to the same job', () => {
  const job = jobConfigSchema.parse({
    n_attempts: 2,
    timeout_multiplier: 1.5,
    environment: { type: 'local', override_cpus: 2, env: { A: '1' } },
    agents: [{ name: 'nop', model_name: 'p/m', kwargs: { a: [1] } }],
    datasets: [{ path: '/tasks', n_tasks: 3 }],
    artifacts: ['/out', { source: '/b', destination: 'c' }],
    retry: { max_retries: 1 },
  });
  const written = JSON.parse(JSON.stringify(dumpNonDefaultJobConfig(job, {}))) as object;
  assert.deepEqual(Object.keys(written).sort(), [
    ...[
      'agents',
      'artifacts',
      'datasets',
      'environment',
      'n_attempts',
      'retry',
      'timeout_multiplier',
    ],
  ]);
  assert.deepEqual(jobConfigSchema.parse(written), job);
});

test('result.json of an older Harbor loads', () => {
  const result = jobResultSchema.parse({
    id: 'x',
    started_at: '2025-01-01T00:00:00',
    n_total_trials: 3,
    status: 'running',
    stats: { n_trials: 2, n_errors: 1, evals: { a__adhoc: { n_trials: 1, n_errors: 1 } } },
  });
  assert.equal(result.stats.n_completed_trials, 2);
  assert.equal(result.stats.n_errored_trials, 1);
  assert.equal(result.stats.evals['a__adhoc']?.slipway, null);
});

function lock(...digests: readonly string[]): JobLock {
  return jobLockSchema.parse({
    created_at: digests.join(),
    trials: digests.map((digest, index) => ({
      task: { name: `t${index}`, type: 'local', digest, path: `/somewhere/${index}` },
    })),
  });
}

test('locks are compared as multisets of trials by digest, whoever made them and wherever the files are', () => {
  assert.ok(keepsLock(lock('a', 'b', 'b'), lock('b', 'a', 'b')));
  assert.ok(!keepsLock(lock('a', 'b', 'b'), lock('a', 'a', 'b')));
  assert.ok(!keepsLock(lock('a', 'b'), lock('a')));
});

test('a later lock may hold trials that could not be locked before', () => {
  assert.ok(keepsLock(lock('a'), lock('a', 'b')));
});

test('another retry rule or concurrency is another lock; the order of types is not', () => {
  const with_ = (retry: object): JobLock => jobLockSchema.parse({ ...lock('a'), retry });
  assert.ok(!keepsLock(lock('a'), with_({ max_retries: 1 })));
  assert.ok(
    keepsLock(with_({ exclude_exceptions: ['A', 'B'] }), with_({ exclude_exceptions: ['B', 'A'] })),
  );
  assert.ok(!keepsLock(lock('a'), { ...lock('a'), n_concurrent_trials: 5 }));
});

test('a changed instruction file or skill is another lock, its path is not', () => {
  const [trial] = lock('a').trials;
  const changed = (fields: object): JobLock =>
    jobLockSchema.parse({ trials: [{ ...trial, ...fields }] });
  const file = (path: string, digest: string): object => ({
    extra_instructions: [{ path, digest }],
  });
  assert.ok(keepsLock(changed(file('/a', 'x')), changed(file('/b', 'x'))));
  assert.ok(!keepsLock(changed(file('/a', 'x')), changed(file('/a', 'y'))));
  const skill = (digest: string): object => ({ skills: [{ name: 's', source: './s', digest }] });
  assert.ok(!keepsLock(changed(skill('x')), changed(skill('y'))));
});

test('no document of a job holds the credentials of an address', () => {
  const address = 'https://someone:pa55word@git.example.org/org/name@main';
  const job = jobConfigSchema.parse({
    agents: [{ name: 'nop', skills: [address, 'git@example.org:org/name'] }],
    tasks: [{ path: 'a', git_url: address }],
    datasets: [{ repo: address }],
  });
  const text = JSON.stringify([dumpJobConfig(job, {}), dumpNonDefaultJobConfig(job, {})]);
  assert.ok(!text.includes('pa55word'));
  assert.ok(text.includes('https://git.example.org/org/name@main'));
  assert.ok(text.includes('git@example.org:org/name'));
});
