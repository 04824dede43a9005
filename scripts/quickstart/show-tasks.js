/** Runs the bundled tasks with the agents that know the answer and that do nothing, and judges the results. Runs on Slipway's Node, after set-up. */
import { join } from 'node:path';
import { bundledTasksDir, readExpectations } from './expectations.js';
import { Outcome } from './outcome.js';
import { jobsDir, slipway, stamp, trialsOf } from './slipway-command.js';

/** The task that the agent that does nothing is shown on. */
const nopTask = 'file-answer';

/** @param {string} environment */
async function main(environment) {
  const name = `quickstart-${environment}-${stamp()}`;
  const jobs = /** @type {const} */ ([
    { agent: 'oracle', path: bundledTasksDir, name },
    { agent: 'nop', path: join(bundledTasksDir, nopTask), name: `${name}-nop` },
  ]);
  const outcome = new Outcome(environment);
  for (const { agent, path, name: jobName } of jobs) {
    // The exit code is not the verdict: a refusal counts as an error there.
    await slipway([
      ...['run', '--path', path, '--agent', agent, '--env', environment],
      // The bundled tasks' variables have defaults: nothing to ask the person who wanted one command.
      ...['--jobs-dir', jobsDir, '--job-name', jobName, '--yes'],
    ]);
    console.log('');
    const trials = trialsOf(jobName);
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
