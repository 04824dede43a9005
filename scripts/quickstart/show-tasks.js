/** Runs the bundled tasks through the CLI, as a user would, and judges the results. Runs on Slipway's Node, after set-up. */
import { spawn } from 'node:child_process';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join, relative } from 'node:path';
import { repositoryDir } from '../setup/repository.js';
import { bundledTasksDir, readExpectations } from './expectations.js';
import { Outcome } from './outcome.js';

/** The task that the agent that does nothing is shown on. */
const nopTask = 'file-answer';
const jobsDir = join(repositoryDir, 'jobs');

/**
 * Runs `slipway run` with our terminal. Its exit code is not the verdict: a refusal counts as an error there.
 *
 * @param {readonly string[]} argv
 * @returns {Promise<void>}
 */
function slipwayRun(argv) {
  console.log(`$ slipway run ${argv.map((word) => displayed(word)).join(' ')}\n`);
  return new Promise((resolve, reject) => {
    const command = [join(repositoryDir, 'bin', 'slipway.js'), 'run', ...argv];
    const child = spawn(process.execPath, command, { stdio: 'inherit' });
    child.on('error', reject);
    child.on('close', () => resolve());
    process.on('SIGTERM', () => child.kill('SIGTERM'));
  });
}

/** @param {string} word */
function displayed(word) {
  return word.startsWith(repositoryDir) ? relative(process.cwd(), word) || '.' : word;
}

/**
 * @param {string} jobName
 * @returns {Map<string, string>} Trial folders by the task's name.
 */
function trialsOf(jobName) {
  const trials = new Map();
  const jobDir = join(jobsDir, jobName);
  for (const name of existsSync(jobDir) ? readdirSync(jobDir) : []) {
    const file = join(jobDir, name, 'result.json');
    if (!existsSync(file)) continue;
    trials.set(JSON.parse(readFileSync(file, 'utf8')).task_name, join(jobDir, name));
  }
  return trials;
}

/** @param {string} environment */
async function main(environment) {
  const stamp = new Date().toISOString().replace(/[-:]|\.\d+/g, '');
  const jobs = /** @type {const} */ ([
    { agent: 'oracle', path: bundledTasksDir, name: `quickstart-${environment}-${stamp}` },
    {
      agent: 'nop',
      path: join(bundledTasksDir, nopTask),
      name: `quickstart-${environment}-${stamp}-nop`,
    },
  ]);
  const outcome = new Outcome(environment);
  for (const { agent, path, name } of jobs) {
    await slipwayRun([
      ...['--path', path, '--agent', agent, '--env', environment],
      // The bundled tasks' variables have defaults: nothing to ask the person who wanted one command.
      ...['--jobs-dir', jobsDir, '--job-name', name, '--yes'],
    ]);
    console.log('');
    const trials = trialsOf(name);
    if (trials.size === 0) {
      outcome.problems.push(`the run with ${agent} gave no trial; what it said is above`);
      break;
    }
    const shown = readExpectations().filter(({ task }) => agent !== 'nop' || task === nopTask);
    outcome.add(agent, trials, shown);
  }
  console.log(outcome.text());
  return outcome.problems.length === 0 ? 0 : 1;
}

process.exitCode = await main(process.argv[2] ?? 'local');
