import assert from 'node:assert/strict';
import { readdir, readFile } from 'node:fs/promises';
import path from 'node:path';
import { test } from 'node:test';
import { runJob } from '../../src/app/run-job.ts';
import { isRolloutError, RolloutError } from '../../src/core/errors.ts';
import { never } from '../../src/core/linked-abort.ts';
import { jobConfigSchema } from '../../src/wire/harbor/job-config.ts';
import { jobLockSchema } from '../../src/wire/harbor/job-lock.ts';
import { environmentSpec } from '../fakes/environment/environment-spec.ts';
import { FakeProvider } from '../fakes/environment/fake-provider.ts';
import { plainTask, taskFolder } from '../fakes/task-folder.ts';
import { RegistryServer } from '../fakes/registry-server.ts';
import { AppFixture } from './app-fixture.ts';

async function nothingLeft(fixture: AppFixture): Promise<void> {
  assert.equal(fixture.machine.sandboxes.size, 0);
  assert.equal(fixture.openProviders, 0);
  assert.deepEqual(await readdir(path.join(fixture.ports.machine.stateDir, 'runs')), []);
}

test('a job leaves its documents and nothing else', async () => {
  await using fixture = await AppFixture.create();
  await using task = await taskFolder(plainTask);
  const { dir, report } = await fixture.run({
    tasks: [{ path: task.dir }],
    n_attempts: 2,
    job_name: 'j',
  });
  assert.deepEqual(
    report.trials.map(({ rewards }) => rewards),
    [{ reward: 1 }, { reward: 1 }],
  );
  assert.equal(dir, path.join(fixture.root, 'jobs', 'j'));
  const lock = jobLockSchema.parse(JSON.parse(await readFile(path.join(dir, 'lock.json'), 'utf8')));
  assert.equal(lock.trials.length, 2);
  const [, digest = ''] = lock.trials[0]?.task.digest.split(':') ?? [];
  assert.match(digest, /^[0-9a-f]{64}$/);
  const config = jobConfigSchema.parse(
    JSON.parse(await readFile(path.join(dir, 'config.json'), 'utf8')),
  );
  assert.equal(config.environment.type, 'fake');
  await nothingLeft(fixture);
});

test('a passing fault of the machine is retried and leaves no trace in the average', async () => {
  await using fixture = await AppFixture.create();
  await using task = await taskFolder(plainTask);
  const does = new RolloutError('ENVIRONMENT_START_FAILED', 'a passing fault', {
    phase: 'environment',
  });
  fixture.machine.faults.plant({ at: 'after-create', does, times: 1 });
  const { report } = await fixture.run({
    tasks: [{ path: task.dir }],
    retry: { max_retries: 1, min_wait_sec: 0 },
  });
  assert.equal(report.result.stats.n_retries, 1);
  assert.deepEqual(
    report.trials.map(({ rewards }) => rewards),
    [{ reward: 1 }],
  );
  await nothingLeft(fixture);
});

test('a verdict stands although the sandbox could not be removed at once', async () => {
  await using fixture = await AppFixture.create();
  await using task = await taskFolder(plainTask);
  const does = new RolloutError('ENVIRONMENT_DESTROY_FAILED', 'it would not go', {
    phase: 'cleanup',
  });
  fixture.machine.faults.plant({ at: 'destroy', does, times: 2 });
  const { report } = await fixture.run({ tasks: [{ path: task.dir }] });
  const [trial] = report.trials;
  assert.deepEqual(trial?.rewards, { reward: 1 });
  assert.equal(trial.failure?.code, 'ENVIRONMENT_DESTROY_FAILED');
  assert.deepEqual(report.result.stats.evals['oracle__adhoc']?.slipway?.metrics, [{ mean: 1 }]);
  // What stayed is journalled, so the next run removes it.
  assert.equal(fixture.machine.sandboxes.size, 1);
  await fixture.run({ tasks: [{ path: task.dir }] });
  await nothingLeft(fixture);
});

test('a start removes what a dead run left, and leaves strangers and the living alone', async () => {
  await using fixture = await AppFixture.create();
  await using task = await taskFolder(plainTask);
  const journals = await fixture.journals();
  const live = await journals.open('run-live');
  const provider = new FakeProvider(fixture.machine);
  for (const [name, storeId, runId] of [
    ['of-a-dead-run', journals.storeId, 'run-dead'],
    ['of-a-live-run', journals.storeId, 'run-live'],
    ['of-a-stranger', 'elsewhere', 'run-dead'],
  ] as const) {
    const labels = { storeId, runId, trial: 't', expiresAt: '2100-01-01T00:00:00.000Z' };
    await provider.environment(environmentSpec(name, { labels })).start({ signal: never });
  }
  await fixture.run({ tasks: [{ path: task.dir }] });
  assert.deepEqual([...fixture.machine.sandboxes.keys()].sort(), [
    'of-a-live-run',
    'of-a-stranger',
  ]);
  const [cleaned, warning = '', ...rest] = fixture.notes;
  assert.equal(cleaned, 'removed what dead runs had left: 1 sandbox');
  assert.match(warning, /^warning: no sandbox \(isolation: none\)/); // true of the fake as well
  assert.deepEqual(rest, []);
  await live.close();
});

test('an unknown agent ends the job before anything is made', async () => {
  await using fixture = await AppFixture.create();
  await assert.rejects(
    fixture.run({ tasks: [{ path: 'x' }], agents: [{ name: 'nobody' }] }),
    (error) => isRolloutError(error, 'AGENT_UNKNOWN'),
  );
  assert.deepEqual(await readdir(fixture.root), []);
});

test('a declined confirmation runs nothing and leaves no job', async () => {
  await using fixture = await AppFixture.create();
  await using task = await taskFolder({
    ...plainTask,
    'task.toml': '[environment.env]\nA = "${B:-c}"',
  });
  const asked: string[] = [];
  const outcome = await runJob(
    {
      config: jobConfigSchema.parse({
        environment: { type: 'fake' },
        jobs_dir: path.join(fixture.root, 'jobs'),
        tasks: [{ path: task.dir }],
      }),
      sources: null,
      allowUnsandboxed: false,
      observe: () => undefined,
      note: () => undefined,
      confirmVariables: (uses) => {
        asked.push(...uses.map(({ name, field, state }) => `${name} ${field} ${state}`));
        return Promise.resolve(false);
      },
      signal: never,
    },
    fixture.ports,
  );
  assert.equal(outcome, null);
  assert.deepEqual(asked, ['B environment.env.A default']);
  assert.ok(!(await readdir(fixture.root)).includes('jobs'));
  await nothingLeft(fixture);
});

test('cancelling in the middle leaves nothing of any trial', async () => {
  await using fixture = await AppFixture.create();
  await using task = await taskFolder(plainTask);
  fixture.machine.faults.plant({
    at: 'exec',
    does: 'hang',
    when: (command) => command.includes('solve'),
  });
  const abort = new AbortController();
  const running = fixture.run(
    { tasks: [{ path: task.dir }], n_attempts: 6, n_concurrent_trials: 3 },
    abort.signal,
  );
  while (fixture.machine.sandboxes.size < 3)
    await new Promise((resolve) => setTimeout(resolve, 20));
  abort.abort(new RolloutError('CANCELLED', 'stop', { phase: 'queue' }));
  const { report } = await running;
  assert.equal(report.notStarted, 3);
  assert.equal(report.result.stats.n_cancelled_trials, 3);
  await nothingLeft(fixture);
});

test('a job whose agent has a secret can be resumed, and no file holds the secret', async () => {
  await using fixture = await AppFixture.create();
  await using task = await taskFolder(plainTask);
  const secret = 'sk-0123456789';
  const fields = {
    tasks: [{ path: task.dir }],
    agents: [{ name: 'oracle', env: { API_KEY: secret } }],
    job_name: 'j',
  };
  const first = await fixture.run(fields);
  const again = await fixture.run(fields);
  assert.deepEqual(again.report.trials, first.report.trials);
  for (const entry of await readdir(first.dir, { recursive: true, withFileTypes: true }))
    if (entry.isFile()) {
      const text = await readFile(path.join(entry.parentPath, entry.name), 'utf8');
      assert.ok(!text.includes(secret), `${entry.name} holds the secret`);
    }
});

test('a dataset of a package is pinned to its digest: the job resumes while its tag stays, and not after it moved', async () => {
  await using registry = await RegistryServer.start();
  await using fixture = await AppFixture.create({
    SLIPWAY_REGISTRY_URL: registry.baseUrl,
    SLIPWAY_REGISTRY_KEY: registry.key,
  });
  const files = Object.fromEntries(
    Object.entries(plainTask).map(([name, text]) => [name, text as string]),
  );
  const task = await registry.publishTask({ org: 'acme', name: 'one', files });
  const set = registry.publishDataset({ org: 'acme', name: 'set', tasks: [task] });
  const fields = { datasets: [{ name: 'acme/set' }], job_name: 'j' };
  const { dir } = await fixture.run(fields);
  const config = jobConfigSchema.parse(
    JSON.parse(await readFile(path.join(dir, 'config.json'), 'utf8')),
  );
  assert.equal(config.datasets[0]?.ref, set['content_hash']);
  const again = await fixture.run(fields);
  assert.equal(again.report.trials.length, 1);

  const other = await registry.publishTask({
    org: 'acme',
    name: 'two',
    files: { ...files, 'instruction.md': 'Another.' },
  });
  registry.publishDataset({ org: 'acme', name: 'set', tasks: [other] });
  await assert.rejects(
    fixture.run(fields),
    (error) => isRolloutError(error, 'JOB_CONFLICT') && error.field === 'datasets',
  );
});
