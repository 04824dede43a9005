/**
 * What a trainer does: asks for batches of groups, gets each at the pace of the fastest, and finds the rest gone. A rollout server runs terminus-2 on bundled tasks in sandboxes, a
 * mock engine with uneven latency plays the model, `slipway collect` oversamples. Runs on Slipway's Node, after set-up.
 */
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { repositoryDir } from '../setup/repository.js';
import { startInBackground } from './background-command.js';
import { groupTable, problemsOf, readCollected } from './collect-outcome.js';
import { bundledTasksDir } from './expectations.js';
import { startMockEngine } from './mock-engine.js';
import { displayed, jobsDir, slipway, stamp } from './slipway-command.js';

const policy = join(repositoryDir, 'examples', 'policies', 'terminus-quickstart.js');
const tasks = ['artifacts', 'file-answer', 'partial-reward', 'planted-reward', 'working-folder'];
const size = { batches: 2, groups: 3, started: 5, members: 2 };

/** @param {string} environment */
async function main(environment) {
  const { expectedRewards } = await import(policy);
  const dir = join(jobsDir, `quickstart-collect-${environment}-${stamp()}`);
  mkdirSync(dir, { recursive: true });
  const files = Object.fromEntries(
    ['slipway.toml', 'collect.toml', 'rows.jsonl', 'groups.ndjson'].map((name) => [
      name,
      join(dir, name),
    ]),
  );
  const { 'slipway.toml': server = '', 'collect.toml': collection = '' } = files;
  const { 'rows.jsonl': rows = '', 'groups.ndjson': output = '' } = files;
  writeFileSync(server, serverText(environment));
  writeFileSync(rows, tasks.map(rowText).join(''));
  const latency = ['--token-latency', 'constant:0.2', '--latency', 'pareto:40,1.1,6000'];
  const engine = await startMockEngine(['--policy', policy, ...latency]);
  /** @type {string[]} */
  let problems = [];
  try {
    const serving = await startInBackground(['serve', '--config', server]);
    try {
      writeFileSync(collection, collectionText(serving.url, engine.url));
      const code = await slipway(['collect', collection, '--output', output]);
      if (code !== 0) return code;
      const collected = readCollected(readFileSync(output, 'utf8'));
      console.log(`\n${groupTable(collected.groups)}\n`);
      const { batches, groups, members } = size;
      problems = problemsOf(collected, { rewards: expectedRewards, batches, groups, members });
    } finally {
      await serving.stop();
    }
  } finally {
    await engine.stop();
  }
  if (problems.length > 0) {
    console.log(['Not as expected:', ...problems.map((line) => `  ${line}`)].join('\n'));
  } else {
    console.log(
      'Two batches were collected; what they did not need is gone, and each sampled token is there with its log-probability.',
    );
  }
  console.log(whereToLook({ output, collection, dir }));
  return problems.length === 0 ? 0 : 1;
}

/** @param {string} environment */
function serverText(environment) {
  return [
    ...['data_dir = "data"', '', '[listen]', 'port = 0 # any free one', 'data_port = 0', ''],
    ...[
      '[gateway]',
      'engine_kind = "sglang" # it is asked for token ids and log-probabilities',
      '',
    ],
    ...['[backend]', 'kind = "native" # one Harbor trial per rollout', ''],
    ...['[backend.native]', 'agent = "terminus-2"', `environment = "${environment}"`, ''],
    ...['[admission]', 'max_concurrent = 4', 'max_queue_depth = 64', ''],
  ].join('\n');
}

/** @param {string} task */
function rowText(task) {
  const metadata = { harbor_task: join(bundledTasksDir, task) };
  return `${JSON.stringify({ prompt: `Solve ${task}.`, label: task, metadata })}\n`;
}

/** @param {string} server @param {string} engine */
function collectionText(server, engine) {
  return [
    ...[`batches = ${size.batches}`, ''],
    ...['[dataset]', 'file = "rows.jsonl"', 'epochs = 8', 'shuffle_seed = 7', ''],
    ...['[server]', `url = "${server}"`, ''],
    ...['[model]', `url = "${engine}/v1"`, ''],
    ...['[engines]', `urls = ["${engine}"] # aborted when a batch is full`, ''],
    ...['[collector]', `group_size = ${size.members}`, `batch_groups = ${size.groups}`],
    ...[`start_groups = ${size.started} # oversampling: the fastest are the batch`, ''],
  ].join('\n');
}

/** @param {{ readonly output: string, readonly collection: string, readonly dir: string }} files */
function whereToLook({ output, collection, dir }) {
  return [
    `The groups, a line of JSON each: ${displayed(output)}`,
    `What was asked for: ${displayed(collection)}`,
    `What the server keeps of every rollout: ${displayed(join(dir, 'data', 'archive'))}/<rollout>/`,
    'A trainer that learns from such groups: npm run learn',
  ].join('\n');
}

const [environment = 'local'] = process.argv.slice(2);
process.exitCode = await main(environment);
