import { stat, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { RolloutError } from '../../core/errors.ts';
import {
  agentLogsDir,
  type Agent,
  type AgentCapabilities,
  type AgentOptions,
  type AgentRun,
} from '../agent.ts';

const solutionDir = '/solution';
const scriptName = 'solve.sh';

/** Runs the reference solution that a task brings. Its exit status decides nothing; only verification does. */
export class OracleAgent implements Agent {
  readonly name = 'oracle';
  readonly version = '1.0.0';
  readonly capabilities: AgentCapabilities = {
    resume: false,
    loadTrajectory: false,
    windows: false,
  };
  readonly #options: AgentOptions;

  constructor(options: AgentOptions) {
    this.#options = options;
  }

  setup(): Promise<void> {
    return Promise.resolve();
  }

  /** Throws TASK_SOLUTION_MISSING when the task, or this step, has no `solve.sh`. */
  async run(run: AgentRun, signal: AbortSignal): Promise<void> {
    const { logsDir, solution } = this.#options;
    const hostDir = await findSolution(solution.taskDir, run.step?.name ?? null);
    const environment = run.environment.withEnv(solution.env());
    await environment.uploadDir(hostDir, solutionDir, signal);
    const { mode } = await stat(path.join(hostDir, scriptName));
    if ((mode & 0o555) !== 0o555)
      await environment.exec(
        { command: `chmod +x ${solutionDir}/${scriptName}`, user: 'root' },
        signal,
      );
    // The subshell keeps the redirection of a script that changes its own output.
    const { exitCode } = await environment.exec(
      {
        command: `(${solutionDir}/${scriptName}) > ${agentLogsDir}/oracle.txt 2>&1`,
        env: { DEBIAN_FRONTEND: 'noninteractive' },
      },
      signal,
    );
    if (exitCode !== 0) await writeFile(path.join(logsDir, 'exit-code.txt'), `${exitCode}\n`);
  }
}

/** The step's own solution when its folder exists, else the task's. */
async function findSolution(taskDir: string, step: string | null): Promise<string> {
  const stepDir = step === null ? null : path.join(taskDir, 'steps', step, 'solution');
  const dir =
    stepDir !== null && (await exists(stepDir)) ? stepDir : path.join(taskDir, 'solution');
  if (await exists(path.join(dir, scriptName))) return dir;
  const field = path.relative(taskDir, path.join(dir, scriptName));
  throw new RolloutError('TASK_SOLUTION_MISSING', `the task has no ${field}`, {
    phase: 'agent',
    field,
    remedy: `Write ${field}, or run another agent than oracle.`,
  });
}

async function exists(file: string): Promise<boolean> {
  return (await stat(file).catch(() => null)) !== null;
}
