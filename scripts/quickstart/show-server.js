/**
 * Starts a rollout server and a mock engine, lets a small controller ask for several rollouts of some bundled tasks, and checks the rewards that the
 * callbacks bring against the script that the mock engine plays. Runs on Slipway's Node, after set-up.
 */
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { repositoryDir } from '../setup/repository.js';
import { startInBackground } from './background-command.js';
import { bundledTasksDir } from './expectations.js';
import { nodeOutput } from './node-output.js';
import { startMockEngine } from './mock-engine.js';
import { judgeTask, readResults, taskTable } from './server-outcome.js';
import { displayed, jobsDir, slipway, stamp } from './slipway-command.js';

const interruptedCode = 130;
const policy = join(repositoryDir, 'examples', 'policies', 'terminus-quickstart.js');
const controller = join(repositoryDir, 'examples', 'controller.js');
const ownPackage = join(repositoryDir, 'scripts', 'quickstart', 'own-package.js');

const allTasks = [
  'artifacts',
  'environment-templates',
  'file-answer',
  'partial-reward',
  'planted-reward',
  'working-folder',
];

/**
 * @param {string} environment
 * @param {{ readonly tasks: readonly string[], readonly rollouts: number }} size
 */
async function main(environment, { tasks, rollouts }) {
  const { expectedRewards } = await import(policy);
  const dir = join(jobsDir, `quickstart-server-${environment}-${stamp()}`);
  const config = join(dir, 'slipway.toml');
  mkdirSync(dir, { recursive: true });
  writeFileSync(config, configText(environment, tasks.length * rollouts));
  const engine = await startMockEngine(['--policy', policy]);
  /** @type {string[]} */
  let problems = [];
  try {
    const server = await startInBackground(['serve', '--config', config]);
    try {
      const { code, output } = await nodeOutput([
        ...['--import', ownPackage, controller, '--server', server.url],
        ...['--model-url', `${engine.url}/v1`, '--rollouts', String(rollouts)],
        ...tasks.map((task) => join(bundledTasksDir, task)),
      ]);
      if (code === interruptedCode) return code;
      const results = readResults(output);
      const rows = tasks.map((task) =>
        judgeTask(task, results, { reward: expectedRewards[task], rollouts }),
      );
      console.log(`\n${taskTable(rows)}\n`);
      problems = rows.flatMap((row) => row.problems);
      if (code !== 0 && problems.length === 0) problems.push(`the controller ended with ${code}`);
      await lookAround(server.url, results[0]?.id ?? '');
    } finally {
      await server.stop();
    }
  } finally {
    await engine.stop();
  }
  if (problems.length > 0) {
    console.log(['Not as expected:', ...problems.map((line) => `  ${line}`)].join('\n'));
  }
  console.log(whereToLook(dir, config));
  return problems.length === 0 ? 0 : 1;
}

/** @param {string} environment @param {number} rollouts */
function configText(environment, rollouts) {
  return [
    'data_dir = "data"',
    '',
    '[listen]',
    'port = 0 # any free one',
    '',
    '[backend]',
    'kind = "native" # one Harbor trial per rollout',
    '',
    '[backend.native]',
    'agent = "terminus-2"',
    `environment = "${environment}"`,
    '',
    '[admission]',
    'max_concurrent = 4',
    `max_queue_depth = ${rollouts}`,
    '',
  ].join('\n');
}

/**
 * What an operator would ask, while the server still runs.
 *
 * @param {string} url
 * @param {string} id
 */
async function lookAround(url, id) {
  await slipway(['status', '--url', url]);
  console.log('');
  await slipway(['doctor', '--url', url]);
  console.log('');
  if (id !== '') await slipway(['rollouts', 'show', id, '--url', url]);
  console.log('');
}

/** @param {string} dir @param {string} config */
function whereToLook(dir, config) {
  return [
    `What is kept of every rollout: ${displayed(join(dir, 'data', 'archive'))}/<rollout>/`,
    `The log of the server: ${displayed(join(dir, 'data', 'logs', 'server.ndjson'))}`,
    `The same server again, on its own data: node bin/slipway.js serve --config ${displayed(config)}`,
    '  then, with the address that it prints: slipway status, doctor, rollouts ls|show|download',
    '  (--url URL), and URL/metrics for Prometheus, URL/api/v1/openapi.json for the API.',
    `The controller: ${displayed(controller)}`,
  ].join('\n');
}

const [environment = 'local', ...only] = process.argv.slice(2);
process.exitCode = await main(environment, {
  tasks: only.length > 0 ? only : allTasks,
  rollouts: only.length > 0 ? 2 : 4,
});
