/** The command tree. Harbor's names come first; ours stand beside them. */
import { Command } from 'commander';
import { addAgentsCommands } from './commands/agents.ts';
import { addCleanupCommand } from './commands/cleanup.ts';
import { addCollectCommand } from './commands/collect.ts';
import { addConfigCommands } from './commands/config.ts';
import { addEngineCommand } from './commands/engine.ts';
import { addEvalCommands } from './commands/eval.ts';
import { addCompareCommand, addResumeCommand } from './commands/jobs.ts';
import { addPreflightCommand } from './commands/preflight.ts';
import { addRunCommand } from './commands/run.ts';
import { addServeCommand } from './commands/serve.ts';
import { addWorkerCommand } from './commands/worker.ts';
import { addCallbacksCommands, addRolloutsCommands } from './commands/rollouts.ts';
import { addCancelCommand, addDoctorCommand, addStatusCommand } from './commands/status.ts';
import { addSessionsCommands } from './commands/sessions.ts';
import { addStoreCommands } from './commands/store.ts';
import { addTaskCommands } from './commands/task.ts';
import { addVerifyCommand } from './commands/verify-sessions.ts';
import { addTrajectoryCommands } from './commands/trajectory.ts';
import { addTrialsCommands } from './commands/trials.ts';
import { addTrialStartCommand } from './commands/trial-start.ts';
import type { CommandScope } from './command-scope.ts';

export type RunAction = (action: (scope: CommandScope) => Promise<number>) => Promise<void>;

/** `run` gets what the user chose; it decides the exit code. */
export function buildProgram(version: string, run: RunAction): Command {
  const program = new Command('slipway')
    .description('runs Harbor tasks in sandboxes and verifies what agents did')
    .version(version, '-v, --version', 'print the version')
    .helpCommand(false)
    .exitOverride();
  addRunCommand(program, 'run', run);
  addPreflightCommand(program, run);
  addServeCommand(program, run);
  addWorkerCommand(program, run);
  addStatusCommand(program, run);
  addCancelCommand(program, run);
  addDoctorCommand(program, run);
  addCollectCommand(program, run);
  const evals = program.command('eval').description('evaluate over a dataset of rows');
  addEvalCommands(evals, run);
  const rollouts = program.command('rollouts').description('look at the rollouts of a server');
  addRolloutsCommands(rollouts, run);
  const callbacks = program.command('callbacks').description('see to callbacks that nobody took');
  addCallbacksCommands(callbacks, run);
  const store = program.command('store').description('copy and convert the store of a server');
  addStoreCommands(store, run);

  const jobs = program.command('jobs').alias('job').description('finish and compare jobs');
  addRunCommand(jobs, 'start', run);
  addResumeCommand(jobs, run);
  addCompareCommand(jobs, run);

  const trials = program.command('trials').alias('trial').description('look at finished trials');
  addTrialStartCommand(trials, run);
  addTrialsCommands(trials, run);

  const tasks = program.command('task').alias('tasks').description('write and check tasks');
  addTaskCommands(tasks, run);

  const agents = program.command('agents').alias('agent').description('list and check agents');
  addAgentsCommands(agents, run);

  addEngineCommand(program, run);
  const trajectories = program.command('trajectory').description('look at ATIF trajectories');
  addTrajectoryCommands(trajectories, run);

  const sessions = program.command('sessions').description('look at what sessions leave');
  addSessionsCommands(sessions, run);
  addVerifyCommand(sessions, run);

  const config = program.command('config').description('look at the configuration of the server');
  addConfigCommands(config, run);

  addCleanupCommand(program, run);
  return program;
}
