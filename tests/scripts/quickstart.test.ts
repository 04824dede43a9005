import assert from 'node:assert/strict';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { after, before, test } from 'node:test';
import { agentTable, judgeAgentTrial } from '../../scripts/quickstart/agents-outcome.js';
import type { Expectation } from '../../scripts/quickstart/expectations.js';
import { compareWithLog, trajectoriesOf } from '../../scripts/quickstart/sampled-tokens.js';

let root = '';
before(async () => {
  root = await mkdtemp(path.join(os.tmpdir(), 'slipway-quickstart-'));
});
after(() => rm(root, { recursive: true, force: true }));

interface Call {
  readonly prompt: readonly number[];
  readonly output: readonly number[];
  readonly logprobs: string;
}

const calls: readonly Call[] = [
  { prompt: [1, 2], output: [3, 4], logprobs: '[-0.5,-0.0]' },
  { prompt: [1, 2], output: [3, 4], logprobs: '[-0.5,-0.0]' },
  { prompt: [1, 2, 3], output: [5], logprobs: '[0]' },
];

async function compare(logged: readonly Call[], kept: readonly Call[]) {
  const log = path.join(root, 'engine.ndjson');
  await writeFile(
    log,
    logged
      .map(
        ({ prompt, output, logprobs }) =>
          `{"prompt_ids":${JSON.stringify(prompt)},"output_ids":${JSON.stringify(output)},"logprobs":${logprobs},"canonical":false}\n`,
      )
      .join(''),
  );
  const file = path.join(root, 'trajectory.json');
  const steps = kept.map(
    ({ prompt, output, logprobs }, index) =>
      `{"step_id":${index + 2},"source":"agent","metrics":{"prompt_token_ids":${JSON.stringify(prompt)},"completion_token_ids":${JSON.stringify(output)},"logprobs":${logprobs}}}`,
  );
  await writeFile(file, `{"steps":[{"step_id":1,"source":"user"},${steps.join(',')}]}`);
  return compareWithLog(log, [file]);
}

test('trajectories that hold each call of the log once are as they should be', async () => {
  assert.deepEqual(await compare(calls, calls), {
    calls: 3,
    tokens: 5,
    nonCanonical: 3,
    problems: [],
  });
});

const [first, , last] = calls as [Call, Call, Call];
for (const [what, kept, count] of [
  ['a lost call', calls.slice(0, 2), 1],
  ['a call that is there twice', [...calls, last], 1],
  ['another id', [first, { ...first, output: [3, 5] }, last], 2],
  ['another sign of zero', [first, { ...first, logprobs: '[-0.5,0]' }, last], 2],
  [
    'a log-probability that is off by its last bit',
    [first, first, { ...last, logprobs: '[5e-324]' }],
    2,
  ],
] as const)
  test(`${what} is found`, async () => {
    assert.equal((await compare(calls, kept)).problems.length, count);
  });

const task: Expectation = {
  task: 'one',
  name: 'slipway/one',
  feature: '',
  oracle: { reward: 1 },
  nop: { reward: 0 },
  artifacts: [],
  absentArtifacts: [],
  refusedBy: ['local'],
  needsStrictIsolation: true,
};

async function trialWith(result: object): Promise<string> {
  const dir = await mkdtemp(path.join(root, 'trial-'));
  await writeFile(path.join(dir, 'result.json'), JSON.stringify(result));
  return dir;
}

const reward = (value: number) => ({ verifier_result: { rewards: { reward: value } } });
const failed = (code: string) => ({ verifier_result: null, slipway: { failure: { code } } });
const isolated = (isolation: string) => ({ slipway: { environment: { isolation } } });

for (const [what, environment, result, verdict, isProblem] of [
  ['the reward of the script', 'docker', reward(1), 'as expected', false],
  ['another reward', 'docker', reward(0.5), 'not as expected', true],
  ['a better reward', 'docker', { ...reward(2) }, 'not as expected', true],
  ['a failure', 'docker', failed('AGENT_TIMEOUT'), 'AGENT_TIMEOUT', true],
  [
    'a refusal where it must be',
    'local',
    failed('CAPABILITY_UNSUPPORTED'),
    'refused, as it should be',
    false,
  ],
  ['a reward where it must be refused', 'local', reward(1), 'was not refused', true],
  [
    'a lower reward in a weaker sandbox',
    'docker',
    { ...reward(0), ...isolated('weak') },
    'beyond weaker sandboxes',
    false,
  ],
] as const)
  test(`${what} is judged: ${verdict}`, async () => {
    const row = judgeAgentTrial(task, 1, { environment, trialDir: await trialWith(result) });
    assert.deepEqual([row.verdict, row.isProblem], [verdict, isProblem]);
  });

test('a trial without a result is a problem', () => {
  const row = judgeAgentTrial(task, 1, { environment: 'docker', trialDir: undefined });
  assert.ok(row.isProblem);
});

test('turns and tokens of several steps are added up in the table', async () => {
  const step = {
    agent_result: { n_input_tokens: 10, n_output_tokens: 2, metadata: { n_episodes: 3 } },
  };
  const trialDir = await trialWith({
    ...reward(1),
    agent_result: null,
    step_results: [step, step],
  });
  const table = agentTable([judgeAgentTrial(task, 1, { environment: 'docker', trialDir })]);
  assert.match(table, /^one +1 +1 +6 +20 +4 +– +as expected$/m);
});

test('documents of steps and of summaries are trajectories too; other files are not', async () => {
  const dir = path.join(root, 'trial');
  for (const name of [
    'agent/trajectory.json',
    'agent/trajectory.summarization-1-summary.json',
    'steps/a/agent/trajectory.json',
    'agent/trajectory.steps.ndjson',
    'artifacts/trajectory.json',
  ]) {
    await mkdir(path.dirname(path.join(dir, name)), { recursive: true });
    await writeFile(path.join(dir, name), '{}');
  }
  assert.deepEqual(
    trajectoriesOf(dir).map((file) => path.relative(dir, file)),
    [
      'agent/trajectory.json',
      'agent/trajectory.summarization-1-summary.json',
      'steps/a/agent/trajectory.json',
    ],
  );
});
