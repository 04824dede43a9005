import assert from 'node:assert/strict';
import { test } from 'node:test';
import { never } from '../../src/core/linked-abort.ts';
import { hostVariableUses } from '../../src/jobs/host-variables.ts';
import { loadTask } from '../../src/tasks/load-task.ts';
import type { Task } from '../../src/tasks/task.ts';
import { plainTask, taskFolder } from '../fakes/task-folder.ts';
import { jobConfig } from './job-fixture.ts';

const everywhere = `
[environment.env]
PLAIN = "literal"
SHARED = "\${OF_ENVIRONMENT}"
[verifier]
environment_mode = "separate"
[verifier.env]
JUDGE = "\${OF_VERIFIER:-none}"
[verifier.environment]
docker_image = "judge"
[verifier.environment.env]
INNER = "\${OF_VERIFIER_ENVIRONMENT}"
[solution.env]
ANSWER = "\${OF_SOLUTION}"
`;

async function load(): Promise<Task> {
  await using folder = await taskFolder({ ...plainTask, 'task.toml': everywhere });
  return await loadTask({ dir: folder.dir, signal: never });
}

const namesFor = (task: Task, fields: Record<string, unknown>): string[] =>
  hostVariableUses(task, jobConfig(fields), {}).map(({ name }) => name);

const task = await load();

test('every table of a task is looked at, the environment of the verifier too', () => {
  assert.deepEqual(
    hostVariableUses(task, jobConfig({ agents: [{ name: 'oracle' }] }), { OF_ENVIRONMENT: '' }),
    [
      { name: 'OF_ENVIRONMENT', field: 'environment.env.SHARED', state: 'set' },
      { name: 'OF_VERIFIER', field: 'verifier.env.JUDGE', state: 'default' },
      {
        name: 'OF_VERIFIER_ENVIRONMENT',
        field: 'verifier.environment.env.INNER',
        state: 'missing',
      },
      { name: 'OF_SOLUTION', field: 'solution.env.ANSWER', state: 'missing' },
    ],
  );
});

test('what the job does not run, or sets itself, is not asked for', () => {
  assert.deepEqual(namesFor(task, { verifier: { disable: true } }), ['OF_ENVIRONMENT']);
  assert.deepEqual(
    namesFor(task, {
      environment: { env: { SHARED: 'x', INNER: 'x' } },
      verifier: { env: { JUDGE: 'x' } },
    }),
    [],
  );
});
