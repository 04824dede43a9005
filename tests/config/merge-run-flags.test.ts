import assert from 'node:assert/strict';
import { mkdtempSync, mkdirSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { rm } from 'node:fs/promises';
import type { Fields } from '../../src/config/fields.ts';
import { mergeRunFlags } from '../../src/config/merge-run-flags.ts';
import { Problems } from '../../src/config/problems.ts';
import { refuseFlags } from '../../src/config/refused-flags.ts';
import { runFlags, type FlagValues } from '../../src/config/run-flags.ts';

const root = mkdtempSync(join(tmpdir(), 'merge-'));
after(() => rm(root, { recursive: true, force: true }));
const task = join(root, 'one-task');
mkdirSync(task);
writeFileSync(join(task, 'task.toml'), 'not even toml = = =');

function merge(file: Fields, flags: FlagValues): Fields {
  const problems = new Problems();
  const merged = mergeRunFlags(file, flags, problems);
  assert.deepEqual(problems.found, []);
  return merged;
}

function fieldsOf(file: Fields, flags: FlagValues): string[] {
  const problems = new Problems();
  mergeRunFlags(file, flags, problems);
  return problems.found.map(({ field }) => field);
}

const rows: readonly {
  readonly title: string;
  readonly file?: Fields;
  readonly flags: FlagValues;
  readonly expected: Fields;
}[] = [
  {
    title: 'plain values override those of the file',
    file: { n_attempts: 2, jobs_dir: 'a' },
    flags: { '--n-attempts': '5' },
    expected: { n_attempts: 5, jobs_dir: 'a' },
  },
  {
    title: 'retry lists replace those of the file',
    file: { retry: { max_retries: 1, exclude_exceptions: ['A'] } },
    flags: { '--retry-exclude': ['B', 'C'] },
    expected: { retry: { max_retries: 1, exclude_exceptions: ['B', 'C'] } },
  },
  {
    title: 'retry excludes of the file stay without the flag',
    file: { retry: { exclude_exceptions: ['A'] } },
    flags: { '--max-retries': '2' },
    expected: { retry: { exclude_exceptions: ['A'], max_retries: 2 } },
  },
  {
    title: '--agent replaces the agents, one per model',
    file: { agents: [{ name: 'x', kwargs: { a: 1 } }] },
    flags: { '--agent': ['nop'], '--model': ['p/m', 'q/n'] },
    expected: {
      agents: [
        { name: 'nop', model_name: 'p/m' },
        { name: 'nop', model_name: 'q/n' },
      ],
    },
  },
  {
    title: 'without --agent, kwargs and variables reach every agent',
    file: { agents: [{ name: 'x', kwargs: { a: 1 } }, { name: 'y' }] },
    flags: { '--agent-kwarg': ['b=[1,2]'], '--agent-env': ['K=7'] },
    expected: {
      agents: [
        { name: 'x', kwargs: { a: 1, b: [1, 2] }, env: { K: '7' } },
        { name: 'y', kwargs: { b: [1, 2] }, env: { K: '7' } },
      ],
    },
  },
  {
    title: 'agent hosts, skills and log globs extend',
    file: { agents: [{ name: 'x', extra_allowed_hosts: ['a.org'], skills: ['./s'] }] },
    flags: {
      '--allow-agent-host': ['b.org'],
      '--skill': ['./t'],
      '--agent-include-logs': ['*.log'],
    },
    expected: {
      agents: [
        {
          name: 'x',
          extra_allowed_hosts: ['a.org', 'b.org'],
          skills: ['./s', './t'],
          include_logs: ['*.log'],
        },
      ],
    },
  },
  {
    title: 'a class may be named by --agent or --agent-import-path, for each model',
    flags: {
      '--agent': ['oracle', 'a.b:C'],
      '--agent-import-path': ['d:E'],
      '--model': ['m'],
    },
    expected: {
      agents: [
        { name: 'oracle', model_name: 'm' },
        { import_path: 'a.b:C', model_name: 'm' },
        { import_path: 'd:E', model_name: 'm' },
      ],
    },
  },
  {
    title: '--model alone names the model of agents without one',
    file: { agents: [{ name: 'x' }, { name: 'y', model_name: 'own' }] },
    flags: { '--model': ['m'] },
    expected: {
      agents: [
        { name: 'x', model_name: 'm' },
        { name: 'y', model_name: 'own' },
      ],
    },
  },
  {
    title: 'environment kwargs and verifier variables update',
    file: { environment: { kwargs: { a: 1, b: 2 } }, verifier: { env: { A: '1' } } },
    flags: { '--environment-kwarg': ['b=True'], '--verifier-env': ['B= 2 '] },
    expected: { environment: { kwargs: { a: 1, b: true } }, verifier: { env: { A: '1', B: '2' } } },
  },
  {
    title: 'compose files and hosts extend, mounts replace',
    file: { environment: { extra_docker_compose: ['a.yml'], mounts: [{ type: 'bind' }] } },
    flags: { '--extra-docker-compose': ['b.yml'], '--mounts': '[]' },
    expected: { environment: { extra_docker_compose: ['a.yml', 'b.yml'], mounts: [] } },
  },
  {
    title: '--no-delete and --force-build are switches',
    flags: { '--delete': false, '--force-build': true },
    expected: { environment: { delete: false, force_build: true } },
  },
  {
    title: 'an empty --override-tpu is no override',
    flags: { '--override-tpu': '' },
    expected: {},
  },
  {
    title: '--override-tpu is TYPE=TOPOLOGY',
    flags: { '--override-tpu': 'v5e=2x2' },
    expected: { environment: { override_tpu: { type: 'v5e', topology: '2x2' } } },
  },
  {
    title: 'artifacts and extra instructions replace',
    file: { artifacts: ['/a'], extra_instructions: ['x'] },
    flags: { '--artifact': ['/b'], '--extra-instruction': ['y'] },
    expected: { artifacts: ['/b'], extra_instructions: ['y'] },
  },
  {
    title: '--path with a task.toml is a task, however broken, and replaces tasks and datasets',
    file: { tasks: [{ path: 'x' }], datasets: [{ path: 'y' }] },
    flags: { '--path': task },
    expected: { tasks: [{ path: task }] },
  },
  {
    title: '--path of another folder is a dataset, with the filters',
    flags: { '--path': root, '--include-task-name': ['a*'], '--n-tasks': '3' },
    expected: { datasets: [{ path: root, task_names: ['a*'], n_tasks: 3 }] },
  },
  {
    title: '--dataset splits its version, for packages its reference',
    flags: { '--dataset': ['plain@1.2', 'org/pack@latest'], '--registry-path': 'r.json' },
    expected: {
      datasets: [
        { name: 'plain', version: '1.2', registry_path: 'r.json' },
        { name: 'org/pack', ref: 'latest', registry_path: 'r.json' },
      ],
    },
  },
  {
    title: '--task splits at the last @',
    flags: { '--task': ['org/name@sha256:ab'] },
    expected: { tasks: [{ name: 'org/name', ref: 'sha256:ab' }] },
  },
  {
    title: '--task-git-url takes its path from --path',
    flags: {
      '--task-git-url': 'https://host.test/r.git',
      '--task-git-commit': 'abc',
      '--path': 'tasks/a',
    },
    expected: {
      tasks: [{ path: 'tasks/a', git_url: 'https://host.test/r.git', git_commit_id: 'abc' }],
    },
  },
  {
    title: '--repo alone is a dataset of the repository',
    flags: { '--repo': 'org/name' },
    expected: { datasets: [{ repo: 'org/name' }] },
  },
];

for (const { title, file = {}, flags, expected } of rows)
  test(title, () => assert.deepEqual(merge(file, flags), expected));

const bad: readonly { readonly flags: FlagValues; readonly field: string }[] = [
  { flags: { '--n-attempts': '0' }, field: '--n-attempts' },
  { flags: { '--n-attempts': '1.5' }, field: '--n-attempts' },
  { flags: { '--timeout-multiplier': 'much' }, field: '--timeout-multiplier' },
  { flags: { '--timeout-multiplier': 'Infinity' }, field: '--timeout-multiplier' },
  { flags: { '--agent-kwarg': ['novalue'] }, field: '--agent-kwarg' },
  { flags: { '--verifier-env': ['=x'] }, field: '--verifier-env' },
  { flags: { '--mounts': '{}' }, field: '--mounts' },
  { flags: { '--mounts': 'x' }, field: '--mounts' },
  { flags: { '--override-tpu': 'v5e' }, field: '--override-tpu' },
  { flags: { '--n-tasks': '3' }, field: '--include-task-name' },
  { flags: { '--task': ['o/n'], '--dataset': ['d'] }, field: '--task' },
  { flags: { '--path': 'x', '--dataset': ['d'] }, field: '--path' },
  { flags: { '--task-git-url': 'https://host.test/r' }, field: '--task-git-url' },
  { flags: { '--task-git-commit': 'abc' }, field: '--task-git-commit' },
  { flags: { '--agent': ['acp:some-agent'] }, field: '--agent' },
];

for (const { flags, field } of bad)
  test(`${JSON.stringify(flags)} is a problem of ${field}`, () => {
    assert.ok(fieldsOf({}, flags).includes(field));
  });

test('all problems are reported at once', () => {
  const problems = new Problems();
  mergeRunFlags({}, { '--n-attempts': 'x', '--mounts': 'y', '--agent-env': ['z'] }, problems);
  assert.throws(
    () => problems.throwIfAny(),
    (error: Error & { detail: string; code: string }) =>
      error.code === 'CONFIG_INVALID' && error.detail.split('\n').length === 3,
  );
});

test('flags of other products are refused by name', () => {
  const problems = new Problems();
  refuseFlags(['--plugin', '--launch', '--user-agent', '--n-attempts'], problems);
  assert.deepEqual(
    problems.found.map(({ field }) => field),
    ['--plugin', '--launch', '--user-agent'],
  );
});

test('the file is not changed by merging', () => {
  const file = { environment: { kwargs: { a: 1 } } };
  merge(file, { '--environment-kwarg': ['a=2'] });
  assert.deepEqual(file, { environment: { kwargs: { a: 1 } } });
});

test('no flag is listed twice', () => {
  const names = runFlags.flatMap(({ name, short }) => [name, ...(short ? [short] : [])]);
  assert.equal(new Set(names).size, names.length);
});
