import assert from 'node:assert/strict';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { after, before, test } from 'node:test';
import { readJobRequest } from '../../src/config/job-request.ts';
import { readMachine } from '../../src/config/machine.ts';
import { readTrialRequest } from '../../src/config/trial-request.ts';
import { isRolloutError } from '../../src/core/errors.ts';

let root = '';
before(async () => {
  root = await mkdtemp(path.join(os.tmpdir(), 'request-'));
});
after(() => rm(root, { recursive: true, force: true }));

async function file(name: string, text: string): Promise<string> {
  await writeFile(path.join(root, name), text);
  return name;
}

test('without a word about it the environment is local', async () => {
  const { config } = await readJobRequest({ '--dataset': ['d'] }, root);
  assert.equal(config.environment.type, 'local');
});

test('the example of the spec is read', async () => {
  const name = await file(
    'job.yaml',
    [
      'job_name: demo',
      'jobs_dir: jobs',
      'n_attempts: 2',
      'n_concurrent_trials: 4',
      'timeout_multiplier: 1.0',
      'retry: {max_retries: 1, include_exceptions: [ApiRateLimitError]}',
      'environment: {type: docker, force_build: false, delete: true, env: {A: "1"}}',
      'verifier: {env: {KEY: "${KEY}"}}',
      'metrics: [{type: mean}]',
      'agents: [{name: terminus-2, model_name: openai/x, kwargs: {max_turns: 50}, env: {}}]',
      'datasets: [{path: examples/tasks, task_names: ["hello-*"], n_tasks: 3}]',
      'tasks: [{path: examples/tasks/hello-user}]',
      'artifacts: ["/app/out"]',
    ].join('\n'),
  );
  const { config, warnings } = await readJobRequest({ '--config': name }, root);
  assert.deepEqual(warnings, []);
  assert.equal(config.environment.type, 'docker');
  assert.deepEqual(config.agents[0]?.kwargs, { max_turns: 50 });
  assert.equal(config.datasets[0]?.n_tasks, 3);
  assert.equal(config.tasks[0]?.path, 'examples/tasks/hello-user');
});

test('JSON and TOML say the same as YAML', async () => {
  const fields = { n_attempts: 3, datasets: [{ path: 'x' }] };
  const one = await readJobRequest(
    { '--config': await file('a.json', JSON.stringify(fields)) },
    root,
  );
  const two = await readJobRequest(
    { '--config': await file('a.toml', 'n_attempts = 3\n[[datasets]]\npath = "x"\n') },
    root,
  );
  assert.deepEqual(one, two);
});

test('problems of flags and of the file are reported together', async () => {
  const name = await file('bad.yaml', 'n_concurrent_trials: lots\nuser_agent: {name: x}\n');
  await assert.rejects(
    readJobRequest({ '--config': name, '--n-attempts': '0', '--launch': true }, root),
    (error) => {
      assert.ok(isRolloutError(error, 'CONFIG_INVALID'));
      for (const field of ['--launch', '--n-attempts', 'user_agent', 'n_concurrent_trials'])
        assert.ok(error.detail?.includes(`[${field}]`), field);
      return true;
    },
  );
});

test('fields that a job does not have are named, wherever they stand', async () => {
  const name = await file(
    'misspelt.yaml',
    [
      'n_concurrent_trails: 8',
      'orchestrator: {n_concurrent_trials: 2}',
      'agents: [{name: oracle, modell: x}]',
      '',
    ].join('\n'),
  );
  const { config, warnings } = await readJobRequest({ '--config': name }, root);
  assert.equal(config.n_concurrent_trials, 2);
  assert.deepEqual(warnings, [
    'n_concurrent_trails: a job has no such field; it has no effect',
    'agents[0].modell: a job has no such field; it has no effect',
  ]);
});

test('plugins of a job file have no effect and are said to have none', async () => {
  const name = await file('plugins.yaml', 'plugins: [x]\n');
  const { warnings } = await readJobRequest({ '--config': name }, root);
  assert.equal(warnings.length, 1);
});

for (const [title, text] of [
  ['a map mcpServers', '{"mcpServers": {"s": {"command": "run", "args": ["a"]}}}'],
  [
    'a list mcp_servers',
    '{"mcp_servers": [{"name": "s", "transport": "stdio", "command": "run", "args": ["a"]}]}',
  ],
  [
    'the environment of a task',
    '{"environment": {"mcp_servers": [{"name": "s", "transport": "stdio", "command": "run", "args": ["a"]}]}}',
  ],
] as const)
  test(`MCP servers come from ${title}`, async () => {
    const name = await file('mcp.json', text);
    const { config } = await readJobRequest({ '--mcp-config': [name] }, root);
    assert.deepEqual(config.agents[0]?.mcp_servers, [
      { name: 's', transport: 'stdio', url: null, command: 'run', args: ['a'] },
    ]);
  });

test('a trial configuration becomes a job of one trial', async () => {
  const name = await file(
    'trial.yaml',
    'task: {path: t}\nagent: {name: nop}\ntimeout_multiplier: 2\n',
  );
  const config = await readTrialRequest(path.join(root, name), { trialName: 'x', trialsDir: null });
  assert.deepEqual(
    [
      config.tasks[0]?.path,
      config.agents[0]?.name,
      config.timeout_multiplier,
      config.job_name,
      config.jobs_dir,
    ],
    ['t', 'nop', 2, 'x', 'trials'],
  );
});

test('folders come from their own variable, else XDG, else the home folder', () => {
  const at = (variables: Record<string, string>): readonly string[] => {
    const { stateDir, cacheDir } = readMachine({ HOME: '/h', ...variables }, '/here');
    return [stateDir, cacheDir];
  };
  assert.deepEqual(at({}), ['/h/.local/state/slipway', '/h/.cache/slipway']);
  assert.deepEqual(at({ XDG_STATE_HOME: '/s', XDG_CACHE_HOME: '/c' }), [
    '/s/slipway',
    '/c/slipway',
  ]);
  assert.deepEqual(at({ SLIPWAY_STATE_DIR: 'a', SLIPWAY_CACHE_DIR: '/b' }), ['/here/a', '/b']);
});
