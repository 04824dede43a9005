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

/** Runs the reference solution that a task brings. Its exit status decides nothing; only verification does. */
export class OracleAgent implements Agent {
  readonly name = 'oracle';
  readonly version = '1.0.0';
  readonly capabilities: AgentCapabilities = {
    resume: false,
    loadTrajectory: false,
    ignoresTrajectory: true,
    windows: false,
  };
  readonly hostFiles = ['exit-code.txt'];
  readonly hostOnlyVariables = [];
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
    const step = run.step?.name ?? null;
    const script = await solution.findScript(step);
    if (script === null) throw missingSolution(step);
    const inside = `${solutionDir}/${path.basename(script)}`;
    const environment = run.environment.withEnv(solution.env());
    await environment.uploadDir(path.dirname(script), solutionDir, signal);
    const { mode } = await stat(script);
    if ((mode & 0o555) !== 0o555)
      await environment.exec({ command: `chmod +x ${inside}`, user: 'root' }, signal);
    // The subshell keeps the redirection of a script that changes its own output.
    const { exitCode } = await environment.exec(
      {
        command: `(${inside}) > ${agentLogsDir}/oracle.txt 2>&1`,
        env: { DEBIAN_FRONTEND: 'noninteractive' },
      },
      signal,
    );
    if (exitCode !== 0) await writeFile(path.join(logsDir, 'exit-code.txt'), `${exitCode}\n`);
  }
}

function missingSolution(step: string | null): RolloutError {
  const field = `${step === null ? '' : `steps/${step}/`}solution/solve.sh`;
  return new RolloutError('TASK_SOLUTION_MISSING', `the task has no ${field}`, {
    phase: 'agent',
    field,
    remedy: `Write ${field}, or run another agent than oracle.`,
  });
}
