import assert from 'node:assert/strict';
import { writeFile } from 'node:fs/promises';
import path from 'node:path';
import { test } from 'node:test';
import type { AgentOptions } from '../../src/agents/agent.ts';
import { runJob } from '../../src/app/run-job.ts';
import { readJobRequest } from '../../src/config/job-request.ts';
import type { FlagValues } from '../../src/config/run-flags.ts';
import { never } from '../../src/core/linked-abort.ts';
import { emptyAgentResult } from '../../src/wire/harbor/trial-result.ts';
import { plainTask, taskFolder } from '../fakes/task-folder.ts';
import { AppFixture } from './app-fixture.ts';

/** Runs what a command line asks for, on a fake machine, with an agent that notes what it is given and reports a use of tokens. */
async function runWith(flags: FlagValues, jobFile: string | null = null) {
  await using fixture = await AppFixture.create({ OPENAI_BASE_URL: 'http://host.invalid/v1' });
  await using task = await taskFolder(plainTask);
  const file = path.join(fixture.root, 'job.yaml');
  if (jobFile !== null) await writeFile(file, jobFile);
  const { config } = await readJobRequest(
    {
      ...flags,
      ...(jobFile !== null && { '--config': file }),
      '--path': task.dir,
      '--env': 'fake',
      '--jobs-dir': path.join(fixture.root, 'jobs'),
    },
    fixture.root,
  );
  const given: AgentOptions[] = [];
  const outcome = await runJob(
    {
      config,
      sources: null,
      allowUnsandboxed: false,
      observe: () => undefined,
      note: () => undefined,
      confirmVariables: () => Promise.resolve(true),
      signal: never,
    },
    {
      ...fixture.ports,
      resolveAgent: () =>
        Promise.resolve((options) => {
          given.push(options);
          return {
            name: options.name,
            version: '1',
            capabilities: { resume: false, loadTrajectory: false, windows: false },
            hostFiles: [],
            hostOnlyVariables: [],
            setup: () => Promise.resolve(),
            run: (run) => {
              run.record({
                ...emptyAgentResult,
                n_input_tokens: 100,
                n_cache_tokens: 40,
                n_output_tokens: 7,
                metadata: { n_episodes: 3 },
              });
              return Promise.resolve();
            },
          };
        }),
    },
  );
  assert.ok(outcome !== null);
  return { given, outcome };
}

test('options, variables and the model of the command line reach the agent, the host’s variables beside them', async () => {
  const { given } = await runWith({
    '--agent': ['terminus-2'],
    '--model': ['openai/small'],
    '--agent-kwarg': ['api_base=http://engine.invalid/v1?a=b', 'max_turns=3', 'model_info={"a":1}'],
    '--agent-env': ['OPENAI_API_KEY=sk-ours'],
  });
  const [options] = given;
  assert.equal(given.length, 1);
  assert.equal(options?.modelName, 'openai/small');
  assert.deepEqual(options.kwargs, {
    api_base: 'http://engine.invalid/v1?a=b',
    max_turns: 3,
    model_info: { a: 1 },
  });
  assert.deepEqual(options.env, { OPENAI_API_KEY: 'sk-ours' });
  assert.ok(options.secrets.includes('sk-ours'));
  assert.equal(options.hostVariables['OPENAI_BASE_URL'], 'http://host.invalid/v1');
});

test('agents of a job file keep their own options; flags are laid over all of them', async () => {
  const jobFile = [
    'agents:',
    '  - {name: terminus-2, model_name: openai/a, kwargs: {api_base: "http://a.invalid", max_turns: 1}}',
    '  - {name: terminus-2, model_name: openai/b, kwargs: {api_base: "http://b.invalid"}}',
  ].join('\n');
  const { given } = await runWith({ '--agent-kwarg': ['max_turns=9'] }, jobFile);
  const byModel = given
    .map(({ modelName, kwargs }) => [modelName, kwargs] as const)
    .sort(([a], [b]) => String(a).localeCompare(String(b)));
  assert.deepEqual(byModel, [
    ['openai/a', { api_base: 'http://a.invalid', max_turns: 9 }],
    ['openai/b', { api_base: 'http://b.invalid', max_turns: 9 }],
  ]);
});

test('several models are several agents of one job, each with its own average; tokens and turns add up', async () => {
  const { outcome } = await runWith({
    '--agent': ['terminus-2', 'other'],
    '--model': ['openai/a', 'openai/b'],
  });
  const { stats } = outcome.report.result;
  assert.equal(outcome.report.trials.length, 4);
  assert.equal(Object.keys(stats.evals).length, 4);
  assert.deepEqual(
    [stats.n_input_tokens, stats.n_cache_tokens, stats.n_output_tokens, stats.cost_usd],
    [400, 160, 28, null],
  );
  assert.deepEqual(
    outcome.report.trials.map(({ turns }) => turns),
    [3, 3, 3, 3],
  );
});
