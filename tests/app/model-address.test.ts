import assert from 'node:assert/strict';
import { once } from 'node:events';
import { readdir, readFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import path from 'node:path';
import { test } from 'node:test';
import { plainTask, taskFolder } from '../fakes/task-folder.ts';
import { AppFixture } from './app-fixture.ts';

/** An address where nothing listens: a port that was just given back. */
async function deadAddress(): Promise<string> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  assert.ok(address !== null && typeof address === 'object');
  server.close();
  await once(server, 'close');
  return `http://127.0.0.1:${address.port}`;
}

const agent = (kwargs: object, env: object = {}) => ({
  agents: [{ name: 'terminus-2', model_name: 'openai/small', kwargs, env }],
});

test('a wrong address ends every trial at once, with the origin and a remedy, and no sandbox is made', async () => {
  await using fixture = await AppFixture.create();
  await using task = await taskFolder(plainTask);
  const origin = await deadAddress();
  const { report } = await fixture.run({
    ...agent({ api_base: `${origin}/v1` }),
    tasks: [{ path: task.dir }],
    n_attempts: 3,
  });
  for (const { failure, rewards } of report.trials) {
    assert.equal(rewards, null);
    assert.equal(failure?.code, 'ENGINE_UNAVAILABLE');
    assert.ok(failure.message.includes(origin), failure.message);
    assert.match(failure.remedy ?? '', /api_base/);
  }
  assert.equal(report.trials.length, 3);
  const stages = fixture.events.flatMap((event) =>
    event.type === 'stage:started' ? [event.stage] : [],
  );
  assert.deepEqual(new Set(stages), new Set(['checking agent']));
  assert.equal(report.result.stats.evals['terminus-2__small__adhoc']?.slipway?.n_uncounted, 3);
});

for (const [what, kwargs, env, code] of [
  ['no address anywhere', {}, {}, 'MODEL_UNSPECIFIED'],
  ['an empty address', { api_base: '' }, {}, 'MODEL_UNSPECIFIED'],
  ['an address that is none', { api_base: 'localhost:8000/v1' }, {}, 'CONFIG_INVALID'],
  [
    'an option that the agent does not have',
    { api_base: 'http://a', api_bass: 1 },
    {},
    'CONFIG_INVALID',
  ],
] as const)
  test(`${what} is ${code}, before anything is started`, async () => {
    await using fixture = await AppFixture.create();
    await using task = await taskFolder(plainTask);
    const { report } = await fixture.run({ ...agent(kwargs, env), tasks: [{ path: task.dir }] });
    assert.deepEqual(
      report.trials.map(({ failure }) => failure?.code),
      [code],
    );
    assert.ok(report.trials[0]?.failure?.remedy);
    assert.equal(fixture.machine.builds, 0);
    assert.ok(!fixture.events.some((e) => e.type === 'stage:started' && e.phase === 'environment'));
  });

test('the key of a model is in no file of the job', async () => {
  const key = 'sk-0123456789abcdef';
  await using fixture = await AppFixture.create({ OPENAI_API_KEY: key });
  await using task = await taskFolder(plainTask);
  const origin = await deadAddress();
  const { dir } = await fixture.run({
    agents: [
      { name: 'terminus-2', model_name: 'openai/a', kwargs: { api_base: origin } },
      {
        name: 'terminus-2',
        model_name: 'openai/b',
        kwargs: { api_base: origin },
        env: { OPENAI_API_KEY: key },
      },
      {
        name: 'terminus-2',
        model_name: 'openai/c',
        kwargs: { api_base: origin, llm_kwargs: { api_key: key } },
      },
    ],
    tasks: [{ path: task.dir }],
  });
  for (const entry of await readdir(dir, { recursive: true, withFileTypes: true })) {
    if (!entry.isFile()) continue;
    const file = path.join(entry.parentPath, entry.name);
    assert.ok(!(await readFile(file, 'utf8')).includes(key), file);
  }
});
