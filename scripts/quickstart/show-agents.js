/**
 * Runs the bundled tasks with terminus-2 against a mock engine whose script solves some of them and fails others on purpose, then checks the rewards
 * against the script, every trajectory against the format, and every sampled token against the engine's own log. Runs on Slipway's Node, after set-up.
 */
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { repositoryDir } from '../setup/repository.js';
import { agentTable, judgeAgentTrial } from './agents-outcome.js';
import { bundledTasksDir, readExpectations } from './expectations.js';
import { startMockEngine } from './mock-engine.js';
import { compareWithLog, trajectoriesOf } from './sampled-tokens.js';
import { displayed, jobsDir, slipway, slipwayOutput, stamp, trialsOf } from './slipway-command.js';

const interruptedCode = 130;
const policy = join(repositoryDir, 'examples', 'policies', 'terminus-quickstart.js');

/** @param {string} environment */
async function main(environment) {
  const { expectedRewards } = await import(policy);
  const name = `quickstart-agents-${environment}-${stamp()}`;
  const log = join(jobsDir, `${name}.engine.ndjson`);
  mkdirSync(jobsDir, { recursive: true });
  const engine = await startMockEngine([
    ...['--policy', policy, '--non-canonical', '0.3', '--log', log],
  ]);
  let exitCode = 0;
  try {
    exitCode = await slipway([
      ...['run', '--path', bundledTasksDir, '--env', environment],
      ...['--agent', 'terminus-2', '--model', 'openai/mock', '--ak', `api_base=${engine.url}/v1`],
      ...['--ak', 'collect_rollout_details=true'],
      // The bundled tasks' variables have defaults: nothing to ask the person who wanted one command.
      ...['--jobs-dir', jobsDir, '--job-name', name, '--yes'],
    ]);
  } finally {
    await engine.stop();
  }
  if (exitCode === interruptedCode) return exitCode;
  const trials = trialsOf(name);
  const rows = readExpectations()
    .filter(({ task }) => task in expectedRewards)
    .map((task) =>
      judgeAgentTrial(task, expectedRewards[task.task], {
        environment,
        trialDir: trials.get(task.name),
      }),
    );
  console.log(`\n${agentTable(rows)}\n`);
  const problems = rows
    .filter(({ isProblem }) => isProblem)
    .map(
      ({ task, verdict, reward, expected }) => `${task}: ${verdict} (${reward} for ${expected})`,
    );
  const trajectories = [...trials.values()].flatMap(trajectoriesOf);
  problems.push(...(await trajectoryProblems(trajectories, log)));
  if (problems.length > 0) {
    console.log(['Not as expected:', ...problems.map((line) => `  ${line}`)].join('\n'));
  }
  console.log(`Trajectories: ${displayed(join(jobsDir, name))}/<trial>/agent/trajectory.json`);
  console.log(`The engine's log: ${displayed(log)}`);
  return problems.length === 0 ? 0 : 1;
}

/**
 * @param {readonly string[]} trajectories
 * @param {string} log
 * @returns {Promise<string[]>}
 */
async function trajectoryProblems(trajectories, log) {
  if (trajectories.length === 0) return ['no trial wrote a trajectory'];
  const problems = [];
  const { code, output } = await slipwayOutput(['trajectory', 'validate', ...trajectories]);
  if (code === 0) console.log(`${trajectories.length} trajectories, every one is valid.`);
  else problems.push(`slipway trajectory validate ended with ${code}:`, output.trimEnd());
  const { calls, tokens, nonCanonical, problems: differences } = compareWithLog(log, trajectories);
  problems.push(...differences);
  if (differences.length === 0) {
    const share = Math.round((nonCanonical / calls) * 100);
    console.log(
      `The trajectories hold the engine's ids and log-probabilities: ${calls} calls, ${tokens} sampled tokens, ${share} % of the replies not canonical.`,
    );
  }
  return problems;
}

process.exitCode = await main(process.argv[2] ?? 'local');
